"""The progress bar: on a terminal and gone at the end; elsewhere a line now and then."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

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
