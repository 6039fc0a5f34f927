"""Where a judge and the expert disagree on success: each case with what one needs to see why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from trajudge.annotations.model import Label, Labels
from trajudge.eval.scoring.observations import answered, one_per_trajectory
from trajudge.eval.store.inputs import open_spec
from trajudge.judges.model import Judgment
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes

LAST_STEPS = 3


class ShownStep(Record):
    """A step as a reader of the case sees it."""

    index: int
    url: str | None
    reasoning: str | None
    action: str | None


class Explanation(Record):
    """Which of the paper's kinds a case is, as a model has it; ``kind`` None with the ``reason``
    why it was not classified."""

    model: str
    kind: str | None
    reason: str


class Mismatch(Record):
    """One wrong verdict. ``steps`` are the last ones of ``n_steps``; ``expert`` is the whole
    annotation."""

    error: Literal["false positive", "false negative"]
    judge: str
    key: TrajectoryKey
    goal: str
    n_steps: int
    steps: tuple[ShownStep, ...]
    answer: str | None
    official_reward: float | None
    verdict: bool
    score: float | None
    reasoning: str
    expert: Label
    explanation: Explanation | None = None


def find_mismatches(
    judgments: Iterable[Judgment], labels: Labels, specs: Sequence[str]
) -> tuple[list[Mismatch], list[TrajectoryKey]]:
    """Wrong verdicts by judge and key, and the trajectories that ``specs`` (specifications that
    ``open_source`` takes) does not hold. A failed judgment is no verdict.

    Raises UserError if there is no data, or it cannot be opened.
    """
    if not specs:
        raise UserError(
            "--mismatches shows goals and steps, and these judgments do not tell where their "
            "trajectories are: name them with --data KIND:PATH"
        )
    wrong = _wrong(judgments, labels)
    trajectories = _trajectories({j.key for j in wrong}, specs)
    cases = [
        _mismatch(j, labels[j.key], trajectories[j.key]) for j in wrong if j.key in trajectories
    ]
    return cases, [key for key in dict.fromkeys(j.key for j in wrong) if key not in trajectories]


def write_mismatches(path: Path, cases: Iterable[Mismatch]) -> None:
    """One JSON object a line. Raises UserError if the file cannot be written."""
    lines = [case.model_dump_json().encode("utf-8", "replace") + b"\n" for case in cases]
    save_bytes(path, b"".join(lines))


def _wrong(judgments: Iterable[Judgment], labels: Labels) -> list[Judgment]:
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_judge.setdefault(judgment.judge, []).append(judgment)
    return [
        j
        for judge in sorted(by_judge)
        for j in one_per_trajectory(by_judge[judge])
        if j.key in labels
        and labels[j.key].success is not None
        and answered(j, "success")
        and j.success != labels[j.key].success
    ]


def _trajectories(
    keys: set[TrajectoryKey], specs: Sequence[str]
) -> dict[TrajectoryKey, Trajectory]:
    trajectories: dict[TrajectoryKey, Trajectory] = {}
    for spec in specs:
        for trajectory in open_source(open_spec(spec), keys.__contains__, NO_NEEDS):
            if isinstance(trajectory, Trajectory) and trajectory.key in keys:
                trajectories.setdefault(trajectory.key, trajectory)
    return trajectories


def _mismatch(judgment: Judgment, expert: Label, trajectory: Trajectory) -> Mismatch:
    last = trajectory.steps[-LAST_STEPS:]
    text = judgment.calls[-1].text if judgment.calls else ""
    return Mismatch(
        error="false positive" if judgment.success else "false negative",
        judge=judgment.judge,
        key=judgment.key,
        goal=trajectory.goal,
        n_steps=len(trajectory.steps),
        steps=tuple(
            ShownStep(index=s.index, url=s.observation.url, reasoning=s.reasoning, action=s.action)
            for s in last
        ),
        answer=trajectory.answer,
        official_reward=trajectory.official_reward,
        verdict=bool(judgment.success),
        score=judgment.score,
        reasoning=judgment.reasoning or text,
        expert=expert,
    )
