"""The stages before any screenshot: the critical point, the rubric, its review, the scores on the
action history."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import sha256

from trajudge.judges.methods.universal_verifier.attempts import (
    StageFailure,
    StagePrompt,
    StageRunner,
)
from trajudge.judges.methods.universal_verifier.replies import assumed
from trajudge.judges.methods.universal_verifier.replies.critical_point import (
    CriticalPoint,
    parse_critical_point,
)
from trajudge.judges.methods.universal_verifier.replies.rubric import (
    parse_baseline,
    parse_dependencies,
    parse_rubric,
)
from trajudge.judges.methods.universal_verifier.rubric_items import RubricItem
from trajudge.judges.methods.universal_verifier.stages.questions import Questions
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.model import TrajectoryKey

Items = tuple[RubricItem, ...]


async def classify(runner: StageRunner, questions: Questions) -> CriticalPoint | None:
    """Ask for the task's critical point; None where no reply holds one."""
    question = StagePrompt(
        stage="critical_point",
        messages=Questions(
            questions.prompt,
            questions.options,
            questions.material,
            system="critical_point_system",
        ).asked("critical_point"),
        parse=parse_critical_point,
        assume=assumed.CRITICAL_POINT,
        json=False,
    )
    outcome = await runner.one(question)
    return runner.settle("critical_point", outcome, None, lenient=True)


async def make_rubric(runner: StageRunner, questions: Questions, key: TrajectoryKey) -> Items:
    """Ask for a rubric and for its review. A review that fails every attempt counts as one failed
    attempt of the rubric. Raises CallFailed and ParseFailure."""
    question = StagePrompt(
        stage="rubric",
        messages=questions.plain("rubric"),
        parse=parse_rubric,
        assume=assumed.RUBRIC,
        seed=_seed(key) if runner.options.rubric_per == "run" else None,
    )
    errors: list[str] = []
    failure: Exception = ParseFailure("rubric: no attempt was made")
    for number in range(1, runner.options.attempts + 1):
        outcome = await runner.attempt(question, number, errors)
        if not isinstance(outcome, StageFailure):
            outcome = await _reviewed(runner, questions, outcome)
        if not isinstance(outcome, StageFailure):
            return outcome
        failure = outcome.error
        if not isinstance(failure, ParseFailure):
            break
        errors.append(str(failure))
    raise failure


async def _reviewed(
    runner: StageRunner, questions: Questions, items: Items
) -> Items | StageFailure:
    question = StagePrompt(
        stage="dependencies",
        messages=questions.plain("dependencies", items=items),
        parse=partial(parse_dependencies, items=items),
        assume=assumed.DEPENDENCIES,
    )
    return await runner.one(question)


async def score_history(
    runner: StageRunner, questions: Questions, items: Sequence[RubricItem]
) -> Items:
    """Ask the light model for points on the action history alone. Raises CallFailed and
    ParseFailure."""
    question = StagePrompt(
        stage="baseline",
        messages=questions.plain("baseline", items=items),
        parse=partial(parse_baseline, items=items),
        assume=assumed.baseline(items),
        light=True,
    )
    return await runner.required(question)


def _seed(key: TrajectoryKey) -> int:
    """Derive a seed from the run, so that runs of one task do not share a cached rubric."""
    return int.from_bytes(sha256(str(key).encode()).digest()[:3])
