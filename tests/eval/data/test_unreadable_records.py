"""What the data held and nobody could read is told of as long as the run is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import score
from trajudge.eval.judge import main as judge
from trajudge.eval.store.run_folder import UNREADABLE
from trajudge.trajectories import store
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey


def _run(number: int) -> Trajectory:
    key = TrajectoryKey(benchmark="b", agent="a", task_id=str(number))
    return Trajectory(key=key, raw_task_id="t", goal="g", steps=(Step(index=0, action="noop()"),))


def _error(capsys: pytest.CaptureFixture[str]) -> str:
    """What was written for people, with its long lines joined again."""
    return " ".join(capsys.readouterr().err.split())


CUT = "trajectories.jsonl:3: not a trajectory"


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Two trajectories, and a line that another program cut in two."""
    data = tmp_path / "data"
    store.write(data, [_run(0), _run(1)])
    lines = (data / "trajectories.jsonl").read_bytes()
    (data / "trajectories.jsonl").write_bytes(lines + lines[:40] + b"\n")
    run = str(tmp_path / "run")
    return ["--judge", "heuristic", "--data", f"trajudge:{data}", "--out", run]


def test_a_finished_run_tells_of_it_again(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert judge(words) == 0
        assert CUT in _error(capsys)
    assert score([words[-1]]) == 0
    assert f"judged without 1 record that cannot be read; the first is {words[3][9:]}" in (
        _error(capsys)
    )


def test_data_that_was_mended_is_told_of_no_longer(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge(words) == 0
    path = Path(words[3].removeprefix("trajudge:")) / "trajectories.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    capsys.readouterr()
    assert judge(words) == 0
    assert CUT not in _error(capsys)
    assert not (Path(words[-1]) / UNREADABLE).exists()


def test_a_run_without_records_that_were_mended_since_says_so(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge(words) == 0
    store.write(Path(words[3].removeprefix("trajudge:")), [_run(0), _run(1), _run(2)])
    capsys.readouterr()
    assert judge(words) == 2
    assert _error(capsys) == (
        f"error: --out {words[-1]}: holds a run of 2 trajectories, and the data has 3 now; "
        "1 record could not be read then: judge them with another --out, or go on with the data as "
        "it was"
    )
    assert (Path(words[-1]) / UNREADABLE).exists()


@pytest.mark.parametrize("is_finished", [False, True])
def test_strict_stops_before_the_first_judgment_and_after_the_last(
    words: list[str], is_finished: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if is_finished:
        assert judge(words) == 0
    assert judge([*words, "--strict"]) == 2
    assert f"{CUT}: EOF while parsing" in _error(capsys)


def test_strict_reads_again_what_an_earlier_session_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trajectory whose key is in its path: it counts as skipped, and is no judgment to keep."""
    data = tmp_path / "data"
    store.write(data, [_run(0)])
    words = ["--judge", "heuristic", "--data", f"trajudge:{data}", "--out", str(tmp_path / "run")]
    line = (data / "trajectories.jsonl").read_bytes()
    (data / "trajectories.jsonl").write_bytes(line.replace(b'"goal":"g"', b'"goal":7'))
    assert judge(words) == 1
    assert judge([*words, "--strict"]) == 2
    assert "--strict stops here" in _error(capsys)
    (data / "trajectories.jsonl").write_bytes(line)
    assert judge([*words, "--strict"]) == 0
    assert "judged 1/1" in _error(capsys)


def test_a_resumed_run_tells_of_the_failures_that_stand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its exit code counts them, therefore its progress names them."""
    data = tmp_path / "data"
    store.write(data, [_run(0), _run(1)])
    words = ["--judge", "heuristic", "--data", f"trajudge:{data}", "--out", str(tmp_path / "run")]
    lines = (data / "trajectories.jsonl").read_bytes()
    (data / "trajectories.jsonl").write_bytes(lines.replace(b'"goal":"g"', b'"goal":7', 1))
    assert judge(words) == 1
    assert "(0 cached, 0 from before), failed 1 skipped, " in _error(capsys)
    assert judge(words) == 1
    assert "(0 cached, 2 from before), failed 1 before, " in _error(capsys)
    (data / "trajectories.jsonl").write_bytes(lines)
    assert judge([*words, "--retry-failed"]) == 0
    assert "(0 cached, 1 from before), none failed, " in _error(capsys)


def test_data_without_a_readable_trajectory_says_what_is_wrong_with_it(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(words[3].removeprefix("trajudge:")) / "trajectories.jsonl"
    path.write_bytes(b"no line of ours\n")
    assert judge(words) == 2
    error = _error(capsys)
    assert "holds no trajectory that can be read, only 1 record that cannot be read" in error
    assert f"the first is {path}:1: not a trajectory" in error
