"""Failure points of a run and the validity of its task: replies, and the points that the tools'
definitions make by rule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from trajudge.judges.methods.universal_verifier.history import tool_call
from trajudge.judges.methods.universal_verifier.replies.fields import (
    Fields,
    entries,
    object_with,
    optional_flag,
    required_flag,
    text_of,
)
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.model import Record, Step

_STEPS = re.compile(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*")
_INVALID, _UNKNOWN = "6.1", "6.2"
# Arguments that frameworks add to every call.
_FREE = frozenset({"_call_id", "thoughts", "action", "reasoning", "screen_description"})
ActionSpace = Mapping[str, Sequence[str]]


class FailurePoint(Record):
    """What went wrong at which steps, by the taxonomy. ``programmatic``: made by rule."""

    step_numbers: str
    error_code: str
    error_category: str
    error_type: str
    what_happened: str
    agent_reasoning: str = ""
    evidence: str = ""
    impact: str = ""
    programmatic: bool = False

    @property
    def first_step(self) -> int:
        """The smallest step number of all ranges."""
        return min(int(number) for number in re.findall(r"\d+", self.step_numbers))


class FailureAnalysis(Record):
    """All failure points of a run in order of their first step."""

    reasoning: str
    has_failure: bool
    failure_points: tuple[FailurePoint, ...] = ()

    @property
    def first_failure_step(self) -> int | None:
        """The step of the first failure, None without one."""
        return self.failure_points[0].first_step if self.failure_points else None


class TaskValidity(Record):
    """Whether the task itself is ambiguous or invalid, None where the reply does not say."""

    is_ambiguous: bool | None = None
    ambiguity_codes: tuple[str, ...] = ()
    is_invalid: bool | None = None
    invalid_task_codes: tuple[str, ...] = ()
    reasoning_is_ambiguous: str = ""
    reasoning_is_invalid: str = ""


def parse_failures(text: str) -> FailureAnalysis:
    """Parse the analysis. Raises ParseFailure."""
    fields = object_with(text, "has_failure", "failure_points")
    points = tuple(map(_point, entries(fields, "failure_points")))
    return FailureAnalysis(
        reasoning=text_of(fields, "reasoning"),
        has_failure=required_flag(fields, "has_failure"),
        failure_points=points,
    )


def _point(entry: Fields) -> FailurePoint:
    steps = re.sub(r"\s+", "", str(entry.get("step_numbers", "")))
    if not _STEPS.fullmatch(steps):
        raise ParseFailure(f"step_numbers {steps[:40]!r} is no list of steps such as 2 or 3-5,7")
    names = ("error_code", "error_category", "error_type", "what_happened")
    optional = ("agent_reasoning", "evidence", "impact")
    return FailurePoint(
        step_numbers=steps,
        **{name: text_of(entry, name) for name in names},
        **{name: text_of(entry, name, may_be_empty=True) for name in optional},
    )


def with_tool_rules(
    analysis: FailureAnalysis, steps: Sequence[Step], space: ActionSpace | None
) -> FailureAnalysis:
    """Sort the points; where the tools are known, put those made by rule in place of the model's
    on invalid calls (6.1) and unknown tools (6.2)."""
    points = list(analysis.failure_points)
    made: list[FailurePoint] = []
    if space is not None:
        points = [point for point in points if point.error_code not in (_INVALID, _UNKNOWN)]
        made = invalid_calls(steps, space)
    ordered = sorted([*points, *made], key=lambda point: point.first_step)
    changes = {
        "failure_points": tuple(ordered),
        "has_failure": analysis.has_failure or bool(made),
    }
    return analysis.model_copy(update=changes)


def invalid_calls(steps: Sequence[Step], space: ActionSpace) -> list[FailurePoint]:
    """Find the calls of a tool that is not in ``space`` (name to arguments), or with arguments
    that it does not have. ``steps`` are those with an action, numbered from 1."""
    calls = []
    for number, step in enumerate(steps, start=1):
        call = tool_call(step.action or "")
        if call is None:
            continue
        if call.name not in space:
            calls.append(_made(number, _UNKNOWN, f"there is no tool named {call.name}"))
            continue
        unknown = sorted(call.arguments.keys() - {*space[call.name]} - _FREE)
        if unknown:
            words = f"{call.name} was called with {', '.join(unknown)}, which it does not take"
            calls.append(_made(number, _INVALID, words))
    return calls


def _made(number: int, code: str, happened: str) -> FailurePoint:
    return FailurePoint(
        step_numbers=str(number),
        error_code=code,
        error_category="Tool Interaction",
        error_type="Hallucinated action" if code == _UNKNOWN else "Invalid invocation",
        what_happened=happened,
        evidence="The definitions of the agent's tools.",
        programmatic=True,
    )


def action_space(metadata: Mapping[str, object]) -> ActionSpace | None:
    """Return the tools that the run's metadata declares: ``action_space`` {name: [argument]}."""
    declared = metadata.get("action_space")
    if not isinstance(declared, Mapping):
        return None
    return {
        str(name): [str(one) for one in arguments]
        for name, arguments in declared.items()
        if isinstance(arguments, list)
    }


def parse_validity(text: str) -> TaskValidity:
    """Parse the verdict on the task; a field of a wrong type is None, not a failure. Raises
    ParseFailure if the reply is no such object."""
    fields = object_with(text, "is_ambiguous", "is_invalid")
    return TaskValidity(
        is_ambiguous=optional_flag(fields, "is_ambiguous"),
        ambiguity_codes=_codes(fields, "ambiguity_codes"),
        is_invalid=optional_flag(fields, "is_invalid"),
        invalid_task_codes=_codes(fields, "invalid_task_codes"),
        reasoning_is_ambiguous=str(fields.get("reasoning_is_ambiguous", "")),
        reasoning_is_invalid=str(fields.get("reasoning_is_invalid", "")),
    )


def parse_strict_validity(text: str) -> TaskValidity:
    """Parse the verdict on the task, of which no flag may be missing. Raises ParseFailure."""
    fields = object_with(text, "is_ambiguous", "is_invalid")
    for name in ("is_ambiguous", "is_invalid"):
        required_flag(fields, name)
    return parse_validity(text)


def _codes(fields: Fields, name: str) -> tuple[str, ...]:
    listed = fields.get(name)
    return tuple(str(code) for code in listed) if isinstance(listed, list) else ()
