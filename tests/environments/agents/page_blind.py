"""How well numbers that need no look at a page tell success from failure.

A random forest on four numbers of a run (steps, errors, length of the last message, distinct
actions) is asked whether the run succeeded, cross-validated by scenario. 0.5 is chance; a judge
that beats this figure has looked at something. Labels come from the state.

``python -m tests.environments.agents.page_blind FILE`` plays every scripted agent on a case of
every scenario (in the text engine, ``environments.text``) and writes the runs.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trajudge.environments.agents.protocol import Job, NotPlayed
from trajudge.environments.agents.script import AGENTS
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.model.axes import generator
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.environments.recording.jobs import jobs_for
from trajudge.environments.recording.recorder import recorded_offline

GOAL = 0.65
FOLDS = 5
TREES = 60
RESAMPLES = 400
TRIED = 400  # configurations of a scenario
NOISY = 0.3  # how many cases have noise


class Numbers(NamedTuple):
    """What is known of a run without its pages, and whether it succeeded."""

    case: str
    agent: str
    attempt: int
    steps: int
    errors: int
    length: int
    distinct: int
    success: bool

    @property
    def task(self) -> str:
        """The scenario: runs of the same one are in the same fold."""
        return ".".join(self.case.split(".")[:2])


def cases(each: int, seed: int = 0) -> Iterator[Case]:
    """Yield so many sound cases of every scenario, a few of them with noise."""
    for name in APPS:
        app = load_app(name)
        for scenario in app.scenarios:
            rng = generator("page-blind", name, scenario.id, seed)
            drawn = (check(app, _drawn(name, scenario.id, rng)) for _ in range(TRIED))
            sound = (found for found in drawn if isinstance(found, Case))
            yield from (case for _, case in zip(range(each), sound, strict=False))


def _drawn(app: str, scenario: str, rng: np.random.Generator) -> Config:
    instance, profile, theme, ui = rng.integers((1000, PROFILES, THEMES, STATES)).tolist()
    noise = int(rng.integers(2, 100)) if rng.random() < NOISY else 0
    return Config(
        app=app, scenario=scenario, instance=instance, profile=profile, theme=theme, ui=ui,
        noise=noise,
    )  # fmt: skip


def numbers(job: Job, seed: int = 0) -> Numbers | None:
    """Play a job; None where there is no run, or where its success is open."""
    try:
        recorded = recorded_offline(job, seed)
    except NotPlayed:
        return None
    run, success = recorded.trajectory, recorded.finding.labels.success
    actions = [step.action for step in run.steps if step.action]
    errors = sum(step.observation.page_error is not None for step in run.steps)
    if success is None:
        return None
    return Numbers(
        job.config.id, job.agent, job.attempt, len(actions), errors, len(run.answer or ""),
        len(set(actions)), success,
    )  # fmt: skip


def predicted(runs: Sequence[Numbers], seed: int = 0) -> np.ndarray:
    """Return the forest's score of every run, (n,), from folds that hold none of its scenario."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import GroupKFold, cross_val_predict

    features = np.array([run[3:7] for run in runs], float)
    success = np.array([run.success for run in runs])
    forest = RandomForestClassifier(TREES, min_samples_leaf=5, random_state=seed)
    scores: np.ndarray = cross_val_predict(
        forest, features, success, groups=[run.task for run in runs],
        cv=GroupKFold(FOLDS), method="predict_proba",
    )  # fmt: skip
    return scores[:, 1]


def auc(runs: Sequence[Numbers], seed: int = 0) -> tuple[float, float, float]:
    """Return the area under the ROC curve and its 95 % limits, scenarios resampled."""
    from sklearn.metrics import roc_auc_score

    scores = predicted(runs, seed)
    success = np.array([run.success for run in runs])
    tasks = sorted({run.task for run in runs})
    rows = [np.array([n for n, run in enumerate(runs) if run.task == task]) for task in tasks]
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(RESAMPLES):
        at = np.concatenate([rows[n] for n in rng.integers(len(rows), size=len(rows))])
        drawn.append(roc_auc_score(success[at], scores[at]))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(roc_auc_score(success, scores)), float(low), float(high)


def write(path: Path, runs: Sequence[Numbers]) -> None:
    """Write the runs as CSV."""
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Numbers._fields)
        table.writerows([*run[:-1], int(run.success)] for run in runs)


def read(path: Path) -> list[Numbers]:
    """Read what ``write`` wrote."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [Numbers(row[0], row[1], *_counts(row[2:7]), row[7] == "1") for row in rows]


def _counts(cells: Sequence[str]) -> tuple[int, int, int, int, int]:
    attempt, steps, errors, length, distinct = map(int, cells)
    return attempt, steps, errors, length, distinct


if __name__ == "__main__":
    played = [numbers(job) for job in jobs_for(list(cases(1)), list(AGENTS))]
    write(Path(sys.argv[1]), [run for run in played if run is not None])
