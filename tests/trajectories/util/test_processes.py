"""Processes: exit codes, the progress bar, workers and pinned environments."""

from __future__ import annotations

import errno
import os
import pickle
import pty
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

from tests.waiting import wait_until
from trajudge.util import machine as pinned
from trajudge.util.commands import (
    BROKEN_PIPE,
    FAILURES,
    INTERRUPTED,
    OK,
    USAGE_ERROR,
    saved_behind_output,
    user_errors,
)
from trajudge.util.errors import MissingExtra, UserError, naming
from trajudge.util.machine import NoEnvironment, PinnedPackage, worked_on


def raises(error: BaseException) -> int:
    raise error


def test_a_mistake_is_one_sentence_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert user_errors(raises)(UserError("file x: no such column")) == USAGE_ERROR == 2
    assert capsys.readouterr() == ("", "error: file x: no such column\n")
    assert user_errors(raises)(MissingExtra("p", "e", "this")) == USAGE_ERROR


def test_an_error_names_the_option_that_was_given_and_leaves_the_path_alone() -> None:
    with pytest.raises(UserError, match=r"^IN '/my--data/x': write IN KIND:PATH$"), naming("IN"):
        raise UserError("--data '/my--data/x': write --data KIND:PATH")


def test_a_path_that_is_too_long_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert user_errors(lambda: len(Path("x" * 300).read_bytes()))() == USAGE_ERROR
    assert (
        capsys.readouterr().err == f"error: {'x' * 300}: File name too long: give a shorter path\n"
    )


def test_an_interruption_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert user_errors(raises)(KeyboardInterrupt()) == INTERRUPTED == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_each_end_has_its_own_code() -> None:
    codes = (OK, FAILURES, USAGE_ERROR, INTERRUPTED, BROKEN_PIPE)
    assert codes == (0, 1, 2, 130, 141)


def test_a_full_disk_needs_no_file_and_other_paths_need_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert user_errors(raises)(OSError(errno.ENOSPC, "No space left")) == USAGE_ERROR
    assert user_errors(raises)(OSError(errno.EACCES, "Denied", "x")) == USAGE_ERROR
    assert capsys.readouterr().err.splitlines() == [
        "error: the output: cannot be written (No space left): make room and start the same "
        "command again",
        "error: x: cannot be read or written (Denied): name another file",
    ]
    for unknown in (OSError(errno.EACCES, "Denied"), OSError(errno.ECONNREFUSED, "Refused", "x")):
        with pytest.raises(type(unknown), match=str(unknown.strerror)):
            user_errors(raises)(unknown)


def test_everything_else_passes_through() -> None:
    assert user_errors(lambda: OK)() == 0
    with pytest.raises(ZeroDivisionError):
        user_errors(raises)(ZeroDivisionError())
    with pytest.raises(SystemExit):
        user_errors(raises)(SystemExit(3))


def test_a_reader_that_has_gone_is_no_traceback() -> None:
    command = [sys.executable, "-m", "trajudge.eval.cli", "judges", "list"]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == BROKEN_PIPE == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full")
@pytest.mark.parametrize("words", [("--help",), ("judges", "list")])
def test_a_full_disk_under_the_output_is_one_sentence(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "trajudge.eval.cli", *words]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            command,
            cwd=Path(__file__).parents[3],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: the output: cannot be written (No space left on")
    assert ended.stderr.count("\n") == 1


def test_what_is_saved_behind_the_output_is_saved_in_any_case() -> None:
    """In its order, also where an earlier one fails, and where the output cannot be printed."""
    done: list[str] = []

    def fail() -> None:
        done.append("failed")
        raise UserError("no room")

    with pytest.raises(UserError, match="no room"), saved_behind_output() as save:
        save(fail)
        save(done.append, "second")
        done.append("printed")
    assert done == ["printed", "failed", "second"]
    with pytest.raises(BrokenPipeError), saved_behind_output() as save:
        save(done.append, "third")
        raise BrokenPipeError
    assert done[3:] == ["third"]


@pytest.mark.parametrize("error", [UserError("mend it"), MissingExtra("x", "y", "z")])
def test_a_worker_hands_its_error_to_the_parent(error: UserError) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


ROOT = Path(__file__).parents[3]
SHOWS = """
from trajudge.util.terminal import progress_bar
with progress_bar() as show:
    for done in range(1, 4):
        show("runs", done, 3)
"""


def test_it_is_silent_where_nobody_looks() -> None:
    ran = subprocess.run([sys.executable, "-c", SHOWS], cwd=ROOT, capture_output=True, check=True)
    assert ran.stdout == ran.stderr == b""


SLOW = """
import threading
from trajudge.util import terminal
terminal.PLAIN_EVERY = 0.05
written = threading.Event()
class Stream:
    def write(self, text):
        lines.append(text)
        written.set()
    def flush(self): pass
    def isatty(self): return False
import sys
lines, sys.stderr = [], Stream()
def next_line():
    written.clear()
    assert written.wait(20)
    return lines[-1]
with terminal.progress_bar("scoring") as show:
    print(next_line().rpartition(",")[0])
    with terminal.progress_bar() as inner:
        inner("read", 3, 1200)
        next_line()
        print(next_line().rpartition(",")[0])
    next_line()
    print(next_line().rpartition(",")[0])
assert all(line.endswith(" s\\n") for line in lines)
before = len(lines)
with terminal.progress_bar(): pass
print(len(lines) - before)
"""


def test_elsewhere_a_line_says_now_and_then_what_is_done_and_how_far() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SLOW], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["scoring", "read: 3 of 1,200", "scoring", "0"]


def test_a_terminal_sees_what_is_counted_and_no_trace_of_it_at_the_end() -> None:
    mine, its = pty.openpty()
    subprocess.run([sys.executable, "-c", SHOWS], cwd=ROOT, stderr=its, check=True)
    os.close(its)
    shown = b""
    while chunk := _read(mine):
        shown += chunk
    assert b"runs" in shown
    assert b"100%" in shown
    assert shown.endswith(b"\x1b[2K")  # the line is cleared


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side is closed and everything is read
        return b""


PROGRAM = """
import time
from pathlib import Path
from tests.trajectories.util.test_processes import noted
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


def test_own_addresses_are_those_that_others_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ["127.0.0.1", "169.254.1.1", "0.0.0.0", "192.0.2.7", "192.0.2.7"]
    monkeypatch.setattr(pinned, "_of_ipv4_interfaces", lambda: found)
    listed = pinned.own_addresses(socket.AF_INET)
    assert listed.count("192.0.2.7") == 1 and not {*found[:3]} & {*listed}


def test_own_names_are_those_that_others_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda name: f"{name}.example.org.")
    for host, names in (
        ("Box.", ["box", "box.example.org", "box.local"]),
        ("box.here", ["box.here", "box.here.example.org"]),
        ("localhost", []),
    ):
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        assert pinned.own_names() == names


def test_others_reach_a_server_only_if_it_is_no_danger() -> None:
    hosts = ["127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org"]
    assert [pinned.is_loopback(host) for host in hosts] == [True, True, True, False, False]
    with pytest.raises(UserError, match=r"^--host 0\.0\.0\.0 can be reached by others, who could"):
        pinned.listen("0.0.0.0", 0, danger="read all")
    with pinned.listen("0.0.0.0", 0), pinned.listen("127.0.0.1", 0, danger="read all") as mine:
        port = mine.getsockname()[1]
        with pytest.raises(UserError, match=rf"^--port {port}: .* \(Address already in use"):
            pinned.listen("127.0.0.1", port)


def test_what_is_cached_lies_in_the_users_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    for base, folder in (("/cached", "/cached/trajudge"), ("", "/home/somebody/.cache/trajudge")):
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        assert pinned.cache_folder() == Path(folder)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PinnedPackage:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pins = tmp_path / "pins.txt"
    pins.write_text("one==1\n")
    return PinnedPackage("mine", pins, module="json", variable="TEST_OWN_PYTHON")


def test_a_change_of_the_pin_file_makes_another_environment(package: PinnedPackage) -> None:
    before = package.folder
    assert not package.made
    before.mkdir(parents=True)
    (before / "complete").touch()
    assert package.made
    assert package.python() == before / "bin" / "python"  # nothing is made twice
    package.pins.write_text("one==2\n")
    assert package.folder != before
    assert not package.made


def test_a_named_interpreter_is_tried(
    package: PinnedPackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_OWN_PYTHON", sys.executable)
    assert package.python() == Path(sys.executable)
    with pytest.raises(NoEnvironment, match="cannot import no_such_module"):
        package._replace(module="no_such_module").python()
    with pytest.raises(NoEnvironment, match="/nowhere cannot import json"):
        package.python("/nowhere")


@pytest.mark.slow
@pytest.mark.parametrize("pip", ["pip", "no_such_module"])
def test_what_cannot_be_installed_is_said(
    package: PinnedPackage, pip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By our own pip, and by a new one where there is none beside us."""
    monkeypatch.setattr(pinned, "find_spec", lambda name: find_spec(pip))
    package.pins.write_text("./no-such-package.whl\n")
    with pytest.raises(NoEnvironment, match=r"pins.txt could not be installed .*TEST_OWN_PYTHON"):
        package.python()
    assert not package.made
