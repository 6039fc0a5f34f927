"""Any model as a BrowserGym-style agent: the page in, one action out.

It sees the goal, what it did so far and what came of it, and the page as accessibility tree, as
screenshot or as both, cut to its window on the ladder that judges use. What cannot be read as one
action is an error that it is told of, as BrowserGym tells of an action that failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from trajudge.environments.agents.model_client import AgentModelClient
from trajudge.environments.agents.protocol import GaveUp, Job, NotPlayed
from trajudge.environments.chromium.action_syntax import SIGNATURES, BadAction, Parameter, parse
from trajudge.judges.adapters.errors import ContextOverflow, Refused
from trajudge.judges.model import Message, Picture, Reply, Text
from trajudge.judges.prompting import budget_after_overflow, picture_tokens
from trajudge.prompts.render import Prompt, load_prompt
from trajudge.trajectories.model import Step, Trajectory
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.thoughts import without_thoughts
from trajudge.trajectories.tokens import count_tokens
from trajudge.trajectories.truncate import TruncatedView as Shown
from trajudge.trajectories.truncate import views
from trajudge.util.errors import ImageUnreadable

if TYPE_CHECKING:
    from trajudge.environments.chromium import AgentObservation

UNREADABLE = 3  # replies in a row without an action, after which a run ends
MAX_CONTROLS = 150  # named beside a screenshot
MAX_THOUGHT = 4000  # characters kept
OVERHEAD = 300  # tokens that the template puts around the values
_ACTION = re.compile(r"<action>(.*?)(?:</action>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"<reasoning>(.*?)</reasoning>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A`{1,3}(?:python)?\s*|\s*`{1,3}\Z")


class ParsedReply(NamedTuple):
    """What a reply says. ``action`` is empty where it holds none."""

    action: str
    thought: str


class ModelAgent:
    """A model in one run."""

    def __init__(self, client: AgentModelClient, job: Job, goal: str) -> None:
        self._client = client
        self._asking = client.start_run(job.attempt)
        self._job = job
        self._goal = goal
        self._steps: list[Step] = []
        self._seconds = 0.0
        self._unreadable = 0
        self._in_a_row = 0

    @property
    def telemetry(self) -> Mapping[str, float]:
        """Calls, seconds waited for replies, replies without an action; tokens where the server
        reports them for every call, and the cost in US dollars where the price is known, too. The
        same for replies from the cache."""
        calls = self._asking.calls
        usages = [call.usage for call in calls if call.usage is not None]
        numbers = {
            "n_calls": float(len(calls)),
            "n_unreadable": float(self._unreadable),
            "cum_agent_elapsed": self._seconds,
        }
        if len(usages) == len(calls):
            numbers["cum_input_tokens"] = float(sum(usage.prompt for usage in usages))
            numbers["cum_output_tokens"] = float(sum(usage.output for usage in usages))
        costs = [call.cost for call in calls if call.cost is not None]
        return {**numbers, "cost": sum(costs)} if len(costs) == len(calls) else numbers

    def act(self, view: AgentObservation) -> tuple[str, str]:
        """Return the model's action and its reasoning. Raises GaveUp after several replies in a row
        that held no action, NotPlayed and Halted as ``AgentModelClient.ask`` does."""
        if self._in_a_row >= UNREADABLE:
            raise GaveUp
        here = Step(index=len(self._steps), observation=view.observation)
        reading = self._read(view, here)
        self._steps.append(
            here.model_copy(update={"action": reading.action, "reasoning": reading.thought})
        )
        return reading.action, reading.thought

    def _read(self, view: AgentObservation, here: Step) -> ParsedReply:
        reading = ParsedReply("", "")
        try:
            reply = self._ask(view, here)
        except Refused:
            pass
        else:
            self._seconds += reply.seconds
            reading = parse_reply(reply.text)
        if _is_action(reading.action):
            self._in_a_row = 0
        else:
            self._in_a_row += 1
            self._unreadable += 1
        return reading

    def _ask(self, view: AgentObservation, here: Step) -> Reply:
        """Ask with as much of the page as the window takes. Raises NotPlayed if even the least is
        too much."""
        handle, see = self._client.handle, self._client.see
        shown = self._picture(view)
        budget = handle.max_prompt_tokens - self._instructions_tokens - OVERHEAD
        budget -= sum(picture_tokens(one, handle.images) for one in shown)
        run = Trajectory(
            key=self._job.key,
            raw_task_id=self._job.config.id,
            goal=self._goal,
            steps=(*self._steps, here),
        )
        controls = [] if see.shows_axtree else _controls(view)
        representation = see if view.observation.axtree else Representation.NONE
        budget -= count_tokens("\n".join(controls))
        shorter = views(run, representation, budget)
        for cut in shorter:
            try:
                return self._client.ask(
                    self._asking, self._messages(view, cut, controls, shown), cut.rung.label
                )
            except ContextOverflow as error:
                around = handle.max_prompt_tokens - budget
                remaining = budget_after_overflow(error, cut.tokens + around)
                shorter.room = None if remaining is None else remaining - around
        raise NotPlayed(f"{handle.model}: the page does not fit its window however it is cut")

    def _picture(self, view: AgentObservation) -> list[Picture]:
        ref = view.observation.screenshot
        if not self._client.see.shows_screenshot or ref is None:
            return []
        try:
            return [self._client.picture(ref)]
        except ImageUnreadable as error:
            raise NotPlayed(f"the screenshot: {error}") from error

    @cached_property
    def _prompt(self) -> Prompt:
        return load_prompt("web_agent")

    @cached_property
    def _instructions(self) -> str:
        actions = [f"{name}({', '.join(map(_said, ps))})" for name, ps in SIGNATURES.items()]
        return self._prompt.render("system", actions=actions)

    @cached_property
    def _instructions_tokens(self) -> int:
        return count_tokens(self._instructions)

    def _messages(
        self, view: AgentObservation, cut: Shown, controls: Sequence[str], shown: Sequence[Picture]
    ) -> tuple[Message, Message]:
        """``errors`` by the number of the step whose action they followed."""
        errors = {
            number: step.observation.page_error
            for number, step in enumerate(self._steps)
            if step.observation.page_error
        }
        text = self._prompt.render(
            "user",
            goal=cut.goal,
            steps=cut.steps[:-1],
            head=cut.head,
            elided=cut.elided,
            errors=errors,
            error=view.observation.page_error,
            url=view.observation.url,
            title=view.title,
            focused=view.focused,
            axtree=cut.axtree,
            controls=controls,
            pictured=bool(shown),
        )
        parts = (Text(text=text), *shown)
        return (
            Message(role="system", parts=(Text(text=self._instructions),)),
            Message(role="user", parts=parts),
        )


def parse_reply(text: str) -> ParsedReply:
    """Return the last action of a reply and the reasoning beside it; half a tag at the end, where
    the reply was cut off, still counts."""
    answer = without_thoughts(text)
    actions = list(_ACTION.finditer(answer))
    if not actions:
        return ParsedReply("", answer.strip()[:MAX_THOUGHT])
    thought = _THOUGHT.search(answer)
    reasoning = thought[1] if thought else answer[: actions[-1].start()]
    action = _FENCE.sub("", actions[-1][1].strip())
    return ParsedReply(action, reasoning.strip()[:MAX_THOUGHT])


def _is_action(text: str) -> bool:
    try:
        parse(text)
    except BadAction:
        return False
    return True


def _said(parameter: Parameter) -> str:
    return parameter.name if parameter.required else f"[{parameter.name}]"


def _controls(view: AgentObservation) -> list[str]:
    """Return what can be acted on: a picture alone does not tell how to name it."""
    return [f"[{e.bid}] {e.role} {e.name!r}" for e in view.elements[:MAX_CONTROLS]]
