"""``trajudge proxy results`` on runs of an agent that is any program, behind the real proxy."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.eval.inputs import tree
from tests.proxy.program import mitmproxy
from tests.proxy.site import open_site
from tests.screens import one_screen
from trajudge.eval.cli import main

__all__ = ["mitmproxy"]
# It loads a page, and again if that fails; the standard library alone.
AGENT = """
import sys, urllib.error, urllib.request
def load(path):
    request = urllib.request.Request(sys.argv[1] + path, headers={"Sec-Fetch-Dest": "document"})
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
for path in ("/b", "/frame"):
    if load(path) != 200 and sys.argv[2] == "again":
        load(path)
"""
TASKS = {"one": "again", "two": "once", "three": "again"}
PLAN = {"faults": [{"id": "busy", "kind": "status", "status": 503, "policy": "at(2)"}]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, mitmproxy: None) -> Path:
    """Runs of three tasks without faults and with them, and how they ended."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "plan.json").write_text(json.dumps(PLAN))
    lines = ["task,arm,success,steps"]
    with open_site() as site:
        for arm, faults in (("clean", []), ("busy", ["--faults", str(folder / "plan.json")])):
            for task, habit in TASKS.items():
                out = ["--task", task, "--out", str(folder / arm / task), "--"]
                agent = [sys.executable, "-c", AGENT, site.origin, habit]
                assert main(["proxy", "run", *faults, *out, *agent]) == 0
                succeeds = arm == "clean" or habit == "again"
                lines.append(f"{task},{arm},{succeeds},{2 + (arm == 'busy' and succeeds)}")
    (folder / "outcomes.csv").write_text("\n".join(lines))
    return folder


@pytest.fixture
def folders(recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Path:
    """A copy of what was recorded."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    capfd.readouterr()
    return tmp_path


def words(folder: Path, *more: str) -> list[str]:
    arms = ["--clean", str(folder / "clean"), "--faulted", str(folder / "busy")]
    outcomes = ["--outcomes", str(folder / "outcomes.csv"), "--out", str(folder / "results")]
    return ["proxy", "results", *arms, *outcomes, *more]


def test_any_agents_runs_are_compared(
    folders: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    before = {place: tree(folders / place) for place in ("clean", "busy")}
    assert main(words(folders, "--plots", str(folders / "results"))) == 0
    assert before == {place: tree(folders / place) for place in before}, "inputs stay as they were"
    shown = one_screen(capfd.readouterr().out.replace(str(folders), ""), 100)
    _, line = [line.split() for line in shown if line.startswith("busy ")]
    assert line[1:4] == ["3", "100.0", "66.7"]
    assert "3/3" in line
    content = json.loads((folders / "results/results.json").read_text())
    (row,) = content["measures"]
    assert row["retention"]["estimate"] == pytest.approx(2 / 3)
    assert row["recovery"]["estimate"] == pytest.approx(2 / 3)
    assert (row["lost"], row["won"]) == (1, 0)
    assert row["extra"]["steps"]["estimate"] == 1
    assert row["extra"]["page_loads"]["estimate"] == 1
    assert (folders / "results/results.csv").read_text().startswith("agent,arm,kind,pairs")
    assert (folders / "results/retention.svg").exists()


def test_a_run_without_an_outcome_and_an_outcome_without_a_run_are_told(
    folders: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = folders / "outcomes.csv"
    path.write_text(path.read_text().replace("two,busy", "tow,busy"))
    for more in ((), ("--full",)):
        assert main(words(folders, *more)) == 0
        shown = " ".join(capfd.readouterr().out.split())
        assert "ended tasks without an outcome" in shown
        assert "are left out: 1 (two)" in shown
        assert "are left out: 1 (tow (busy))" in shown


def test_calls_that_nothing_measured_are_unknown_and_no_zero(
    folders: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words(folders, "--full")) == 0
    shown = " ".join(capfd.readouterr().out.split())
    assert "Accuracy by scenario" in shown
    assert "in 6 of 6 runs model calls were not measured" in shown
    (row, *_) = json.loads((folders / "results/results.json").read_text())["costs"]
    assert row["model_calls"]["estimate"] is row["dollars"]["estimate"] is None


def test_calls_of_a_measured_api_that_was_not_asked_are_zero(folders: Path) -> None:
    for log in folders.glob("*/*/events.jsonl"):
        log.write_text(log.read_text().replace('"apis": []', '"apis": ["openai"]'))
    assert main(words(folders)) == 0
    (row, *_) = json.loads((folders / "results/results.json").read_text())["costs"]
    assert row["model_calls"]["estimate"] == row["dollars"]["estimate"] == 0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("arm", "side"), "needs the columns task, arm and success"),
        (("True", "perhaps"), "success is 'perhaps'"),
        (("one,clean", "two,clean"), "has an outcome already"),
        (("steps", "seed"), None),
    ],
)
def test_a_mistake_in_the_outcomes_is_one_sentence(
    change: tuple[str, str],
    sentence: str | None,
    folders: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = folders / "outcomes.csv"
    path.write_text(path.read_text().replace(*change))
    assert main(words(folders)) == 2
    assert (sentence or "holds no ended task whose outcome") in capfd.readouterr().err


def test_what_is_not_named_is_asked_for(folders: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["proxy", "results"]) == 2
    assert "--clean, --faulted and --outcomes" in capfd.readouterr().err
    assert main(["proxy", "results", str(folders)]) == 2
    assert "no recording with faults" in capfd.readouterr().err
    assert main(words(folders, "--judge", "heuristic")) == 2
    assert "has no trajectories to judge" in capfd.readouterr().err
    again = words(folders)
    again[again.index("--faulted") + 1] = str(folders / "clean")
    assert main(again) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "error: name folders of  trajudge env record --faults , or --clean"),
        (("--faulted", "x"), "error: --clean and --outcomes must be named, too: name folders of"),
        (("x", "--clean", "y"), "error: x: name folders of .*, not both"),
        (("--clean", "x", "--faulted", "y", "--outcomes", "OWN"), "error: x: no such folder: name"),
    ],
)
def test_what_is_compared_is_named_whole_and_is_there(
    words: tuple[str, ...], sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "outcomes.csv"
    own.write_text("task,arm,success\none,clean,1\n")
    given = [str(own) if word == "OWN" else word for word in words]
    assert main(["proxy", "results", *given]) == 2
    assert re.match(sentence, capfd.readouterr().err)


def test_a_study_in_which_no_run_met_a_fault_fails_and_says_so(
    folders: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for log in (folders / "busy").rglob("events.jsonl"):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for event in lines:
            for exposure in event.get("exposure", ()):
                exposure["fired"] = exposure["fired"] if log.parent.name == "three" else []
        log.write_text("".join(json.dumps(event) + "\n" for event in lines))
    assert main(words(folders)) == 0, "one of three met one"
    (folders / "busy/three/events.jsonl").unlink()
    capfd.readouterr()
    assert main(words(folders)) == 1
    told = capfd.readouterr()
    assert told.err.startswith("0 faults fired in 2 faulted runs: nothing was measured.")
    assert "--page-requests" in told.err
    assert (folders / "results/results.json").exists()
