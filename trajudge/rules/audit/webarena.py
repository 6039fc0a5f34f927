"""Tasks in WebArena's form, as the auditors ask for them, and correct runs of them to be mutated.

A run is built from the specification (it says what is expected, ends on the first address that is,
and stored pages hold what is asked for), or recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import UNSET

from trajudge.rules.audit.agents import TEXT_AGENTS
from trajudge.rules.audit.mutation import (
    EQUIVALENT,
    NEAR_MISSES,
    TRACE_EQUIVALENT,
    TRACE_NEAR_MISSES,
    MutationCase,
    MutationSuite,
)
from trajudge.rules.audit.suites import Suite
from trajudge.rules.audit.weaknesses import CATEGORIES, UNIONS, weaknesses
from trajudge.rules.dialects import Dialect
from trajudge.rules.verified.network import DEFAULT_PORTS
from trajudge.rules.webarena.evaluator import LAST, WebArenaEvaluator
from trajudge.rules.webarena.files import load_runs, load_tasks, unread_keys
from trajudge.rules.webarena.matching import OR, options_of, render, satisfies
from trajudge.rules.webarena.model import (
    UNACHIEVABLE,
    PageCheck,
    RequiredContents,
    StoredPage,
    Task,
    Trace,
)
from trajudge.util.errors import UserError

_PAGE = "http://page.invalid/"
_SITES = {
    name: f"http://{name.strip('_').lower().replace('_', '-')}.example:{port}"
    for name, port in {**DEFAULT_PORTS, "__CLASSIFIEDS__": 9980}.items()
}


def suite(row: Dialect) -> Suite:
    """Return the suite of a dialect of WebArena's form."""
    return Suite(
        dialect=row.name,
        load=partial(load_tasks, named=row.name, keep_flawed=True),
        notes=unread_keys,
        lint=weaknesses,
        categories=CATEGORIES,
        unions=UNIONS,
        modes=("original",),
        agents=TEXT_AGENTS,
        # Without a judge model: what one would decide is unknown.
        evaluator=lambda mode: WebArenaEvaluator(),
        # A browser that was never used.
        idle_trace=lambda task: Trace(url="about:blank"),
        # A task may start on several pages: the last is the one that is left open.
        start_trace=lambda task: Trace(url=task.start_url.split(" |AND| ")[-1]),
        mutations=mutation_suite,
    )


def mutation_suite(
    tasks: Sequence[Task], runs: Path | None, mode: str, hosts: Mapping[str, tuple[str, ...]]
) -> MutationSuite:
    """Return the runs in a file, which are taken to be correct, or for None one built for every
    task that can be read. Raises UserError for a file that cannot be read."""
    given = {name: urls[0] for name, urls in hosts.items() if urls}
    sites = _SITES | given if runs is None else given
    return MutationSuite(
        cases=_built(tasks, sites) if runs is None else _recorded(tasks, runs),
        evaluator=WebArenaEvaluator(sites=sites),
        near_misses={**NEAR_MISSES, **TRACE_NEAR_MISSES},
        equivalent={**EQUIVALENT, **TRACE_EQUIVALENT},
    )


def _case(task: Task, answer: str | None, trace: Trace | None) -> MutationCase:
    checks_answer = "string_match" in task.eval.eval_types
    return MutationCase(
        name=str(task.task_id),
        task=task,
        # Where the answer is not looked at, to change it is no mistake.
        answer=answer if checks_answer else None,
        trace=trace,
        ends_there="url_match" in task.eval.eval_types,
    )


def _recorded(tasks: Iterable[Task], path: Path) -> Iterator[MutationCase]:
    by_id = {str(task.task_id): task for task in tasks}
    for run in load_runs(path):
        if str(run.task_id) not in by_id:
            raise UserError(f"{path}: task id {run.task_id!r} is in no task file: correct it")
        yield _case(by_id[str(run.task_id)], run.answer, run.trace)


def _built(tasks: Iterable[Task], sites: Mapping[str, str]) -> Iterator[MutationCase]:
    for task in tasks:
        if not task.flaw:
            yield _case(task, _answer(task), _trace(task, sites))


def _answer(task: Task) -> str | None:
    references = task.eval.reference_answers
    if references is None:
        return None
    if references.exact_match is not UNSET:
        return references.exact_match
    harness = task.harness
    said = [options_of(text, harness)[0] for text in references.must_include or ()]
    said += list(references.one_of or ())[:1]
    said += [_number(texts) for texts in [references.required_values] if texts]
    fuzzy = references.fuzzy_match or ()
    said += [fuzzy] if isinstance(fuzzy, str) else fuzzy
    return UNACHIEVABLE if fuzzy == UNACHIEVABLE else ", ".join(said)


def _trace(task: Task, sites: Mapping[str, str]) -> Trace:
    """Pages by their address: what several checks ask of one page stands on it together."""
    last = render((task.eval.reference_url or "").split(OR)[0], sites) or _PAGE
    results: dict[str, str] = {}
    contents: dict[str, dict[str, list[str]]] = {}
    for check in task.eval.program_html:
        text = render(_required(check.required_contents), sites)
        if check.locator.strip().startswith("func:"):
            results[check.locator.strip().removeprefix("func:")] = text
            continue
        place = contents.setdefault(_address(check, last, results), {})
        place.setdefault(check.locator if check.locator.strip() else "", []).append(text)
    pages = tuple(
        StoredPage(
            url=url,
            html=" ".join(values.pop("", [])),
            values={locator: " ".join(texts) for locator, texts in values.items()},
        )
        for url, values in contents.items()
    )
    return Trace(url=last, pages=pages, results=dict[str, str | None](results))


def _number(conditions: Sequence[str]) -> str:
    """Return a whole number that meets conditions such as ``>= 12``; "" where none is known."""
    options = [condition.split(OR) for condition in conditions]
    near = {
        int(float(found)) + step
        for listed in options
        for one in listed
        for found in re.findall(r"-?\d+(?:\.\d+)?", one)[:1]
        for step in (0, 1, -1)
    }
    met = (
        number
        for number in sorted(near)
        if all(any(satisfies(number, one) for one in listed) for listed in options)
    )
    return str(next(met, ""))


def _address(check: PageCheck, last: str, results: dict[str, str]) -> str:
    """Return the page that a check reads; a helper that finds it is made to find one."""
    if check.url == LAST:
        return last
    if check.url.startswith("func"):
        return results.setdefault(check.url.removeprefix("func:"), f"{_PAGE}{len(results)}")
    return check.url


def _required(required: RequiredContents) -> str:
    if required.exact_match is not UNSET:
        return required.exact_match
    if required.must_include is UNSET and required.required_values:
        return _number(required.required_values)
    if required.must_include is UNSET and required.fuzzy_match:
        texts = required.fuzzy_match
        return texts if isinstance(texts, str) else ", ".join(texts)
    return " ".join(text.split(OR)[0] for text in required.must_include or ())
