"""The harness's verdict, offline: what was not recorded is unknown, never a fail.

A run passes if every check that ``eval.eval_types`` names passes; the score is the product of the
checks' scores. Nothing is fetched and no script is run: a blank locator reads the stored html, any
other the value that was recorded for it, and what would need a picture is unknown.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET

from trajudge.rules.dialects import Harness
from trajudge.rules.verdict import (
    Assertion,
    Outcome,
    Verdict,
    conjunction,
    decided,
    shown,
    unknown,
    verdict_of,
)
from trajudge.rules.webarena.matching import (
    OR,
    alternatives,
    clean,
    exact_match,
    includes,
    must_include,
    post_address,
    render,
    satisfies,
    unresolved,
    url_match,
    whole_number,
)
from trajudge.rules.webarena.model import (
    UNACHIEVABLE,
    PageCheck,
    ReferenceAnswers,
    Run,
    StoredPage,
    Task,
    TaskId,
    Trace,
)
from trajudge.util.errors import UserError

LAST = "last"
_POST_ADDRESS = re.compile(r"func:reddit_get_post_url\('__last_url__'\)")
_NO_JUDGE = "a judge model decides this and none was given"
_NO_REFERENCES = "string_match is named and reference_answers holds nothing to compare with"
_UNDECIDED = "the judge model gave no decision"
_PICTURES = "pictures of the page decide this, and runs store none"


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


class _Part(NamedTuple):
    """Assertions that must all hold. The score is the share that does where it is ``shared``."""

    assertions: Sequence[Assertion]
    shared: bool = False

    @property
    def score(self) -> float | None:
        """Between 0 and 1; None where an unknown outcome may change it."""
        outcomes = [one.outcome for one in self.assertions]
        if self.shared and outcomes:
            held = outcomes.count(Outcome.PASS) / len(outcomes)
            return None if Outcome.UNKNOWN in outcomes else held
        all_hold = conjunction(outcomes)
        return None if all_hold is Outcome.UNKNOWN else float(all_hold is Outcome.PASS)


class _Missing(NamedTuple):
    """Why a page, or a part of it, cannot be read."""

    reason: str


@dataclass(frozen=True)
class WebArenaEvaluator:
    """The rules of WebArena and its descendants, each task's by its dialect.

    ``judge`` answers the fuzzy matches: True, False, or None if it cannot. ``sites`` gives the
    addresses behind placeholders such as ``__REDDIT__``; urls that hold the placeholders themselves
    need none.
    """

    judge: AnswerJudge | None = None
    sites: Mapping[str, str] = field(default_factory=dict)

    def evaluate(self, task: Task, answer: object, trace: Trace | None) -> Verdict:
        """Return the verdict on one run; ``answer`` is text, None for none, else read as JSON."""
        if task.flaw:
            return unknown(f"the task cannot be read: {task.flaw}")
        notes = tuple(f"no rule reads eval.{name}" for name in task.eval.unread)
        parts = list(self._parts(task, as_text(answer), trace or Trace()))
        verdict = verdict_of((one for part in parts for one in part.assertions), notes)
        if not task.harness.partial or not parts:
            return verdict
        scores = [part.score for part in parts]
        total = 0.0 if 0.0 in scores else None if None in scores else prod(filter(None, scores))
        return msgspec.structs.replace(verdict, score=total)

    def _parts(self, task: Task, answer: str, trace: Trace) -> Iterator[_Part]:
        spec = task.eval
        if "string_match" in spec.eval_types:
            yield from self._answer(task, answer)
        if "url_match" in spec.eval_types:
            yield _Part([self._url(task, trace)])
        if "program_html" in spec.eval_types:
            yield from _Pages(self, task, trace).parts()
        if "page_image_query" in spec.eval_types:
            queries = () if spec.page_image_query is UNSET else spec.page_image_query
            for index in range(max(len(queries), 1)):
                name = f"image.{index}"
                yield _Part([Assertion(name=name, outcome=Outcome.UNKNOWN, reason=_PICTURES)])

    def _answer(self, task: Task, answer: str) -> Iterator[_Part]:
        references, harness = task.eval.reference_answers, task.harness
        if references is None:
            yield _Part([Assertion(name="answer", outcome=Outcome.UNKNOWN, reason=_NO_REFERENCES)])
            return
        # Cleaned twice, as there: two pairs of quotes come off.
        once = clean(answer, strips=harness.strips)
        said = clean(once, strips=harness.strips)
        if references.exact_match is not UNSET:
            wanted = references.exact_match
            held = exact_match(wanted, said, strips=harness.strips)
            yield _Part([_text("answer.exact_match", held, wanted, said)])
        if references.must_include is not UNSET:
            listed = references.must_include
            made = [
                _text(
                    f"answer.must_include.{index}",
                    includes(text, said, harness, lone=len(listed) == 1),
                    text,
                    said,
                )
                for index, text in enumerate(listed)
            ]
            yield _Part(made, harness.partial)
        yield from map(_Part, _further(references, task.harness, once, said))
        if references.fuzzy_match is not UNSET:
            yield _Part(list(self._fuzzy(task, references.fuzzy_match, once)))

    def _fuzzy(
        self, task: Task, references: str | tuple[str, ...], answer: str
    ) -> Iterator[Assertion]:
        name = "answer.fuzzy_match"
        if references == UNACHIEVABLE:
            note = task.eval.string_note or ""
            if exact_match(UNACHIEVABLE, clean(answer, strips=task.harness.strips)):
                yield _text(name, True, UNACHIEVABLE, answer)
            else:
                yield self.asked(name, AnswerQuestion("same_reason", task.intent, note, answer))
            return
        yield from self.asked_all(name, task, references, answer)

    def asked_all(
        self, name: str, task: Task, references: str | tuple[str, ...], text: str
    ) -> Iterator[Assertion]:
        """Yield the judge model's decisions on the references, asked as the harness asks."""
        listed = (references,) if isinstance(references, str) else references
        if task.harness.joined is not None:
            listed = (task.harness.joined.join(listed),)
        for index, reference in enumerate(listed):
            entry = f"{name}.{index}"
            if not text:
                yield _text(entry, not reference, reference, text)
            else:
                question = AnswerQuestion("equivalent", task.intent, reference, text)
                yield self.asked(entry, question)

    def asked(self, name: str, question: AnswerQuestion) -> Assertion:
        """Return the judge model's decision on one question."""
        decision = self.judge(question) if self.judge else None
        reason = {
            None: _UNDECIDED if self.judge else _NO_JUDGE,
            False: "the judge model says that it does not match",
        }.get(decision, "")
        return Assertion(
            name=name,
            outcome=decided(decision),
            reason=reason,
            expected=question.reference,
            found=shown(question.answer),
        )

    def _url(self, task: Task, trace: Trace) -> Assertion:
        spec, held = task.eval, None
        others = () if spec.alternatives is UNSET else spec.alternatives
        wanted = [spec.reference_url or "", *(one.reference_url for one in others)]
        reference = OR.join(wanted)
        note = None if spec.url_note is UNSET else spec.url_note
        rendered = [render(one, self.sites) for one in wanted]
        if trace.url is None:
            reason = "the run's last url was not recorded"
        elif "://" in trace.url and (missing := unresolved(OR.join(rendered), trace.url)):
            reason = f"{missing} has no address: give it in sites"
        else:
            for one in rendered:
                held, reason = url_match(alternatives(one), trace.url, task.harness, note)
                if held is not False:
                    break
        return Assertion(
            name="url",
            outcome=decided(held),
            reason="" if held else reason,
            expected=reference,
            found=shown(trace.url),
        )


class _Pages:
    """The page checks (``program_html``) of one run, on its stored pages."""

    def __init__(self, evaluator: WebArenaEvaluator, task: Task, trace: Trace) -> None:
        self.evaluator, self.task, self.trace = evaluator, task, trace
        self.current = trace.url

    def parts(self) -> Iterator[_Part]:
        """Yield each check's part; of alternatives the one with the best score."""
        for index, check in enumerate(self.task.eval.program_html):
            others = () if check.alternatives is UNSET else check.alternatives
            made = [self._checked(f"page.{index}", one) for one in (check, *others)]
            yield max(made, key=lambda part: -0.5 if part.score is None else part.score)

    def _checked(self, name: str, check: PageCheck) -> _Part:
        # As in the harness, a check that opens a page leaves it open for the next "last".
        address = self._address(check.url)
        found = address if isinstance(address, _Missing) else self._found(check, address)
        self.current = None if isinstance(address, _Missing) else address
        if isinstance(found, _Missing):
            return _Part([Assertion(name=name, outcome=Outcome.UNKNOWN, reason=found.reason)])
        if found is None:
            reason = f"{check.locator[:200]!r} is not on the page"
            return _Part([Assertion(name=name, outcome=Outcome.FAIL, reason=reason)])
        return self._compared(name, check, found)

    def _address(self, url: str) -> str | _Missing:
        """Return the address of the page that a check reads."""
        if url == LAST or "__last_url__" in url:
            if self.current is None:
                return _Missing("the run's last url was not recorded")
            if url == LAST:
                return self.current
        if url.startswith("func"):
            recorded = self.trace.results.get(url.removeprefix("func:"))
            if recorded is not None:
                return recorded
            if self.current is not None and _POST_ADDRESS.fullmatch(url):
                return post_address(self.current)
            return _Missing(f"the result of {url!r} was not recorded")
        return render(url, self.evaluator.sites)

    def _found(self, check: PageCheck, address: str) -> str | _Missing | None:
        """Return the text that a check reads: a helper's result, a page's html, or a locator's
        value; None for an element that was not there."""
        locator = check.locator.strip()
        if locator.startswith("func:"):
            return _recorded(self.trace.results, locator.removeprefix("func:"), "the result of")
        page = self._stored(address)
        if page is None:
            return _Missing(f"no page was stored for {address[:200]!r}")
        if locator:
            return _recorded(page.values, check.locator, "a value for")
        return _Missing(f"no html was stored for {address!r}") if page.html is None else page.html

    def _stored(self, address: str) -> StoredPage | None:
        wanted, sites = address.rstrip("/"), self.evaluator.sites
        for page in self.trace.pages:
            if render(page.url, sites).rstrip("/") == wanted:
                return page
        return None

    def _compared(self, name: str, check: PageCheck, found: str) -> _Part:
        """As in the harness, the first of the required contents hides the others."""
        required, harness, sites = check.required_contents, self.task.harness, self.evaluator.sites
        text = html.unescape(found) if harness.unescapes else found
        said = clean(text, strips=harness.strips)
        if required.exact_match is not UNSET:
            wanted = render(required.exact_match, sites)
            held = exact_match(wanted, said, strips=harness.strips)
            return _Part([_on_page(f"{name}.exact_match", held, wanted, said)])
        if required.must_include is not UNSET:
            made = []
            for index, content in enumerate(required.must_include):
                wanted = render(content, sites)
                held = any(includes(one, said, harness) for one in wanted.split(OR))
                made.append(_on_page(f"{name}.must_include.{index}", held, wanted, said))
            return _Part(made, harness.partial)
        if required.must_exclude is not UNSET:
            return _Part(_excluded(name, required.must_exclude, said, harness))
        if required.required_values is not UNSET:
            number: float | None = whole_number(text)
            if number is None and not check.locator.startswith(("document.", "[...document.")):
                number = _number(text)  # a helper returns numbers, which were recorded as text
            return _Part(_valued(name, required.required_values, text, number))
        if required.fuzzy_match is not UNSET:
            wanted_all = required.fuzzy_match
            if isinstance(wanted_all, str):
                wanted_all = tuple(wanted_all.split(OR))
            asked = self.evaluator.asked_all(f"{name}.fuzzy_match", self.task, wanted_all, text)
            return _Part(list(asked))
        reason = "nothing is required of it"
        return _Part([Assertion(name=name, outcome=Outcome.UNKNOWN, reason=reason)])


def _further(
    references: ReferenceAnswers, harness: Harness, once: str, said: str
) -> Iterator[list[Assertion]]:
    """Yield the comparisons of answers that VisualWebArena adds."""
    if references.must_exclude is not UNSET:
        yield _excluded("answer", references.must_exclude, said, harness)
    if references.one_of is not UNSET:
        wanted = [clean(text, strips=harness.strips) for text in references.one_of]
        held = any(text in once for text in wanted)
        yield [_text("answer.one_of", held, OR.join(references.one_of), once)]
    if references.required_values is not UNSET:
        yield _valued("answer", references.required_values, once, whole_number(once))


def _recorded(values: Mapping[str, str | None], name: str, what: str) -> str | _Missing | None:
    return values[name] if name in values else _Missing(f"{what} {name!r} was not recorded")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _excluded(name: str, texts: Sequence[str], said: str, harness: Harness) -> list[Assertion]:
    made = []
    for index, text in enumerate(texts):
        held = not must_include(text, said, harness)
        reason = "" if held else f"{text[:200]!r} must not be there"
        made.append(_text(f"{name}.must_exclude.{index}", held, text, said, reason))
    return made


def _valued(
    name: str, conditions: Sequence[str], text: str, number: float | None
) -> list[Assertion]:
    """Hold a number to conditions such as ``>= 12``; the alternatives of one are joined."""
    made = []
    for index, condition in enumerate(conditions):
        entry, reason = f"{name}.required_values.{index}", f"{text[:80]!r} is not {condition}"
        held: bool | None = False
        if number is not None:
            met = [satisfies(number, one) for one in condition.split(OR)]
            held = True if True in met else None if None in met else False
            reason = f"{condition!r} is no condition" if held is None else reason
        made.append(
            Assertion(
                name=entry,
                outcome=decided(held),
                reason="" if held else reason,
                expected=condition,
                found=shown(text),
            )
        )
    return made


def _on_page(name: str, held: bool, reference: str, said: str) -> Assertion:
    """Return a comparison with a page's text, unknown where the reference has no address."""
    reason = "" if held else f"{reference[:200]!r} is not there"
    made = _text(name, held, reference, said, reason)
    if held or not (placeholder := unresolved(reference, said)):
        return made
    reason = f"{placeholder} has no address: give it in sites"
    return msgspec.structs.replace(made, outcome=Outcome.UNKNOWN, reason=reason)


def _text(name: str, held: bool, reference: str, said: str, reason: str | None = None) -> Assertion:
    """Return a comparison with a cleaned text."""
    if reason is None:
        reason = "" if held else f"{shown(said)[:200]!r} does not match {reference[:200]!r}"
    return Assertion(
        name=name,
        outcome=decided(held),
        reason=reason,
        expected_normalised=clean(reference),
        found_normalised=shown(said),
        expected=reference,
    )


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
