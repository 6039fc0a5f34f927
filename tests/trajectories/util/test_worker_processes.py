"""Work in processes of this one: in order, no faster than it is wanted, ended with the parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from tests.waiting import wait_until
from trajudge.util.errors import UserError
from trajudge.util.machine import worked_on

PROGRAM = """
import time
from pathlib import Path
from tests.trajectories.util.test_worker_processes import noted
from trajudge.util.machine import worked_on

if __name__ == "__main__":
    list(worked_on(noted, [Path("a"), Path("b")], 2))
"""


def square(number: int) -> int:
    time.sleep(0.05 * (number % 2))  # the odd ones come later than those after them
    return number**2


def died(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def noted(file: Path) -> None:
    """Write which process works, and work for ever."""
    file.with_suffix(".new").write_text(str(os.getpid()))
    file.with_suffix(".new").rename(file)
    time.sleep(600)


def is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    assert list(worked_on(square, range(20), workers)) == [n**2 for n in range(20)]


def test_no_more_is_taken_than_the_workers_can_soon_do() -> None:
    numbers = count(1)
    squares = worked_on(square, numbers, 2)
    assert [next(squares) for _ in range(3)] == [1, 4, 9]
    assert next(numbers) == 12


def test_a_worker_that_dies_is_one_sentence() -> None:
    with pytest.raises(UserError, match=r"^a worker process ended .* fewer --workers"):
        list(worked_on(died, range(3), 2))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = subprocess.Popen([sys.executable, "program.py"], cwd=tmp_path, env=environment)
    files = [tmp_path / "a", tmp_path / "b"]
    wait_until(lambda: all(file.exists() for file in files))
    pids = [int(file.read_text()) for file in files]
    assert all(map(is_there, pids))
    running.kill()
    running.wait()
    wait_until(lambda: not any(map(is_there, pids)))
