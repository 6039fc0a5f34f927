"""Scoring a run: here, or of a large run in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from trajudge.app.pages.figures import CurvePoint, curve_points
from trajudge.app.reports.views import overall_scores
from trajudge.app.server.processes import in_process
from trajudge.eval.process import question_of
from trajudge.eval.score import read_sources, score_source
from trajudge.eval.scoring.records import LabelName, ScoreReport
from trajudge.eval.settings import ScoreConfig
from trajudge.eval.sources import observed_verdicts
from trajudge.eval.store.run_folder import JUDGMENTS
from trajudge.util.machine import collection_paused

LARGE = 20_000_000
"""Bytes of judgments from which on a process of its own is worth its start."""


class ScoredRun(NamedTuple):
    """A run's scores on ``question``; ``has_labels``: experts answered it. ``curve`` places its
    judges by recall and precision, and by how their scores come true."""

    scores: ScoreReport
    question: LabelName
    has_labels: bool
    curve: list[CurvePoint]


def score_run(folder: Path, annotations: str | None) -> ScoredRun:
    """Score a run against its own labels, or those of a specification. Raises UserError."""
    if is_large(folder):
        return in_process(_scored, folder, annotations)
    return _scored(folder, annotations)


def is_large(folder: Path) -> bool:
    """Tell whether a run is better read in a process of its own."""
    journal = folder / JUDGMENTS
    return journal.is_file() and journal.stat().st_size >= LARGE


def _scored(folder: Path, annotations: str | None) -> ScoredRun:
    config = ScoreConfig(runs=(folder,), annotations=annotations, baselines="off", by="agent")
    with collection_paused():
        source = read_sources(config)
        question = question_of(source.judgments)
        labelled = any(getattr(label, question) is not None for label in source.labels.values())
        scores = score_source(source, config)
        overall = [(name, score) for name, _, score in overall_scores(scores, question)]
        observed = observed_verdicts(source, scores.missing, question) if labelled else {}
        return ScoredRun(scores, question, labelled, curve_points(overall, observed))
