"""The progress bar: on a terminal only, and gone at the end."""

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
