"""A reward server as a process of its own, asked over real sockets."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from trajudge.trajectories.model import Trajectory

ROOT = Path(__file__).parents[3]
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Answer(NamedTuple):
    status: int
    content: Any
    headers: dict[str, str]


class Server(NamedTuple):
    """A server that runs: its address and its process."""

    url: str
    process: subprocess.Popen[str]

    def ask(self, path: str, content: object = None, *, method: str = "", **headers: str) -> Answer:
        """Send JSON (bytes as they are), and return what comes back, errors too."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        fields = {"Content-Type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        kind = method or ("GET" if content is None else "POST")
        body = None if content is None else data
        request = urllib.request.Request(self.url + path, body, fields, method=kind)
        try:
            with _DIRECT.open(request, timeout=60) as answer:
                return _answer(answer.status, answer.read(), dict(answer.headers))
        except urllib.error.HTTPError as error:
            return _answer(error.code, error.read(), dict(error.headers))


def _answer(status: int, body: bytes, headers: dict[str, str]) -> Answer:
    is_json = headers.get("Content-Type", "").startswith("application/json")
    return Answer(status, json.loads(body) if is_json and body else body.decode(), headers)


@contextmanager
def serving(folder: Path, *words: str, port: int = 0) -> Iterator[Server]:
    command = [sys.executable, "-m", "trajudge", "serve", "--port", str(port)]
    given = ["--store", str(folder / "store"), "--cache", str(folder / "replies.sqlite"), *words]
    with subprocess.Popen(
        [*command, *given], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url and process.stderr is not None:
            pytest.fail(process.stderr.read())
        try:
            yield Server(url, process)
        finally:
            process.terminate()


def record_of(trajectory: Trajectory) -> dict[str, Any]:
    """A trajectory as a line of ``trajectories.jsonl``."""
    record: dict[str, Any] = json.loads(trajectory.to_json(lambda ref: str(ref.sha256)))
    return record
