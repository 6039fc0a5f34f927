"""Scoring a run: here, or of a large run in a process of its own, which gives its memory back and
leaves the pages their time."""

from __future__ import annotations

import signal
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from trajudge.app.pages.figures import CurvePoint, curve_points
from trajudge.app.reports.views import overall_scores
from trajudge.eval.data.run_folder import JUDGMENTS
from trajudge.eval.process.question import question_of
from trajudge.eval.rescoring.sources import observed_verdicts, read_sources, score_source
from trajudge.eval.runs.settings import ScoreConfig
from trajudge.eval.scoring.records import Label, ScoreReport
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.gc_pause import collection_paused

LARGE = 20_000_000
"""Bytes of judgments from which on a process of its own is worth its start."""


class ScoredRun(NamedTuple):
    """A run's scores on ``question``; ``has_labels``: experts answered it. ``curve`` places its
    judges by recall and precision, and by how their scores come true."""

    scores: ScoreReport
    question: Label
    has_labels: bool
    curve: list[CurvePoint]


def score_run(folder: Path, annotations: str | None) -> ScoredRun:
    """Score a run against its own labels, or those of a specification. Raises UserError."""
    journal = folder / JUDGMENTS
    large = journal.is_file() and journal.stat().st_size >= LARGE
    return _scored_apart(folder, annotations) if large else _scored(folder, annotations)


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


def _scored_apart(folder: Path, annotations: str | None) -> ScoredRun:
    """Score in another process, which ends with this one."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    arguments = (sender, folder, annotations)
    process = context.Process(target=_send_scores, args=arguments, daemon=True)
    process.start()
    sender.close()
    try:
        outcome = receiver.recv()
    except EOFError as error:
        raise UserError("The run could not be scored; the terminal shows more") from error
    finally:
        process.join()
        receiver.close()
    if isinstance(outcome, UserError):
        raise outcome
    scored: ScoredRun = outcome
    return scored


def _send_scores(sender: Connection, folder: Path, annotations: str | None) -> None:
    # Ctrl-C reaches every process of a terminal; this one ends with the server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sender.send(_scored(folder, annotations))
    except UserError as error:
        sender.send(error)
