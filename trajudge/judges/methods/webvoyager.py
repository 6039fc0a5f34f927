"""WebVoyager's evaluator (He et al., 2024): the task, the answer and the last screenshots."""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import Field

from trajudge.judges.answers import STATUS, AnswerOptions, parse_status
from trajudge.judges.model import Message, Model, Picture, Text, Verdict
from trajudge.judges.prompting import (
    ImageLimits,
    TruncatedPrompt,
    ask_with_truncation,
    conversation,
    cut_or_full,
    first_that_fit,
    prompt_tokens,
    recorded,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import parse_reply
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.trajectories.truncate import cut_middle

UNANSWERED = "The agent told the user nothing; no model was asked."


class WebVoyagerOptions(AnswerOptions):
    """``screenshots``: at most so many of the last ones are shown. ``unanswered``: a run that told
    the user nothing is judged all the same, or is a failure without a call, as in the source."""

    screenshots: int = Field(default=15, ge=1)
    unanswered: Literal["ask", "failure"] = "ask"
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()

    @property
    def needs(self) -> Needs:
        """A short run has fewer than ``screenshots``."""
        return Needs(screenshots=last(self.screenshots), answer=True, requires=("screenshot",))


@register_judge(
    "webvoyager",
    WebVoyagerOptions,
    summary="the task, the answer and the last screenshots (WebVoyager)",
    id_options=("screenshots", "unanswered"),
    representations=("screenshot",),
    pictures="judge",
)
class WebVoyager:
    """One call; the earliest screenshots are left out where they do not fit."""

    def __init__(self, options: WebVoyagerOptions) -> None:
        self._options = options
        self._prompt = load_prompt("webvoyager")
        self._system = self._prompt.render("system", answer=options.form)
        self._closing = Text(text=self._prompt.render("closing"))
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        if self._options.unanswered == "failure" and not (trajectory.answer or "").strip():
            return Verdict(success=False, reasoning=UNANSWERED)
        limit, limits = self._options.max_prompt_tokens, self._options.images
        shots = recorded(trajectory)
        latest = [shot.image for shot in reversed(shots)][: self._options.screenshots]

        def messages(pictures: list[Picture], answer: str | None) -> list[Message]:
            text = self._prompt.render(
                "user",
                goal=trajectory.goal,
                answer=answer,
                shown=len(pictures),
                recorded=len(shots),
            )
            return conversation(self._system, [Text(text=text), *pictures, self._closing])

        def make(budget: int) -> TruncatedPrompt | None:
            answer = trajectory.answer and cut_middle(trajectory.answer, budget // 4)
            around = prompt_tokens(messages([], answer))
            shown = first_that_fit(latest, budget - around, limits)
            if not shown:
                return None
            rung = cut_or_full(trajectory.answer, answer)
            if len(shown) < len(latest):
                rung = "fewer"
            return TruncatedPrompt(rung, messages(shown[::-1], answer))

        form = self._options.answer_format(STATUS)
        reply = await ask_with_truncation(ask, make, limit=limit, images=limits, **form)
        return parse_reply(reply, partial(parse_status, form=self._options.form))
