"""The verdict on one run of a task: its answer, its requests, the state of the sites after it.

In the mode ``sound``, trajudge's interpretation of a specification, the agent's input is data only,
values are typed, and what was not recorded is unknown. ``release-1.2.3`` is the published
package's. DIFFERENCES.md shows the differences by example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET

from trajudge.rules.limits import InvalidValue, Undecided, slow_patterns_counted
from trajudge.rules.values import Mode, equal
from trajudge.rules.verdict import (
    Assertion,
    Outcome,
    Verdict,
    checked,
    decided,
    shown,
    unknown,
    verdict_of,
)
from trajudge.rules.verified import release
from trajudge.rules.verified.answers import (
    Oversized,
    ParseFailure,
    Response,
    map_texts,
    normal_data,
    read_response,
    same_data,
)
from trajudge.rules.verified.network import (
    Binding,
    Hosts,
    Trace,
    network_assertions,
    other_changes,
    sites_of,
    unlocated,
)
from trajudge.rules.verified.state import State, backend_assertions
from trajudge.rules.verified.tasks import AnswerCheck, Task


@dataclass(frozen=True)
class VerifiedEvaluator:
    """Judges runs of WebArena Verified's tasks.

    ``hosts`` are the sites' addresses in the run. For a site without one the only loaded page on
    the benchmark's port for it is used, with a note; without such a page its checks are unknown.
    ``activity`` requires at least one request that the task's site answered (the paper's section
    4.3; the released package never does).
    """

    mode: Mode = Mode.SOUND
    hosts: Hosts = field(default_factory=dict)
    activity: bool = False

    def evaluate(
        self,
        task: Task,
        answer: object,
        trace: Trace | None,
        state: Mapping[str, State] | None = None,
    ) -> Verdict:
        """Return the verdict on one run; ``state`` has the probes' replies. Never raises."""
        if task.flaw:
            return unknown(f"the task cannot be read: {task.flaw}")
        with slow_patterns_counted():
            if self.mode is Mode.RELEASE:
                return verdict_of(self._release(task, answer, trace))
            return self._sound(task, answer, trace, state)

    def _sound(
        self,
        task: Task,
        answer: object,
        trace: Trace | None,
        state: Mapping[str, State] | None,
    ) -> Verdict:
        binding = sites_of(task, trace, self.hosts)
        made = list(self._answer(task, answer, binding))
        made += network_assertions(task, trace, self.hosts, activity=self.activity)
        if task.backend_checks:
            made += backend_assertions(task, state)
        else:
            made += other_changes(task, trace, self.hosts)
        return verdict_of(made, binding.notes)

    def _answer(self, task: Task, answer: object, binding: Binding) -> list[Assertion]:
        check = task.answer_check
        if check is None:
            return []
        response = read_response(answer)
        if isinstance(response, ParseFailure):
            return [
                Assertion(
                    name=f"parse_failure.{response.kind}",
                    outcome=Outcome.FAIL,
                    reason=response.reason,
                    found=_text(answer),
                )
            ]
        return _response_assertions(check, response, binding)

    def _release(self, task: Task, answer: object, trace: Trace | None) -> list[Assertion]:
        def parts() -> list[Assertion]:
            if trace is None or not trace.events:
                raise release.ReleaseError("the trace holds no event")
            binding = release.binding_of(task, trace, self.hosts)
            check = task.answer_check
            made = release.or_error(
                lambda: release.answer_assertions(check, answer, binding) if check else []
            )
            return made + release.network_assertions(task, trace, binding)

        return release.or_error(parts)


def _text(answer: object) -> Any:
    if isinstance(answer, Oversized):
        answer = answer.head
    if isinstance(answer, bytes):
        return shown(answer[:10_000].decode("utf-8", "replace"))
    return shown(answer) if isinstance(answer, str) else None


def _response_assertions(
    check: AnswerCheck, response: Response, binding: Binding
) -> list[Assertion]:
    made = [
        _word("answer.task_type", check.expected.task_type, response.task_type),
        _word("answer.status", check.expected.status.upper(), response.status),
    ]
    if check.expected.task_type == "retrieve":
        data = map_texts(binding.bind_text, response.retrieved_data)
        made.append(_open_shape(check, _located(check, _data(check, data), binding)))
    return made


def _located(check: AnswerCheck, made: Assertion, binding: Binding) -> Assertion:
    """Make a mismatch unknown if the data contain the address of an unknown site."""
    if made.outcome is not Outcome.FAIL:
        return made
    reason = unlocated(binding, check.expected)
    return msgspec.structs.replace(made, outcome=Outcome.UNKNOWN, reason=reason) if reason else made


def _open_shape(check: AnswerCheck, made: Assertion) -> Assertion:
    """Make a match unknown if the specification describes only the form of the values."""
    if not check.shape_only or made.outcome is not Outcome.PASS:
        return made
    reason = "the answer looks as it should, and the specification does not know its value"
    return msgspec.structs.replace(made, outcome=Outcome.UNKNOWN, reason=reason)


def _word(name: str, expected: str, actual: str) -> Assertion:
    return checked(name, expected == actual, f"{actual}, not {expected}", expected, actual)


def _data(check: AnswerCheck, actual: Any) -> Assertion:
    expected = None if check.expected.retrieved_data is UNSET else check.expected.retrieved_data
    name = "answer.retrieved_data"
    try:
        difference = same_data(check, expected, actual)
    except InvalidValue as error:
        outcome = Outcome.UNKNOWN if isinstance(error, Undecided) else Outcome.FAIL
        return Assertion(name=name, outcome=outcome, reason=str(error), expected=expected)
    if difference is not None and expected is None and equal("null", None, actual).equal:
        difference = None
    schema = check.results_schema
    return Assertion(
        name=name if difference is None else f"{name}{difference.path}",
        outcome=decided(True if difference is None else False if difference.sure else None),
        reason="" if difference is None else str(difference),
        expected=expected,
        found=shown(actual),
        expected_normalised=normal_data(schema, expected, Mode.SOUND, alternatives=True),
        found_normalised=shown(normal_data(schema, actual, Mode.SOUND)),
    )
