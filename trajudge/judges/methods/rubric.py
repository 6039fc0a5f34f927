"""A rubric judge of our own design: criteria written before the run is seen, then graded on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, StringConstraints

from trajudge.judges.answers import AnswerOptions
from trajudge.judges.model import Message, Model, Picture, Text, Verdict
from trajudge.judges.prompting import (
    ImageLimits,
    Shot,
    ask_about_pictures,
    conversation,
    cut_or_full,
    picture,
    recorded,
    template_variables,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import (
    AnyText,
    ParseFailure,
    ReplyFields,
    error_context,
    gather_bounded,
    parse_complete_reply,
    parse_fields,
    parse_reply,
)
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import ALL, Needs
from trajudge.trajectories.truncate import TruncatedView, cut_middle

_LONGEST_CRITERION = 500


class Criterion(NamedTuple):
    """What must hold for the task; ``number`` from 1. A critical one that fails decides."""

    number: int
    text: str
    critical: bool


ASSUMED_CRITERIA = json.dumps(
    {
        "criteria": [
            {"criterion": "The result fulfils this condition of the task.", "critical": True}
        ]
        * 4
    }
)


def assumed_relevance(count: int) -> str:
    """Return the reply about one screenshot that a dry run assumes."""
    return json.dumps({"relevance": [5] * count})


class _WrittenCriterion(ReplyFields):
    criterion: Annotated[AnyText, StringConstraints(strip_whitespace=True, min_length=1)]
    critical: bool


class _Criteria(ReplyFields):
    criteria: list[_WrittenCriterion] = Field(min_length=1, max_length=10)


class _Relevance(ReplyFields):
    relevance: list[Annotated[float, Field(ge=0, le=10)]]


class _Finding(ReplyFields):
    order: ClassVar = ("criterion", "steps", "score")
    criterion: int
    score: float = Field(ge=0, le=1)
    steps: list[int]


class _Findings(ReplyFields):
    order: ClassVar = ("reasoning", "findings", "side_effect_steps", "side_effect", "outcome")
    findings: list[_Finding]
    outcome: bool
    side_effect: bool
    side_effect_steps: list[int] = Field(default_factory=list)
    reasoning: AnyText = ""


def parse_criteria(text: str) -> list[Criterion]:
    """Parse 1 to 10 criteria, each cut at 500 characters. Raises ParseFailure."""
    written, _ = parse_fields(_Criteria, text)
    return [
        Criterion(number, entry.criterion[:_LONGEST_CRITERION], entry.critical)
        for number, entry in enumerate(written.criteria, start=1)
    ]


def parse_relevance(text: str, count: int) -> list[float]:
    """Parse one grade from 0 to 10 for each of ``count`` criteria. Raises ParseFailure."""
    grades = parse_fields(_Relevance, text)[0].relevance
    if len(grades) != count:
        raise ParseFailure(f"the reply gives {len(grades)} grades for {count} criteria")
    return grades


def parse_findings(text: str, criteria: Sequence[Criterion], steps: int) -> Verdict:
    """Parse the verdict of a run of ``steps`` steps.

    Success is the reply's own outcome, unless a critical criterion fails; the process score is
    the mean of the criteria's scores. Raises ParseFailure if a criterion has no finding or two,
    or if a step is cited that does not exist.
    """
    parsed, fallback = parse_fields(_Findings, text)
    numbers = sorted(finding.criterion for finding in parsed.findings)
    if numbers != list(range(1, len(criteria) + 1)):
        raise ParseFailure(f"the findings are not one for each of {len(criteria)} criteria")
    for number in chain(parsed.side_effect_steps, *(f.steps for f in parsed.findings)):
        if not 1 <= number <= steps:
            raise ParseFailure(f"step {str(number)[:20]} is cited, and the run has {steps} steps")
    scores = {finding.criterion: finding.score for finding in parsed.findings}
    failed = [c.number for c in criteria if c.critical and scores[c.number] < 0.5]
    reasoning = parsed.reasoning
    if parsed.outcome and failed:
        reasoning += f" [critical criteria failed: {', '.join(map(str, failed))}]"
    return Verdict(
        success=parsed.outcome and not failed,
        side_effect=parsed.side_effect,
        scores={
            "process_score": sum(scores.values()) / len(scores),
            "outcome": float(parsed.outcome),
        },
        reasoning=reasoning.strip(),
        fallback=fallback,
    )


_PICTURES_SHARE = 0.75


class RubricOptions(AnswerOptions):
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


@register_judge(
    "rubric",
    RubricOptions,
    summary="own design: criteria before the run is seen, steps cited",
    id_options=("representation", "per_criterion"),
    representations=("screenshot", "none"),
)
class Rubric:
    """Three calls deep: criteria, all screenshots at once, the verdict."""

    def __init__(self, options: RubricOptions) -> None:
        self._options = options
        self._prompt = load_prompt("rubric")
        shows = options.representation == "screenshot"
        self._system = self._prompt.render("system", screenshots=shows)
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        shows_screenshots = self._options.representation == "screenshot"
        shots = recorded(trajectory) if shows_screenshots else []
        goal = cut_middle(trajectory.goal, self._options.max_prompt_tokens // 4)
        criteria = await self._criteria(goal, ask, cut_or_full(trajectory.goal, goal))
        grades = await gather_bounded(
            [partial(self._grades, goal, criteria, s, ask) for s in shots]
        )
        best = most_relevant(shots, grades, self._options.per_criterion)
        return await self._verdict(trajectory, criteria, best, ask)

    async def _criteria(self, goal: str, ask: Model, rung: str) -> list[Criterion]:
        """Ask for criteria from the goal alone, so that one call serves all runs of a task."""
        user = Text(text=self._prompt.render("criteria_user", goal=goal))
        messages = conversation(self._prompt.render("criteria"), [user])
        with error_context("criteria"):
            form = self._options.answer_format(_Criteria)
            reply = await ask(
                messages, stage="criteria", rung=rung, assume=ASSUMED_CRITERIA, **form
            )
            return parse_complete_reply(reply, parse_criteria)

    async def _grades(
        self, goal: str, criteria: Sequence[Criterion], shot: Shot, ask: Model
    ) -> list[float]:
        text = self._prompt.render("relevance_user", goal=goal, criteria=criteria)
        shown = await picture(shot.image, self._options.images)
        messages = conversation(self._prompt.render("relevance"), [Text(text=text), shown])
        with error_context(f"screenshot of step {shot.number}"):
            assumed = assumed_relevance(len(criteria))
            form = self._options.answer_format(_Relevance)
            reply = await ask(messages, stage="relevance", assume=assumed, **form)
            return parse_reply(reply, partial(parse_relevance, count=len(criteria)))

    async def _verdict(
        self,
        trajectory: Trajectory,
        criteria: Sequence[Criterion],
        best: Sequence[Shot],
        ask: Model,
    ) -> Verdict:
        options = self._options

        def messages(
            view: TruncatedView, shown: Sequence[Shot], pictures: Sequence[Picture]
        ) -> list[Message]:
            values: dict[str, Any] = {"criteria": criteria, "shots": [s.number for s in shown]}
            text = self._prompt.render("user", **values, **template_variables(view))
            return conversation(self._system, [*pictures, Text(text=text)])

        reply = await ask_about_pictures(
            ask,
            trajectory,
            best,
            messages,
            shot_of=lambda shot: shot,
            share=_PICTURES_SHARE,
            limit=options.max_prompt_tokens,
            images=options.images,
            **options.answer_format(_Findings),
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
