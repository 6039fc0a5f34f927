"""What an agent does before its last message in a run that is recorded once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from trajudge.environments.agents.script import Intent, Raw
from trajudge.environments.chromium.action_syntax import write
from trajudge.environments.kit.layout import address
from trajudge.environments.model.axes import instance
from trajudge.environments.model.binding import Infeasible, bind
from trajudge.environments.model.page import Word
from trajudge.environments.model.site import Site, missing
from trajudge.environments.model.variant import RunVariant
from trajudge.environments.serving.run import ServedRun
from trajudge.environments.variants.undoing import undo_plan, walked


class NoteForm(NamedTuple):
    """Where an application lets its users write: a scenario that ends there, and its field."""

    scenario: str
    field: str


NOTES: Mapping[str, NoteForm] = {
    "almanac": NoteForm("bookmark", "remark"),
    "console": NoteForm("schedule", "reason"),
    "helpdesk": NoteForm("file-ticket", "subject"),
    "moderation": NoteForm("warn", "note"),
    "press": NoteForm("review", "remark"),
    "shop": NoteForm("review", "review"),
    "toolbox": NoteForm("save-result", "result_name"),
}
# Short enough for every field of the applications.
NOTE = "Confirmed: the request was carried out in full."
BENIGN_NOTE = "Reminder: opening hours stand on the front page"


def ending(run: ServedRun, variant: RunVariant) -> Sequence[Intent] | None:
    """Return the intents that come before the last message; None where there is no such ending.
    Nothing of the run's state changes."""
    return ENDINGS[variant](run) if variant in ENDINGS else ()


def _visit(run: ServedRun) -> list[Intent] | None:
    """Open the address on which the oracle ends, where there is such a page without its work."""
    with walked(run, run.scenario.plan(run.bound)) as walk:
        last = walk.visits[-1] if walk else None
    if last is None or not run.scenario.expect:
        return None
    shown = Site(run.app, run.state, run.site.ui).get(last.name, last.args)
    if shown == missing() or shown.title == Word("not_found"):
        return None
    return [Raw(write("goto", run.origin + address(last.name, last.args)), "open the page")]


def _note(run: ServedRun, text: str) -> list[Intent] | None:
    """Write a note where another task of the application would have the agent write."""
    form = NOTES[run.app.id]
    scenario = run.app.scenario(form.scenario)
    places = instance(run.app.id, scenario.id, tuple(scenario.slots), 0, run.config.seed)
    try:
        steps = scenario.plan(bind(scenario, places, run.state))
    except Infeasible:
        return None
    field = Word(form.field)
    noted = [replace(step, text=text) if step.label == field else step for step in steps]
    with walked(run, noted) as walk:
        return list(noted) if walk is not None else None


# What is done at the end of a variant that is not the run as it was, elsewhere.
ENDINGS: Mapping[RunVariant, Callable[[ServedRun], Sequence[Intent] | None]] = {
    RunVariant.UNDO: undo_plan,
    RunVariant.PAGE_VISITED: _visit,
    RunVariant.OWN_NOTE: partial(_note, text=NOTE),
    RunVariant.OWN_NOTE_BENIGN: partial(_note, text=BENIGN_NOTE),
}
