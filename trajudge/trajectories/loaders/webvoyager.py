"""WebVoyager's result folders ``task<Site>--<n>`` with ``interact_messages.json``.

One step is one turn of the assistant: "Thought: … Action: …", with ``screenshot<turn>.png`` (a turn
after a refused one has no new screenshot), and with ``accessibility_tree<turn>.txt`` if the trees
were kept. The user's turn before it shows whether there was a screenshot: then a missing file is an
unreadable one; otherwise it has the reason why the action was refused. The format has neither agent
nor attempt: the agent is the name of the folder with the task folders, which distinguishes several
agents, and the attempt is 0. There is no official reward.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.loaders._files import Damaged, decode, name_of, text
from trajudge.trajectories.loaders._run import RunFolders, RunReader, RunSource, by_key, run_loader
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.util.files import DataFolder

KIND = "webvoyager"
# Its folders hold neither labels nor verdicts.
LEAKS: tuple[str, ...] = ()
_MESSAGES = "interact_messages.json"
_OPENING = "Now given a task:"
_OBSERVATION = "Observation:"
_START = re.compile(r"Please interact with\s+(\S+)\s+and get the answer")
# Agents write the two words in bold now and then, or both on one line; the source acts on them.
_THOUGHT = re.compile(r"\A\s*\**Thought:[\s*]*")
_ACTION = re.compile(r"^[ \t*]*Action:[ \t*]*", re.MULTILINE)
_ACTION_INSIDE = re.compile(r"[ \t*]*Action:[ \t*]*")
_ANSWER = re.compile(r"ANSWER\s*[;:]?\s*(.*)", re.DOTALL)


class _Message(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]] = ""


class _Reply(NamedTuple):
    """The user's turn before the agent's: whether it had a screenshot, and why the previous
    action was refused."""

    screenshot: bool = False
    refusal: str | None = None


def _is_task(folder: Path) -> bool:
    return (folder / _MESSAGES).is_file()


def _is_part(folder: Path) -> bool:
    """Return True for an unfinished task: WebVoyager writes the messages at its end."""
    return "--" in folder.name and (folder / "screenshot1.png").is_file()


FOLDERS = RunFolders(KIND, f"task<Site>--<n> folders with {_MESSAGES}", _is_task, _is_part)
detect = FOLDERS.detected


def _sources(path: Path) -> list[RunSource]:
    root, folders = DataFolder(path), FOLDERS.of(path)
    return by_key(_source(root, folder) for folder in folders)


def _source(root: DataFolder, folder: Path) -> RunSource:
    task_id = name_of(folder).removeprefix("task")
    agent = name_of(folder.resolve().parent)
    key = TrajectoryKey(benchmark=KIND, agent=agent, task_id=task_id)
    return RunSource(key, task_id, folder, root)


def _read(run: RunReader) -> Trajectory:
    messages = decode(run.data, run.path / _MESSAGES, list[_Message])
    opening = next((_text(message) for message in messages if message.role == "user"), "")
    goal, start_url = _goal(opening)
    turns = [_text(message) for message in messages if message.role == "assistant"]
    steps = [
        _step(run, index, turn, reply)
        for index, (turn, reply) in enumerate(zip(turns, _replies(messages), strict=True))
    ]
    errors = sum(step.observation.page_error is not None for step in steps)
    answers = [match[1] for step in steps if (match := _ANSWER.match(step.action or ""))]
    return run.trajectory(
        goal,
        steps,
        answer=text(answers[-1]) if answers else None,
        terminated=bool(answers),
        telemetry={"n_steps": float(len(steps)), "n_err": float(errors)},
        metadata={"start_url": start_url},
    )


load = run_loader(_sources, _read)


def _text(message: _Message) -> str:
    content = message.content
    if isinstance(content, str):
        return text(content) or ""
    return "\n".join(text(part.get("text")) or "" for part in content).strip()


def _goal(opening: str) -> tuple[str, str | None]:
    """Return the task in the first user turn, and its start page."""
    _, separator, rest = opening.partition(_OPENING)
    start = _START.search(rest)
    goal = rest[: start.start()].strip() if start else rest.partition(_OBSERVATION)[0].strip()
    if not separator or not goal:
        raise Damaged(f"{_MESSAGES} holds no goal: its first user turn lacks {_OPENING!r}")
    return goal, start[1] if start else None


def _replies(messages: list[_Message]) -> list[_Reply]:
    """Return for each turn of the assistant the user's turn before it."""
    replies, last = [], _Reply()
    for message in messages:
        if message.role == "assistant":
            replies.append(last)
        last = _of_user(message) if message.role == "user" else _Reply()
    return replies


def _of_user(message: _Message) -> _Reply:
    """Read the image, or the text in its position; other text refuses the previous action."""
    words, content = _text(message), message.content
    parts = [] if isinstance(content, str) else content
    if any(part.get("type") == "image_url" for part in parts):
        return _Reply(screenshot=True)
    # Where the source shortened its messages, a refusal ends with the words of an observation.
    before = "" if _OPENING in words else words.partition(_OBSERVATION.rstrip(":"))[0]
    refusal = text(before.strip())
    return _Reply(screenshot=refusal is None and _OBSERVATION in words, refusal=refusal)


def _step(run: RunReader, index: int, turn: str, reply: _Reply) -> Step:
    thought, action = turn, None
    if match := _ACTION.search(turn) or _ACTION_INSIDE.search(turn):
        # An agent that goes on by itself makes up the next observation, too.
        action = turn[match.end() :].partition("\nObservation:")[0].strip()
        thought = turn[: match.start()]
    else:
        run.warnings.append(f"Turn {index + 1} of the agent names no action.")
    shot = run.path / f"screenshot{index + 1}.png"
    return Step(
        index=index,
        observation=Observation(
            axtree=run.tree(run.path / f"accessibility_tree{index + 1}.txt"),
            screenshot=run.screenshot(shot, named=reply.screenshot),
            page_error=reply.refusal,
        ),
        reasoning=_THOUGHT.sub("", thought).strip() or None,
        action=action or None,
    )
