"""``trajudge proxy results``: recordings with faults, their events and outcomes, judges on arms."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.eval.inputs import tree
from tests.proxy.program import mitmproxy
from tests.proxy.site import open_site
from tests.screens import one_screen
from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.eval.cli import main
from trajudge.eval.cli import main as command
from trajudge.eval.resilience.reading import (
    ExperimentArm,
    FaultExperiment,
    FaultSpan,
    OutcomeFile,
    OutcomePlace,
    TaskOutcome,
    ended_tasks,
    read_events,
    read_recordings,
    span_of,
)
from trajudge.eval.resilience.results import judged, judged_before
from trajudge.eval.store.run_folder import read_judgments, write_judgments
from trajudge.judges.models import KnownPrice, Price, listed_price
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.util.errors import UserError

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


HEADER = {"format": "trajudge-recording", "version": 1}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is damaged, no JSON"),
        ("[]", "is damaged, no JSON object"),
        ('{"arms": 3}', "names no arms"),
        ('{"arms": {"clean": null}}', "a plan there is no object with a list of faults"),
        ('{"arms": {"clean": {"faults": ["busy"]}}}', "a plan there is no object with"),
    ],
)
def test_a_damaged_list_of_arms_is_named(content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "resilience.json").write_text(content)
    with pytest.raises(UserError) as raised:
        read_recordings([tmp_path], listed_price)
    assert str(raised.value).startswith(f"{tmp_path / 'resilience.json'}: {sentence}")
    assert str(raised.value).endswith(": restore it from a copy, or record or run again")


@pytest.mark.parametrize("file", ["recording.json", "runs.jsonl"])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"what": {"arm"', "is damaged, no JSON"),
        ("null", "is damaged, no JSON object"),
        (json.dumps(HEADER), "does not say what is recorded"),
        (json.dumps({**HEADER, "what": "clean"}), "does not say what is recorded"),
    ],
)
def test_a_damaged_recording_under_way_is_named(
    content: str, sentence: str, file: str, tmp_path: Path
) -> None:
    (tmp_path / "clean").mkdir()
    path = tmp_path / "clean" / file
    path.write_text(f"{content}\n")
    with pytest.raises(UserError) as raised:
        read_recordings([tmp_path], listed_price)
    assert str(raised.value).startswith(f"{path}: {sentence}")


def test_a_popup_is_accessible_unless_its_plan_says_otherwise() -> None:
    popup = {"id": "ad", "kind": "popup", "policy": "at(1)"}
    assert span_of(popup) == FaultSpan("ad", "popup", "at(1)", "full")
    assert span_of({**popup, "accessibility": "none"}).accessibility == "none"
    assert span_of({**popup, "kind": "status"}).accessibility == ""


def test_an_outcome_keeps_what_its_line_tells(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.csv"
    path.write_text("task,arm,success,agent,seed,steps\none,clean,yes,me,3,4\ntwo,clean,no,,,\n")
    assert OutcomeFile.read(path).outcomes == {
        OutcomePlace("clean", "one", 3): TaskOutcome(True, "me", 4),
        OutcomePlace("clean", "two", None): TaskOutcome(False, "", None),
    }
    for cells in (",clean,yes", "one,,yes"):
        path.write_text(f"task,arm,success\n{cells}\n")
        with pytest.raises(UserError, match="line 2: needs the columns task, arm and success"):
            OutcomeFile.read(path)


def test_a_folder_that_is_given_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is given twice: give each folder once"):
        read_recordings([tmp_path, tmp_path / "." / ""], listed_price)


# What Python's str.splitlines takes for the end of a line, and JSON and CSV do not.
SEPARATORS = ("\x85", "\u2028", "\u2029", "\x1e", "\x0b")


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_task_keeps_what_looks_like_the_end_of_a_line(tmp_path: Path, separator: str) -> None:
    task = f"buy{separator}mug"
    rows = [{"task": task, "arm": arm, "success": "yes"} for arm in ("clean", "busy")]
    lines, table = tmp_path / "outcomes.jsonl", tmp_path / "outcomes.csv"
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    lines.write_text(text, encoding="utf-8", newline="")
    header = "task,arm,success"
    cells = "\r\n".join([header, *(",".join(row.values()) for row in rows)])
    table.write_bytes(cells.encode())
    for path in (lines, table):
        assert OutcomeFile.read(path).place_of("busy", task, 1) is not None


def test_a_quoted_value_may_hold_a_line_break(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.csv"
    path.write_bytes(b'task,arm,success\n"two\nlines",clean,yes\n')
    assert OutcomeFile.read(path).place_of("clean", "two\nlines", 1) is not None


USAGE = {"input": 1000, "cache_read": 200, "cache_write": None, "output": 50, "reasoning": None}


def call(usage: dict[str, int | None] | None, model: str = "m") -> dict[str, Any]:
    return {"type": "model", "task": "t", "model": model, "usage": usage}


def task(*events: dict[str, Any]) -> list[dict[str, Any]]:
    exposure = {"fault": "busy", "planned": [2, 3], "fired": [2]}
    end = {"type": "task_end", "task": "t", "seed": 4, "seconds": 2.5, "page_loads": 3}
    latency = {"model": 1.0, "site": 0.5, "injected": 0.0, "proxy": 0.1, "agent": 0.9}
    return [
        {"type": "task", "task": "t"},
        *events,
        {**end, "latency": latency, "exposure": [exposure]},
    ]


def dear(_: str) -> KnownPrice:
    return KnownPrice(price=Price(input=10, output=20, cache_read=1))


def test_tokens_and_dollars_of_a_task() -> None:
    (figures,) = ended_tasks(task(call(USAGE), call(USAGE)), dear)
    assert (figures.model_calls, figures.tokens, figures.page_loads) == (2, 2500, 3)
    assert figures.dollars == pytest.approx(2 * (1000 * 10 + 200 * 1 + 50 * 20) / 1e6)
    assert figures.latency["model"] == 1.0
    assert figures.seconds == pytest.approx(sum(figures.latency.values()))


@pytest.mark.parametrize("usage", [None, {**USAGE, "input": None}])
def test_unknown_usage_is_unknown(usage: dict[str, int | None] | None) -> None:
    (figures,) = ended_tasks(task(call(USAGE), call(usage)), dear)
    assert (figures.model_calls, figures.tokens, figures.dollars) == (2, None, None)


def test_an_unknown_model_has_tokens_and_no_price() -> None:
    (figures,) = ended_tasks(task(call(USAGE, "no-such-model")), listed_price)
    assert (figures.tokens, figures.dollars) == (1250, None)


def test_a_task_without_calls_costs_nothing() -> None:
    (figures,) = ended_tasks(task(), dear)
    assert (figures.model_calls, figures.tokens, figures.dollars) == (0, 0, 0)


def test_recoveries_belong_to_their_fault() -> None:
    recovery = {"type": "recovery", "task": "t", "fault": "busy", "means": "reloaded"}
    (figures,) = ended_tasks(task({**recovery, "recovered": True}), dear)
    (met,) = figures.faults
    assert (met.planned, met.fired, met.recovered, met.means) == (2, 1, 1, ("reloaded",))


def test_a_task_that_did_not_end_is_none() -> None:
    assert not list(ended_tasks(task()[:-1], dear))
    assert not list(ended_tasks(task()[1:], dear))


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"type": "proxy"}\nnonsense\n{"type": "end"}\n')
    with pytest.raises(UserError, match="line 2"):
        read_events(path)
    for line in ("[]", "{}", '{"type": 3}'):
        path.write_text(f'{{"type": "proxy"}}\n{line}\n{{"type": "end"}}\n')
        with pytest.raises(UserError, match="line 2: no event of trajudge proxy"):
            read_events(path)
    path.write_text('{"type": "proxy"}\n{"type": "cut o')
    assert [event["type"] for event in read_events(path)] == ["proxy"]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("seed", None, "seed is None"),
        ("seconds", "x", "seconds is 'x'"),
        ("seconds", -1, "seconds is -1"),
        ("page_loads", [], "page_loads is []"),
        ("latency", {"model": "fast"}, "latency.model is 'fast'"),
        ("exposure", [{"fault": "busy", "planned": 1, "fired": []}], "exposure.0.planned is 1"),
    ],
)
def test_a_damaged_event_is_named_with_its_line(
    name: str, value: object, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    begin, end = task()
    path.write_text(f"{json.dumps(begin)}\n{json.dumps({**end, name: value})}\n")
    with pytest.raises(UserError) as raised:
        read_events(path)
    assert str(raised.value).startswith(
        f"{path}, line 2: the task_end event is damaged: {sentence}"
    )


def test_calls_and_recoveries_are_looked_at_as_well(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for event in ({**call(None), "usage": [1]}, {"type": "recovery", "task": "t"}):
        path.write_text(f"{json.dumps(event)}\n")
        with pytest.raises(UserError, match=f"line 1: the {event['type']} event is damaged"):
            read_events(path)


# The heuristic judge accepts a run that ends with a message: all of these.
RIGHT = {"careful": {"clean": True, "busy": True}, "careless": {"clean": False}}


def recording(folder: Path, arm: str) -> ExperimentArm:
    """Six tasks by each agent that has runs in the arm, all right or all wrong."""
    runs, labels = [], []
    for agent, arms in RIGHT.items():
        for number in range(6 if arm in arms else 0):
            key = TrajectoryKey(benchmark="shop", agent=agent, task_id=f"t{number}")
            said = Step(
                index=0,
                observation=Observation(url="http://x/"),
                action="send_msg_to_user('a')",
            )
            seen = Observation(url="http://x/", axtree=f"RootWebArea '/{agent}'")
            last = Step(index=1, observation=seen)
            runs.append(
                Trajectory(
                    key=key,
                    raw_task_id=key.task_id,
                    goal="g",
                    steps=(said, last),
                    answer="a",
                    terminated=True,
                )
            )
            labels.append(Label(key=key, raw_task_id=key.task_id, annotator="x", success=arms[arm]))
    store.write(folder / arm, runs)
    annotation_store.write(folder / arm / "labels.jsonl", labels)
    return ExperimentArm(arm, [], folders=(str(folder / arm),))


def test_an_arm_without_an_agent_is_compared_without_it(tmp_path: Path) -> None:
    clean, busy = recording(tmp_path, "clean"), recording(tmp_path, "busy")
    rows = judged(FaultExperiment(clean, [busy]), ["heuristic"], {})
    assert [(row.arm, row.runs, row.accepted) for row in rows] == [
        ("clean", 12, 12),
        ("busy", 6, 6),
    ]
    assert [row.precision.estimate for row in rows] == [0.5, 1.0]
    assert rows[1].difference is not None
    assert rows[1].difference.estimate == 0


REPLY = (
    "<reasoning>r</reasoning>\n<success>{}</success>\n<side>No</side>\n"
    "<optimal>4. Completely Optimal</optimal>\n<loop>No</loop>"
)


def judged_by_a_model(data: Path, out: Path) -> Path:
    """Run ``trajudge judge`` with replies from a file: only the careful agent's page tells."""
    lines = [("/careful", "Successful"), ("", "Unsuccessful")]
    script = out.parent / "replies.jsonl"
    script.parent.mkdir(exist_ok=True)
    replies = [{"match": match, "text": REPLY.format(word)} for match, word in lines]
    script.write_text("".join(f"{json.dumps(one)}\n" for one in replies))
    words = ["--model", "m", "--adapter", "scripted", "--script", str(script), "--yes"]
    assert command(["judge", *words, "--data", f"trajudge:{data}", "--out", str(out)]) == 0
    return out


def test_arms_that_a_model_judged_are_read_back(tmp_path: Path) -> None:
    clean, busy = recording(tmp_path, "clean"), recording(tmp_path, "busy")
    runs = [
        judged_by_a_model(tmp_path / arm, tmp_path / "judged" / arm) for arm in ("clean", "busy")
    ]
    rows, notes = judged_before(FaultExperiment(clean, [busy]), runs)
    assert not notes
    assert [(row.judge, row.arm, row.runs, row.accepted) for row in rows] == [
        ("simplified-axtree:m", "clean", 12, 6),
        ("simplified-axtree:m", "busy", 6, 6),
    ]
    assert [row.precision.estimate for row in rows] == [1.0, 1.0]
    assert [row.recall.estimate for row in rows] == [1.0, 1.0]
    twice = [one.model_copy(update={"success": not one.success}) for one in read_judgments(runs[1])]
    write_judgments(runs[1], [*twice, *read_judgments(runs[1])])
    again, (note,) = judged_before(FaultExperiment(clean, [busy]), runs)
    assert again == rows, "the last of each counts"
    assert "holds 6 judgments more than once, 6 of them with another verdict" in note
    with pytest.raises(UserError, match="judged busy alone: name its runs on the clean arm"):
        judged_before(FaultExperiment(clean, [busy]), runs[1:])
    with pytest.raises(UserError, match="judged clean alone: name its runs on the clean arm"):
        judged_before(FaultExperiment(clean, [busy]), runs[:1])
    with pytest.raises(UserError, match="which is no arm of these recordings"):
        judged_before(FaultExperiment(clean, []), runs[1:])
    with pytest.raises(UserError, match=r"manifest.json"):
        judged_before(FaultExperiment(clean, [busy]), [tmp_path])


def test_two_runs_of_one_judge_do_not_count_a_trajectory_twice(tmp_path: Path) -> None:
    clean, busy = recording(tmp_path, "clean"), recording(tmp_path, "busy")
    runs = [
        judged_by_a_model(tmp_path / arm, tmp_path / "judged" / name)
        for arm, name in (("clean", "clean"), ("busy", "busy"), ("busy", "again"))
    ]
    experiment = FaultExperiment(clean, [busy])
    with pytest.raises(UserError, match=r"on the busy arm that .*busy holds, too, .* twice: name"):
        judged_before(experiment, runs)
    with pytest.raises(UserError, match="busy: is given twice: give each folder once"):
        judged_before(experiment, [*runs[:2], runs[1]])
    # Halves of an arm, in a run each, are one.
    whole, rest = read_judgments(runs[1]), [runs[0], runs[1], runs[2]]
    write_judgments(runs[1], whole[:2])
    write_judgments(runs[2], whole[2:])
    rows, _ = judged_before(experiment, rest)
    assert [row.runs for row in rows] == [12, 6]
