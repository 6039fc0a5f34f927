"""An agent of the user's: a Python file, ``package:NAME`` or an entry point, in a process of its
own, which gets what a page shows and nothing else of the run."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

import orjson
from pydantic import Field, ValidationError

import trajudge
from trajudge.environments.agents import MEMORY, SECONDS
from trajudge.environments.agents.protocol import GaveUp, NotPlayed
from trajudge.environments.agents.worker import AGENTS, split_name
from trajudge.prompts.render import sendable
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular
from trajudge.util.machine import users_environment

if TYPE_CHECKING:
    from trajudge.environments.chromium import AgentObservation

MOST_REPLY = 2**20
"""Bytes of one reply at most."""
_START = (
    "import sys; sys.path.append(sys.argv.pop()); "
    "from trajudge.environments.agents.worker import main; main()"
)


def is_plugin(spec: str) -> bool:
    """Return True if a name is a file's, an object's in a package, or an entry point's."""
    return ":" in spec or AGENTS.knows(spec)


@dataclass(frozen=True)
class AgentPlugin:
    """An agent of the user's. ``seconds`` bounds each action, ``memory`` (MiB) the data that its
    process holds; ``options`` are handed to what makes it."""

    spec: str
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = SECONDS
    memory: int = MEMORY

    @property
    def name(self) -> str:
        """Return the agent's name in the keys of its runs: without the folders of a file."""
        home, name = split_name(self.spec)
        stem = Path(home).stem if home.endswith(".py") else home
        return f"{stem}:{name}" if name else stem

    @property
    def description(self) -> dict[str, Any]:
        """What tells recordings of it apart: its name, options, and a file's digest."""
        home, _ = split_name(self.spec)
        digest = sha256(read_regular(Path(home))).hexdigest() if home.endswith(".py") else None
        return {"agent": self.name, "options": dict(self.options), "digest": digest}

    def check(self) -> None:
        """Load the agent's code once. Raises UserError, which says what was expected and where."""
        with self._process() as process:
            process.ask({"load": self.spec, "memory": self.memory * 2**20})

    @contextmanager
    def open(self, goal: str) -> Iterator[PluginAgent]:
        """Open the agent for a goal, in a process that ends with the block. Raises NotPlayed where
        it cannot be made."""
        with self._process() as process:
            try:
                process.ask({"load": self.spec, "memory": self.memory * 2**20})
                process.ask({"make": self.spec, "goal": goal, "options": dict(self.options)})
            except UserError as error:
                raise NotPlayed(str(error)) from error
            agent = PluginAgent(process)
            yield agent
            if not agent.ended:
                with suppress(UserError):  # the run is over
                    process.ask({"close": True})

    @contextmanager
    def _process(self) -> Iterator[AgentProcess]:
        home = str(Path(trajudge.__file__).parents[1])
        kept = users_environment().items()
        with subprocess.Popen(  # noqa: S603 - our interpreter
            [sys.executable, "-P", "-c", _START, home],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: value for name, value in kept if not name.startswith("TRAJUDGE_")},
            start_new_session=True,
        ) as started:
            try:
                yield AgentProcess(started, self)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(started.pid, signal.SIGKILL)


class AgentReply(Record):
    """A line that the process of an agent writes."""

    action: str = ""
    reasoning: str = ""
    telemetry: dict[str, float] = Field(default_factory=dict)
    error: str = ""


class AgentProcess:
    """The pipes to an agent's process: one question, one reply, within the time that it has."""

    def __init__(self, started: subprocess.Popen[bytes], plugin: AgentPlugin) -> None:
        self._started, self._plugin = started, plugin
        self._questions, self._replies = _pipe(started.stdin), _pipe(started.stdout)
        self._rest = bytearray()
        os.set_blocking(self._questions, False)

    def ask(self, question: Mapping[str, Any]) -> AgentReply:
        """Send a question and return the reply. Raises UserError for an error in the agent's code,
        a process that ended, and one that gave nothing in time."""
        until = monotonic() + self._plugin.seconds
        try:
            self._send(orjson.dumps(question) + b"\n", until)
            reply = AgentReply.model_validate_json(self._line(until))
        except TimeoutError as error:
            raise self._failed(f"gave nothing within {self._plugin.seconds:g} s") from error
        except OSError as error:
            with suppress(subprocess.TimeoutExpired):
                self._started.wait(1)
            raise self._failed(f"its process ended (exit code {self._started.poll()})") from error
        except ValidationError as error:
            raise self._failed("its process wrote a line that is no reply") from error
        if reply.error:
            raise UserError(reply.error)
        return reply

    def _failed(self, why: str) -> UserError:
        return UserError(
            f"--agent {self._plugin.spec}: {why}: correct it, or set another --agent-timeout or "
            "--agent-memory"
        )

    def _send(self, line: bytes, until: float) -> None:
        view = memoryview(line)
        while view:
            _wait(self._questions, select.POLLOUT, until)
            view = view[os.write(self._questions, view[: select.PIPE_BUF]) :]

    def _line(self, until: float) -> bytes:
        while b"\n" not in self._rest:
            _wait(self._replies, select.POLLIN, until)
            read = os.read(self._replies, 2**16)
            if not read or len(self._rest) > MOST_REPLY:
                raise BrokenPipeError
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return bytes(line)


def _pipe(pipe: IO[bytes] | None) -> int:
    if pipe is None:
        raise RuntimeError("the process has no pipes")
    return pipe.fileno()


def _wait(descriptor: int, event: int, until: float) -> None:
    """Wait until a pipe is ready. Raises TimeoutError."""
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(max(0.0, until - monotonic()) * 1000):
        raise TimeoutError


class PluginAgent:
    """A user's agent in one run. One that fails, or gives nothing in time, gives up: ``GaveUp``
    holds the reason, which is noted with the run."""

    def __init__(self, process: AgentProcess) -> None:
        self.ended = False
        self.telemetry: Mapping[str, float] = {}
        self._process = process

    def act(self, view: AgentObservation) -> tuple[str, str]:
        """Return the agent's action and its reasoning. Raises GaveUp."""
        seen = view.observation
        picture = seen.screenshot.data if seen.screenshot else None
        fields = {
            "url": seen.url or "",
            "title": sendable(view.title),
            "axtree": sendable(seen.axtree or ""),
            "focused": view.focused or "",
            "last_action_error": sendable(seen.page_error or ""),
            "screenshot": None if picture is None else b64encode(picture).decode(),
        }
        try:
            reply = self._process.ask({"act": fields})
        except UserError as error:
            self.ended = True
            raise GaveUp(str(error)) from error
        self.telemetry = reply.telemetry
        return reply.action, reply.reasoning
