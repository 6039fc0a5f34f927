"""How much narrower the interval of a judge's precision is by a drawn queue than by chance.

``python -m benchmarks.label_queues DIR [--budget 150] [--times 2000]`` takes published judgments
and labels of AgentRewardBench in DIR, hides the labels, and draws and estimates again and again.
Prints for every strategy and evaluator the coverage of the 95 % intervals, the bias, and the width,
beside those of a simple random sample whose labels alone are used. The truth is the precision over
all labelled trajectories in DIR.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from trajudge.annotations import open_annotations, primary_labels
from trajudge.eval.labelling.designs import STRATEGIES, draw, inclusion_probabilities
from trajudge.eval.labelling.estimates import estimate_precision
from trajudge.eval.labelling.frame import DrawnLabels, Frame, cross_fitted, read_frame, vote_share
from trajudge.eval.labelling.settings import Strategy
from trajudge.eval.store.published import read_published_folder
from trajudge.eval.store.table import in_memory
from trajudge.stats.intervals import Bools, Floats

LEAST_ACCEPTED = 30
"""Evaluators that accept fewer trajectories are left out: so few can all be labelled."""


def main() -> None:
    """Simulate every strategy and print a line for each evaluator."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, metavar="DIR")
    options.add_argument("--budget", type=int, default=150)
    options.add_argument("--times", type=int, default=2000)
    chosen = options.parse_args()
    frame, truth = _labelled_frame(chosen.folder)
    kept = np.nan_to_num(frame.votes).sum(axis=0) >= LEAST_ACCEPTED
    names = [name for name, keep in zip(frame.evaluators, kept, strict=True) if keep]
    print(f"{len(frame.keys)} trajectories, {chosen.budget} labels, {chosen.times} simulations")
    print("strategy        evaluator            covers    bias   width  random  narrower")
    baseline: Floats | None = None
    for strategy in STRATEGIES:
        if strategy == "cascade":  # ppi's design, for the candidates of a plan
            continue
        covers, bias, width, own = _simulate(frame, truth, strategy, chosen.budget, chosen.times)
        baseline = own if baseline is None else baseline
        for place, name in zip(np.flatnonzero(kept), names, strict=True):
            saved = 1 - width[place] / baseline[place]
            print(
                f"{strategy:<15} {name:<20} {covers[place]:>6.3f} {bias[place]:>7.4f}"
                f" {width[place]:>7.3f} {baseline[place]:>7.3f} {saved:>8.1%}"
            )


def _labelled_frame(folder: Path) -> tuple[Frame, Bools]:
    """Read what was judged and has a decided label."""
    source = read_published_folder(folder, with_labels=False)
    labels = primary_labels(open_annotations(f"agentrewardbench:{folder}"))
    decided = {key: label.success for key, label in labels.items() if label.success is not None}
    source.judgments = in_memory([each for each in source.judgments if each.key in decided])
    frame = read_frame(source)
    return frame, np.array([decided[key] for key in frame.keys])


def _simulate(
    frame: Frame, truth: Bools, strategy: Strategy, budget: int, times: int
) -> tuple[Floats, Floats, Floats, Floats]:
    share = vote_share(frame.votes)
    known, columns = frame.evidence(share), frame.columns
    chances = inclusion_probabilities(strategy, budget, known)
    aim = (known.accepted & truth[:, None]).sum(axis=0) / known.accepted.sum(axis=0)
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(times):
        drawn = draw(chances, known.strata, rng)
        labels = DrawnLabels(drawn, truth[drawn], chances[drawn])
        predicted = cross_fitted(columns, share, labels, rng)
        made = estimate_precision(labels, predicted, known.accepted)
        interval, own = made.corrected, made.labels_only
        covers = (interval.low - 1e-9 <= aim) & (aim <= interval.high + 1e-9)
        rows.append([covers, interval.estimate - aim, interval.width, own.width])
    covered, bias, width, own_width = np.nanmean(np.array(rows, dtype=float), axis=0)
    return covered, bias, width, own_width


if __name__ == "__main__":
    main()
