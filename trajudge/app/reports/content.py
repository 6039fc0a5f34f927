"""Everything that a report says, read and scored once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trajudge.app.pages.figures import CurvePoint, curve_points
from trajudge.app.reports.cases import CaseVerdict, ReportedCase, chosen_cases
from trajudge.app.reports.evidence import CaseEvidence, read_evidence
from trajudge.app.reports.views import (
    BenchmarkTable,
    JudgeRow,
    RunCard,
    benchmark_table,
    data_licences,
    judge_rows,
    overall_scores,
    run_card,
)
from trajudge.app.settings import Redaction, ReportConfig
from trajudge.eval.process import question_of
from trajudge.eval.reporting.sentences import finding, notes, warnings_of
from trajudge.eval.reporting.tables import tables
from trajudge.eval.score import (
    add_baselines,
    read_sources,
    recorded_data,
    score_source,
    warn_of_unmatched_labels,
)
from trajudge.eval.scoring.records import LabelName, ScoreReport
from trajudge.eval.sources import Source, observed_verdicts
from trajudge.eval.store.task_goals import task_units
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.sources import SourceCard
from trajudge.util.tables import Table, shown

REDACTED = "[redacted]"
_URL = re.compile(r"\b(?:https?|ftp|file|wss?)://[^\s\"'<>]+|\bwww\.[^\s\"'<>]+", re.IGNORECASE)


class ShownCase(NamedTuple):
    """A case with its evidence, None where the trajectory was not found."""

    case: ReportedCase
    evidence: CaseEvidence | None


class Content(NamedTuple):
    """``wrong`` trajectories were judged wrongly by a judge, ``cases`` are those that are shown;
    ``curve`` places the judges by recall and precision; ``absent`` tells of cases without their
    trajectory, ``left_out`` what was redacted."""

    scores: ScoreReport
    question: LabelName
    is_labelled: bool
    absent: list[str]
    judges: list[JudgeRow]
    benchmarks: BenchmarkTable | None
    curve: list[CurvePoint]
    tables: list[Table]
    notes: list[str]
    runs: list[RunCard]
    licences: list[SourceCard]
    cases: list[ShownCase]
    wrong: int
    left_out: str

    def finding(self, most: int | None = None) -> list[str]:
        """Say what was found; of more than ``most`` names a list holds the first."""
        return finding(self.scores, self.question if self.is_labelled else None, most=most)

    def warnings(self, most: int | None = None) -> list[str]:
        """Say what weakens it, likewise."""
        lines = [*warnings_of(self.scores, most), *self.absent]
        return [line.removeprefix("warning: ") for line in lines]


def report_content(config: ReportConfig) -> Content:
    """Read the runs, score them and choose the cases. Raises UserError as ``trajudge score``."""
    source = read_sources(config.score)
    if config.score.annotations:
        warn_of_unmatched_labels(source, config.score.annotations)
    with task_units(source.goals, config.score.task_id):
        return _content(source, config)


def _content(source: Source, config: ReportConfig) -> Content:
    """Score the runs and choose the cases."""
    scores = score_source(source, config.score)
    question = config.score.question or question_of(source.judgments)
    observed = observed_verdicts(source, scores.missing, question)
    cases, wrong = chosen_cases(source, observed, question, config.show)
    specs = recorded_data(source, config.score)
    named = bool(config.score.data)
    evidence, absent = read_evidence(
        config.score.data or specs, named, [case.key for case in cases]
    )
    if config.score.baselines != "off":
        scores = add_baselines(scores, source, config.score)
    overall = [(name, score) for name, _, score in overall_scores(scores, question)]
    return Content(
        scores=scores,
        question=question,
        is_labelled=bool(source.labels),
        absent=absent,
        judges=judge_rows(scores, question),
        benchmarks=benchmark_table(scores, question),
        curve=curve_points(overall, observed),
        tables=[shown(table) for table in tables(scores)],
        notes=notes(scores),
        runs=[run_card(folder) for folder in config.score.runs],
        licences=data_licences([*config.score.data, *specs]),
        cases=_redacted(cases, evidence, config),
        wrong=wrong,
        left_out=", ".join(config.redact),
    )


def _redacted(
    cases: Sequence[ReportedCase],
    evidence: Mapping[TrajectoryKey, CaseEvidence],
    config: ReportConfig,
) -> list[ShownCase]:
    """Leave out what ``--redact`` names, and everything that repeats it."""
    without = set(config.redact)
    found = []
    for case in cases:
        seen = evidence.get(case.key)
        if seen is not None and without:
            seen = _without(seen, without)
        verdicts = tuple(_quiet(verdict, without) for verdict in case.verdicts)
        found.append(ShownCase(case._replace(verdicts=verdicts), seen))
    return found


def _without(seen: CaseEvidence, without: set[Redaction]) -> CaseEvidence:
    if "goals" in without:
        seen = seen._replace(goal=REDACTED)
    if "answers" in without and seen.answer is not None:
        seen = seen._replace(answer=REDACTED)
    if without & {"goals", "answers"}:
        # Actions hold what was typed, and the last one the answer.
        seen = seen._replace(actions=())
    if "urls" in without:
        seen = seen._replace(
            goal=_URL.sub(REDACTED, seen.goal),
            answer=seen.answer and _URL.sub(REDACTED, seen.answer),
            url=seen.url and REDACTED,
            actions=tuple(_URL.sub(REDACTED, action) for action in seen.actions),
        )
    return seen._replace(screenshot=None, goal_images=())


def _quiet(verdict: CaseVerdict, without: set[Redaction]) -> CaseVerdict:
    if without & {"goals", "answers"}:
        return verdict._replace(reasoning=REDACTED if verdict.reasoning else "")
    if "urls" in without:
        return verdict._replace(reasoning=_URL.sub(REDACTED, verdict.reasoning))
    return verdict
