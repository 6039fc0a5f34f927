"""From the events of a conversation to steps: what the agent saw before each turn, and its calls.

One turn with calls is one step; its observation is what came in since the turn before: the last
picture, the texts of tools (and of the user), the errors. A last step without action holds what
came in after the last call. The last turn without a call is the answer; an earlier one is
reasoning of the step after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from trajudge.trajectories.loaders.files import text
from trajudge.trajectories.loaders.messages.reading import (
    AgentCall,
    AgentTurn,
    CallResult,
    Event,
    UserMessage,
)
from trajudge.trajectories.model import ImageRef, Observation, Step

_FINISHING = {"done", "finish", "submit", "terminate", "answer"}
_ANSWER_FIELDS = ("text", "answer", "result")
# What programs write in place of pictures that they cut out of long conversations.
_REMOVED = re.compile(
    r"\[\s*(?:image|screenshot)s?\s+(?:removed|omitted|pruned|cleared)[^\]]*\]", re.I
)


class Course(NamedTuple):
    """The steps of a run and how it ended; ``telemetry`` counts the steps with an action and the
    tools' errors."""

    steps: tuple[Step, ...]
    answer: str | None
    terminated: bool
    truncated: bool
    telemetry: dict[str, float]


def course_of(events: Sequence[Event], goals: Collection[str], warnings: list[str]) -> Course:
    """Return the course of a conversation. ``goals`` are texts of the user that say the task and
    are no observation, however often they are repeated."""
    turns = [event for event in events if isinstance(event, AgentTurn)]
    last = turns[-1] if turns else None
    walk = _Walk(goals, warnings)
    for event in events:
        if isinstance(event, AgentTurn):
            walk.take_turn(event, is_last=event is last)
        elif isinstance(event, CallResult):
            walk.results.append(event)
        else:
            walk.messages.append(event)
    walk.close()
    finishing = last.calls[-1] if last and last.calls else None
    finished = finishing is not None and finishing.name.lower() in _FINISHING
    answer = _last_words(finishing) if finishing else "\n".join(last.texts if last else ())
    return Course(
        steps=tuple(walk.steps),
        answer=text(answer),
        terminated=finished or text(answer) is not None,
        truncated=finishing is not None and not finished,
        telemetry={
            "n_steps": float(sum(step.action is not None for step in walk.steps)),
            "n_err": float(walk.errors),
        },
    )


def _last_words(call: AgentCall) -> str | None:
    """Return the answer that a finishing call gives, as JSON if it is no text; None for any other
    call."""
    if call.name.lower() not in _FINISHING:
        return None
    values = [call.fields[name] for name in _ANSWER_FIELDS if call.fields.get(name) is not None]
    words = next((value for value in values if isinstance(value, str)), None)
    return json.dumps(values[0], ensure_ascii=False) if values and words is None else words


class _Walk:
    """Goes through a conversation with what came in since the last step."""

    def __init__(self, goals: Collection[str], warnings: list[str]) -> None:
        self.steps: list[Step] = []
        self.results: list[CallResult] = []
        self.messages: list[UserMessage] = []
        self.errors = 0
        self._reasoning: list[str] = []
        self._calls: dict[str, AgentCall] = {}
        self._waiting: list[AgentCall] = []
        self._goals = {goal.strip() for goal in goals}
        self._warnings = warnings

    def take_turn(self, turn: AgentTurn, *, is_last: bool) -> None:
        """Make a step of a turn with calls; keep the words of one without for the next step."""
        self._reasoning += turn.thoughts
        if turn.calls or not is_last:
            self._reasoning += turn.texts
        if turn.calls:
            self._add_step("\n".join(call.text for call in turn.calls))
            self._waiting = [call for call in turn.calls if call.id]
            self._calls |= {call.id: call for call in self._waiting}

    def close(self) -> None:
        """Add the last step, if anything was seen or thought after the last call."""
        if self.results or self.messages or self._reasoning or not self.steps:
            self._add_step(None)
        elif self._waiting:
            self._check_answered(())

    def _add_step(self, action: str | None) -> None:
        step = Step(
            index=len(self.steps),
            observation=self._observe(),
            reasoning="\n".join(self._reasoning) or None,
            action=action,
        )
        self.steps.append(step)
        self._reasoning = []

    def _observe(self) -> Observation:
        """Return what came in since the last step, the results in the order of their calls."""
        order = {call.id: place for place, call in enumerate(self._waiting)}
        results = sorted(self.results, key=lambda result: order.get(result.call_id, len(order)))
        self._check_answered(results)
        pages: list[str] = []
        errors: list[str] = []
        images: list[ImageRef] = []
        for result in results:
            self._take_result(result, pages, errors, images)
        for message in self.messages:
            pages += (one for one in message.texts if one.strip() not in self._goals)
            images += message.images
        self.results, self.messages, self._waiting = [], [], []
        self.errors += len(errors)
        kept = [page for page in pages if not _REMOVED.fullmatch(page.strip())]
        if len(kept) < len(pages) and not images:
            images.append(ImageRef(problem="the picture was removed before the run was recorded"))
            self._warnings.append(f"The picture of step {len(self.steps) + 1} was removed.")
        return Observation(
            url=next((result.url for result in reversed(results) if result.url), None),
            axtree="\n".join(kept) or None,
            screenshot=images[-1] if images else None,
            page_error="\n".join(errors) or None,
        )

    def _take_result(
        self, result: CallResult, pages: list[str], errors: list[str], images: list[ImageRef]
    ) -> None:
        call = self._calls.get(result.call_id)
        if call is None:
            self._warnings.append(f"A result names no call: {result.call_id[:80]!r}.")
        images += result.images
        words = "\n".join(result.texts)
        if result.is_error or words.lstrip().lower().startswith("error"):
            errors.append(words or "the tool gave an error without words")
        elif call is None or not call.is_computer:
            pages += result.texts
        else:
            pages += (one for one in result.texts if _REMOVED.fullmatch(one.strip()))

    def _check_answered(self, results: Sequence[CallResult]) -> None:
        answered = {result.call_id for result in results}
        for call in self._waiting:
            if call.id not in answered:
                self._warnings.append(f"A call of {call.name} has no result.")
