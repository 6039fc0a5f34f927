"""What a rule says of a run: pass, fail or unknown, with every comparison that led to it.

Verdicts are msgspec structs: a rule gives thousands of them in a second, and importing them must
cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import msgspec

# What a comparison saw is kept for the reader, and no reader wants 50 MB of it.
MAX_SHOWN = 2_000
MAX_PARTS = 100


class Outcome(StrEnum):
    """``unknown`` means that the rule lacks what it needs (a page, a judge), never a quiet fail."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


class Assertion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One comparison: what was expected and found, as written and in their normal forms.

    ``name`` is a dotted path into the specification, such as ``answer.status`` or
    ``network.1.url``; its first parts serve as the failure mode in summaries. ``reason`` is one
    sentence, empty only for a pass that needs none. Values are JSON values, bounded in size by
    ``shown`` where they came from an agent or a page.
    """

    name: str
    outcome: Outcome
    reason: str = ""
    expected: Any = None
    found: Any = None
    expected_normalised: Any = None
    found_normalised: Any = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one run, the reasons for anything but a pass, and all assertions.

    ``notes`` are what the rule took for granted, one sentence each, such as a site's address.
    ``score`` is the share between 0 and 1 of a rule that gives one for a part; None of any other,
    and where what is unknown may change it.
    """

    outcome: Outcome
    reasons: tuple[str, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    notes: tuple[str, ...] = ()
    score: float | None = None


Task_contra = TypeVar("Task_contra", contravariant=True)
Trace_contra = TypeVar("Trace_contra", contravariant=True)


class Evaluator(Protocol[Task_contra, Trace_contra]):
    """A rule: judges an agent's answer and the trace of its run against a task.

    ``answer`` is whatever the agent gave: text, a JSON value, or None for nothing. ``trace`` is
    the evaluator's own notion of a run, None for a run of which nothing was recorded. Raises
    nothing for any answer or trace: what cannot be judged is ``unknown``.
    """

    def evaluate(self, task: Task_contra, answer: object, trace: Trace_contra | None) -> Verdict:
        """Return the verdict on one run."""
        ...


def decided(held: bool | None) -> Outcome:
    """Pass or fail; unknown for None."""
    if held is None:
        return Outcome.UNKNOWN
    return Outcome.PASS if held else Outcome.FAIL


def checked(name: str, held: bool | None, reason: str, expected: Any, found: Any) -> Assertion:
    """Return an assertion that holds or does not, or None: it is open; the reason is kept only if
    it does not hold."""
    return Assertion(
        name=name,
        outcome=decided(held),
        reason="" if held else reason,
        expected=expected,
        found=shown(found),
    )


def conjunction(outcomes: Iterable[Outcome]) -> Outcome:
    """Combine outcomes that must all pass: one fail decides, then one unknown (Kleene's strong
    three-valued *and*)."""
    seen = set(outcomes)
    for outcome in (Outcome.FAIL, Outcome.UNKNOWN):
        if outcome in seen:
            return outcome
    return Outcome.PASS


def verdict_of(assertions: Iterable[Assertion], notes: tuple[str, ...] = ()) -> Verdict:
    """Return the verdict in which every assertion must hold, with the reasons of those that do not.

    The reasons are those of the outcome: a failed run lists its failures, not what else was
    unknown. No assertion at all gives ``unknown``: nothing was checked.
    """
    kept = tuple(map(_storable, assertions))
    if not kept:
        return unknown("the task's specification checks nothing")
    outcome = conjunction(assertion.outcome for assertion in kept)
    reasons = tuple(
        f"{assertion.name}: {assertion.reason}"
        for assertion in kept
        if assertion.outcome is outcome and outcome is not Outcome.PASS
    )
    return Verdict(outcome=outcome, reasons=reasons, assertions=kept, notes=notes)


def _storable(assertion: Assertion) -> Assertion:
    """Return an assertion with a reason that a file can hold: it may quote what an agent sent."""
    if assertion.reason.isascii():
        return assertion
    return msgspec.structs.replace(assertion, reason=_encodable(assertion.reason))


def unknown(reason: str) -> Verdict:
    """Return the verdict on a run that could not be judged at all."""
    return Verdict(outcome=Outcome.UNKNOWN, reasons=(reason,))


def shown(value: object) -> Any:
    """Return a value fit for a result file: of lists and objects the first ``MAX_PARTS``, text cut
    at ``MAX_SHOWN`` characters, and saying so.

    Half characters (lone surrogates), which no file in UTF-8 can hold, become question marks.
    """
    if isinstance(value, list | tuple):
        return [shown(item) for item in value[:MAX_PARTS]]
    if isinstance(value, dict):
        return {shown(key): shown(item) for key, item in list(value.items())[:MAX_PARTS]}
    if not isinstance(value, str):
        return value
    text = _encodable(value[:MAX_SHOWN])
    return text if len(value) <= MAX_SHOWN else f"{text}… ({len(value)} characters)"


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
