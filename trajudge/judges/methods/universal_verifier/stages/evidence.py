"""The stages that look at screenshots: relevance, evidence, conditions, notes on the facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from trajudge.judges.methods.universal_verifier.attempts import (
    StageFailure,
    StagePrompt,
    StageRunner,
)
from trajudge.judges.methods.universal_verifier.replies import assumed
from trajudge.judges.methods.universal_verifier.replies.evidence import (
    Evidence,
    any_screenshot,
    in_order_of_time,
    parse_conditions,
    parse_evidence,
    parse_reality,
    parse_relevance,
)
from trajudge.judges.methods.universal_verifier.rubric_items import RubricItem, conditional
from trajudge.judges.methods.universal_verifier.selection import (
    by_screenshot,
    ranked_screenshots,
    relevant_only,
)
from trajudge.judges.methods.universal_verifier.stages.questions import Questions
from trajudge.judges.prompting.screenshots import Shot

Items = tuple[RubricItem, ...]
EvidenceByCriterion = dict[int, list[Evidence]]
_NOTHING = "This screenshot could not be analysed."


class Sighted(NamedTuple):
    """What the screenshots gave: relevance (screenshots x criteria), the ranking, the evidence of
    every criterion (best screenshot first), the items with flags and notes."""

    relevance: list[list[int]]
    ranked: dict[int, list[int]]
    evidence: EvidenceByCriterion
    items: Items


async def look(
    runner: StageRunner, questions: Questions, items: Items, shots: Sequence[Shot]
) -> Sighted:
    """Choose screenshots by criterion, describe them, settle conditions, note the facts. Raises
    CallFailed, ParseFailure and ImageUnreadable."""
    relevance = await _relevance(runner, questions, items, shots)
    ranked = ranked_screenshots(relevance, runner.options.per_criterion)
    chosen = relevant_only(ranked, relevance) if runner.options.filter else ranked
    evidence = await _evidence(runner, questions, items, shots, chosen)
    items = await _conditions(runner, questions, items, evidence)
    notes = await _reality(runner, questions, items, evidence)
    noted = (
        item.model_copy(update={"reality_notes": note})
        for item, note in zip(items, notes, strict=True)
    )
    return Sighted(relevance, ranked, evidence, tuple(noted))


async def _relevance(
    runner: StageRunner, questions: Questions, items: Items, shots: Sequence[Shot]
) -> list[list[int]]:
    prompts = [
        StagePrompt(
            stage="relevance",
            messages=questions.asked("relevance", {"items": items}, shot),
            parse=partial(parse_relevance, count=len(items)),
            assume=assumed.relevance(index, len(shots), len(items)),
            part=f"relevance of the screenshot of step {shot.number}",
        )
        for index, shot in enumerate(shots)
    ]
    outcomes = await runner.run(prompts)
    nothing = [0] * len(items)
    return [runner.settle("relevance", one, nothing, lenient=False) for one in outcomes]


async def _evidence(
    runner: StageRunner,
    questions: Questions,
    items: Items,
    shots: Sequence[Shot],
    chosen: Mapping[int, Sequence[int]],
) -> EvidenceByCriterion:
    """Ask about every distinct screenshot, then by pair where that failed."""

    def question(shot: int, criteria: Sequence[int]) -> StagePrompt[dict[int, Evidence]]:
        values = {
            "criteria": [(criterion, items[criterion]) for criterion in criteria],
            "number": shot + 1,
            "count": len(shots),
        }
        return StagePrompt(
            stage="evidence",
            messages=questions.asked("evidence", values, shots[shot]),
            parse=partial(parse_evidence, shot=shot, criteria=criteria, items=items),
            assume=assumed.evidence(criteria, items),
            part=f"evidence in the screenshot of step {shots[shot].number}",
        )

    inverted = by_screenshot(chosen)
    outcomes = await runner.run([question(shot, inverted[shot]) for shot in inverted])
    seen: dict[int, dict[int, Evidence]] = {shot: {} for shot in inverted}
    singles: list[tuple[int, int]] = []
    for (shot, criteria), outcome in zip(inverted.items(), outcomes, strict=True):
        if isinstance(outcome, StageFailure) and len(criteria) > 1:
            singles += [(shot, criterion) for criterion in criteria]
        else:
            seen[shot] = runner.settle("evidence", outcome, _nothing(shot, criteria), lenient=False)
    pairs = await runner.run([question(shot, [criterion]) for shot, criterion in singles])
    for (shot, criterion), outcome in zip(singles, pairs, strict=True):
        nothing = _nothing(shot, [criterion])
        seen[shot] |= runner.settle("evidence", outcome, nothing, lenient=False)
    return {
        criterion: [seen[shot][criterion] for shot in chosen[criterion]] for criterion in chosen
    }


def _nothing(shot: int, criteria: Sequence[int]) -> dict[int, Evidence]:
    return {criterion: _placeholder(shot) for criterion in criteria}


def _placeholder(shot: int) -> Evidence:
    return Evidence(
        screenshot=shot,
        screenshot_evidence=_NOTHING,
        criterion_analysis=_NOTHING,
        discrepancies=_NOTHING,
        environment_issues_confirmed=False,
    )


async def _conditions(
    runner: StageRunner, questions: Questions, items: Items, evidence: EvidenceByCriterion
) -> Items:
    """Set the condition flags: by a call where there are two conditions or more, else by what the
    screenshots said, else as they were."""
    indices = conditional(items)
    flags = {index: any_screenshot(evidence.get(index, ())) for index in indices}
    met = {index: flag for index, flag in flags.items() if flag is not None}
    if len(indices) > 1:
        values = {
            "criteria": [(index, items[index]) for index in indices],
            "evidence": in_order_of_time(evidence),
        }
        question = StagePrompt(
            stage="conditions",
            messages=questions.asked("conditions", values),
            parse=partial(parse_conditions, indices=indices, items=items),
            assume=assumed.conditions(indices, items),
        )
        outcome = await runner.one(question)
        met = runner.settle("conditions", outcome, met, lenient=False)
    return tuple(
        item.model_copy(update={"is_condition_met": met[index]}) if index in met else item
        for index, item in enumerate(items)
    )


async def _reality(
    runner: StageRunner, questions: Questions, items: Items, evidence: EvidenceByCriterion
) -> list[str]:
    question = StagePrompt(
        stage="reality",
        messages=questions.asked(
            "reality", {"items": items, "evidence": in_order_of_time(evidence)}
        ),
        parse=partial(parse_reality, count=len(items)),
        assume=assumed.reality(len(items)),
    )
    outcome = await runner.one(question)
    return runner.settle("reality", outcome, [""] * len(items), lenient=False)
