"""A rubric judge of our own design: criteria written before the run is seen, screenshots chosen by
criterion, evidence whose steps are checked, a critical one decides. The first two are ideas of the
Universal Verifier, the rest is not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from pydantic import Field

from trajudge.judges.methods.rubric_replies import (
    ASSUMED_CRITERIA,
    Criterion,
    assumed_relevance,
    parse_criteria,
    parse_findings,
    parse_relevance,
)
from trajudge.judges.model import Message, ModelClient, Picture, Text, Verdict
from trajudge.judges.prompting import truncated_prompts
from trajudge.judges.prompting.pictures import ImageLimits, picture
from trajudge.judges.prompting.screenshots import Shot, first_that_fit, recorded
from trajudge.judges.replies import (
    error_context,
    gather_bounded,
    parse_complete_reply,
    parse_reply,
)
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import ALL, Needs
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.truncation import PromptTruncator, TruncatedView, cut_middle

_PICTURES_SHARE = 0.75


class RubricOptions(Record):
    """For every criterion the ``per_criterion`` most relevant screenshots are shown."""

    representation: Literal["screenshot", "none"] = "screenshot"
    per_criterion: int = Field(default=2, ge=1, le=10)
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()

    @property
    def needs(self) -> Needs:
        """Every screenshot is scored for every criterion."""
        if self.representation == "none":
            return Needs(answer=True)
        return Needs(screenshots=ALL, answer=True, requires=("screenshot",))


class Rubric:
    """Three calls deep: criteria, all screenshots at once, the verdict."""

    def __init__(self, options: RubricOptions) -> None:
        self._options = options
        self._prompt = load_prompt("rubric")
        shows = options.representation == "screenshot"
        self._system = self._prompt.render("system", screenshots=shows)
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        shows_screenshots = self._options.representation == "screenshot"
        shots = recorded(trajectory) if shows_screenshots else []
        goal = cut_middle(trajectory.goal, self._options.max_prompt_tokens // 4)
        criteria = await self._criteria(
            goal, ask, truncated_prompts.cut_or_full(trajectory.goal, goal)
        )
        grades = await gather_bounded(
            [partial(self._grades, goal, criteria, s, ask) for s in shots]
        )
        best = most_relevant(shots, grades, self._options.per_criterion)
        return await self._verdict(trajectory, criteria, best, ask)

    async def _criteria(self, goal: str, ask: ModelClient, rung: str) -> list[Criterion]:
        """Ask for criteria from the goal alone, so that one call serves all runs of a task."""
        user = Text(text=self._prompt.render("criteria_user", goal=goal))
        messages = truncated_prompts.conversation(self._prompt.render("criteria"), [user])
        with error_context("criteria"):
            reply = await ask(messages, stage="criteria", rung=rung, assume=ASSUMED_CRITERIA)
            return parse_complete_reply(reply, parse_criteria)

    async def _grades(
        self, goal: str, criteria: Sequence[Criterion], shot: Shot, ask: ModelClient
    ) -> list[float]:
        text = self._prompt.render("relevance_user", goal=goal, criteria=criteria)
        shown = picture(shot.image, self._options.images)
        messages = truncated_prompts.conversation(
            self._prompt.render("relevance"), [Text(text=text), shown]
        )
        with error_context(f"screenshot of step {shot.number}"):
            assumed = assumed_relevance(len(criteria))
            reply = await ask(messages, stage="relevance", assume=assumed)
            return parse_reply(reply, partial(parse_relevance, count=len(criteria)))

    async def _verdict(
        self,
        trajectory: Trajectory,
        criteria: Sequence[Criterion],
        best: Sequence[Shot],
        ask: ModelClient,
    ) -> Verdict:
        truncator, limits = PromptTruncator(trajectory, Representation.NONE), self._options.images

        def messages(
            view: TruncatedView, shown: Sequence[Shot], pictures: Sequence[Picture]
        ) -> list[Message]:
            values: dict[str, Any] = {"criteria": criteria, "shots": [s.number for s in shown]}
            text = self._prompt.render(
                "user", **values, **truncated_prompts.template_variables(view)
            )
            return truncated_prompts.conversation(self._system, [*pictures, Text(text=text)])

        bare = truncated_prompts.prompt_tokens(messages(truncated_prompts.EMPTY_VIEW, (), ()))

        def make(budget: int) -> truncated_prompts.TruncatedPrompt | None:
            share = int((budget - bare) * _PICTURES_SHARE)
            loaded = first_that_fit([shot.image for shot in best], share, limits)
            kept = sorted(zip(best, loaded, strict=False), key=lambda pair: pair[0].number)
            complete = len(kept) == len(best)
            return truncated_prompts.around_pictures(
                truncator, messages, kept, budget, limits, complete=complete
            )

        reply = await truncated_prompts.ask_with_truncation(
            ask, make, limit=self._options.max_prompt_tokens, images=limits
        )
        parse = partial(parse_findings, criteria=criteria, steps=len(trajectory.steps))
        return parse_reply(reply, parse)


def most_relevant(
    shots: Sequence[Shot], grades: Sequence[Sequence[float]], each: int
) -> list[Shot]:
    """Choose the best ``each`` screenshots of every criterion, later ones first among equals.

    All best ones come first, then all second ones, so that the least relevant are left out when
    room is short.
    """
    chosen: list[Shot] = []
    by_criterion = [
        sorted(zip(column, shots, strict=True), key=lambda pair: (-pair[0], -pair[1].number))
        for column in zip(*grades, strict=True)
    ]
    for rank in range(each):
        for ranked in by_criterion:
            if rank < len(ranked) and ranked[rank][1] not in chosen:
                chosen.append(ranked[rank][1])
    return chosen
