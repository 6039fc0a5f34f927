"""A run as the verifier reads it: the action history as text, the screenshots numbered, the
answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from trajudge.judges.prompting.screenshots import Shot
from trajudge.trajectories.model import Step, Trajectory

Thoughts = Literal["as-recorded", "shown", "hidden"]

NO_ANSWER = "<no_answer>"
_URL_LENGTH = 150
_CALL = re.compile(r"\s*([A-Za-z_][\w.]*)\((\{.*\})\)\s*", re.DOTALL)
_ENDS = {"stop_execution": "terminate", "stop_and_answer_question": "terminate"}
# Arguments in which agents write what they think or see; the original shows ``thoughts``.
_SCREEN = "screen_description"
_UNSHOWN = frozenset({"reasoning", "action", _SCREEN})
_SEARCH_PAGES = frozenset(
    f"{scheme}{host}{end}"
    for scheme in ("https://", "http://", "")
    for host in ("www.bing.com", "bing.com")
    for end in ("", "/")
)


class ToolCall(NamedTuple):
    """An action that is recorded as the name of a tool and its arguments."""

    name: str
    arguments: dict[str, Any]


def tool_call(action: str) -> ToolCall | None:
    """Parse ``NAME({...})``; None for an action in another form."""
    match = _CALL.fullmatch(action)
    if match is None:
        return None
    try:
        arguments = json.loads(match[2])
    except (ValueError, RecursionError):
        return None
    return ToolCall(_ENDS.get(match[1], match[1]), arguments)


def acting_steps(trajectory: Trajectory) -> list[Step]:
    """Return the steps that have an action, in order."""
    return [step for step in trajectory.steps if step.action is not None]


def action_history(trajectory: Trajectory, thoughts: Thoughts = "as-recorded") -> str:
    """Write the run as text: two lines for every action (where, what), those of its error and of
    the agent's thoughts where there are any. Actions are numbered from 1."""
    lines: list[str] = []
    for number, step in enumerate(acting_steps(trajectory), start=1):
        lines += _lines(number, step, thoughts)
        following = step.index + 1
        if following < len(trajectory.steps):
            error = trajectory.steps[following].observation.page_error
            lines += [f"Error! {error}"] if error else []
    return "\n".join(lines)


def _lines(number: int, step: Step, thoughts: Thoughts) -> Iterator[str]:
    action = step.action or ""
    call = tool_call(action)
    seen = str(call.arguments.get(_SCREEN, "")) if call else ""
    yield f"State {number}: {_short_url(step.observation.url)}, state_description: {seen}"
    if thoughts != "hidden" and step.reasoning is not None:
        yield f"Thought {number}: {step.reasoning}"
    yield f"Action {number}: {_written(call, thoughts) if call else action}"


def _written(call: ToolCall, thoughts: Thoughts) -> str:
    left_out = set(_UNSHOWN)
    if thoughts == "shown":
        left_out.discard("reasoning")
    if thoughts == "hidden":
        left_out |= {"thoughts", "state_description"}
    kept = {name: value for name, value in call.arguments.items() if name not in left_out}
    return f"{call.name}({json.dumps(kept, indent=4)})"


def _short_url(url: str | None) -> str:
    if url is None:
        return "unknown"
    short = re.split(r"[?#]", url, maxsplit=1)[0]
    return short if len(short) <= _URL_LENGTH else f"{short[:_URL_LENGTH]}..."


def screenshots(trajectory: Trajectory, *, last_page: bool) -> tuple[list[Shot], int]:
    """Return the screenshots before the actions in order, and how many steps lack theirs;
    ``last_page`` adds the page after the last action."""
    acting = acting_steps(trajectory)
    shown = list(acting)
    if last_page and trajectory.steps and trajectory.steps[-1].action is None:
        shown.append(trajectory.steps[-1])
    shots = [
        Shot(step.index + 1, step.observation.screenshot)
        for step in shown
        if step.observation.screenshot is not None
    ]
    return shots, len(shown) - len(shots)


def answer_of(trajectory: Trajectory) -> str:
    """Return what the agent told the user; the original's word where it is known to have ended
    without, "" where nothing is known."""
    if trajectory.answer is not None:
        return trajectory.answer
    return NO_ANSWER if unended(trajectory) else ""


def unended(trajectory: Trajectory) -> bool:
    """Tell whether the agent is known not to have ended its run itself."""
    return trajectory.terminated is False or trajectory.truncated is True


def initial_url(trajectory: Trajectory) -> str | None:
    """Return the address that belongs to the task, None for none and for a search engine's empty
    page. That of the first step is not it."""
    for name in ("init_url", "start_url"):
        url = trajectory.metadata.get(name)
        if isinstance(url, str) and url.strip():
            return None if url.strip().lower() in _SEARCH_PAGES else url.strip()
    return None
