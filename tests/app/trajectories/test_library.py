"""One trajectory of many is opened without reading the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.made_runs import Task, trajectory
from tests.eval.cases import key
from trajudge.app.library import TrajectoryAbsent, TrajectoryLibrary
from trajudge.trajectories import store
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.store import stored_positions
from trajudge.util.errors import UserError

RUNS = [
    trajectory(Task(str(place), True, True, goal=f"goal ü {place}"), place) for place in range(9)
]


@pytest.mark.parametrize("compress", ["", "gz", "zst"])
def test_what_is_opened_is_what_the_loader_reads(
    compress: store.Compression, tmp_path: Path
) -> None:
    store.write(tmp_path, RUNS, compress=compress)
    library = TrajectoryLibrary((f"trajudge:{tmp_path}",), ())
    read = [one for one in open_source(f"trajudge:{tmp_path}") if isinstance(one, Trajectory)]
    assert [library.open(one.key).trajectory for one in reversed(read)] == read[::-1]
    assert len(read) == len(RUNS)


def test_every_format_of_real_data_opens(real_data: Path) -> None:
    specs = [
        f"{kind}:{real_data / place}"
        for kind, place in (
            ("browsergym", "browsergym"),
            ("webvoyager", "webvoyager"),
            ("osworld", "formats/osworld_style"),
            ("webarena-html", "formats/webarena_html"),
            ("toolcalls", "trajectory_judge"),
            ("fara", "fara_trajectory"),
        )
    ]
    library = TrajectoryLibrary(specs, ())
    for spec in specs:
        *_, last = [one for one in open_source(spec) if isinstance(one, Trajectory)]
        assert library.open(last.key).trajectory.goal == last.goal


def test_a_file_that_grew_is_looked_through_again(tmp_path: Path) -> None:
    store.write(tmp_path, RUNS[:3])
    library = TrajectoryLibrary((f"trajudge:{tmp_path}",), ())
    library.open(RUNS[0].key)
    store.write(tmp_path, RUNS)
    assert library.open(RUNS[8].key).trajectory.goal == "goal ü 8"


def test_the_last_eight_stay_open_and_goals_are_read_once(tmp_path: Path) -> None:
    store.write(tmp_path, RUNS)
    library = TrajectoryLibrary((f"trajudge:{tmp_path}",), ())
    opened = [library.open(run.key) for run in RUNS[:8]]
    assert library.open(RUNS[0].key) is opened[0]
    library.open(RUNS[8].key)  # in place of the one that was looked at longest ago
    kept = [library.open(run.key) for run in RUNS[2:8]]
    assert all(one is other for one, other in zip(kept, opened[2:], strict=True))
    assert library.open(RUNS[0].key) is opened[0]
    assert library.open(RUNS[1].key) is not opened[1]
    goals = {run.key: run.goal for run in RUNS[:2]}
    assert library.goals(goals) == goals
    (tmp_path / "trajectories.jsonl").unlink()
    assert library.goals([*goals, RUNS[2].key]) == {**goals, RUNS[2].key: ""}


def test_of_two_data_with_one_key_the_runs_own_is_opened(tmp_path: Path) -> None:
    specs = []
    for name in ("first", "second"):
        store.write(tmp_path / name, [RUNS[0].model_copy(update={"goal": name})])
        specs.append(f"trajudge:{tmp_path / name}")
    library = TrajectoryLibrary((), specs)
    for spec, goal in ((specs[1], "second"), (specs[0], "first"), ("", "first"), ("x", "first")):
        assert library.open(RUNS[0].key, spec).trajectory.goal == goal


def test_lines_that_are_damaged_are_passed_over(tmp_path: Path) -> None:
    file = store.write(tmp_path, RUNS)
    lines = file.read_bytes().splitlines()
    lines[2] = b'{"format": 1, "key": '
    lines[4] = lines[4].replace(b'"goal":', b'"goal":1,"x":', 1)
    file.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([*lines, b""]))
    assert len(stored_positions(file)) == 8
    library = TrajectoryLibrary((f"trajudge:{file}",), ())
    for place in (0, 3, 8):
        assert library.open(RUNS[place].key).trajectory.goal == f"goal ü {place}"
    for place in (2, 4):
        with pytest.raises(TrajectoryAbsent, match="is not in the data"):
            library.open(RUNS[place].key)


def test_data_that_a_run_names_is_not_fetched_and_no_loader_of_its_is_run(tmp_path: Path) -> None:
    (tmp_path / "loader.py").write_text("raise SystemExit('ran')")
    specs = ("agentrewardbench", f"{tmp_path / 'loader.py'}:{tmp_path}", "trajudge:/no/such")
    with pytest.raises(TrajectoryAbsent) as absent:
        TrajectoryLibrary((), specs).open(key("1"))
    assert "--data" in str(absent.value)
    with pytest.raises(UserError, match="no file or folder"):
        TrajectoryLibrary(("trajudge:/no/such",), ()).open(key("1"))
