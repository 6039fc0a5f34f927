"""An agent that meets faults of the web: it does its task as others do, and recovers in its ways.

What it does and how it errs is drawn from one distribution for a case and an attempt, the same for
every such agent and with or without faults: two of them differ in nothing but what they do where a
page fails, and so do an agent's runs with and without faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from trajudge.environments.agents.protocol import NotPlayed
from trajudge.environments.agents.script import RESILIENT, Behaviour
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.chromium.action_syntax import write
from trajudge.environments.chromium.actions import COVERED
from trajudge.environments.model.axes import generator

if TYPE_CHECKING:
    from trajudge.environments.chromium import AgentObservation, Element
    from trajudge.environments.serving.run import ServedRun

# How its runs go without faults, and how often: two ways that do the task, five slips.
COURSES: Mapping[Behaviour, float] = {
    Behaviour.RECOVERS: 0.4,
    Behaviour.DETOURS: 0.32,
    Behaviour.NEAR_MISS: 0.08,
    Behaviour.MISREADS: 0.06,
    Behaviour.FORGETS: 0.06,
    Behaviour.STOPS_EARLY: 0.04,
    Behaviour.FALSE_CLAIM: 0.04,
}
CLAIMS = 0.35  # how many of the runs that get stuck end with a claim that the task is done
RELOADS = 3  # of one page, before it gives up
WAITS = 3
WAIT = 2000  # milliseconds


class Resilient:
    """One resilient agent in one run."""

    def __init__(self, run: ServedRun, agent: str, attempt: int, seed: int) -> None:
        self.run = run
        self.ways = RESILIENT[agent]
        rng = generator("course", run.config.id, attempt, seed)
        behaviour = _drawn(run, rng)
        stuck_says = Behaviour.FABRICATES if rng.random() < CLAIMS else Behaviour.STOPS_EARLY

        def scripted(course: Behaviour) -> Scripted:
            return Scripted(
                run, "resilient", attempt, seed, behaviour=course, stuck_says=stuck_says
            )

        try:
            self.scripted = scripted(behaviour)
        except NotPlayed:  # no decoy of this task makes a difference
            self.scripted = scripted(Behaviour.RECOVERS)
        self._known = set(run.words.values())
        self._out_of_order = False
        self._posted = False  # whether a form was sent to the page that is out of order
        self._reloads = self._waits = 0

    @property
    def telemetry(self) -> Mapping[str, float]:
        return self.scripted.telemetry

    def act(self, view: AgentObservation) -> tuple[str, str]:
        """Return the next action and the thought before it."""
        policy = self.scripted.policy
        if not view.title.endswith(f" - {self.run.app.title}"):
            return self._wait_or_reload(view) or self.scripted.act(view)
        if self._out_of_order:
            policy.begin_page_again(undone=self._posted)
            self._out_of_order = False
            self._reloads = self._waits = 0
        failed = view.observation.page_error or ""
        if "dismiss" in self.ways and (button := self._foreign(view)) is not None:
            if failed:  # it covered the page too late to be seen before
                policy.look_back(view)
            return write("click", button.bid), f"close what covers the page ({button.name})"
        if COVERED in failed and "reload" in self.ways and self._reloads < RELOADS:
            self._reloads += 1
            policy.begin_page_again(undone=True)
            return write("goto", view.observation.url or ""), "load the page again"
        return self.scripted.act(view)

    def _wait_or_reload(self, view: AgentObservation) -> tuple[str, str] | None:
        """Return what is done about a page that is none of the site's; None to go on all the
        same."""
        url = view.observation.url or ""
        if not self._out_of_order:
            self._out_of_order = True
            self._posted = urlsplit(url).path.startswith("/do/")
        first = "reload" not in self.ways or not self._waits
        if "wait" in self.ways and first and self._waits < WAITS:
            self._waits += 1
            return write("noop", WAIT), "wait for the page"
        if "reload" in self.ways and self._reloads < RELOADS:
            self._reloads += 1
            return write("goto", url), "load the page again"
        return None

    def _foreign(self, view: AgentObservation) -> Element | None:
        """Return the button of a dialog that is not the site's own."""
        buttons = (e for e in view.elements if e.in_dialog and e.role == "button")
        return next((e for e in buttons if e.name and e.name not in self._known), None)


def _drawn(run: ServedRun, rng: np.random.Generator) -> Behaviour:
    """Draw how a run goes. A slip that the task has no room for becomes a run without one."""
    names, odds = list(COURSES), list(COURSES.values())
    behaviour = names[int(rng.choice(len(names), p=odds))]
    readable = any(answer.kind != "code" for answer in run.scenario.answers)
    return Behaviour.RECOVERS if behaviour is Behaviour.MISREADS and not readable else behaviour
