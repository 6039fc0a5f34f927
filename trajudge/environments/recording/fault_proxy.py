"""The fault proxy of a recorder, as a process of its own: ``trajudge proxy serve``.

One run is one task of the proxy. What it notes of a task is read from its log when the task ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import ORACLE, STEP_LIMIT
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.chromium.action_syntax import spoken
from trajudge.environments.model.config import Config
from trajudge.environments.serving.run import open_run
from trajudge.environments.text import TextSession
from trajudge.util.commands import MOST_PAGE_LOADS
from trajudge.util.errors import UserError
from trajudge.util.files import open_regular

PATIENCE = 30.0  # seconds for an answer of the control address
_EXIT_PATIENCE = 10.0


class FaultArm(NamedTuple):
    """One arm of a recording: its name and its fault plan as JSON, without faults for the clean
    arm. Without ``pictures`` only text is recorded."""

    name: str
    plan: Mapping[str, Any]
    pictures: bool

    @property
    def record(self) -> dict[str, Any]:
        """What a run's facts hold of it."""
        return {"arm": self.name, "plan": dict(self.plan)}


class EndedTask(NamedTuple):
    """What the proxy noted of a run: its events, and the page loads at which faults were planned
    and fired."""

    events: Sequence[Mapping[str, Any]]
    exposure: Sequence[Mapping[str, Any]]


class FaultProxy:
    """A proxy that is running. Made by ``open_proxy``."""

    def __init__(self, arm: FaultArm, ready: Mapping[str, Any], log: Path, seed: int) -> None:
        self.arm = arm
        self.address: str = ready["proxy"]
        self.seed = seed
        self._control: str = ready["control"]
        self._log = log
        self._read = 0

    def begin(self, job: Job) -> None:
        """Begin a run's task: named by its configuration, so that all agents meet the same faults
        there; another attempt draws others."""
        self._read = self._log.stat().st_size
        horizon = horizon_of(job.config)
        task = {"id": job.config.id, "seed": self.seed + job.attempt, "horizon": horizon}
        self._ask("task", json.dumps(task).encode())

    def end(self) -> EndedTask:
        """End the task; return what was noted."""
        summary = self._ask("end", b"")
        with open_regular(self._log) as file:
            file.seek(self._read)
            events = [json.loads(line) for line in file]
        # Between two runs the browser's own requests make a task without a name.
        mine = [event for event in events if event.get("task") == summary.get("task")]
        return EndedTask(mine, summary.get("exposure", ()))

    def _ask(self, action: str, body: bytes) -> dict[str, Any]:
        # The user's own proxy has no part in this.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(f"{self._control}/{action}", data=body, method="POST")  # noqa: S310
        try:
            with direct.open(request, timeout=PATIENCE) as answer:
                answered: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            reason = json.load(error).get("error", error.reason)
            raise UserError(f"the fault proxy refused a task: {reason}") from error
        return answered


def check_plan(path: Path) -> None:
    """Raise UserError, in the proxy's own words, for a plan that it would refuse."""
    # A run's own horizon is known when it begins: here as many page loads as any fault may take.
    options = ["--faults", str(path), "--horizon", str(MOST_PAGE_LOADS)]
    command = [sys.executable, "-m", "trajudge.eval.cli", "proxy", "plan", *options]
    checked = subprocess.run(  # noqa: S603 - our own command
        command, capture_output=True, text=True, env=_environment(), check=False
    )
    if checked.returncode:
        raise UserError(_sentence(checked.stderr))


@contextmanager
def open_proxy(arm: FaultArm, port: int, seed: int) -> Iterator[FaultProxy]:
    """Run a proxy before the server at ``port`` of this machine.

    Raises UserError with the proxy's own sentence if it does not start.
    """
    with TemporaryDirectory(prefix="trajudge-proxy-") as folder:
        plan = Path(folder) / f"{arm.name}.json"
        plan.write_text(json.dumps(arm.plan))
        out = Path(folder) / "out"
        site = f"*.localhost=http://127.0.0.1:{port}"
        # A recorder that is killed takes its proxy with it.
        options = ["--faults", str(plan), "--site", site, "--out", str(out), "--stop-with-stdin"]
        command = [sys.executable, "-m", "trajudge.eval.cli", "proxy", "serve", *options]
        process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        try:
            yield FaultProxy(arm, _ready(process), out / "events.jsonl", seed)
        finally:
            process.terminate()
            try:
                process.communicate(timeout=_EXIT_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Read where a proxy is. Raises UserError if it ended instead."""
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise UserError(_sentence(process.communicate()[1]))
    ready: dict[str, Any] = json.loads(line)
    return ready


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _sentence(stderr: str) -> str:
    message = stderr.strip().removeprefix("error: ")
    return message.splitlines()[-1] if message else "the fault proxy did not start"


@lru_cache(maxsize=4096)
def horizon_of(config: Config) -> int:
    """Return the number of pages that a task takes: those that the oracle loads in a run without a
    browser, its detours and errors left out."""
    run = open_run(config, b"horizon", "horizon")
    try:
        page = TextSession(run)
        agent = Scripted(run, ORACLE, 0, 0)
        error = None
        for _ in range(STEP_LIMIT):
            text, _ = agent.act(page.observe(error))
            if spoken(text) is not None:
                break
            error = page.act(text)
        return run.documents
    finally:
        run.state.close()
