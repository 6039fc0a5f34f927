"""How well a run's words, actions and numbers tell success from failure, its pages aside.

A logistic regression reads the reasoning, the answer and the actions as bags of words, and counts
(actions, errors, length of the answer, distinct actions), cross-validated by scenario. The sample
holds as many successes as failures of each scenario: how often a scenario succeeds tells nothing of
a run. 0.5 is chance; labels come from the state. ``python -m tests.environments.agents.page_blind``
prints the areas.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from trajudge.environments.agents.protocol import NotPlayed
from trajudge.environments.agents.script import AGENTS
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.model.axes import generator
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.environments.recording.campaign import jobs_for
from trajudge.environments.recording.recorder import recorded_offline

FOLDS = 5
TRIED = 400  # configurations of a scenario
NOISY = 0.3  # how many cases have noise
SOURCES = ("reasoning", "answer", "actions", "counts", "together")
_BID = re.compile(r"'\d+'")


class BlindRun(NamedTuple):
    """What is known of a run without its pages, and whether it succeeded."""

    scenario: str
    success: bool
    reasoning: str
    answer: str
    actions: str
    counts: tuple[int, ...]


def cases(seed: int, every: int) -> Iterator[Case]:
    """Yield a sound case of every n-th scenario, some of them with noise."""
    names = [(name, scenario.id) for name in APPS for scenario in load_app(name).scenarios]
    for name, scenario in names[seed % every :: every]:
        rng = generator("page-blind", name, scenario, seed)
        drawn = (check(load_app(name), _drawn(name, scenario, rng)) for _ in range(TRIED))
        yield from islice((case for case in drawn if isinstance(case, Case)), 1)


def _drawn(app: str, scenario: str, rng: np.random.Generator) -> Config:
    instance, profile, theme, ui = rng.integers((1000, PROFILES, THEMES, STATES)).tolist()
    noise = int(rng.integers(2, 100)) if rng.random() < NOISY else 0
    return Config(
        app=app, scenario=scenario, instance=instance, profile=profile, theme=theme, ui=ui,
        noise=noise,
    )  # fmt: skip


def played(seed: int, every: int = 1) -> Iterator[BlindRun]:
    """Play every scripted agent on the cases, and yield the runs whose success is known."""
    for job in jobs_for(list(cases(seed, every)), list(AGENTS)):
        try:
            recorded = recorded_offline(job, seed)
        except NotPlayed:
            continue
        success, run = recorded.finding.labels.success, recorded.trajectory
        actions = [step.action for step in run.steps if step.action]
        if success is None:
            continue
        yield BlindRun(
            f"{job.config.app}.{job.config.scenario}", success,
            " ".join(step.reasoning or "" for step in run.steps), run.answer or "",
            " ".join(_BID.sub("B", a) for a in actions if not a.startswith("send_msg_to_user")),
            (
                len(actions), sum(s.observation.page_error is not None for s in run.steps),
                len(run.answer or ""), len(set(actions)),
            ),
        )  # fmt: skip


def balanced(runs: Sequence[BlindRun], seed: int) -> list[BlindRun]:
    """Return as many failures as successes of each scenario, drawn."""
    rng = np.random.default_rng(seed)
    drawn: list[BlindRun] = []
    for scenario in sorted({run.scenario for run in runs}):
        sides = [
            [run for run in runs if run.scenario == scenario and run.success is success]
            for success in (True, False)
        ]
        count = min(map(len, sides))
        drawn += [side[n] for side in sides for n in rng.permutation(len(side))[:count]]
    return drawn


def areas(runs: Sequence[BlindRun], seed: int) -> dict[str, float]:
    """Return the area under the ROC curve from each source alone, and from all together."""
    from scipy import sparse
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    runs = balanced(runs, seed)
    success = [run.success for run in runs]
    bags: dict[str, Any] = {
        source: CountVectorizer(ngram_range=(1, 2), min_df=5).fit_transform(
            [getattr(run, source) for run in runs]
        )
        for source in SOURCES[:3]
    }
    bags["counts"] = sparse.csr_matrix(np.array([run.counts for run in runs], float))
    bags["together"] = sparse.hstack(list(bags.values())).tocsr()

    def area(features: Any) -> float:
        model = make_pipeline(MaxAbsScaler(), LogisticRegression(C=0.3, max_iter=300))
        scores = cross_val_predict(
            model, features, success, groups=[run.scenario for run in runs],
            cv=GroupKFold(FOLDS), method="predict_proba",
        )  # fmt: skip
        return float(roc_auc_score(success, scores[:, 1]))

    return {source: round(area(bags[source]), 3) for source in SOURCES}


if __name__ == "__main__":
    for number in (0, 1):
        sample = list(played(number))
        sys.stdout.write(f"seed {number}, {len(sample)} runs: {areas(sample, number)}\n")
        sys.stdout.flush()
