"""Recorded runs are verified again from their facts, and a label that is not so is found."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.environments.cases import agent, job, sound
from tests.environments.offline import recorded as record
from trajudge.environments import recheck
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.apps import load_app
from trajudge.environments.recheck import content_digest, rechecked
from trajudge.eval.cli import main
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import sample_path
from trajudge.util.errors import UserError


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs of two tasks: a purchase, nothing done, a wish, and a wish for another product."""
    buy, wish = sound("buy"), sound("wish")
    jobs = [
        job(buy, agent(Behaviour.ORACLE)),
        job(buy, agent(Behaviour.NOTHING)),
        job(wish, agent(Behaviour.ORACLE)),
        job(wish, agent(Behaviour.NEAR_MISS)),
    ]
    return record(tmp_path_factory.mktemp("recording"), [buy, wish], jobs)


@pytest.fixture
def recorded(recording: Path, tmp_path: Path) -> Path:
    """A copy of the recording."""
    folder = tmp_path / "recorded"
    shutil.copytree(recording, folder)
    return folder


def edit(file: Path, changes: dict[str, object], line: int) -> None:
    lines = file.read_text().splitlines()
    lines[line] = json.dumps({**json.loads(lines[line]), **changes})
    file.write_text("\n".join(lines) + "\n")


def test_every_label_follows_from_the_state(recorded: Path) -> None:
    runs = list(rechecked(recorded))
    assert [run.found is not None and run.found.labels.success for run in runs] == [
        True, False, True, False,
    ]  # fmt: skip
    assert [run.trajectory.key for run in runs if run.differences] == []


def test_the_sample_and_what_is_perturbed_of_it_are_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["env", "verify", str(sample_path())]) == 0
    assert "the labels of 130 of 130 runs are what the state gives" in capsys.readouterr().out
    out = tmp_path / "attacked"
    given = ["--data", "sample", "--limit", "1", "--out", str(out), "--perturbation", "terse"]
    assert main(["data", "perturb", *given]) == 0
    assert main(["env", "verify", str(out)]) == 0


def test_a_run_of_other_content_is_refused_though_all_else_is_right(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(recorded / "facts.jsonl", {"content": "0" * 16}, line=2)
    assert main(["env", "verify", str(recorded)]) == 2
    assert f"{sound('wish').id}" in capsys.readouterr().err


@pytest.mark.parametrize("changed", ["rows", "scenarios"])
def test_the_digest_follows_what_the_application_holds(
    changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, app = sound("buy").config, load_app("shop")
    now = content_digest(config)
    assert content_digest(config.model_copy(update={"instance": 7, "theme": 3})) == now
    assert content_digest(config.model_copy(update={"profile": config.profile + 1})) != now
    other: dict[str, dict[str, Any]] = {
        "rows": {"profile": lambda rng, index: app.profile(rng, index + 1)},
        "scenarios": {"scenario_file": f"{app.scenario_file}\n"},
    }
    monkeypatch.setattr(recheck, "load_app", lambda name: replace(app, **other[changed]))
    recheck._digest.cache_clear()
    assert content_digest(config) != now
    recheck._digest.cache_clear()


def test_a_label_that_is_not_what_the_state_gives_is_named(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(recorded / "labels.jsonl", {"success": False}, line=1)
    assert main(["env", "verify", str(recorded)]) == 1
    shown = capsys.readouterr()
    assert "success is False, the state gives True" in shown.err
    assert "3 of 4 runs" in shown.out


@pytest.mark.parametrize("file", ["labels.jsonl", "facts.jsonl"])
def test_a_run_that_a_file_does_not_name_is_not_verified_in_silence(
    file: str, recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (recorded / file).read_text().splitlines()
    (recorded / file).write_text("\n".join(lines[:-1]) + "\n")
    assert main(["env", "verify", str(recorded)]) == 1
    shown = capsys.readouterr()
    assert f"in {recorded / file}" in shown.err
    assert "3 of 4 runs" in shown.out


def test_a_change_that_is_missing_from_the_facts_is_noticed(recorded: Path) -> None:
    """Truth is made from the state, not copied from the predicates that were recorded."""
    edit(recorded / "facts.jsonl", {"changes": []}, line=0)
    wrong = [run for run in rechecked(recorded) if run.differences]
    assert len(wrong) == 1
    assert wrong[0].differences[0] == "success is True, the state gives False"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"key": "x"}, "key is 'x'"),
        ({"config": {}}, "config.app is missing"),
        ({"config": None}, "config is None"),
        ({"code_key": "xyz"}, "code_key is 'xyz'"),
        ({"changes": "x"}, "changes is 'x'"),
        ({"changes": [{"kind": "added"}]}, "changes.0.table is missing"),
        ({"repeated": None}, "repeated is None"),
        ({"shortest": -1}, "shortest is -1"),
    ],
)
def test_damaged_facts_are_named_with_their_line(
    changes: dict[str, object],
    sentence: str,
    recorded: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    edit(recorded / "facts.jsonl", changes, line=1)
    assert main(["env", "verify", str(recorded)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {recorded / 'facts.jsonl'}, line 2: {sentence}")
    assert error.endswith(": restore the file from a copy, or record again\n")


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"table": "nothing"}, "'nothing'"), ({"after": {"nothing": 1}}, "'purchase'|'line'")],
)
def test_a_change_that_the_application_does_not_know_is_named(
    change: dict[str, object], reason: str, recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = json.loads((recorded / "facts.jsonl").read_text().splitlines()[0])["changes"]
    edit(recorded / "facts.jsonl", {"changes": [{**first[0], **change}]}, line=0)
    assert main(["env", "verify", str(recorded)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {recorded / 'facts.jsonl'}: ")
    assert re.search(f"has a change of {reason} that cannot be made", error)


def test_facts_that_come_twice_or_are_no_json_are_named(recorded: Path) -> None:
    file = recorded / "facts.jsonl"
    whole = file.read_text()
    file.write_text(whole + whole.splitlines()[0] + "\n")
    with pytest.raises(UserError, match=r"line 5: the facts of .* come twice: keep one line"):
        list(rechecked(recorded))
    file.write_text(whole[:-20])
    with pytest.raises(UserError, match=r"line 4: the line is not JSON .*: restore the file"):
        list(rechecked(recorded))
    file.write_text("{}\n")
    with pytest.raises(UserError, match="line 1: key is missing"):
        list(rechecked(recorded))


def test_a_line_of_facts_ends_where_the_file_ends_it(recorded: Path) -> None:
    """Unicode knows more ends of a line than JSON Lines do."""
    file = recorded / "facts.jsonl"
    lines = file.read_text().split("\n")
    lines[0] = json.dumps(
        {**json.loads(lines[0]), "note": "a\u2028b\u2029c\x85d"}, ensure_ascii=False
    )
    file.write_text("\n".join(lines))
    runs = list(rechecked(recorded))
    assert (len(runs), [run for run in runs if run.differences]) == (4, [])


def test_facts_that_tell_no_state_are_a_users_mistake(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (recorded / "facts.jsonl").read_text().splitlines()
    first = {name: value for name, value in json.loads(lines[0]).items() if name != "code_key"}
    (recorded / "facts.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    assert main(["env", "verify", str(recorded)]) == 2
    assert "line 1: code_key is missing: restore the file" in capsys.readouterr().err


def test_goals_of_other_cases_are_decided_by_their_checkers(recorded: Path, tmp_path: Path) -> None:
    """Who did his own task, and who did nothing, did none of the others."""
    file = tmp_path / "goals.jsonl"
    assert main(["env", "verify", str(recorded), "--other-goals", "4", "--save", str(file)]) == 0
    runs = [run for run in store.read(recorded) if isinstance(run, Trajectory)]
    lines = [json.loads(line) for line in file.open()]
    assert [line["key"] for line in lines] == [run.key.model_dump() for run in runs]
    for run, line in zip(runs[:3], lines, strict=False):
        assert line["goals"]
        assert run.goal not in [one["goal"] for one in line["goals"]]
        assert not any(one["success"] for one in line["goals"])
        assert {one["config"]["instance"] for one in line["goals"]} <= set(range(41))


def test_a_file_that_nothing_is_written_to_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save = tmp_path / "x.jsonl"
    assert main(["env", "verify", str(sample_path()), "--save", str(save)]) == 2
    sentence = f"--save {save}: only --other-goals N writes a file: give both, or neither"
    assert sentence in capsys.readouterr().err


def test_a_number_that_no_computer_comes_to_the_end_of_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["env", "verify", "FOLDER", "--other-goals", "10001"]) == 2
    assert "--other-goals 10001: must be at most 10000" in capsys.readouterr().err


@pytest.mark.parametrize("count", [20, 23])
def test_more_differences_than_are_named_are_counted(
    count: int, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twenty are named."""
    run = next(run for run in store.read(recorded) if isinstance(run, Trajectory))
    keys = [run.key.model_copy(update={"attempt": attempt}) for attempt in range(count)]
    folder = tmp_path / "many"
    store.write(folder, [run.model_copy(update={"key": key}) for key in keys])
    shutil.copy(recorded / "labels.jsonl", folder)
    (folder / "facts.jsonl").write_text("")
    assert main(["env", "verify", str(folder)]) == 1
    shown = capsys.readouterr()
    assert f"the labels of 0 of {count} runs" in shown.out
    assert len(shown.err.splitlines()) == min(count, 21)
    assert (f"and 3 more of {folder}\n" in shown.err) is (count == 23)
