"""The stages that score and decide: points with the screenshots seen, side effects, the outcome,
the violation of a critical point."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from trajudge.judges.methods.universal_verifier.attempts import (
    StageFailure,
    StagePrompt,
    StageRunner,
)
from trajudge.judges.methods.universal_verifier.replies import assumed
from trajudge.judges.methods.universal_verifier.replies.evidence import in_order_of_time
from trajudge.judges.methods.universal_verifier.replies.verdict import (
    OutcomeVerdict,
    ViolationVerdict,
    baseline_kept,
    parse_outcome,
    parse_rescore,
    parse_side_effects,
    parse_violation,
)
from trajudge.judges.methods.universal_verifier.rubric_items import (
    RubricItem,
    baseline_totals,
    totals,
)
from trajudge.judges.methods.universal_verifier.stages.evidence import EvidenceByCriterion, Sighted
from trajudge.judges.methods.universal_verifier.stages.questions import Questions
from trajudge.judges.methods.universal_verifier.votes import majority, median_index

Items = tuple[RubricItem, ...]


class Scored(NamedTuple):
    """The scorings of a run, one for each vote, and the index of the median one."""

    instances: tuple[Items, ...]
    median: int

    @property
    def items(self) -> Items:
        """The scoring that counts."""
        return self.instances[self.median]

    @property
    def scores(self) -> list[float]:
        """The process score of every scoring."""
        return [totals(items).score for items in self.instances]


class Decided(NamedTuple):
    """The votes on the outcome (None: no usable reply), and the violation."""

    votes: tuple[OutcomeVerdict | None, ...]
    violation: ViolationVerdict | None

    @property
    def outcome(self) -> bool | None:
        """What the votes come to."""
        return majority([None if vote is None else vote.output_success for vote in self.votes])

    @property
    def speaker(self) -> OutcomeVerdict | None:
        """The first vote that agrees with the outcome."""
        agreeing = (v for v in self.votes if v is not None and v.output_success == self.outcome)
        return next(agreeing, None)


async def score(runner: StageRunner, questions: Questions, sighted: Sighted) -> Scored:
    """Score the items with the evidence and look for side effects, once for each vote. Raises
    CallFailed and ParseFailure."""
    items = sighted.items
    votes = range(runner.options.votes)
    in_time = in_order_of_time(sighted.evidence)
    rescore = StagePrompt(
        stage="rescore",
        messages=questions.asked("rescore", {"items": items, "evidence": in_time}),
        parse=partial(parse_rescore, items=items),
        assume=assumed.rescore(items),
    )
    outcomes = await runner.run([_vote(rescore, vote) for vote in votes])
    kept = tuple(map(baseline_kept, items))
    rescored = [runner.settle("rescore", one, kept, lenient=False) for one in outcomes]
    effects = [_side_effects(questions, one, sighted.evidence) for one in rescored]
    replies = await runner.run([_vote(one, vote) for vote, one in enumerate(effects)])
    instances = tuple(
        scored + runner.settle("side_effects", one, (), lenient=False)
        for scored, one in zip(rescored, replies, strict=True)
    )
    return Scored(instances, median_index([totals(one).score for one in instances]))


def _side_effects(
    questions: Questions, items: Items, evidence: EvidenceByCriterion
) -> StagePrompt[Items]:
    values = {"items": items, "evidence": evidence, "printed": baseline_totals(items)}
    return StagePrompt(
        stage="side_effects",
        messages=questions.asked("side_effects", values),
        parse=parse_side_effects,
        assume=assumed.SIDE_EFFECTS,
    )


def _vote(question: StagePrompt[Items], vote: int) -> StagePrompt[Items]:
    """Tell equal questions of several votes apart by their seed."""
    if not vote:
        return question
    return StagePrompt(**{**vars(question), "seed": vote})


async def decide(
    runner: StageRunner, questions: Questions, items: Sequence[RubricItem], sighted: Sighted
) -> Decided:
    """Ask for the outcome, once for each vote, and beside it for a violation. Raises CallFailed."""
    options = runner.options
    values = {
        "items": items,
        "evidence": in_order_of_time(sighted.evidence),
        "totals": totals(items),
    }
    prompts: list[StagePrompt[OutcomeVerdict | ViolationVerdict]] = [
        StagePrompt(
            stage="outcome",
            messages=questions.asked("outcome", values),
            parse=parse_outcome,
            assume=assumed.OUTCOME,
            seed=vote or None,
        )
        for vote in range(options.votes)
    ]
    if options.critical_points == "classified":
        prompts.append(
            StagePrompt(
                stage="violation",
                messages=questions.asked("violation", values),
                parse=parse_violation,
                assume=assumed.VIOLATION,
            )
        )
    outcomes = await runner.run(prompts)
    votes = [_given(runner, "outcome", one) for one in outcomes[: options.votes]]
    rest = [_given(runner, "violation", one) for one in outcomes[options.votes :]]
    return Decided(
        tuple(vote if isinstance(vote, OutcomeVerdict) else None for vote in votes),
        next((one for one in rest if isinstance(one, ViolationVerdict)), None),
    )


def _given(
    runner: StageRunner,
    stage: str,
    outcome: OutcomeVerdict | ViolationVerdict | StageFailure,
) -> OutcomeVerdict | ViolationVerdict | None:
    return runner.settle(stage, outcome, None, lenient=True)
