"""A recording on disk: which runs its labels count."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from trajudge.environments.analysis.agent_results import summary
from trajudge.environments.analysis.outcomes import read_outcomes
from trajudge.environments.model.case import Case, write_cases
from trajudge.environments.model.config import Config
from trajudge.environments.recording.journal import COMPLETE, Journal, assemble
from trajudge.environments.recording.journal import RUNS as LINES
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError

# scenario, success, side effect
RUNS = (("price", True, None), ("buy", None, None), ("wish", False, True))
COUNTS = {"a": {"runs": 3, "success": 1, "side_effect": 1, "repetition": 0, "ambiguous": 1}}

SUBJECT = {"cases": "c0ffee", "agents": ["a"], "seed": 1}


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    """A complete recording and its cases."""
    folder, cases = tmp_path / "recorded", tmp_path / "cases.jsonl"
    configs = [Config(app="shop", scenario=scenario) for scenario, *_ in RUNS]
    write_cases(
        cases,
        [
            Case(config=config, goal="", domain="d", vector=(1,) * 7, level=1, shortest=1)
            for config in configs
        ],
    )
    journal = Journal(folder, SUBJECT)
    with journal.file.open("ab") as file:
        file.write(b"".join(map(line, RUNS)))
    assert assemble(journal, [scenario for scenario, *_ in RUNS]) == COUNTS
    return folder, cases


def line(run: tuple[str, bool | None, bool | None]) -> bytes:
    scenario, success, side_effect = run
    name = Config(app="shop", scenario=scenario).id
    key = TrajectoryKey(benchmark="shop", agent="a", task_id=name)
    trajectory = Trajectory(key=key, raw_task_id=name, goal="g", telemetry={"n_steps": 1.0})
    labels = {"success": success, "side_effect": side_effect, "repetition": False}
    entry = {
        "run": scenario,
        "trajectory": trajectory.model_dump(mode="json"),
        "labels": {**labels, "optimality": None},
        "facts": {},
    }
    return orjson.dumps(entry) + b"\n"


def test_a_recording_counts_as_ambiguous_what_its_results_leave_out(
    recorded: tuple[Path, Path],
) -> None:
    folder, cases = recorded
    figures = summary("a", read_outcomes([folder], cases), seed=0)
    assert figures["ambiguous"] == COUNTS["a"]["ambiguous"] == 1


@pytest.mark.parametrize("content", [b"", b"[]", b'"x"', b"{", b'{"format": "another"}'])
def test_a_damaged_recording_is_said_to_be_damaged_and_not_another(
    content: bytes, recorded: tuple[Path, Path]
) -> None:
    """It was told to be removed."""
    folder, _ = recorded
    (folder / COMPLETE).write_bytes(content)
    with pytest.raises(UserError) as raised:
        Journal(folder, SUBJECT)
    assert str(raised.value).startswith(f"{folder / COMPLETE}: is damaged, ")
    assert "restore it from a copy" in str(raised.value)


@pytest.mark.parametrize("counts", [None, 7, {}, {"a": 3}, {"a": {}}, {"a": {"runs": 2}}])
def test_counts_that_are_not_those_of_the_labels_are_named(
    counts: object, recorded: tuple[Path, Path]
) -> None:
    folder, _ = recorded
    content = orjson.loads((folder / COMPLETE).read_bytes())
    (folder / COMPLETE).write_bytes(orjson.dumps({**content, "counts": counts}))
    with pytest.raises(UserError, match=r"recording\.json: does not count .* labels\.jsonl"):
        _ = Journal(folder, SUBJECT).counts


def test_labels_that_were_lost_are_noticed(recorded: tuple[Path, Path]) -> None:
    folder, _ = recorded
    labels = (folder / "labels.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "labels.jsonl").write_bytes(b"".join(labels[:-1]))
    with pytest.raises(UserError, match=r"labels\.jsonl"):
        _ = Journal(folder, SUBJECT).counts


def test_what_another_recording_differs_in_is_said(recorded: tuple[Path, Path]) -> None:
    folder, _ = recorded
    with pytest.raises(UserError, match="another recording, of other model, seed: choose another"):
        Journal(folder, {**SUBJECT, "seed": 2, "model": "m"})


def test_a_journal_keeps_a_run_only_whole(tmp_path: Path) -> None:
    """A run whose line is damaged is recorded again."""
    damaged = [
        line(RUNS[1]).replace(b'"goal"', b'"gaol"'),
        line(RUNS[1]).replace(b'"labels"', b'"labours"'),
        b"[1]\n",
        line(RUNS[2])[:-9],
    ]
    journal = Journal(tmp_path, SUBJECT)
    with journal.file.open("ab") as file:
        file.write(b"".join([line(RUNS[0]), *damaged]))
    assert set(Journal(tmp_path, SUBJECT).done()) == {RUNS[0][0]}
    assert assemble(Journal(tmp_path, SUBJECT), ["price", "buy"])["a"]["runs"] == 1


def test_a_journal_without_a_whole_header_holds_no_run_and_begins_anew(tmp_path: Path) -> None:
    header = Journal(tmp_path, SUBJECT).file.read_bytes()
    for rest in (b"", header[:-5]):
        (tmp_path / LINES).write_bytes(rest)
        assert Journal(tmp_path, SUBJECT).file.read_bytes() == header
    (tmp_path / LINES).write_bytes(header[5:] + line(RUNS[0]))
    with pytest.raises(UserError, match=r"runs\.jsonl: is damaged, .* restore it"):
        Journal(tmp_path, SUBJECT)
