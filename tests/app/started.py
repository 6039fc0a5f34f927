"""A command that serves pages, started as its users start it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import HTTPCookieProcessor, build_opener

from tests.waiting import LIMIT


@contextmanager
def started(*words: str) -> Iterator[bytes]:
    """Start ``trajudge`` and yield the page at the address that it prints first, which holds a
    token. At the end of the block it is interrupted, and has to end well and without a word."""
    line = [sys.executable, "-m", "trajudge.eval.cli", *words]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        try:
            (address,) = re.findall(r"^http://127\.0\.0\.1:\d+/\S*", ran.stdout.readline())
            assert "?token=" in address
            with build_opener(HTTPCookieProcessor()).open(address) as answer:
                assert "token" not in answer.url
                page: bytes = answer.read()
            yield page
            ran.send_signal(signal.SIGINT)
            assert ran.wait(timeout=LIMIT) == 0
        finally:
            ran.kill()  # where the block failed: leaving Popen waits for the end
        assert ran.stderr.read() == ""
