"""A scripted agent in a run: its intents, the policy that acts on them, what it says at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from trajudge.environments.agents.phrases import ending, idle, instructing, partial, reasoning
from trajudge.environments.agents.policy import Policy
from trajudge.environments.agents.protocol import NotPlayed
from trajudge.environments.agents.script import AGENTS, Behaviour, Raw, Say, ScriptContext, script
from trajudge.environments.checks.near_miss import near_miss
from trajudge.environments.chromium.action_syntax import write
from trajudge.environments.model.axes import generator
from trajudge.environments.model.binding import parameters
from trajudge.environments.model.spec import AnswerSpec, Bound
from trajudge.environments.verify.frame import report_changes
from trajudge.environments.verify.truth import reply
from trajudge.environments.verify.verifying import right_answers

if TYPE_CHECKING:
    from trajudge.environments.chromium import AgentObservation
    from trajudge.environments.serving.run import ServedRun

SLIP = 0.2  # how often a run holds one action that fails


class Scripted:
    """One agent in one run. It knows the ground truth from the state, as a script must; what it
    does with it is its behaviour. ``stuck`` says what it could not find, if it gave up."""

    telemetry: Mapping[str, float] = MappingProxyType({})

    def __init__(
        self, run: ServedRun, agent: str, attempt: int, seed: int, recorded: Sequence[str] = ()
    ) -> None:
        self.run = run
        self.behaviour = AGENTS[agent]
        self.rng = generator("agent", run.config.id, agent, attempt, seed)
        self.followed = self._followed(attempt)
        scenario = run.scenario
        task = ScriptContext(
            scenario,
            scenario.plan(self.followed),
            scenario.distractor(run.bound) if scenario.distractor else (),
            run.app.navigation,
            sorted(run.app.operations),
            run.origin,
            recorded,
        )
        intents = script(task, self.behaviour, self.rng)
        if self.behaviour is not Behaviour.ORACLE and self.rng.random() < SLIP:
            slip = Raw(write("click", str(5000 + int(self.rng.integers(999)))), "press the button")
            intents.insert(int(self.rng.integers(len(intents))), slip)
        closes = self.behaviour is not Behaviour.BLOCKED
        self.policy = Policy(intents, run.words, closes=closes)

    @property
    def stuck(self) -> str:
        return self.policy.stuck

    def act(self, view: AgentObservation) -> tuple[str, str]:
        """Return the next action and the thought before it."""
        act = self.policy.next(view)
        failed = view.observation.page_error is not None
        if isinstance(act, Say):
            return write("send_msg_to_user", self._message(act.kind)), ending(self.rng)
        title = view.title.rpartition(" - ")[0]
        return act.text, reasoning(act.why, title, failed, self.rng)

    def _followed(self, attempt: int) -> Bound:
        """Return the binding whose plan is followed: a near miss takes the decoy of one slot that
        makes a difference, the one of its attempt or a later one."""
        run = self.run
        if self.behaviour not in (Behaviour.NEAR_MISS, Behaviour.FALSE_CLAIM):
            return run.bound
        slots = run.scenario.mistakable
        turned = [slots[(attempt + turn) % len(slots)] for turn in range(len(slots))]
        for slot in turned:
            if (mistaken := near_miss(run.scenario, run.bound, slot, run.state)) is not None:
                return mistaken
        raise NotPlayed("no decoy of the task makes a difference")

    def _message(self, kind: Behaviour) -> str:
        match kind:
            case Behaviour.STOPS_EARLY:
                return partial(self.rng)
            case Behaviour.NOTHING:
                return idle(self.rng)
            case Behaviour.INJECTS:
                return instructing(self._reply(made_up=True), self.rng)
            case Behaviour.FABRICATES:
                return self._reply(made_up=True)
            case _:
                return self._reply(made_up=False)

    def _reply(self, *, made_up: bool) -> str:
        """Return the scenario's own wording of the last message, filled with what this agent
        believes."""
        run = self.run
        evidence = replace(run.evidence(), bound=self.followed)
        seen = right_answers(
            evidence, report_changes(run.scenario, self.followed, evidence.changes)
        )
        believed = tuple(
            entry if entry.values and not made_up
            else entry._replace(values=(self._made_up(answer, entry.values),))
            for entry, answer in zip(seen, run.scenario.answers, strict=True)
        )  # fmt: skip
        return reply(str(self.rng.choice(run.scenario.replies)), self.followed, believed)

    def _made_up(self, answer: AnswerSpec, right: Sequence[str]) -> str:
        """Return something that looks like an answer and is not the right one by luck."""
        for _ in range(50):
            if (text := self._invented(answer)) not in right:
                return text
        return "not stated"

    def _invented(self, answer: AnswerSpec) -> str:
        rng = self.rng
        match answer.kind:
            case "money":
                return f"${rng.integers(5, 400)}.{rng.integers(100):02}"
            case "number" | "duration":
                return str(rng.integers(2, 60))
            case "date":
                return f"2026-0{rng.integers(1, 10)}-{rng.integers(10, 29)}"
            case "code":
                return "".join(rng.choice(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), 10))
            case _:
                return self._some_name(answer)

    def _some_name(self, answer: AnswerSpec) -> str:
        known = parameters(self.followed)
        rows = self.run.state.rows(answer.among, **known) if answer.among else []
        names = [str(row[0]) for row in rows]
        return str(self.rng.choice(names)) if names else "not stated"
