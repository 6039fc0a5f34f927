"""What steps take on the pages of a run, found on a copy of its state, without a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import parse_qsl, unquote, urlsplit

from trajudge.environments.agents.script import Intent, Return
from trajudge.environments.checks.walk import ControlNotFound, Walk, navigation
from trajudge.environments.kit.reading import controls
from trajudge.environments.model.axes import open_state
from trajudge.environments.model.page import Form, Label, Link, Word
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.site import Site
from trajudge.environments.serving.run import ServedRun


@contextmanager
def visitor(run: ServedRun) -> Iterator[Walk]:
    """Visit the start page of a run on a copy of its state, which is closed at the end."""
    state = open_state(run.app, run.config)
    try:
        walk = Walk(Site(run.app, state, run.site.ui))
        walk.open(run.site.ui.start, {})
        yield walk
    finally:
        state.close()


def moved(run: ServedRun, body: Sequence[Intent]) -> int:
    """Return how many actions the intents take from the start page on; one each from where a step
    of a plan finds no control."""
    with visitor(run) as walk:
        count = 0
        for at, intent in enumerate(body):
            if not isinstance(intent, PlanStep):
                count += not isinstance(intent, Return)
                continue
            try:
                walk.do(intent)
            except ControlNotFound:
                return walk.moved + count + len(body) - at
        return walk.moved + count


def folded_into(run: ServedRun, step: PlanStep, url: str) -> list[Label]:
    """Return the titles of what the control of a step is folded into on the page at an address,
    from the outside to the inside; none where it is not on that page."""
    parts = urlsplit(url)
    if parts.path.startswith("/do/"):  # the page that a form was on
        parts = urlsplit(run.shown)
    args = dict(parse_qsl(parts.query, keep_blank_values=True))
    name = unquote(parts.path.strip("/")) or "home"
    for control, _, folds in (*controls(run.site.get(name, args)), *navigation(run.site, name)):
        if folds and _is_meant(control, step):
            return [fold.title for fold in folds]
    return []


def _is_meant(control: Link | Form, step: PlanStep) -> bool:
    if isinstance(control, Link):
        return step.do == "follow" and control.label == step.label
    if step.do == "press":
        return control.submit == step.label
    return any(entry.label == step.label for entry in control.fields)


def harmless(run: ServedRun, plan: Sequence[PlanStep]) -> Sequence[PlanStep]:
    """Return the beginning of a plan that changes nothing and leaves no form half filled, and no
    dialog open that asks to confirm."""
    ends = 0
    with visitor(run) as walk:
        before = walk.site.state.db.total_changes
        for at, step in enumerate(plan, 1):
            try:
                walk.do(step)
            except ControlNotFound:
                break
            if walk.site.state.db.total_changes != before:
                break
            confirms = at < len(plan) and plan[at].label == Word("confirm")
            if step.do in ("follow", "press", "scan") and not confirms:
                ends = at
    return plan[:ends]
