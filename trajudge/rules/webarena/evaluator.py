"""The harness's verdict, offline: what was not recorded is unknown, never a fail.

A run passes if every check in ``eval.eval_types`` passes; the score is the product of the checks'
scores. Nothing is fetched and no script is run: a blank locator reads the stored HTML, any other
the value recorded for it; a check that needs an image is unknown.

Texts are cleaned, and compared as a whole, as a substring or as a word; the last page's address is
compared with the reference addresses. Texts of an agent or a page never become patterns.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, urlparse, urlsplit

import msgspec
from msgspec import UNSET

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
from trajudge.rules.webarena.tasks import (
    UNACHIEVABLE,
    Harness,
    PageCheck,
    ReferenceAnswers,
    Run,
    StoredPage,
    Task,
    TaskId,
    Trace,
)
from trajudge.util.errors import UserError

OR = " |OR| "
GOLD_IN_PRED = "GOLD in PRED"
_PLACEHOLDER = re.compile(r"__[A-Z][A-Z_]*__")
_TOLERANCE = 1e-8

# Word separators by the conventions of the Penn Treebank as in NLTK's tokenizer; each group is a
# word itself.
_APART = re.compile(
    r"([;@#$%&?!*\[\](){}<>«»“”‘’„\u2012-\u2015]|--|\.{2,}|`+)"
    r"|([:,])(?=\D|\Z)|(''|\")|(?<!\w)(')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)"
)
# The stop of an abbreviation such as "e.g." does not end a sentence.
_FULL_STOP = re.compile(
    r"(?<![\w.])((?:[^\W\d_]\.){2,})(?=\s+\S)|(?<=[^.\s])\.(?=[\])}>\"'»”’]*(?:\s|\Z))"
)
_ENDINGS = [
    re.compile(rf"(?<=[^'\s])({ending})(?=\s|\Z)") for ending in ("'s|'m|'d|'", "'ll|'re|'ve|n't")
]
_CONTRACTED = re.compile(
    r"\b(?:(can)(not)|(d)('ye)|(gim)(me)|(gon)(na)|(got)(ta)|(lem)(me)|(more)('n)|(wan)(na)(?=\s))\b"
    r"|(?<=\s)('t)(is|was)\b"
)


def clean(text: str, *, strips: bool = True) -> str:
    """Return the text in lower case, without one pair of outer quotes, and with ``strips``
    without outer white space."""
    if strips:
        text = text.strip()
    for quote in "'\"":
        if text.startswith(quote) and text.endswith(quote):
            text = text[1:-1]
            break
    return text.lower()


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, by the conventions of the Penn Treebank.

    Brackets, quotes, ``$%&?!;@#*`` and the full stop before white space are words; ``1,2``,
    ``2/3``, ``2-3`` and ``2.5`` are single ones. Linear in the length of the text.
    """
    text = _FULL_STOP.sub(lambda found: found[1] or " . ", text)
    text = _APART.sub(lambda found: f" {found[0]} ", text)
    for ending in _ENDINGS:
        text = ending.sub(r" \1 ", text)
    text = _CONTRACTED.sub(lambda found: f" {' '.join(filter(None, found.groups()))} ", f" {text} ")
    return text.split()


def exact_match(reference: str, cleaned: str, *, strips: bool) -> bool:
    """Return True if the cleaned reference equals the text, which is already cleaned."""
    return clean(reference, strips=strips) == cleaned


def must_include(reference: str, cleaned: str, harness: Harness, *, lone: bool = False) -> bool:
    """Return True if the cleaned reference is a substring of the cleaned text, or one of its
    words if the harness compares words; ``lone``: it is the answer's only reference."""
    wanted = clean(reference, strips=harness.strips)
    if harness.whole_words == "lone":
        if lone and len(wanted) == 1:
            return wanted in words(cleaned) if wanted in cleaned else False
        return wanted in cleaned
    if wanted not in cleaned:
        return False
    if len(words(wanted)) != 1:
        return True
    tokens = words(cleaned)
    if harness.whole_words == "parts":
        tokens += [part for word in tokens if "/" in word for part in word.split("/")]
    return wanted in tokens


def options_of(reference: str, harness: Harness) -> list[str]:
    """Return the alternatives in one entry of an answer's must_include, as the harness reads
    them."""
    if not harness.alternatives:
        return [reference]
    if harness.folds_options:
        reference = clean(reference)
    parts = reference.split(harness.alternatives)
    return [one.strip() for one in parts] if harness.folds_options else parts


def includes(reference: str, cleaned: str, harness: Harness, *, lone: bool = False) -> bool:
    """Return True if an entry of must_include, or one of its alternatives if the harness reads
    them, is a substring of the cleaned text."""
    options = options_of(reference, harness)
    if harness.folds_options and len(options) > 1:
        # As there, an alternative of one character is searched in itself, and so always holds.
        return any((lone and len(one) == 1) or one in cleaned for one in options)
    return any(must_include(one, cleaned, harness, lone=lone) for one in options)


def satisfies(number: float, inequality: str) -> bool | None:
    """Return whether a number meets a condition such as ``>= 12``; None for another text."""
    for sign in ("<=", ">=", "==", "<", ">"):
        left, found, right = inequality.partition(sign)
        if not found:
            continue
        try:
            bound = float(right.strip())
        except ValueError:
            return None
        if left.strip():
            return None
        if sign == "==":
            return abs(number - bound) <= _TOLERANCE
        below = {"<=": number <= bound + _TOLERANCE, "<": number < bound + _TOLERANCE}
        above = {">=": number >= bound - _TOLERANCE, ">": number > bound - _TOLERANCE}
        return (below | above)[sign]
    return None


def whole_number(text: str) -> int | None:
    """Return the integer in a text, ignoring commas; None for any other text."""
    try:
        return int(text.strip().replace(",", "")[:400])
    except ValueError:
        return None


def render(text: str, sites: Mapping[str, str]) -> str:
    """Return the text with each placeholder such as ``__REDDIT__`` replaced by that site's
    address."""
    return _PLACEHOLDER.sub(lambda found: sites.get(found[0], found[0]), text)


def unresolved(reference: str, found: str) -> str | None:
    """Return a placeholder of the reference that the other text lacks, so that they cannot be
    compared."""
    for placeholder in _PLACEHOLDER.findall(reference):
        if placeholder not in found:
            return str(placeholder)
    return None


def alternatives(reference_url: str) -> list[str]:
    """Return the reference URLs that " |OR| " joins."""
    return reference_url.split(OR)


def url_match(
    references: Sequence[str], found: str, harness: Harness, note: str | None = None
) -> tuple[bool | None, str]:
    """Compare the last page's address with the references, by the harness's rule.

    Returns the result, None for a rule that the harness does not have, and the difference.
    """
    known = ("EXACT", GOLD_IN_PRED) if harness.exact_urls else (GOLD_IN_PRED,)
    if (note or known[0]) not in known:
        return None, f"no rule {note!r} is known for urls"
    if harness.exact_urls:
        return _text_match(references, found, whole=(note or "EXACT") == "EXACT")
    if harness.folds_urls:
        references, found = [one.lower() for one in references], found.lower()
    return _base_match(references, found)


def _text_match(references: Iterable[str], actual: str, *, whole: bool) -> tuple[bool, str]:
    """Compare addresses as texts, ignoring one trailing slash."""
    url = _without_slash(actual)
    expected = [_without_slash(reference) for reference in references]
    if url in expected if whole else any(one in url for one in expected):
        return True, ""
    return False, f"{url[:200]!r} {'is' if whole else 'holds'} none of the reference addresses"


def _without_slash(url: str) -> str:
    url = url.replace("localhost", "127.0.0.1")
    return url[:-1] if url.endswith("/") else url


def _base_match(references: Iterable[str], actual: str) -> tuple[bool, str]:
    """Return True if the base of one reference is a substring of the URL's, and every query name
    has an expected value. The queries of the references are pooled: any of the values of a name
    is accepted."""
    base, query = base_and_query(actual)
    parsed = [base_and_query(reference) for reference in references]
    if not any(expected in base for expected, _ in parsed):
        return False, f"none of the reference addresses is part of {base[:200]!r}"
    pooled: dict[str, set[str]] = {}
    for _, wanted_query in parsed:
        for name, values in wanted_query.items():
            pooled.setdefault(name, set()).update(values)
    for name, wanted_values in pooled.items():
        if not wanted_values & set(query.get(name, [])):
            return False, f"the query's {name!r} is none of {sorted(wanted_values)}"
    return True, ""


def base_and_query(url: str) -> tuple[str, dict[str, list[str]]]:
    """Return host and path, and the query's values by name.

    As in the harness, trailing slashes of an address are ignored, but not those before a query: a
    reference ``/issues/?state=opened`` does not match ``/issues?state=opened``. The base of a URL
    that cannot be parsed is the URL itself.
    """
    try:
        # Not urlsplit: as in the harness, ";parameters" are not part of the path.
        parts = urlparse(url.rstrip("/"))
        query = parse_qs(parts.query)
    except ValueError:
        return url.rstrip("/"), {}
    return parts.netloc + parts.path, query


def post_address(url: str) -> str:
    """Return the address of the Reddit post that contains a URL such as ``/f/forum/12/title``.

    Other URLs are returned unchanged (the harness's helper ``reddit_get_post_url``).
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    site, _, path = f"{parts.netloc}{parts.path}".partition("/")
    segments = path.split("/")
    if len(segments) < 3 or segments[0] != "f":
        return url
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    return f"{scheme}{site}/f/{segments[1]}/{segments[2]}/"


LAST = "last"
_POST_ADDRESS = re.compile(r"func:reddit_get_post_url\('__last_url__'\)")
_NO_JUDGE = "a judge model decides this and none was given"
_NO_REFERENCES = "string_match is named and reference_answers holds nothing to compare with"
_UNDECIDED = "the judge model gave no decision"
_PICTURES = "pictures of the page decide this, and runs store none"


class AnswerQuestion(NamedTuple):
    """A question for a judge model.

    ``equivalent``: does the answer mean the same as the reference? ``same_reason``: does the answer
    give the reference as the reason why the task cannot be done?
    """

    kind: Literal["equivalent", "same_reason"]
    intent: str
    reference: str
    answer: str


AnswerJudge = Callable[[AnswerQuestion], bool | None]


class _Part(NamedTuple):
    """Assertions that must all hold. With ``shared`` the score is the share of those that do."""

    assertions: Sequence[Assertion]
    shared: bool = False

    @property
    def score(self) -> float | None:
        """The score in [0, 1]; None if an unknown outcome may change it."""
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
    """The rules of WebArena and its descendants, for each task those of its dialect.

    ``judge`` answers fuzzy matches with True, False, or None if it cannot decide. ``sites`` are the
    addresses for placeholders such as ``__REDDIT__``; URLs that contain the placeholders need none.
    """

    judge: AnswerJudge | None = None
    sites: Mapping[str, str] = field(default_factory=dict)

    def evaluate(self, task: Task, answer: object, trace: Trace | None) -> Verdict:
        """Return the verdict on one run; ``answer`` is text, None for none, or another JSON
        value."""
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
        # Cleaned twice, as there: two pairs of quotes are removed.
        once = clean(answer, strips=harness.strips)
        cleaned = clean(once, strips=harness.strips)
        if references.exact_match is not UNSET:
            wanted = references.exact_match
            held = exact_match(wanted, cleaned, strips=harness.strips)
            yield _Part([_text("answer.exact_match", held, wanted, cleaned)])
        if references.must_include is not UNSET:
            listed = references.must_include
            made = [
                _text(
                    f"answer.must_include.{index}",
                    includes(text, cleaned, harness, lone=len(listed) == 1),
                    text,
                    cleaned,
                )
                for index, text in enumerate(listed)
            ]
            yield _Part(made, harness.partial)
        yield from map(_Part, _further(references, task.harness, once, cleaned))
        if references.fuzzy_match is not UNSET:
            yield _Part(list(self._fuzzy(task, references.fuzzy_match, once)))

    def _fuzzy(
        self, task: Task, references: str | tuple[str, ...], answer: str
    ) -> Iterator[Assertion]:
        name = "answer.fuzzy_match"
        if references == UNACHIEVABLE:
            note = task.eval.string_note or ""
            strips = task.harness.strips
            if exact_match(UNACHIEVABLE, clean(answer, strips=strips), strips=strips):
                yield _text(name, True, UNACHIEVABLE, answer)
            else:
                yield self.judge_reference(
                    name, AnswerQuestion("same_reason", task.intent, note, answer)
                )
            return
        yield from self.judge_references(name, task, references, answer)

    def judge_references(
        self, name: str, task: Task, references: str | tuple[str, ...], text: str
    ) -> Iterator[Assertion]:
        """Yield the judge model's decisions on the references, joined as in the harness."""
        listed = (references,) if isinstance(references, str) else references
        if task.harness.joined is not None:
            listed = (task.harness.joined.join(listed),)
        for index, reference in enumerate(listed):
            entry = f"{name}.{index}"
            if not text:
                yield _text(entry, not reference, reference, text)
            else:
                question = AnswerQuestion("equivalent", task.intent, reference, text)
                yield self.judge_reference(entry, question)

    def judge_reference(self, name: str, question: AnswerQuestion) -> Assertion:
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
        """Yield the part of each check; of alternatives the part with the best score."""
        for index, check in enumerate(self.task.eval.program_html):
            others = () if check.alternatives is UNSET else check.alternatives
            made = [self._checked(f"page.{index}", one) for one in (check, *others)]
            yield max(made, key=lambda part: -0.5 if part.score is None else part.score)

    def _checked(self, name: str, check: PageCheck) -> _Part:
        # As in the harness, a check that opens a page leaves it open for the next "last".
        address = self._address(check.url)
        found = address if isinstance(address, _Missing) else self._read_text(check, address)
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

    def _read_text(self, check: PageCheck, address: str) -> str | _Missing | None:
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

    def _compared(self, name: str, check: PageCheck, actual: str) -> _Part:
        """Yield the comparisons. As in the harness, only the first of the required contents is
        used."""
        required, harness, sites = check.required_contents, self.task.harness, self.evaluator.sites
        text = html.unescape(actual) if harness.unescapes else actual
        cleaned = clean(text, strips=harness.strips)
        if required.exact_match is not UNSET:
            expected = render(required.exact_match, sites)
            held = exact_match(expected, cleaned, strips=harness.strips)
            return _Part([_on_page(f"{name}.exact_match", held, expected, cleaned)])
        if required.must_include is not UNSET:
            made = []
            for index, content in enumerate(required.must_include):
                expected = render(content, sites)
                held = any(includes(one, cleaned, harness) for one in expected.split(OR))
                made.append(_on_page(f"{name}.must_include.{index}", held, expected, cleaned))
            return _Part(made, harness.partial)
        if required.must_exclude is not UNSET:
            return _Part(_excluded(name, required.must_exclude, cleaned, harness))
        if required.required_values is not UNSET:
            number: float | None = whole_number(text)
            if number is None and not check.locator.startswith(("document.", "[...document.")):
                number = _number(text)  # a helper returns numbers, which were recorded as text
            return _Part(_valued(name, required.required_values, text, number))
        if required.fuzzy_match is not UNSET:
            wanted_all = required.fuzzy_match
            if isinstance(wanted_all, str):
                wanted_all = tuple(wanted_all.split(OR))
            judged = self.evaluator.judge_references(
                f"{name}.fuzzy_match", self.task, wanted_all, text
            )
            return _Part(list(judged))
        reason = "nothing is required of it"
        return _Part([Assertion(name=name, outcome=Outcome.UNKNOWN, reason=reason)])


def _further(
    references: ReferenceAnswers, harness: Harness, once: str, cleaned: str
) -> Iterator[list[Assertion]]:
    """Yield the comparisons of answers that VisualWebArena adds."""
    if references.must_exclude is not UNSET:
        yield _excluded("answer", references.must_exclude, cleaned, harness)
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


def _excluded(name: str, texts: Sequence[str], cleaned: str, harness: Harness) -> list[Assertion]:
    made = []
    for index, text in enumerate(texts):
        held = not must_include(text, cleaned, harness)
        reason = "" if held else f"{text[:200]!r} must not be there"
        made.append(_text(f"{name}.must_exclude.{index}", held, text, cleaned, reason))
    return made


def _valued(
    name: str, conditions: Sequence[str], text: str, number: float | None
) -> list[Assertion]:
    """Compare a number with conditions such as ``>= 12``; the alternatives of one are joined."""
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


def _on_page(name: str, held: bool, reference: str, cleaned: str) -> Assertion:
    """Return a comparison with a page's text, unknown if the reference's site has no address."""
    reason = "" if held else f"{reference[:200]!r} is not there"
    made = _text(name, held, reference, cleaned, reason)
    if held or not (placeholder := unresolved(reference, cleaned)):
        return made
    reason = f"{placeholder} has no address: give it in sites"
    return msgspec.structs.replace(made, outcome=Outcome.UNKNOWN, reason=reason)


def _text(
    name: str, held: bool, reference: str, cleaned: str, reason: str | None = None
) -> Assertion:
    """Return a comparison with a cleaned text."""
    if reason is None:
        reason = "" if held else f"{shown(cleaned)[:200]!r} does not match {reference[:200]!r}"
    return Assertion(
        name=name,
        outcome=decided(held),
        reason=reason,
        expected_normalised=clean(reference),
        found_normalised=shown(cleaned),
        expected=reference,
    )


def as_text(answer: object) -> str:
    """Return an answer as the harness would receive it: text unchanged, None as empty text.

    A value that JSON cannot represent (lone surrogates, integers of thousands of digits) counts as
    no answer.
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
    """Yield the verdict on each run, in order. Raises UserError for an unknown task id."""
    by_id = {str(task.task_id): task for task in tasks}
    for run in runs:
        task = by_id.get(str(run.task_id))
        if task is None:
            raise UserError(
                f"task id {run.task_id!r} is in no task file: correct the run's task_id"
            )
        yield task.task_id, evaluator.evaluate(task, run.answer, run.trace)
