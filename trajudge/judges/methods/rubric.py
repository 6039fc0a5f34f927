"""A rubric judge of our own design: criteria written before the run is seen, then graded on it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from pydantic import Field

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
    ParseFailure,
    error_context,
    flag,
    gather_bounded,
    number_in,
    parse_complete_reply,
    parse_json,
    parse_reply,
)
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import ALL, Needs
from trajudge.trajectories.truncate import TruncatedView, cut_middle

_MOST_CRITERIA = 10

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


def parse_criteria(text: str) -> list[Criterion]:
    """Parse 1 to 10 criteria. Raises ParseFailure."""
    entries = parse_json(text, ["criteria"]).fields["criteria"]
    if not isinstance(entries, list) or not 1 <= len(entries) <= _MOST_CRITERIA:
        raise ParseFailure(f"the reply holds no list of 1 to {_MOST_CRITERIA} criteria")
    criteria = []
    for number, entry in enumerate(entries, start=1):
        fields = _entry(entry, f"criterion {number}", ("criterion", "critical"))
        wording = str(fields["criterion"]).strip()[:_LONGEST_CRITERION]
        if not wording:
            raise ParseFailure(f"criterion {number} is empty")
        criteria.append(Criterion(number, wording, flag(fields, "critical")))
    return criteria


def parse_relevance(text: str, count: int) -> list[float]:
    """Parse one grade from 0 to 10 for each of ``count`` criteria. Raises ParseFailure."""
    grades = parse_json(text, ["relevance"]).fields["relevance"]
    if not isinstance(grades, list) or len(grades) != count:
        raise ParseFailure(f"the reply holds no list of {count} grades")
    return [number_in({"relevance": grade}, "relevance", 0, 10) for grade in grades]


def parse_findings(text: str, criteria: Sequence[Criterion], steps: int) -> Verdict:
    """Parse the verdict of a run of ``steps`` steps.

    Success is the reply's own outcome, unless a critical criterion fails; the process score is
    the mean of the criteria's scores. Raises ParseFailure if a criterion has no finding or two,
    or if a step is cited that does not exist.
    """
    parsed = parse_json(text, ["findings", "outcome", "side_effect"])
    scores: dict[int, float] = {}
    entries = parsed.fields["findings"]
    for entry in entries if isinstance(entries, list) else []:
        fields = _entry(entry, "a finding", ("criterion", "score", "steps"))
        number = fields["criterion"]
        known = isinstance(number, int) and number in {c.number for c in criteria}
        if not known or number in scores:
            raise ParseFailure(f"criterion {str(number)[:20]} has two findings, or does not exist")
        _check_steps(fields["steps"], steps)
        scores[number] = number_in(fields, "score", 0, 1)
    if len(scores) != len(criteria):
        raise ParseFailure(f"{len(scores)} of {len(criteria)} criteria have a finding")
    _check_steps(parsed.fields.get("side_effect_steps", []), steps)
    failed = [c.number for c in criteria if c.critical and scores[c.number] < 0.5]
    outcome = flag(parsed.fields, "outcome")
    reasoning = str(parsed.fields.get("reasoning", ""))
    if outcome and failed:
        reasoning += f" [critical criteria failed: {', '.join(map(str, failed))}]"
    return Verdict(
        success=outcome and not failed,
        side_effect=flag(parsed.fields, "side_effect"),
        scores={"process": sum(scores.values()) / len(scores), "outcome": float(outcome)},
        reasoning=reasoning.strip(),
        fallback=parsed.fallback,
    )


def _entry(entry: object, name: str, fields: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(entry, dict) or not set(fields) <= entry.keys():
        raise ParseFailure(f"{name} lacks one of {', '.join(fields)}")
    return entry


def _check_steps(cited: object, steps: int) -> None:
    """Check that the evidence names steps that exist, or none."""
    if not isinstance(cited, list):
        raise ParseFailure("the steps of a finding are no list")
    for number in cited:
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= steps:
            raise ParseFailure(f"step {str(number)[:20]} is cited, and the run has {steps} steps")


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
            reply = await ask(messages, stage="criteria", rung=rung, assume=ASSUMED_CRITERIA)
            return parse_complete_reply(reply, parse_criteria)

    async def _grades(
        self, goal: str, criteria: Sequence[Criterion], shot: Shot, ask: Model
    ) -> list[float]:
        text = self._prompt.render("relevance_user", goal=goal, criteria=criteria)
        shown = picture(shot.image, self._options.images)
        messages = conversation(self._prompt.render("relevance"), [Text(text=text), shown])
        with error_context(f"screenshot of step {shot.number}"):
            assumed = assumed_relevance(len(criteria))
            reply = await ask(messages, stage="relevance", assume=assumed)
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
