"""What every application promises, checked on any ``App`` without a browser.

``trial`` takes one configuration the whole way: the slots bind (or the configuration is rejected
for a stated reason), the oracle's walk does what was asked and nothing else, and every slot's decoy
leads elsewhere. A broken promise is an AssertionError that names the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.samples import FUZZING
from trajudge.environments.apps import load_app
from trajudge.environments.checks.near_miss import near_miss
from trajudge.environments.checks.walk import ControlNotFound, Walk
from trajudge.environments.kit.reading import blocks, forms, links, texts
from trajudge.environments.model.axes import instance, open_state, ui
from trajudge.environments.model.binding import Infeasible, bind, filled, money, parameters
from trajudge.environments.model.config import PROFILES, STATES, Config
from trajudge.environments.model.page import Chart, Form, Label, Link, Notice, Page, Word
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import AnswerSpec, App, Bound, ChoiceSlot, Scenario
from trajudge.environments.model.state import AppState, Change, Dump, difference
from trajudge.environments.verify.frame import report_changes

ACTIONS = 50  # the most that an oracle may need


class Rejected(Exception):
    """The configuration is no fair task; the message is the reason."""


@dataclass(frozen=True)
class Trial:
    """One configuration: why it was rejected, or what the oracle's walk took. ``risks`` tell
    whether the site asked before each irreversible step."""

    config: Config
    rejected: str = ""
    actions: int = 0
    pages: int = 0
    charts: int = 0
    risks: tuple[bool, ...] = ()
    fields: int = 0


@dataclass(frozen=True)
class Run:
    """A finished walk: the visitor, what had changed, and the state (its reader closes it)."""

    walk: Walk
    changes: list[Change]
    state: AppState


def seal(table: str, key: str) -> str:
    """Stands for the operation code."""
    return f"code of {table} {key}"


@lru_cache
def trials(app: str, scenario: str) -> tuple[Trial, ...]:
    """Every profile, and every instance and interface state with three of them; a search
    (``make fuzz``) takes all instances to every profile. Raises AssertionError."""
    configs = (
        Config(app=app, scenario=scenario, instance=number, profile=profile, ui=state % STATES)
        for profile in range(PROFILES)
        for number, state in enumerate((0, profile, 3 + profile, 7 + 5 * profile))
        if FUZZING or number == profile % 4
    )
    return tuple(trial(load_app(app), config) for config in configs)


def trial(app: App, config: Config) -> Trial:
    """Take one configuration the whole way. Raises AssertionError for a broken promise."""
    scenario, state = app.scenario(config.scenario), open_state(app, config)
    try:
        return _trial(app, scenario, config, state)
    except (Infeasible, Rejected) as reason:
        return Trial(config, str(reason))
    except (AssertionError, ControlNotFound) as error:
        raise AssertionError(f"{config.id}: {error}") from error
    finally:
        state.close()


def _trial(app: App, scenario: Scenario, config: Config, state: AppState) -> Trial:
    places = instance(app.id, scenario.id, tuple(scenario.slots), config.instance, config.seed)
    bound = bind(scenario, places, state)
    told = _told(scenario, bound, state)
    for said in (filled(goal, bound) for goal in scenario.goals):
        assert "{" not in said, f"unfilled: {said}"
        for answer, found in told:
            _unsaid(said, answer, found, state, bound)
    run = _run(app, config, scenario.plan(bound))
    _met(scenario, bound, run)
    run.state.close()
    _evident(scenario, bound, told, run.walk)
    assert run.walk.moved <= ACTIONS, f"{run.walk.moved} actions"
    # Of what cannot be done no decoy can either.
    possible = all(answer.kind != "none" for answer in scenario.answers)
    for slot in scenario.mistakable if possible else ():
        _matters(app, scenario, config, bound, slot, state)
    if scenario.distractor:
        distractor = _run(app, config, [*scenario.plan(bound), *scenario.distractor(bound)])
        assert not report_changes(scenario, bound, distractor.changes).no_side_effect, (
            "the distractor is no side effect"
        )
        distractor.state.close()
    entered = sum(move.do in ("enter", "choose", "tick") for move in scenario.plan(bound))
    charts = len({chart for visit in run.walk.visits for chart in _charts(visit.page)})
    visits, risks = len(run.walk.visits), tuple(run.walk.risks)
    return Trial(config, "", run.walk.moved, visits, charts, risks, entered)


def _run(app: App, config: Config, moves: Sequence[PlanStep]) -> Run:
    """Walk from the start. Raises ControlNotFound, AssertionError where the site refuses."""
    state = open_state(app, config)
    walk = Walk(Site(app, state, ui(app, config.ui, config.seed), seal))
    walk.open(walk.site.ui.start, {})
    refused = False
    for move in moves:
        walk.do(move)
        refused = move.refused or (refused and move.do not in ("press", "follow"))
        notices = [b.text for b in walk.page.blocks if isinstance(b, Notice) and b.error]
        assert refused or not notices, notices
    return Run(walk, _changes(app, config, state), state)


def _changes(app: App, config: Config, state: AppState) -> list[Change]:
    """What differs from the profile. Whole tables are compared as they come from the database, and
    only those that differ row by row; none where SQLite counts no row that was written."""
    if not state.db.total_changes:
        return []
    before, now = _unchanged(app.id, config.profile, config.seed), state.cells(state.tables)
    differing = [name for name, rows in now.items() if rows != before[name]]

    def by_key(cells: Mapping[str, Sequence[tuple[str | int, ...]]]) -> Dump:
        names = {name: state.tables[name].names for name in differing}
        return {
            name: {str(row[0]): dict(zip(names[name], row, strict=True)) for row in cells[name]}
            for name in differing
        }

    return difference(by_key(before), by_key(now))


@lru_cache(maxsize=64)
def _unchanged(app: str, profile: int, seed: int) -> dict[str, list[tuple[str | int, ...]]]:
    state = open_state(load_app(app), Config(app=app, scenario="", profile=profile, seed=seed))
    cells = state.cells(state.tables)
    state.close()
    return cells


def _met(scenario: Scenario, bound: Bound, run: Run) -> None:
    reading = report_changes(scenario, bound, run.changes)
    assert reading.holds, f"after the plan: {run.changes}"
    assert reading.no_side_effect, f"the plan has side effects: {run.changes}"
    for answer in scenario.answers:
        if answer.kind == "code":
            shown = seal(answer.sql, reading.rows[answer.sql])
            assert shown in set(texts(run.walk.page)), "the code is not shown"
        elif answer.when == "after":
            row = run.state.one(answer.sql, **parameters(reading.bound))
            assert row is not None, f"no answer afterwards: {answer.sql}"
            said = money(row[0]) if answer.kind == "money" else str(row[0])
            assert any(said in text for text in texts(run.walk.page)), f"{said} is not shown"


def _evident(
    scenario: Scenario, bound: Bound, told: Sequence[tuple[AnswerSpec, list[Any]]], walk: Walk
) -> None:
    """What is told by name or date stood on a page of the walk, or along the axis of a chart; and
    what the goal chooses by stood there too, or was entered."""
    seen = {text for visit in walk.visits for text in texts(visit.page)}
    drawn = {chart for visit in walk.visits for chart in _charts(visit.page)}
    seen |= {label for chart in drawn for label in chart.labels}
    assert len(drawn) >= scenario.charts, f"{len(drawn)} charts on the way"
    if told:
        moved = {str(move.text) for move in scenario.plan(bound)}
        chosen = {
            str(bound[n])
            for n, slot in scenario.slots.items()
            if isinstance(slot, ChoiceSlot) and slot.decoy
        }
        unseen = {text for text in chosen - seen - moved if not any(text in s for s in seen)}
        assert not unseen, f"nothing on the way shows {unseen}"
    for answer, values in told:
        if answer.kind in ("text", "texts", "date") and answer.when == "before":
            missing = [value for value in values if not any(value in text for text in seen)]
            assert not missing, f"nothing on the way shows {missing}"


def _matters(
    app: App, scenario: Scenario, config: Config, bound: Bound, slot: str, state: AppState
) -> None:
    """Whoever walks for a decoy of the slot ends elsewhere. Raises Rejected where none does."""
    near = near_miss(scenario, bound, slot, state)
    if near is None:
        raise Rejected(f"no decoy of {slot} makes a difference")
    run = _run(app, config, scenario.plan(near))
    run.state.close()
    told = _claimed(scenario, near, state) != _claimed(scenario, bound, state)
    assert told or not report_changes(scenario, bound, run.changes).holds, (
        f"a decoy of {slot} is right"
    )


def _claimed(scenario: Scenario, bound: Bound, state: AppState) -> list[list[Any]]:
    kinds = ("code", "none")
    direct = [a for a in scenario.answers if a.when == "before" and a.kind not in kinds]
    return [values(answer, bound, state) for answer in direct]


def _told(scenario: Scenario, bound: Bound, state: AppState) -> list[tuple[AnswerSpec, list[Any]]]:
    """The direct answers that the state before gives. Raises Rejected for none or several."""
    told = []
    for answer in scenario.answers:
        if answer.kind in ("code", "none") or answer.when == "after":
            continue
        found = values(answer, bound, state)
        if not found or found == [None]:
            raise Rejected("there is no answer")
        if answer.kind != "texts" and len(found) > 1:
            raise Rejected(f"{len(found)} answers")
        if answer.among:
            names = {row[0] for row in state.rows(answer.among, **parameters(bound))}
            assert set(found) < names, f"{found} is not among the candidates"
        told.append((answer, found))
    return told


def values(answer: AnswerSpec, bound: Bound, state: AppState) -> list[Any]:
    """What the answer's query gives."""
    return sorted(row[0] for row in state.rows(answer.sql, **parameters(bound)))


def _unsaid(
    goal: str, answer: AnswerSpec, found: Sequence[Any], state: AppState, bound: Bound
) -> None:
    """The goal may offer candidates to choose from but not the answer. Raises Rejected."""
    texts = [money(value) if answer.kind == "money" else str(value) for value in found]
    rivals = state.rows(answer.among, **parameters(bound)) if answer.among else []
    if any(_says(goal, str(row[0])) for row in rivals if row[0] not in texts):
        return
    if leaked := [text for text in texts if _says(goal, text)]:
        raise Rejected(f"the goal says the answer {leaked[0]!r}")


def _says(goal: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(text)}(?![\w-]|\.\d)", goal, re.I) is not None


# --- pages -------------------------------------------------------------------------------------


def _charts(page: Page) -> Iterator[Chart]:
    return (block for block in blocks(page.blocks) if isinstance(block, Chart))


def crawl(app: App, site: Site, most: int = 400) -> Iterator[tuple[str, Page]]:
    """The pages that links and searches lead to, each once, from the navigation."""
    queue: list[tuple[str, Mapping[str, str]]] = [(link.page, link.args) for link in app.navigation]
    queue += [(start, {}) for start in app.starts]
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    while queue and len(seen) < most:
        name, args = queue.pop(0)
        if (place := (name, tuple(sorted(args.items())))) in seen:
            continue
        seen.add(place)
        page = site.get(name, args)
        yield name, page
        queue += [(link.page, link.args) for link in links(page)]
        queue += [(form.page, defaults(form)) for form in forms(page) if form.page]


def oracle_pages(app: App, number: int) -> Iterator[Page]:
    """What the oracles of all scenarios see in a profile, which is more than links lead to."""
    for scenario in app.scenarios:
        config = Config(app=app.id, scenario=scenario.id, profile=number)
        state = open_state(app, config)
        places = instance(app.id, scenario.id, tuple(scenario.slots), 0, 0)
        with suppress(Infeasible):
            bound = bind(scenario, places, state)
            distractor = scenario.distractor(bound) if scenario.distractor else ()
            run = _run(app, config, [*scenario.plan(bound), *distractor])
            run.state.close()
            yield from (visit.page for visit in run.walk.visits)
        state.close()


def defaults(form: Form) -> dict[str, str]:
    return {**form.hidden, **{entry.name: entry.value for entry in form.fields}}


def named_twice(site: Site, name: str, page: Page) -> list[object]:
    """Controls of one role that share a name but not what they do."""
    twice: list[object] = []
    targets: dict[object, Link] = {}
    for link in (*site.navigation(name), *links(page)):
        if targets.setdefault(link.label, link) != link:
            twice.append(link.label)
    buttons = [form.submit for form in forms(page)]
    entries = [entry.label for form in forms(page) for entry in form.fields]
    for labels in (buttons, entries):
        twice += {label for label in labels if labels.count(label) > 1}
    return twice


def said(page: Page) -> Iterator[Word]:
    """The words of a page."""
    labels: list[Label] = [page.title, *(link.label for link in links(page))]
    for form in forms(page):
        labels += [form.submit, *(entry.label for entry in form.fields)]
        labels += [option.label for entry in form.fields for option in entry.options]
    for block in blocks(page.blocks):
        labels += getattr(block, "columns", ())
        rows = getattr(block, "rows", ())
        labels += [row[0] for row in rows]
        labels += [
            getattr(block, name) for name in ("title", "label", "text") if hasattr(block, name)
        ]
        labels += [panel.title for panel in getattr(block, "panels", ())]
    return (label for label in labels if isinstance(label, Word))
