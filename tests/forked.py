"""Commands as processes of their own that need not import the library anew, which takes a second of
CPU each: they are forked from one that has.

``start`` answers as ``subprocess.Popen`` does, as far as tests of killed and concurrent commands
ask. A command is its own process in all else: its signals, exit, output, folder and environment.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

ROOT = Path(__file__).parents[1]
# What a command that judges over HTTP or generates cases imports, the late imports among them.
IMPORTED = (
    *("eval.judge", "aiohttp", "scipy.special", "trajudge.judges.methods.simplified"),
    *("trajudge.eval.cli", "trajudge.eval.runs.plan", "trajudge.judges.calls.handle"),
    *("trajudge.eval.runs.outputs", "trajudge.eval.runs.pricing", "trajudge.eval.runs.session"),
    *("trajudge.environments.commands", "playwright.sync_api"),
)
LENGTH = 1 << 20  # of a request at most


class Forked:
    """A command that runs."""

    def __init__(self, line: socket.socket, words: Sequence[str], files: list[IO[bytes]]) -> None:
        self._line, self._words, self._files = line, words, files
        self.returncode: int | None = None
        self.pid = int(line.recv(16))

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            ready, _, _ = select.select([self._line], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired(self._words, timeout or 0)
            with self._line:
                self.returncode = int(self._line.recv(16))
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Wait for the end, and return what was written to the standard output and error."""
        self.wait(timeout)
        for file in self._files:
            file.seek(0)
        output, errors = (file.read() for file in self._files)
        return output, errors

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def start(
    module: str, words: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Forked:
    """Start ``python -m MODULE WORDS`` in a folder."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    files: list[IO[bytes]] = [TemporaryFile(), TemporaryFile()]  # noqa: SIM115 - the command's
    request = [[module, *words], str(folder), dict(environment)]
    descriptors = [theirs.fileno(), *(file.fileno() for file in files)]
    socket.send_fds(_origin(), [json.dumps(request).encode()], descriptors)
    theirs.close()
    return Forked(mine, words, files)


@cache
def _origin() -> socket.socket:
    """Start the process that commands are forked from; it ends when this one does."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    number = str(theirs.fileno())
    command = [sys.executable, "-m", "tests.forked", number]
    process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
    theirs.close()

    def end() -> None:
        mine.close()
        process.wait()

    atexit.register(end)
    return mine


def _serve(line: socket.socket) -> list[str] | None:
    """Fork a command for each request; in a command return its words, at the end None."""
    ended, wake = socket.socketpair()
    wake.setblocking(False)
    ended.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([line, ended], [], [])
        if ended in ready:
            ended.recv(LENGTH)
            _report(running)
        if line in ready:
            request, descriptors, _, _ = socket.recv_fds(line, LENGTH, 3)
            if not request:
                return None
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for mine in (line, ended, wake, *running.values()):
                    mine.close()
                return _become(json.loads(request), descriptors)
            running[pid] = socket.socket(fileno=descriptors[0])
            running[pid].send(b"%d" % pid)
            for descriptor in descriptors[1:]:
                os.close(descriptor)


def _report(running: dict[int, socket.socket]) -> None:
    """Tell the exit codes of the commands that have ended."""
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with running.pop(pid) as line, suppress(OSError):  # who asked may have ended, too
                line.send(b"%d" % os.waitstatus_to_exitcode(status))


def _become(request: tuple[list[str], str, dict[str, str]], descriptors: list[int]) -> list[str]:
    """Take the folder, the environment and the output of a command, and return its words."""
    words, folder, environment = request
    os.dup2(descriptors[1], 1)
    os.dup2(descriptors[2], 2)
    for descriptor in descriptors:
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    return words


if __name__ == "__main__":
    for name in IMPORTED:
        import_module(name)
    if (command := _serve(socket.socket(fileno=int(sys.argv[1])))) is not None:
        sys.argv = command
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
