"""Whether calibrated rewards are probabilities: fitted on dev, measured on AgentRewardBench's test.

``python -m benchmarks.reward_calibration --data FOLDER [--resamples N]``, FOLDER as the published
data lie in (``annotations.csv``, ``judgments/``, ``published/``). Printed is, for five judges that
need no call, the calibration error and the Brier score before and after, with 95 % intervals over
tasks (bootstrap in benchmarks; an error is biased upwards), and how many successes that lose the
default penalties are worth less than a failure that loses none.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trajudge.annotations import primary_labels
from trajudge.annotations.model import Labels
from trajudge.annotations.published import SUFFIX, open_verdicts
from trajudge.annotations.sources import agentrewardbench
from trajudge.eval.analysis.calibration import ENOUGH, ENOUGH_OF_A_CLASS
from trajudge.eval.baselines import trivial_baselines
from trajudge.eval.imported import to_judgments
from trajudge.eval.select.scores import judged_score
from trajudge.eval.store.inputs import find_source
from trajudge.eval.store.published import read_published_folder
from trajudge.judges.judging import NoModel, judge_trajectory
from trajudge.judges.model import Judgment
from trajudge.judges.registry import make_judge, needs_of
from trajudge.rewards.reward import shaped
from trajudge.rewards.settings import RewardShaping
from trajudge.stats.calibration import FittedMap, closer_sigmoid, fit_calibration
from trajudge.stats.intervals import Bools, Floats, Ints
from trajudge.trajectories.model import Trajectory

JUDGES = ("telemetry", "tfidf-answer", "heuristic", "webjudge-7b", "webjudge-gpt-4o")
BINS = 10
GOAL = 0.05


class Split(NamedTuple):
    """A judge's trajectories of one split (N,): scores, outcomes, tasks and benchmarks."""

    judgments: list[Judgment]
    scores: Floats
    truth: Bools
    task: Ints
    benchmark: Ints


def judgments_of(folder: Path) -> tuple[dict[str, dict[str, Judgment]], Labels]:
    """Every judge's judgments by key, whole arrays before single replies, and the labels."""
    found: dict[str, dict[str, Judgment]] = {}
    labels = primary_labels(agentrewardbench.load(folder))
    source = find_source(f"agentrewardbench-text:{folder}", f"agentrewardbench:{folder}")
    runs = [run for run in source.read(labels.__contains__) if isinstance(run, Trajectory)]
    published = to_judgments(open_verdicts(f"agentrewardbench:{folder}"))
    replies = read_published_folder(folder, with_labels=False).judgments
    baselines = trivial_baselines(runs, labels).judgments
    heuristic = asyncio.run(_heuristic(runs))
    for one in [*replies, *heuristic, *baselines, *published]:
        if judged_score(one) is not None:
            found.setdefault(one.judge.removesuffix(SUFFIX), {})[str(one.key)] = one
    return found, labels


async def _heuristic(runs: Iterable[Trajectory]) -> list[Judgment]:
    judge_id, judge = make_judge("heuristic")
    needs = needs_of("heuristic")
    return [await judge_trajectory(judge_id, judge, run, NoModel(), needs=needs) for run in runs]


def split_of(judgments: Iterable[Judgment], labels: Labels, split: str) -> Split:
    kept = [
        one
        for one in judgments
        if (label := labels.get(one.key)) and label.split == split and label.success is not None
    ]
    tasks = [f"{one.key.benchmark}/{one.key.task_id}" for one in kept]
    names = [one.key.benchmark for one in kept]
    return Split(
        kept,
        np.array([judged_score(one) for one in kept], dtype=float),
        np.array([labels[one.key].success for one in kept], dtype=bool),
        np.unique(tasks, return_inverse=True)[1],
        np.unique(names, return_inverse=True)[1],
    )


def fitted_on(dev: Split) -> FittedMap:
    """Fit as ``trajudge score --calibration auto`` does."""
    if set(np.unique(dev.scores)) <= {0.0, 1.0}:
        return fit_calibration(dev.scores, dev.truth, "verdict")
    fewest = min(int(dev.truth.sum()), int((~dev.truth).sum()))
    if len(dev.truth) >= ENOUGH and fewest >= ENOUGH_OF_A_CLASS:
        return fit_calibration(dev.scores, dev.truth, "isotonic")
    return fit_calibration(dev.scores, dev.truth, closer_sigmoid(dev.scores, dev.truth))


def errors(scores: Floats, truth: Bools, weights: Floats) -> tuple[Floats, Floats]:
    """Calibration error and Brier score for each row of weights (B, N)."""
    place = np.minimum((scores * BINS).astype(int), BINS - 1)
    total = weights.sum(axis=1)
    gap = weights * (truth - scores)
    by_bin = np.stack([gap[:, place == one].sum(axis=1) for one in range(BINS)])
    return np.abs(by_bin).sum(axis=0) / total, (weights * (scores - truth) ** 2).sum(axis=1) / total


def resampled(test: Split, rng: np.random.Generator, count: int) -> Floats:
    """Draw weights of trajectories (count, N): tasks with replacement within their benchmark."""
    weights = np.zeros((count, len(test.task)))
    for benchmark in np.unique(test.benchmark):
        inside = test.benchmark == benchmark
        tasks, place = np.unique(test.task[inside], return_inverse=True)
        drawn = rng.multinomial(len(tasks), np.full(len(tasks), 1 / len(tasks)), size=count)
        weights[:, inside] = drawn[:, place]
    return weights


def flips(test: Split, fitted: FittedMap) -> int:
    """How many successes that lose both penalties are worth less than a failure that loses none."""
    worst = {"side_effect": True, "repetition": True}
    best = {"side_effect": False, "repetition": False}
    accepted, rejected = list[float](), list[float]()
    for one in test.judgments:
        kept, labels = (accepted, worst) if one.success else (rejected, best)
        value = shaped(one.model_copy(update=labels), fitted, RewardShaping()).value
        kept += [] if value is None else [value]
    return sum(value < max(rejected, default=0.0) for value in accepted)


def row(name: str, judged: Mapping[str, Judgment], labels: Labels, count: int) -> str:
    test = split_of(judged.values(), labels, "test")
    shared = {(one.key.benchmark, one.key.task_id) for one in test.judgments}
    own = [o for o in judged.values() if (o.key.benchmark, o.key.task_id) not in shared]
    dev = split_of(own, labels, "dev")
    fitted = fitted_on(dev)
    scores = np.asarray(fitted(test.scores))
    one = np.ones((1, len(scores)))
    weights = resampled(test, np.random.default_rng(0), count)
    (error,), (brier,) = errors(scores, test.truth, one)
    (raw_error,), (raw,) = errors(test.scores, test.truth, one)
    drawn, drawn_brier = errors(scores, test.truth, weights)
    low, high = np.quantile(drawn, [0.025, 0.975])
    gain = np.quantile(errors(test.scores, test.truth, weights)[1] - drawn_brier, [0.025, 0.975])
    return (
        f"{name:16} {fitted.method:8} dev {len(dev.truth):4} test {len(scores):5}  error "
        f"{100 * raw_error:5.1f} -> {100 * error:4.1f} [{100 * low:.1f}, {100 * high:.1f}] %  "
        f"{'holds' if error <= GOAL else 'FALLS SHORT':11}  Brier {raw:.4f} -> {brier:.4f}, better "
        f"by {raw - brier:+.4f} [{gain[0]:+.4f}, {gain[1]:+.4f}]  flipped {flips(test, fitted)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--resamples", type=int, default=2_000, metavar="N")
    options = parser.parse_args()
    judged, labels = judgments_of(options.data)
    for name in JUDGES:
        print(row(name, judged[name], labels, options.resamples))


if __name__ == "__main__":
    main()
