"""The original harness's verdict, offline: what was not recorded is unknown, never a fail.

A run passes if every check that ``eval.eval_types`` names passes (the product of their scores).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET

from trajudge.rules.verdict import Assertion, Outcome, Verdict, shown, verdict_of
from trajudge.rules.webarena.model import UNACHIEVABLE, Run, Task, TaskId, Trace
from trajudge.rules.webarena.pages import page_assertions
from trajudge.rules.webarena.strings import clean, exact_match, must_include, text_assertion
from trajudge.rules.webarena.urls import alternatives, render, unresolved, url_match
from trajudge.trajectories.util.errors import UserError

_NO_JUDGE = "a judge model decides this and none was given"
_NO_REFERENCES = "string_match is named and reference_answers holds nothing to compare with"
_UNDECIDED = "the judge model gave no decision"


class AnswerQuestion(NamedTuple):
    """What a judge model is asked.

    ``equivalent``: does the answer mean what the reference says? ``same_reason``: does the
    answer give the reference as the reason why the task cannot be done?
    """

    kind: Literal["equivalent", "same_reason"]
    intent: str
    reference: str
    answer: str


AnswerJudge = Callable[[AnswerQuestion], bool | None]


@dataclass(frozen=True)
class WebArenaEvaluator:
    """The original rules. ``judge`` answers the fuzzy matches: True, False, or None if it cannot.

    ``sites`` gives the addresses behind placeholders such as ``__REDDIT__``; urls that hold the
    placeholders themselves need none.
    """

    judge: AnswerJudge | None = None
    sites: Mapping[str, str] = field(default_factory=dict)

    def evaluate(self, task: Task, answer: object, trace: Trace | None) -> Verdict:
        """Return the verdict on one run; ``answer`` is text, None for none, else read as JSON."""
        notes = tuple(f"no rule reads eval.{name}" for name in task.eval.unread)
        return verdict_of(self._assertions(task, as_text(answer), trace or Trace()), notes)

    def _assertions(self, task: Task, answer: str, trace: Trace) -> Iterator[Assertion]:
        spec = task.eval
        if "string_match" in spec.eval_types:
            # Cleaned twice, as there: two pairs of quotes come off.
            yield from self._answer(task, clean(clean(answer)))
        if "url_match" in spec.eval_types:
            yield self._url(spec.reference_url or "", spec.url_note, trace)
        if "program_html" in spec.eval_types:
            yield from page_assertions(spec.program_html, trace, self.sites)

    def _answer(self, task: Task, answer: str) -> Iterator[Assertion]:
        references = task.eval.reference_answers
        if references is None:
            yield Assertion(name="answer", outcome=Outcome.UNKNOWN, reason=_NO_REFERENCES)
            return
        if references.exact_match is not UNSET:
            passed = exact_match(references.exact_match, answer)
            yield _text("answer.exact_match", passed, references.exact_match, answer)
        if references.must_include is not UNSET:
            alone = len(references.must_include) == 1
            for index, reference in enumerate(references.must_include):
                passed = must_include(reference, answer, tokens=alone)
                yield _text(f"answer.must_include.{index}", passed, reference, answer)
        if references.fuzzy_match is not UNSET:
            yield from self._fuzzy(task, references.fuzzy_match, answer)

    def _fuzzy(
        self, task: Task, references: str | tuple[str, ...], answer: str
    ) -> Iterator[Assertion]:
        name = "answer.fuzzy_match"
        if references == UNACHIEVABLE:
            note = task.eval.string_note or ""
            if exact_match(UNACHIEVABLE, answer):
                yield _text(name, True, UNACHIEVABLE, answer)
            else:
                yield self._asked(name, AnswerQuestion("same_reason", task.intent, note, answer))
            return
        listed = (references,) if isinstance(references, str) else references
        for index, reference in enumerate(listed):
            entry = f"{name}.{index}"
            if not answer:
                yield _text(entry, not reference, reference, answer)
            else:
                question = AnswerQuestion("equivalent", task.intent, reference, answer)
                yield self._asked(entry, question)

    def _asked(self, name: str, question: AnswerQuestion) -> Assertion:
        decision = self.judge(question) if self.judge else None
        if decision is None:
            outcome, reason = Outcome.UNKNOWN, _UNDECIDED if self.judge else _NO_JUDGE
        elif decision:
            outcome, reason = Outcome.PASS, ""
        else:
            outcome, reason = Outcome.FAIL, "the judge model says that it does not match"
        return Assertion(
            name=name,
            outcome=outcome,
            reason=reason,
            expected=question.reference,
            found=shown(question.answer),
        )

    def _url(self, reference: str, note: object, trace: Trace) -> Assertion:
        wanted = render(reference, self.sites)
        if trace.url is None:
            outcome, reason = Outcome.UNKNOWN, "the run's last url was not recorded"
        elif note is not UNSET and note != "GOLD in PRED":
            outcome, reason = Outcome.UNKNOWN, f"no rule {note!r} is known for urls"
        elif "://" in trace.url and (placeholder := unresolved(wanted, trace.url)):
            outcome, reason = Outcome.UNKNOWN, f"{placeholder} has no address: give it in sites"
        else:
            passed, reason = url_match(alternatives(wanted), trace.url)
            outcome = Outcome.PASS if passed else Outcome.FAIL
        return Assertion(
            name="url", outcome=outcome, reason=reason, expected=reference, found=shown(trace.url)
        )


def _text(name: str, passed: bool, reference: str, answer: str) -> Assertion:
    """Return a comparison with the cleaned answer."""
    outcome = Outcome.PASS if passed else Outcome.FAIL
    reason = "" if passed else f"{shown(answer)[:200]!r} does not match {reference[:200]!r}"
    return text_assertion(name, outcome, reason, reference, answer)


def as_text(answer: object) -> str:
    """Return an answer as the harness would have been given it: text as it is, nothing as empty
    text.

    A value that JSON cannot hold (half characters, integers of thousands of digits) is no answer.
    """
    if answer is None:
        return ""
    if isinstance(answer, str):
        return answer
    try:
        return msgspec.json.encode(answer, enc_hook=str).decode()
    except (ValueError, TypeError, RecursionError, msgspec.MsgspecError):
        return ""


def evaluate_runs(
    tasks: Iterable[Task], runs: Iterable[Run], evaluator: WebArenaEvaluator
) -> Iterator[tuple[TaskId, Verdict]]:
    """Yield the verdict on each run, in the runs' order. Raises UserError for a task id without
    task."""
    by_id = {str(task.task_id): task for task in tasks}
    for run in runs:
        task = by_id.get(str(run.task_id))
        if task is None:
            raise UserError(
                f"task id {run.task_id!r} is in no task file: correct the run's task_id"
            )
        yield task.task_id, evaluator.evaluate(task, run.answer, run.trace)
