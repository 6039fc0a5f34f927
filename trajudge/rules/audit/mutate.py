"""Mutation testing of a rule: near misses of a correct run must fail, equivalents must pass."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit, urlunsplit

import msgspec

from trajudge.rules.audit.blind import TASK_TYPES
from trajudge.rules.files import brief, write_csv, write_json
from trajudge.rules.verdict import Evaluator, Outcome, shown
from trajudge.rules.verified.answers import STATUSES
from trajudge.rules.webarena.tasks import Trace
from trajudge.util.tables import Table, first_screen
from trajudge.util.terminal import one_line

Expected = Literal["pass", "fail"]
ORIGINAL = "original"

# A list of a thousand items has a thousand variants with one missing.
MOST = 100


class MutationCase(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is known to be correct, and properties of its task.

    ``ordered``: the order of a list in the answer matters (None: in some of its lists).
    ``ends_there``: the run must end on the right page. ``decisive`` are the indices of the network
    events that the task checks, negative ones counted from the end.
    """

    name: str
    task: Any
    answer: Any
    trace: Any = None
    ordered: bool | None = False
    ends_there: bool = False
    decisive: tuple[int, ...] = (-1,)


class Variant(NamedTuple):
    """A mutated run; ``part`` names the changed part if a mutator changes several."""

    answer: Any
    trace: Any
    part: str = ""


class Mutator(Protocol):
    """Makes one kind of change; yields nothing where it does not apply."""

    def __call__(self, case: MutationCase) -> Iterator[Variant]:
        """Yield the variants of a run."""
        ...


class MutationSuite(NamedTuple):
    """The parts of a mutation test: correct runs, the rule, and the mutators."""

    cases: Iterable[MutationCase]
    evaluator: Evaluator[Any, Any]
    near_misses: Mapping[str, Mutator]
    equivalent: Mapping[str, Mutator]


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """The error rate of a rule on variants of one kind.

    ``trials`` are the decided variants, ``undecided`` those with the outcome unknown. ``low`` and
    ``high`` are Wilson's 95 % limits with the variants of one run as a cluster; None below two
    runs.
    """

    mutator: str
    expected: Expected
    wrong: int
    trials: int
    undecided: int
    low: float | None
    high: float | None

    @property
    def share(self) -> float | None:
        """The share of wrong outcomes among decided variants."""
        return self.wrong / self.trials if self.trials else None


class Misjudgment(msgspec.Struct, frozen=True, kw_only=True):
    """One variant with a wrong outcome; a long answer is truncated."""

    case: str
    mutator: str
    expected: Expected
    answer: Any


class MutationReport(msgspec.Struct, frozen=True, kw_only=True):
    """False accepts of near misses, and false rejects of correct runs and equivalent variants.

    ``mutators`` has the rates by mutator, with the unmutated runs as ``original``.
    """

    false_accepts: Rate
    false_rejects: Rate
    mutators: tuple[Rate, ...]
    mistakes: tuple[Misjudgment, ...]


class _Trial(NamedTuple):
    mutator: str
    expected: Expected
    outcome: Outcome
    case: str
    answer: Any

    @property
    def wrong(self) -> bool:
        return self.outcome is not Outcome.UNKNOWN and self.outcome.value != self.expected


def mutation_report(
    cases: Iterable[MutationCase],
    evaluator: Evaluator[Any, Any],
    near_misses: Mapping[str, Mutator],
    equivalent: Mapping[str, Mutator],
    *,
    passing_only: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> MutationReport:
    """Judge every run and its variants.

    Excluded are near misses of runs that the rule does not accept, which show nothing about the
    change, variants equal to their run, and variants of a mutator after the first ``MOST`` of a
    run. ``passing_only`` excludes all variants of runs that the rule does not accept. ``progress``
    is called with the number of finished runs.
    """
    trials: list[_Trial] = []
    for done, case in enumerate(cases, start=1):
        made = list(_trials(case, evaluator, near_misses, equivalent))
        if not passing_only or made[0].outcome is Outcome.PASS:
            trials += made
        progress(done)
    names = dict.fromkeys((trial.mutator, trial.expected) for trial in trials)
    return MutationReport(
        false_accepts=_rate("all near misses", "fail", trials),
        false_rejects=_rate("all correct runs", "pass", trials),
        mutators=tuple(
            _rate(name, expected, [trial for trial in trials if trial.mutator == name])
            for name, expected in names
        ),
        mistakes=tuple(
            Misjudgment(
                case=trial.case,
                mutator=trial.mutator,
                expected=trial.expected,
                answer=shown(trial.answer),
            )
            for trial in trials
            if trial.wrong
        ),
    )


def _trials(
    case: MutationCase,
    evaluator: Evaluator[Any, Any],
    near_misses: Mapping[str, Mutator],
    equivalent: Mapping[str, Mutator],
) -> Iterator[_Trial]:
    def trial(name: str, expected: Expected, variant: Variant) -> _Trial:
        outcome = evaluator.evaluate(case.task, variant.answer, variant.trace).outcome
        return _Trial(name, expected, outcome, case.name, variant.answer)

    original = trial(ORIGINAL, "pass", Variant(case.answer, case.trace))
    yield original
    for name, variant in _variants(case, equivalent):
        yield trial(name, "pass", variant)
    if original.outcome is Outcome.PASS:
        for name, variant in _variants(case, near_misses):
            yield trial(name, "fail", variant)


def _variants(case: MutationCase, mutators: Mapping[str, Mutator]) -> Iterator[tuple[str, Variant]]:
    for name, mutator in mutators.items():
        for variant in itertools.islice(mutator(case), MOST):
            if not _same(variant, case):
                yield f"{name}: {variant.part}" if variant.part else name, variant


def _same(variant: Variant, case: MutationCase) -> bool:
    return variant.trace == case.trace and _identical(variant.answer, case.answer)


def _identical(one: Any, other: Any) -> bool:
    """Return True for equal values of equal types and key order: a rule may distinguish 1, 1.0
    and True."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(_identical(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_identical, one, other))
    return bool(one == other)


def _rate(mutator: str, expected: Expected, trials: Sequence[_Trial]) -> Rate:
    from trajudge.stats.intervals import clustered_limits  # noqa: PLC0415 - slow to import

    ours = [trial for trial in trials if trial.expected == expected]
    decided = [trial for trial in ours if trial.outcome is not Outcome.UNKNOWN]
    wrong = [trial.wrong for trial in decided]
    low, high = clustered_limits(wrong, [trial.case for trial in decided])
    return Rate(
        mutator=mutator,
        expected=expected,
        wrong=sum(wrong),
        trials=len(decided),
        undecided=len(ours) - len(decided),
        low=low,
        high=high,
    )


_NUMBER = re.compile(r"(?<![\w.])\d[\d,]{0,30}(?:\.\d{1,30})?")
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}

_UNITS = {
    "km": "mi",
    "mi": "km",
    "m": "km",
    "min": "h",
    "minutes": "hours",
    "minute": "hour",
    "hours": "minutes",
    "hour": "minute",
    "h": "min",
    "seconds": "minutes",
    "days": "weeks",
    "kg": "g",
    "usd": "eur",
    "am": "pm",
    "pm": "am",
}

_CURRENCIES = {"$": "€", "€": "$", "£": "$"}
_WORDS = "|".join(sorted(_UNITS, key=len, reverse=True))
_UNIT = re.compile(rf"(?<![^\W\d_])(?:{_WORDS})\b|[$€£]", re.IGNORECASE)

# A sign before these digits changes the quantity; in "Gate 1" or a date it makes no sense.
_QUANTITY = re.compile(r"[^\w]*\d[\d,]{0,30}(?:\.\d{1,30})?(?![\d.,]*[-/:]\s*\d)(?![\d.])")
_LARGEST = 10**100
_DATA = "retrieved_data"
FOREIGN = "zzz-not-in-any-answer"


def _leaves(value: Any, change: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
    """Yield the value with one leaf changed, for every leaf and every change."""
    if isinstance(value, dict):
        for key, inner in value.items():
            for changed in _leaves(inner, change):
                yield {**value, key: changed}
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            for changed in _leaves(inner, change):
                yield [*value[:index], changed, *value[index + 1 :]]
    else:
        yield from change(value)


def _containers(value: Any, change: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
    """Yield the value with one list or object changed."""
    if isinstance(value, dict | list):
        yield from change(value)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(items):
            for changed in _containers(inner, change):
                copy = value.copy()
                copy[key] = changed
                yield copy


def _on_data(
    walk: Callable[[Any, Callable[[Any], Iterator[Any]]], Iterator[Any]],
    change: Callable[[Any], Iterator[Any]],
) -> Mutator:
    """Return a mutator that changes the data of a response object, or of any other answer the
    whole."""

    def mutate(case: MutationCase) -> Iterator[Variant]:
        answer = case.answer
        if isinstance(answer, dict) and _DATA in answer:
            for data in walk(answer[_DATA], change):
                yield Variant({**answer, _DATA: data}, case.trace)
        else:
            for changed in walk(answer, change):
                yield Variant(changed, case.trace)

    return mutate


def _numeric(value: Any) -> bool:
    """Return True for a finite number of bounded size that is not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _in_numbers(value: Any, change: Callable[[str], str]) -> Iterator[Any]:
    """Yield the value with its first number rewritten."""
    if _numeric(value):
        changed = change(repr(abs(value)))
        number: float = float(changed) if isinstance(value, float) else int(changed)
        yield -number if value < 0 else number
    elif isinstance(value, str) and (match := _NUMBER.search(value)):
        yield value[: match.start()] + change(match[0]) + value[match.end() :]


def _sign(value: Any) -> Iterator[Any]:
    if _numeric(value) and value != 0:
        yield -value
    elif isinstance(value, str) and _QUANTITY.match(value) and (match := _NUMBER.search(value)):
        if not match[0].strip("0.,"):
            return
        start = match.start()
        negative = value[:start].endswith("-")
        yield value[: start - 1] + value[start:] if negative else f"{value[:start]}-{value[start:]}"


def _next_digit(number: str) -> str:
    """Return the number with its first digit plus one, the most significant change; 9 becomes 8."""
    return ("8" if number[0] == "9" else str(int(number[0]) + 1)) + number[1:]


def _longer(number: str) -> str:
    """Return at least ten times the number, with the old digits first."""
    whole, point, rest = number.partition(".")
    return f"{whole}0{point}{rest}" if whole != "0" else f"10{point}{rest}"


def _unit(value: Any) -> Iterator[Any]:
    if isinstance(value, str) and _NUMBER.search(value) and (match := _UNIT.search(value)):
        other = {**_UNITS, **_CURRENCIES}[match[0].lower()]
        yield value[: match.start()] + other + value[match.end() :]


def _opposite(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, str) and value.strip().lower() in _OPPOSITES:
        yield _OPPOSITES[value.strip().lower()]


def _denial(value: Any) -> Iterator[Any]:
    if isinstance(value, str) and value.strip():
        yield f"It is certainly not {value}"


def _missing(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
    else:
        for key in value:
            yield {name: inner for name, inner in value.items() if name != key}


def _extra(value: Any) -> Iterator[Any]:
    if isinstance(value, list) and value:
        yield [*value, FOREIGN]


def _repeated(value: Any) -> Iterator[Any]:
    """Yield the list with its last item replaced by the first, which keeps its length."""
    if isinstance(value, list) and len(value) > 1 and value[0] != value[-1]:
        yield [*value[:-1], value[0]]


def _exchanged(value: Any) -> Iterator[Any]:
    """Yield the object with the values of two fields exchanged."""
    if isinstance(value, dict) and len(value) > 1:
        one, other = list(value)[:2]
        yield {**value, one: value[other], other: value[one]}


def _reversed(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield value[::-1]


def _order(case: MutationCase) -> Iterator[Variant]:
    if case.ordered:
        yield from _on_data(_containers, _reversed)(case)


def _any_order(case: MutationCase) -> Iterator[Variant]:
    if case.ordered is False:
        yield from _on_data(_containers, _reversed)(case)


def _nothing(case: MutationCase) -> Iterator[Variant]:
    if case.answer not in (None, ""):
        yield Variant(None, case.trace)
        yield Variant("", case.trace)


def _other(field: str, values: tuple[str, ...]) -> Mutator:
    def mutate(case: MutationCase) -> Iterator[Variant]:
        if isinstance(case.answer, dict) and field in case.answer:
            for value in values:
                if value.lower() != str(case.answer[field]).lower():
                    yield Variant({**case.answer, field: value}, case.trace)

    return mutate


def _as_text(form: str) -> Mutator:
    """Return a response object as an agent would print it."""

    def mutate(case: MutationCase) -> Iterator[Variant]:
        if isinstance(case.answer, dict):
            text = msgspec.json.encode(case.answer).decode()
            yield Variant(form.format(text), case.trace)

    return mutate


def _spaced(value: Any) -> Iterator[Any]:
    if isinstance(value, str) and value:
        yield f"  {value}\n"


def _other_key_order(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield dict(reversed(value.items()))


NEAR_MISSES: Mapping[str, Mutator] = {
    "nothing": _nothing,
    "sign": _on_data(_leaves, _sign),
    "digit": _on_data(_leaves, lambda value: _in_numbers(value, _next_digit)),
    "longer_number": _on_data(_leaves, lambda value: _in_numbers(value, _longer)),
    "unit": _on_data(_leaves, _unit),
    "opposite": _on_data(_leaves, _opposite),
    "denial": _on_data(_leaves, _denial),
    "missing_item": _on_data(_containers, _missing),
    "extra_item": _on_data(_containers, _extra),
    "repeated_item": _on_data(_containers, _repeated),
    "exchanged_fields": _on_data(_containers, _exchanged),
    "order": _order,
    "status": _other("status", STATUSES),
    "task_type": _other("task_type", TASK_TYPES),
}

EQUIVALENT: Mapping[str, Mutator] = {
    "spaced": _on_data(_leaves, _spaced),
    "any_order": _any_order,
    "key_order": _on_data(_containers, _other_key_order),
    "json_text": _as_text("{}"),
    "json_fence": _as_text("```json\n{}\n```"),
    "json_after_prose": _as_text("Here is the result:\n\n```json\n{}\n```\n"),
    "byte_order_mark": _as_text("\ufeff{}"),
}

OTHER_HOST = "elsewhere.invalid"

PAGE_HEADERS = {
    "accept": "text/html,application/xhtml+xml",
    "sec-fetch-dest": "document",
    "sec-fetch-mode": "navigate",
    "sec-fetch-user": "?1",
}
"""Of the load of a page that a user asked for."""

_ASSET = {
    "request": {"method": "GET", "url": f"http://{OTHER_HOST}/logo.png", "headers": []},
    "response": {"status": 200, "headers": []},
}

Entry = Mapping[str, Any]


def _at_other_host(url: str) -> str:
    parts = urlsplit(url)
    if not parts.netloc:
        # An address that starts with a site's placeholder.
        return f"http://{OTHER_HOST}/" + url.partition("/")[2]
    return urlunsplit(parts._replace(netloc=OTHER_HOST))


def _at_root(url: str) -> str:
    parts = urlsplit(url)
    if not parts.netloc:
        return url.partition("/")[0] + "/"
    return urlunsplit(parts._replace(path="/", query="", fragment=""))


def _slashed(url: str) -> str:
    return url if url.endswith("/") else f"{url}/"


def _events(case: MutationCase) -> list[Entry] | None:
    trace = case.trace
    listed = isinstance(trace, list) and trace and all(isinstance(one, dict) for one in trace)
    within = all(-len(trace) <= at < len(trace) for at in case.decisive) if listed else False
    return list(trace) if within else None


def _changed_event(change: Callable[[Entry], Entry]) -> Mutator:
    """Return a mutator that changes a decisive event."""

    def mutate(case: MutationCase) -> Iterator[Variant]:
        for at in case.decisive:
            events = _events(case)
            if events is not None:
                events[at] = change(events[at])
                yield Variant(case.answer, events)

    return mutate


def _request(**changes: Callable[[Any], Any]) -> Callable[[Entry], Entry]:
    def change(event: Entry) -> Entry:
        request = {**event.get("request", {})}
        for field, new in changes.items():
            request[field] = new(request.get(field, ""))
        return {**event, "request": request}

    return change


def _failed(event: Entry) -> Entry:
    return {**event, "response": {**event.get("response", {}), "status": 500}}


def _wrong_host(case: MutationCase) -> Iterator[Variant]:
    # If a run need not end on a page, ending elsewhere is not wrong.
    if isinstance(case.trace, Trace) and case.trace.url is not None and case.ends_there:
        url = _at_other_host(case.trace.url)
        yield Variant(case.answer, msgspec.structs.replace(case.trace, url=url))
    yield from _changed_event(_request(url=_at_other_host))(case)


def _stale(case: MutationCase) -> Iterator[Variant]:
    """Yield the run with a last visit to the site's first page after the right page."""
    if not case.ends_there:
        return
    if isinstance(case.trace, Trace) and case.trace.url is not None:
        url = _at_root(case.trace.url)
        if url != _slashed(case.trace.url):
            yield Variant(case.answer, msgspec.structs.replace(case.trace, url=url))
    events = _events(case)
    if events is not None and case.decisive:
        last = events[case.decisive[-1]]
        root = _at_root(last["request"]["url"])
        if root != _slashed(last["request"]["url"]):
            yield Variant(case.answer, [*events, _page_load(root)])


def _page_load(url: str) -> Entry:
    """Return the event of a page load, whatever the request that it follows."""
    pairs = [{"name": name, "value": value} for name, value in PAGE_HEADERS.items()]
    request = {"method": "GET", "url": url, "headers": pairs}
    return {"request": request, "response": {"status": 200, "headers": []}}


def _dropped(case: MutationCase) -> Iterator[Variant]:
    for at in case.decisive:
        events = _events(case)
        if events is not None:
            del events[at]
            yield Variant(case.answer, events)


def _before_change(case: MutationCase) -> Iterator[Variant]:
    """Return stored pages as if the run had changed nothing: blank."""
    if isinstance(case.trace, Trace) and case.trace.pages:
        blank = tuple(
            msgspec.structs.replace(
                page, html=None if page.html is None else "", values=dict.fromkeys(page.values, "")
            )
            for page in case.trace.pages
        )
        yield Variant(case.answer, msgspec.structs.replace(case.trace, pages=blank))


def _asset_first(case: MutationCase) -> Iterator[Variant]:
    events = _events(case)
    if events is not None:
        yield Variant(case.answer, [_ASSET, *events])


def _asset_last(case: MutationCase) -> Iterator[Variant]:
    events = _events(case)
    if events is not None:
        yield Variant(case.answer, [*events, _ASSET])


def _other_method(method: str) -> str:
    return "GET" if method.upper() == "POST" else "POST"


TRACE_NEAR_MISSES: Mapping[str, Mutator] = {
    "wrong_host": _wrong_host,
    "stale_event": _stale,
    "dropped_event": _dropped,
    "wrong_method": _changed_event(_request(method=_other_method)),
    "failed_request": _changed_event(_failed),
    "unchanged_page": _before_change,
}

TRACE_EQUIVALENT: Mapping[str, Mutator] = {"asset_first": _asset_first, "asset_last": _asset_last}
_SCREEN = ("change", "must", "wrong", "decided", "unknown", "rate [95 %]")
_SHOWN, _SCREEN_SHOWN = 200, 55
_FIRST = 5


def write_report(out: Path, dialect: str, mode: str, report: MutationReport) -> None:
    """Write ``mutation.json`` and ``mutation.csv``. Raises UserError."""
    write_json(out / "mutation.json", {"dialect": dialect, "mode": mode, "report": report})
    rows = [(m.case, m.mutator, m.expected, brief(m.answer, _SHOWN)) for m in report.mistakes]
    write_csv(out / "mutation.csv", ("case", "change", "must", "answer"), rows)


def report_screen(
    title: str,
    report: MutationReport,
    limit: int,
    *,
    out: Path | None,
    full: bool,
    width: int | None = None,
) -> str:
    """Lay out the report in at most 40 lines: false accepts and rejects, the rates by mutator
    with the worst first, and at most ``limit`` and five misjudgments; with ``full`` all lines
    and ``limit`` misjudgments. ``out`` is the folder with the report."""
    by_rate = sorted(report.mutators, key=lambda one: (-(one.share or 0), one.mutator))
    rows = [
        (one.mutator, one.expected, *map(str, _counts(one)), _rate_cell(one)) for one in by_rate
    ]
    first = report.mistakes[: max(0, limit if full else min(limit, _FIRST))]
    lines = [_misjudgment(one, _SHOWN if full else _SCREEN_SHOWN) for one in first]
    more = len(report.mistakes) - len(lines)
    if more > 0:
        lines.append(f"and {more:,} more misjudgments")
    accepts, rejects = _finding(report)
    rest = "--out DIR writes every misjudgment"
    if out is not None:
        rest = f"all misjudgments: {one_line(str(out / 'mutation.json'))} and mutation.csv"
    return first_screen(
        [f"{title}: {accepts}", rejects],
        [Table("", _SCREEN, rows)],
        lines,
        rest=rest if full else f"All changes: --full; {rest}",
        width=width,
        full=full,
    )


def _finding(report: MutationReport) -> Sequence[str]:
    """State how often near misses are accepted and correct runs rejected."""
    overall = (("false accepts", report.false_accepts), ("false rejects", report.false_rejects))
    return [
        f"{name}: {_rate_cell(rate)} %, {rate.wrong:,} of {rate.trials:,}; "
        f"{rate.undecided:,} unknown"
        for name, rate in overall
    ]


def _misjudgment(one: Misjudgment, most: int) -> str:
    verb = "accepted" if one.expected == "fail" else "rejected"
    return f"task {one.case}: {verb} {one.mutator}: {one_line(brief(one.answer, most))}"


def _counts(rate: Rate) -> tuple[int, int, int]:
    return (rate.wrong, rate.trials, rate.undecided)


def _rate_cell(rate: Rate) -> str:
    """Return a rate in percent with its limits, as ``1.2 [0.5, 2.4]``."""
    if rate.share is None:
        return "–"
    limits = "" if rate.low is None else f" [{100 * rate.low:.1f}, {100 * (rate.high or 0):.1f}]"
    return f"{100 * rate.share:.1f}{limits}"
