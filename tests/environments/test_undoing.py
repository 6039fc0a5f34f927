"""What was done is taken back: the state is as it was, but for an order that is cancelled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.environments.cases import sound
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.model.binding import Infeasible
from trajudge.environments.model.config import Config
from trajudge.environments.model.state import Change, difference
from trajudge.environments.serving.run import ServedRun, open_run
from trajudge.environments.variants import undo_plan, walked
from trajudge.environments.verify.frame import report_changes

UNDOABLE = {
    "shop": {
        *("buy", "buy-best", "wish", "move", "gift-pair", "as-many", "short-stock"),
        *("wish-instead", "better-of-two", "rated-bargain", "only-if-enough"),
    },
    "moderation": {"lock-busier"},
    "helpdesk": {"hand-over", "put-off", "less-busy", "urgent-if-open", "pause-busier"},
    "almanac": {"bookmark", "note", "export", "term-note", "years-swapped", "note-fuller"},
    "toolbox": {"save-result", "run-job", "rename-job", "save-job"},
    "console": {
        *("change-role", "quota-for-busier", "quota-too-high", "smaller-quota"),
        "silence-busier",
    },
    "press": {"pin-by-readers"},
    "mail": {"add-filter"},
}
# What stays behind where a thing is called off and not deleted.
CALLED_OFF = {
    "buy": "cancelled",
    "buy-best": "cancelled",
    "gift-pair": "cancelled",
    "export": "withdrawn",
    "years-swapped": "withdrawn",
}
# Of several changes one is taken back, or the work and not the way to it (signing in).
IN_PART = {
    "shop": {"two-cheapest", "wish-best-two", "move-and-buy"},
    "helpdesk": {"hand-over-both"},
    "almanac": {"shelf-two", "export-two"},
    "toolbox": {"keep-both"},
    "console": {"share-quota"},
    "office": {"mail-wish", "mail-ticket-assign", "restore-and-assign"},
    "mail": {"replace-filter", "restore"},  # of "restore" in some instances alone
}


def feasible(app: str, scenario: str) -> Iterator[ServedRun]:
    for index in range(6):
        try:
            yield open_run(Config(app=app, scenario=scenario, instance=index, profile=index), b"x")
        except Infeasible:
            continue


def left(run: ServedRun) -> list[Change]:
    """What differs from the beginning after the work and its undoing."""
    steps = undo_plan(run)
    assert steps is not None
    with walked(run, [*run.scenario.plan(run.bound), *steps]) as walk:
        assert walk is not None
        return difference(run.before, walk.site.state.dump())


@pytest.mark.parametrize("app", UNDOABLE)
def test_every_row_is_as_it_was_or_called_off(app: str) -> None:
    for scenario in UNDOABLE[app]:
        runs = list(feasible(app, scenario))
        assert runs
        for run in runs:
            changes = left(run)
            if scenario in CALLED_OFF:
                states = {one.after.get("status") for one in changes if one.kind == "added"}
                assert CALLED_OFF[scenario] in states, run.config.id
            else:
                assert changes == [], run.config.id


@pytest.mark.slow
@pytest.mark.parametrize("app", IN_PART)
def test_what_is_taken_back_in_part_is_not_done(app: str) -> None:
    for scenario in IN_PART[app]:
        runs = [run for run in feasible(app, scenario) if undo_plan(run) is not None]
        assert runs
        for run in runs:
            changes = left(run)
            assert changes, run.config.id
            assert not report_changes(run.scenario, run.bound, changes).holds, run.config.id


@pytest.mark.slow
def test_what_cannot_be_taken_back_has_no_way() -> None:
    found = {
        (app, one.id)
        for app in APPS
        for one in load_app(app).scenarios
        if one.id not in UNDOABLE.get(app, set()) | IN_PART.get(app, set())
        for run in feasible(app, one.id)
        if undo_plan(run) is not None
    }
    assert found == set()


def test_looking_for_a_way_changes_nothing() -> None:
    case = sound("wish")
    run = open_run(case.config, b"x")
    before = run.state.dump()
    assert undo_plan(run)
    assert run.state.dump() == before
