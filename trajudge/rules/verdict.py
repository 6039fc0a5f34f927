"""The verdict of a rule on a run: pass, fail or unknown, with every comparison behind it.

Verdicts are msgspec structs, because a rule creates thousands of them per second and their import
must be fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import msgspec

# Compared values are kept for the reader, who does not need 50 MB of them.
MAX_SHOWN = 2_000
MAX_PARTS = 100


class Outcome(StrEnum):
    """``unknown`` means that the rule lacks something that it needs (a page, a judge); it is
    never counted as a fail."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


class Assertion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One comparison: the expected and the actual value, as written and in normal form.

    ``name`` is a dotted path into the specification, such as ``answer.status`` or
    ``network.1.url``; its first parts are the failure mode in summaries. ``reason`` is one
    sentence, empty only for a pass. ``found`` is the actual value. Values are JSON values; those
    from an agent or a page are truncated by ``shown``.
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

    ``notes`` are assumptions of the rule, one sentence each, such as a site's inferred address.
    ``score`` is the partial score in [0, 1] of a rule that has one; None for other rules, and if an
    unknown outcome may change it.
    """

    outcome: Outcome
    reasons: tuple[str, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    notes: tuple[str, ...] = ()
    score: float | None = None


Task_contra = TypeVar("Task_contra", contravariant=True)
Trace_contra = TypeVar("Trace_contra", contravariant=True)


class Evaluator(Protocol[Task_contra, Trace_contra]):
    """A rule that judges an agent's answer and the trace of its run against a task.

    ``answer`` is the agent's answer: text, a JSON value, or None. ``trace`` is in the evaluator's
    own format, None if nothing was recorded. An evaluator never raises for an answer or a trace:
    what cannot be judged is ``unknown``.
    """

    def evaluate(self, task: Task_contra, answer: object, trace: Trace_contra | None) -> Verdict:
        """Return the verdict on one run."""
        ...


def decided(held: bool | None) -> Outcome:
    """Return pass for True, fail for False, unknown for None."""
    if held is None:
        return Outcome.UNKNOWN
    return Outcome.PASS if held else Outcome.FAIL


def checked(name: str, held: bool | None, reason: str, expected: Any, actual: Any) -> Assertion:
    """Return an assertion that holds (True), fails (False) or is unknown (None); the reason is
    kept unless it holds."""
    return Assertion(
        name=name,
        outcome=decided(held),
        reason="" if held else reason,
        expected=expected,
        found=shown(actual),
    )


def conjunction(outcomes: Iterable[Outcome]) -> Outcome:
    """Combine outcomes that must all pass: fail if one fails, else unknown if one is unknown
    (Kleene's strong three-valued *and*)."""
    seen = set(outcomes)
    for outcome in (Outcome.FAIL, Outcome.UNKNOWN):
        if outcome in seen:
            return outcome
    return Outcome.PASS


def verdict_of(assertions: Iterable[Assertion], notes: tuple[str, ...] = ()) -> Verdict:
    """Return the verdict for assertions that must all hold.

    The reasons are those of assertions with the verdict's outcome: a failed run lists its failures
    only. Without assertions the verdict is ``unknown``.
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
    """Return the assertion with a reason that can be encoded as UTF-8: it may quote an agent's
    text."""
    if assertion.reason.isascii():
        return assertion
    return msgspec.structs.replace(assertion, reason=_encodable(assertion.reason))


def unknown(reason: str) -> Verdict:
    """Return the verdict on a run that cannot be judged."""
    return Verdict(outcome=Outcome.UNKNOWN, reasons=(reason,))


def shown(value: object) -> Any:
    """Truncate a value for a result file: lists and objects to ``MAX_PARTS`` items, texts to
    ``MAX_SHOWN`` characters with a note.

    Lone surrogates, which UTF-8 cannot encode, become question marks.
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
