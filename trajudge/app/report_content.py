"""What a report says: scores, tables, and the trajectories that judges got wrong, read once."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from trajudge.annotations.model import Label
from trajudge.app.figures import (
    RULE,
    BenchmarkTable,
    CurvePoint,
    JudgeRow,
    RunCard,
    benchmark_table,
    curve_points,
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
from trajudge.eval.scoring.observations import Observations, answered, one_per_trajectory
from trajudge.eval.scoring.records import LabelName, ScoreReport
from trajudge.eval.sources import Source, judgments_of, observed_verdicts
from trajudge.eval.store.inputs import open_on_this_machine
from trajudge.eval.store.table import KeyColumns
from trajudge.eval.store.task_goals import task_units
from trajudge.judges.model import Judgment
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey
from trajudge.trajectories.needs import FINAL, Needs
from trajudge.trajectories.sources import SourceCard
from trajudge.util.errors import UserError
from trajudge.util.tables import Table, shown
from trajudge.util.terminal import one_line

Outcome = Literal["false positive", "false negative", "right", "no verdict", "unlabelled"]


class CaseVerdict(NamedTuple):
    """What one judge said of the trajectory; ``answer`` None where it gave none. ``outcome`` sets
    it beside the expert's label."""

    judge: str
    answer: bool | None
    outcome: Outcome
    status: str
    score: float | None
    reasoning: str


class ReportedCase(NamedTuple):
    """A trajectory with the expert's ``label`` (None: unsure or none), the official ``reward`` and
    the judges' verdicts, in the order of their names."""

    key: TrajectoryKey
    label: bool | None
    annotation: Label | None
    reward: float | None
    verdicts: tuple[CaseVerdict, ...]

    @property
    def kinds(self) -> str:
        """Name the mistakes that the judges made, for a filter."""
        made = {verdict.outcome for verdict in self.verdicts}
        return ", ".join(kind for kind in ("false positive", "false negative") if kind in made)


def chosen_cases(
    source: Source, observed: Mapping[str, Observations], question: LabelName, count: int
) -> tuple[list[ReportedCase], int]:
    """Choose at most ``count`` trajectories, the first of ``wrong_keys``. Return them with the
    number of all that a judge got wrong."""
    keys = wrong_keys(observed, question)
    chosen = [*keys.at(slice(0, count))]
    verdicts = _verdicts(judgments_of(source.judgments, chosen))
    return [_case(key, verdicts.get(key, []), source, question) for key in chosen], len(keys)


_ACCEPTED = 0.5  # a larger official reward is a success


def wrong_keys(observed: Mapping[str, Observations], question: LabelName = "success") -> KeyColumns:
    """Find the trajectories that a judge got wrong: those first that most judges, and on success
    the rule, wrongly accept, then those that most judges wrongly reject; of as many the one with
    the surest score."""
    if not observed:
        return KeyColumns.of(())
    reference = next(iter(observed.values())).reference  # of every judge, in the order of keys
    accepting, rejecting = np.zeros((2, len(reference)), dtype=np.int64)
    sure = np.zeros(len(reference))
    for seen in observed.values():
        wrong = seen.at(seen.answered & ((seen.predictions == 1) != seen.labels))
        accepting[wrong.index] += ~wrong.labels
        rejecting[wrong.index] += wrong.labels
        scores = np.nan_to_num(np.where(wrong.labels, 1 - wrong.scores, wrong.scores))
        sure[wrong.index] = np.maximum(sure[wrong.index], scores)
    if question == "success" and RULE not in observed:
        accepting += (accepting > 0) & (reference.reward > _ACCEPTED)
    order = np.lexsort((-sure, -rejecting, -accepting))
    return reference.keys.at(order[(accepting + rejecting)[order] > 0])


def _verdicts(judgments: Sequence[Judgment]) -> dict[TrajectoryKey, list[Judgment]]:
    """Collect each trajectory's judgments, one a judge, judges in the order of their names."""
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_judge.setdefault(judgment.judge, []).append(judgment)
    found: dict[TrajectoryKey, list[Judgment]] = {}
    for judge in sorted(by_judge):
        for judgment in one_per_trajectory(by_judge[judge]):
            found.setdefault(judgment.key, []).append(judgment)
    return found


def _case(
    key: TrajectoryKey, judgments: Sequence[Judgment], source: Source, question: LabelName
) -> ReportedCase:
    annotation = source.labels.get(key)
    label = getattr(annotation, question, None)
    verdicts = tuple(_verdict(judgment, label, question) for judgment in judgments)
    return ReportedCase(key, label, annotation, source.rewards.get(key), verdicts)


def _verdict(judgment: Judgment, label: bool | None, question: LabelName) -> CaseVerdict:
    answer = getattr(judgment, question) if answered(judgment, question) else None
    reply = judgment.calls[-1].text if judgment.calls else ""
    return CaseVerdict(
        judge=judgment.judge,
        answer=answer,
        outcome=_outcome(answer, label),
        status=judgment.status.value,
        score=judgment.score,
        reasoning=judgment.reasoning or judgment.detail or reply,
    )


def _outcome(answer: bool | None, label: bool | None) -> Outcome:
    if answer is None:
        return "no verdict"
    if label is None:
        return "unlabelled"
    if answer == label:
        return "right"
    return "false positive" if answer else "false negative"


LAST_ACTIONS = 3
_NEEDS = Needs(screenshots=FINAL, answer=True, goal_images=True)


class CaseEvidence(NamedTuple):
    """``actions`` are the last of the run's; ``screenshot`` is the last step's, or the last one
    that was recorded."""

    goal: str
    answer: str | None
    steps: int
    url: str | None
    actions: tuple[str, ...]
    screenshot: ImageRef | None
    goal_images: tuple[ImageRef, ...] = ()


def read_evidence(
    specs: Sequence[str], named: bool, keys: Collection[TrajectoryKey]
) -> tuple[dict[TrajectoryKey, CaseEvidence], list[str]]:
    """Read these trajectories from their data; return what was found and notes on what was not.

    ``named``: the user named the data, which therefore must open (UserError). What a run's folder
    names is left out with a note where it is not on this machine; nothing is fetched.
    """
    wanted, notes = set(keys), list[str]()
    found: dict[TrajectoryKey, CaseEvidence] = {}
    for spec in specs if wanted else ():
        try:
            opened = spec if named else open_on_this_machine(spec)
            for one in open_source(opened, wanted.__contains__, _NEEDS):
                if isinstance(one, Trajectory):
                    found.setdefault(one.key, _evidence(one))
        except UserError as error:
            if named:
                raise
            notes.append(f"no goals and screenshots from {spec}: {one_line(str(error))}")
    if missing := len(wanted - found.keys()):
        notes.append(
            f"{missing} of {len(wanted)} cases are shown without goal and answer: their "
            "trajectories are not in the data (name it with --data KIND:PATH)"
        )
    return found, notes


def _evidence(trajectory: Trajectory) -> CaseEvidence:
    shots = [step.observation.screenshot for step in trajectory.steps]
    return CaseEvidence(
        goal=trajectory.goal,
        answer=trajectory.answer,
        steps=len(trajectory.steps),
        url=trajectory.final.url,
        actions=tuple(step.action for step in trajectory.steps if step.action)[-LAST_ACTIONS:],
        screenshot=next((shot for shot in reversed(shots) if shot is not None), None),
        goal_images=trajectory.goal_images,
    )


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
