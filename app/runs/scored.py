"""Scores of runs, as ``trajudge score`` gives them, kept as long as the run's files stay."""

from __future__ import annotations

import threading
from typing import NamedTuple

from trajudge.app.server.workspace import OpenedRun
from trajudge.eval.data.index.cache_place import FileIdentity
from trajudge.eval.process.question import question_of
from trajudge.eval.reporting.score_report import read_sources, score_source
from trajudge.eval.runs.settings import ScoreConfig
from trajudge.eval.scoring.records import Label, ScoreReport
from trajudge.trajectories.util.gc_pause import collection_paused


class ScoredRun(NamedTuple):
    """A run's scores on ``question``; ``has_labels``: experts answered it."""

    scores: ScoreReport
    question: Label
    has_labels: bool


class RunScores:
    """Scores runs, each once at a time. To be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[tuple[FileIdentity, ...], ScoredRun]] = {}

    def of(self, run: OpenedRun, annotations: str | None = None) -> ScoredRun:
        """Score a run against its own labels, or those of a specification. Raises UserError."""
        with self._lock:
            run.index.refresh()
            version = run.index.version
            kept = self._kept.get(run.name)
            if kept is None or kept[0] != version:
                kept = self._kept[run.name] = version, _scored(run, annotations)
            return kept[1]


def _scored(run: OpenedRun, annotations: str | None) -> ScoredRun:
    config = ScoreConfig(runs=(run.folder,), annotations=annotations, baselines="off", by="agent")
    with collection_paused():
        source = read_sources(config)
        question = question_of(source.judgments)
        labelled = any(getattr(label, question) is not None for label in source.labels.values())
        return ScoredRun(score_source(source, config), question, labelled)
