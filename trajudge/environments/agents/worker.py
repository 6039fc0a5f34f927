"""The process of a user's agent: it loads the agent's code, and answers one line of JSON with
another (``plugin`` writes the questions).

What the agent prints goes to the standard error. It ends with its parent.
"""

from __future__ import annotations

import inspect
import os
import resource
import sys
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from types import ModuleType
from typing import Any, BinaryIO

import orjson

from trajudge.trajectories.plugins import (
    MISTAKES,
    PluginPoint,
    reason,
    refuse_async,
    user_code_errors,
)
from trajudge.util.errors import UserError

AGENTS = PluginPoint(group="trajudge.agents", option="--agent")
MAKE, ACT = "def make(goal, **options)", "def act(self, observation)"
_CONTRACT = (
    f"write  {MAKE}  that gives an object with act(observation), or a class with  {ACT}  that "
    "gives an action, or an action and its reasoning"
)


@dataclass(frozen=True, slots=True)
class PageObservation:
    """What an agent of the user's sees before each action.

    ``axtree`` is the accessibility tree as text, ``focused`` the bid of the control that has the
    focus ("" for none), ``last_action_error`` what the last action failed with, ``step`` counts
    the actions before, ``screenshot`` is a PNG file, None where no pictures are taken.
    """

    goal: str
    url: str
    title: str
    axtree: str
    focused: str
    last_action: str
    last_action_error: str
    step: int
    screenshot: bytes | None = None


def split_name(spec: str) -> tuple[str, str]:
    """Return what is loaded and the name in it, "" for none: ``FILE.py``, ``FILE.py:NAME``,
    ``package.module:NAME`` or the name of an entry point."""
    head, colon, name = spec.partition(".py:")
    if colon:
        return f"{head}.py", name
    head, _, name = spec.partition(":")
    return head, name


def load_maker(spec: str) -> Callable[..., Any]:
    """Return the function that makes the agent, or its class. Raises UserError, which says what was
    expected and where."""
    home, name = split_name(spec)
    module = _imported(spec, home) if name and not home.endswith(".py") else AGENTS.module(home)
    if module is None:
        known = ", ".join(AGENTS.names(())) or "none"
        raise UserError(
            f"--agent {spec}: no such agent: name a Python file, package:NAME or an entry point of "
            f"the group {AGENTS.group} (installed: {known})"
        )
    if name:
        maker = getattr(module, name, None)
        if not callable(maker):
            raise UserError(f"--agent {spec}: {_file(module)} defines no {name}: {_CONTRACT}")
    else:
        maker = getattr(module, "make", None) or _only_class(spec, module)
    refuse_async(f"--agent {spec}", maker, MAKE)
    return maker


def _imported(spec: str, name: str) -> ModuleType:
    try:
        return import_module(name)
    except MISTAKES as error:
        raise UserError(
            f"--agent {spec}: {name} cannot be imported ({reason(error)}): install the package, or "
            "correct it"
        ) from error


def _only_class(spec: str, module: ModuleType) -> type:
    own = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type)
        and kind.__module__ == module.__name__
        and callable(getattr(kind, "act", None))
    ]
    if len(own) == 1:
        return own[0]
    if not own:
        raise UserError(f"--agent {spec}: {_file(module)} defines no agent: {_CONTRACT}")
    listed = " and ".join(f"{kind.__name__} (line {_line(kind)})" for kind in own)
    raise UserError(
        f"--agent {spec}: {_file(module)} defines {listed}: name one with  --agent "
        f"{split_name(spec)[0]}:{own[0].__name__} , or write  {MAKE}"
    )


def _file(module: ModuleType) -> str:
    return module.__file__ or module.__name__


def _line(kind: type) -> int:
    return inspect.getsourcelines(kind)[1]


class LoadedAgent:
    """An agent that was made for one goal."""

    def __init__(self, spec: str, goal: str, options: Mapping[str, Any]) -> None:
        self._named, self._goal = f"--agent {spec}", goal
        self._steps, self._last = 0, ""
        maker = load_maker(spec)
        with user_code_errors(f"{self._named}: the agent cannot be made", maker, "correct it"):
            takes_goal = not isinstance(maker, type) or "goal" in _parameters(maker)
            self._agent = maker(goal, **options) if takes_goal else maker(**options)
            if not callable(getattr(self._agent, "act", None)):
                raise TypeError(f"it gave {type(self._agent).__name__}, which has no act")
        refuse_async(self._named, self._agent.act, ACT)

    def act(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to what the page shows. Raises UserError for what the agent raises, and
        for a reply that is no action."""
        picture = fields.pop("screenshot")
        seen = PageObservation(
            **fields,
            goal=self._goal,
            last_action=self._last,
            step=self._steps,
            screenshot=None if picture is None else b64decode(picture),
        )
        with user_code_errors(f"{self._named}: act failed", self._agent.act, "correct it"):
            action, thought = _pair(self._agent.act(seen))
            telemetry = _numbers(getattr(self._agent, "telemetry", {}))
        self._steps, self._last = self._steps + 1, action
        return {"action": action, "reasoning": thought, "telemetry": telemetry}

    def close(self) -> None:
        """Close the agent, if it can be closed. Raises UserError for what it raises."""
        close = getattr(self._agent, "close", None)
        if callable(close):
            with user_code_errors(f"{self._named}: close failed", close, "correct it"):
                close()


def _parameters(kind: type) -> Iterable[str]:
    return inspect.signature(kind).parameters


def _pair(reply: object) -> tuple[str, str]:
    match reply:
        case str(action):
            return action, ""
        case (str(action), str(thought)):
            return action, thought
        case (str(action), None):
            return action, ""
    raise TypeError(
        f"it gave {type(reply).__name__}, where an action such as \"click('12')\", or an action "
        "and its reasoning, belongs"
    )


def _numbers(telemetry: object) -> dict[str, float]:
    if not isinstance(telemetry, Mapping):
        raise TypeError(f"telemetry is {type(telemetry).__name__}, where numbers by name belong")
    return {str(name): float(value) for name, value in telemetry.items()}


def main() -> None:
    """Answer the parent's lines until it asks to close, or is gone."""
    replies = os.fdopen(os.dup(1), "wb")
    questions = os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # what the agent prints
    nothing, end = os.pipe()
    os.close(end)
    os.dup2(nothing, 0)
    lines: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_read, args=(questions, lines), daemon=True).start()
    agent: LoadedAgent | None = None
    while True:
        question, reply = orjson.loads(lines.get()), dict[str, Any]()
        try:
            match question:
                case {"load": spec, "memory": memory}:
                    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
                    sys.path.append(os.getcwd())  # noqa: PTH109 - of package:NAME
                    load_maker(spec)
                case {"make": spec, "goal": goal, "options": options}:
                    agent = LoadedAgent(spec, goal, options)
                case {"act": fields} if agent is not None:
                    reply = agent.act(fields)
                case _ if agent is not None:
                    agent.close()
        except UserError as error:
            reply = {"error": str(error)}
        replies.write(orjson.dumps(reply) + b"\n")
        replies.flush()
        if "close" in question:
            return


def _read(questions: BinaryIO, lines: SimpleQueue[bytes]) -> None:
    for line in questions:
        lines.put(line)
    os._exit(0)
