"""The suite of audit tools for each dialect of task files.

A correct run of a task in WebArena's form is recorded, or built from the specification: it gives
the expected answer, ends at the first expected address, and its stored pages contain the required
contents.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from msgspec import UNSET

from trajudge.rules.audit import lint, verified
from trajudge.rules.audit.blind import RESPONSE_AGENTS, TEXT_AGENTS, BlindAgent
from trajudge.rules.audit.lint import Finding, Severities, Severity
from trajudge.rules.audit.mutate import (
    EQUIVALENT,
    NEAR_MISSES,
    TRACE_EQUIVALENT,
    TRACE_NEAR_MISSES,
    MutationCase,
    MutationSuite,
)
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Evaluator
from trajudge.rules.verified.network import DEFAULT_PORTS, Hosts
from trajudge.rules.verified.tasks import load_tasks as load_verified_tasks
from trajudge.rules.webarena.evaluator import (
    LAST,
    OR,
    WebArenaEvaluator,
    options_of,
    render,
    satisfies,
)
from trajudge.rules.webarena.tasks import (
    UNACHIEVABLE,
    Dialect,
    PageCheck,
    RequiredContents,
    StoredPage,
    Task,
    Trace,
    detected,
    dialect,
    load_runs,
    load_tasks,
    unread_keys,
)
from trajudge.util.errors import UserError
from trajudge.util.tables import all_folded


@dataclass(frozen=True)
class Suite:
    """The audit tools of one dialect.

    ``load`` reads tasks with ``task_id``, ``intent`` and ``flaw``, and raises UserError. ``lint``,
    ``categories`` (with their severities) and ``unions`` belong to the linter. ``modes`` are the
    evaluator's, the first being the default. ``evaluator`` returns the evaluator for the blind
    ``agents``; ``idle_trace`` and ``start_trace`` return the traces of a browser that was not used
    and of one that opened the start page. ``mutations`` returns a mutation suite of correct runs,
    built or read from a path. ``notes`` lists the parts of the tasks that no rule reads.
    """

    dialect: str
    load: Callable[[Path], Sequence[Any]]
    lint: Callable[[Iterable[Any]], Iterator[Finding]]
    categories: Severities
    unions: Mapping[str, tuple[str, ...]]
    modes: Sequence[str]
    agents: Sequence[BlindAgent]
    evaluator: Callable[[str], Evaluator[Any, Any]]
    idle_trace: Callable[[Any], Any]
    start_trace: Callable[[Any], Any]
    mutations: Callable[[Sequence[Any], Path | None, str, Hosts], MutationSuite]
    notes: Callable[[Sequence[Any]], Sequence[str]] = lambda tasks: ()

    def mode(self, asked: str | None) -> str:
        """Return the requested mode, the default for None. Raises UserError for an unknown one."""
        if asked is None:
            return self.modes[0]
        if asked not in self.modes:
            raise UserError(f"--mode {asked}: {self.dialect} tasks have {', '.join(self.modes)}")
        return asked


def _webarena(row: Dialect) -> Suite:
    return Suite(
        dialect=row.name,
        load=partial(load_tasks, named=row.name, keep_flawed=True),
        notes=unread_keys,
        lint=lint.weaknesses,
        categories=lint.CATEGORIES,
        unions=lint.UNIONS,
        modes=("original",),
        agents=TEXT_AGENTS,
        # Without a judge model, whose decisions are unknown.
        evaluator=lambda mode: WebArenaEvaluator(),
        # A browser that was never used.
        idle_trace=lambda task: Trace(url="about:blank"),
        # A task may start on several pages, of which the last stays open.
        start_trace=lambda task: Trace(url=task.start_url.split(" |AND| ")[-1]),
        mutations=_webarena_mutations,
    )


def _verified(row: Dialect) -> Suite:
    return Suite(
        dialect=row.name,
        load=partial(load_verified_tasks, keep_flawed=True),
        lint=verified.lint,
        categories=verified.CATEGORIES,
        unions=verified.UNIONS,
        modes=(Mode.SOUND.value, verified.SOUND_WITH_ACTIVITY, Mode.RELEASE.value),
        agents=RESPONSE_AGENTS,
        evaluator=verified.blind_evaluator,
        idle_trace=verified.idle_trace,
        start_trace=verified.start_trace,
        mutations=verified.mutation_suite,
    )


def _refuse(*_: object) -> NoReturn:
    """Raise UserError: tasks of REAL are not evaluated."""
    raise UserError(
        "tasks of REAL are not evaluated: their checks ask for the state of the site: use "
        " trajudge rules lint  to see what they check"
    )


def _real(row: Dialect) -> Suite:
    return Suite(
        dialect=row.name,
        load=lint.load_real_tasks,
        notes=lint.real_notes,
        lint=lint.lint_real,
        categories=lint.REAL_CATEGORIES,
        unions={},
        modes=("listed",),
        agents=(),
        evaluator=_refuse,
        idle_trace=_refuse,
        start_trace=_refuse,
        mutations=_refuse,
    )


_SUITES = {"webarena": _webarena, "verified": _verified, "real": _real}


def suite(row: Dialect) -> Suite:
    """Return the suite of a dialect."""
    return _SUITES[row.form](row)


class TaskSet(NamedTuple):
    """The tasks of a file, their suite, and the mode of the evaluator."""

    path: Path
    suite: Suite
    mode: str
    tasks: Sequence[Any]


def open_tasks(path: Path, named: str | None = None, mode: str | None = None) -> TaskSet:
    """Read a task file. With None the dialect is recognised and its first mode is used. Parts of
    the tasks that cannot be read, or that no rule reads, are listed on standard error.

    Raises UserError.
    """
    rules = suite(dialect(named) if named else detected(path))
    tasks = rules.load(path)
    flawed = [task for task in tasks if task.flaw]
    unreadable = (
        [
            f"{len(flawed)} of {len(tasks)} tasks cannot be read and are unknown, such as task "
            f"{flawed[0].task_id}: {flawed[0].flaw}"
        ]
        if flawed
        else []
    )
    notes = all_folded(f"note: {path.name}: {note}" for note in [*unreadable, *rules.notes(tasks)])
    sys.stderr.writelines(f"{line}\n" for line in notes)
    return TaskSet(path, rules, rules.mode(mode), tasks)


def chosen_categories(wanted: Sequence[str] | None, least: Severity, rules: Suite) -> Severities:
    """Return the categories to report, with at least the given severity; a union's name stands for
    its parts.

    Raises UserError for a category that the dialect does not have.
    """
    chosen: set[str] = set()
    for name in wanted or rules.categories:
        parts = rules.unions.get(name, (name,))
        if not set(parts) <= {*rules.categories}:
            known = ", ".join((*rules.categories, *rules.unions))
            raise UserError(f"--category {name}: {rules.dialect} tasks have {known}")
        chosen |= set(parts)
    severe = {name: one for name, one in rules.categories.items() if one.rank <= least.rank}
    return {name: severity for name, severity in severe.items() if name in chosen}


_PAGE = "http://page.invalid/"
_SITES = {
    name: f"http://{name.strip('_').lower().replace('_', '-')}.example:{port}"
    for name, port in {**DEFAULT_PORTS, "__CLASSIFIEDS__": 9980}.items()
}


def _webarena_mutations(
    tasks: Sequence[Task], runs: Path | None, mode: str, hosts: Mapping[str, tuple[str, ...]]
) -> MutationSuite:
    """Return the runs of a file, which are assumed to be correct, or for None one built for
    every readable task. Raises UserError for a file that cannot be read."""
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
        # If the answer is not checked, changing it is not wrong.
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
    parts = [options_of(text, harness)[0] for text in references.must_include or ()]
    parts += list(references.one_of or ())[:1]
    parts += [_number(texts) for texts in [references.required_values] if texts]
    fuzzy = references.fuzzy_match or ()
    parts += [fuzzy] if isinstance(fuzzy, str) else fuzzy
    return UNACHIEVABLE if fuzzy == UNACHIEVABLE else ", ".join(parts)


def _trace(task: Task, sites: Mapping[str, str]) -> Trace:
    """Build stored pages by address; the contents that several checks require of one page are
    combined."""
    last = render((task.eval.reference_url or "").split(OR)[0], sites) or _PAGE
    results: dict[str, str] = {}
    contents: dict[str, dict[str, list[str]]] = {}
    for check in task.eval.program_html:
        text = render(_required(check.required_contents), sites)
        if check.locator.strip().startswith("func:"):
            results[check.locator.strip().removeprefix("func:")] = text
            continue
        by_locator = contents.setdefault(_address(check, last, results), {})
        by_locator.setdefault(check.locator if check.locator.strip() else "", []).append(text)
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
    """Return an integer that meets conditions such as ``>= 12``; "" if none is known."""
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
    """Return the page that a check reads; the result of an address helper is set to such a page."""
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
