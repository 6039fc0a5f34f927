"""How what a task asked for is taken back: found on a copy of the state, without a browser.

Two ways are tried: a control of a page near the one on which the work ended that needs no entry
(delete, cancel, withdraw), and the same form with what stood in it before. One is taken if it
brings the expectations down and leaves nothing else behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import chain, islice

from trajudge.environments.agents.rehearsal import visitor
from trajudge.environments.checks.walk import ControlNotFound, Walk
from trajudge.environments.kit.reading import forms, links
from trajudge.environments.model.binding import typed
from trajudge.environments.model.page import Field, Form, Label, Page, Word
from trajudge.environments.model.plan import PlanStep, follow, press
from trajudge.environments.model.state import difference
from trajudge.environments.serving.run import ServedRun
from trajudge.environments.verify.frame import report_changes

ENTRIES = ("enter", "choose", "tick")
NEAR = 40  # links from the last page that are looked behind
WHY = "take it back"

Place = tuple[str, str, str]  # kind of a change, table, key


def undo_plan(run: ServedRun) -> list[PlanStep] | None:
    """Return steps that take back what the oracle does, from the page on which it ends; None where
    the application has no way, or the task changes nothing."""
    scenario, plan = run.scenario, list(run.scenario.plan(run.bound))
    if not scenario.expect:
        return None
    with walked(run, plan) as walk:
        if walk is None:
            return None
        done = difference(run.before, walk.site.state.dump())
    touched = {(one.kind, one.table, one.key) for one in done}
    for steps in chain(_controls(run, plan), _entered_before(run, plan)):
        with walked(run, [*plan, *steps]) as walk:
            if walk is not None and _is_undone(run, walk, touched):
                return steps
    return None


def _controls(run: ServedRun, plan: Sequence[PlanStep]) -> Iterator[list[PlanStep]]:
    """Yield what can be pressed without an entry on the last page, or behind one of its links."""
    with walked(run, plan) as walk:
        if walk is None:
            return
        doors: list[list[PlanStep]] = [[]]
        doors += [[follow(link.label, WHY)] for link in islice(links(walk.page), NEAR)]
    for door in doors:
        with walked(run, [*plan, *door]) as walk:
            offered = list(_operations(walk.page)) if walk else []
        for form in offered:
            steps = [*door, press(form.submit, WHY)]
            with walked(run, [*plan, *steps]) as walk:
                asks = walk is not None and any(_confirms(form) for form in forms(walk.page))
            yield [*steps, press(Word("confirm"), WHY)] if asks else steps


def _operations(page: Page) -> Iterator[Form]:
    return (form for form in forms(page) if form.operation)


def _confirms(form: Form) -> bool:
    return form.submit == Word("confirm")


def _entered_before(run: ServedRun, plan: Sequence[PlanStep]) -> Iterator[list[PlanStep]]:
    """Yield the last form with what stood in it before the agent came: on the page where the work
    ended, and by the way of the plan."""
    ends = [at for at, step in enumerate(plan) if step.do == "press" and not _asked(step)]
    if not ends:
        return
    begins = ends[-1]
    while begins and plan[begins - 1].do in ENTRIES:
        begins -= 1
    with walked(run, plan[:begins]) as walk:
        stood = walk and {field.label: field for form in forms(walk.page) for field in form.fields}
    if not stood:
        return
    entries: list[PlanStep] = []
    for entry in plan[begins : ends[-1]]:
        field = stood.get(entry.label)
        if field is None or entry.do == "tick":
            return
        before = _shown(field) or _in_the_row(run, field, entry)
        if before is None:
            return
        entries.append(PlanStep(entry.do, entry.label, before, WHY))
    entries += plan[ends[-1] :]
    yield entries
    yield [*(step for step in plan[:begins] if step.do != "scan"), *entries]


def _asked(step: PlanStep) -> bool:
    return step.label == Word("confirm")


def _shown(field: Field) -> Label | None:
    """Return what a field shows before it is touched."""
    if not field.options:
        return field.value
    return next((one.label for one in field.options if one.value == field.value), None)


def _in_the_row(run: ServedRun, field: Field, entry: PlanStep) -> Label | None:
    """Return what a field that begins empty changes, as it stood in the row that was asked for."""
    for expect in run.scenario.expect:
        row = (
            run.before[expect.table].get(str(typed(expect.key, run.bound))) if expect.key else None
        )
        for column, wanted in expect.values.items():
            if row is None or str(typed(wanted, run.bound)) != _sent(field, entry):
                continue
            if not field.options:
                return str(row[column])
            return next((one.label for one in field.options if one.value == row[column]), None)
    return None


def _sent(field: Field, entry: PlanStep) -> str:
    """Return the value that an entry sends."""
    labels = {one.label: one.value for one in field.options}
    return labels.get(entry.text, str(entry.text))


def _is_undone(run: ServedRun, walk: Walk, touched: Set[Place]) -> bool:
    """Tell whether the work is undone and only its own rows are left (an order, cancelled)."""
    changes = difference(run.before, walk.site.state.dump())
    reading = report_changes(run.scenario, run.bound, changes)
    return not reading.holds and {(one.kind, one.table, one.key) for one in changes} <= touched


@contextmanager
def walked(run: ServedRun, plan: Sequence[PlanStep]) -> Iterator[Walk | None]:
    """Follow a plan from the start; None where a step finds no control."""
    with visitor(run) as walk:
        try:
            for step in plan:
                walk.do(step)
        except ControlNotFound:
            yield None
        else:
            yield walk
