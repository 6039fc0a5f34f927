"""``select``, ``accept`` and ``audit``: what their commands decide, as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack

from trajudge.annotations import LabelsBy
from trajudge.eval import audit as auditing
from trajudge.eval.acceptance import accepting
from trajudge.eval.acceptance.acceptance import AcceptanceFilter
from trajudge.eval.acceptance.screen import accepted_share, rejected_table, written_to
from trajudge.eval.acceptance.settings import AcceptConfig
from trajudge.eval.acceptance.training.names import FormatName, Per
from trajudge.eval.acceptance.training.settings import training_settings
from trajudge.eval.audit import Audit, sentences, summary, tables
from trajudge.eval.reporting.sentences import threshold_text
from trajudge.eval.select import selecting
from trajudge.eval.select.decision import CandidateResult, Decision
from trajudge.eval.select.measures.under_attack import Threat
from trajudge.eval.select.settings import PlanConfig, SelectConfig
from trajudge.eval.select.text import text
from trajudge.eval.settings import AuditConfig, Split, TaskId
from trajudge.face.calls import check_keywords, in_python, one_or_several, settings
from trajudge.face.results import Judgments, folded_html, screen_html, tables_html
from trajudge.util.tables import Table, first_screen

if TYPE_CHECKING:
    from pandas import DataFrame

    from trajudge.trajectories.model import Record

Runs = Judgments | str | Path | Iterable[Judgments | str | Path]
"""Judgments, or the folders of their runs; one or several."""


class PlanSettings(TypedDict, total=False):
    """The keywords of ``select``: the options of ``trajudge select`` by their names."""

    target_precision: float
    max_false_positives: float
    confidence: float
    correction: Literal["fixed-sequence", "max-t"]
    every_benchmark: bool
    split: Split
    seed: int
    margin: float
    judge: Sequence[str]
    ensembles_only: bool
    panel: Sequence[str]
    cascade: Sequence[str]
    thresholds: Sequence[str]
    rollout_price: float
    training_price: float
    judgment_price: Sequence[str]
    threat: Threat


class TrainingSettings(TypedDict, total=False):
    """The keywords of ``accept`` for training data: the options of ``trajudge accept``."""

    format: FormatName
    per: Per
    with_screenshots: bool
    per_task: int
    test_share: float
    rejected_below: float
    seed: int


class SelectionResult(NamedTuple):
    """A decision and the folder that it was written to."""

    decision: Decision
    folder: Path

    @property
    def chosen(self) -> CandidateResult | None:
        """The judge and threshold to filter with; None: no candidate qualifies."""
        place = self.decision.chosen
        return None if place is None else self.decision.findings[place]

    def to_frame(self) -> DataFrame:
        """Return a row per candidate: the verdict on it, its rates with their limits, its yield."""
        return _frame(self.decision.findings)

    def __str__(self) -> str:
        """Return the decision in words, as ``decision.txt`` has it."""
        return text(self.decision)

    def __repr__(self) -> str:
        chosen = "no candidate qualifies" if self.chosen is None else self.chosen.name
        return f"<SelectionResult: {chosen}, in {self.folder}; print() shows it>"

    def _repr_html_(self) -> str:
        return screen_html(str(self))


class AcceptanceResult(NamedTuple):
    """How many trajectories ended how, and what the user should know; the accepted ones are in
    ``accepted.jsonl`` of ``folder``."""

    choice: AcceptanceFilter
    counts: dict[str, int]
    warnings: tuple[str, ...]
    folder: Path

    def to_frame(self) -> DataFrame:
        """Return a row per ending, with the number of its trajectories."""
        from pandas import DataFrame  # noqa: PLC0415 - slow to import

        return DataFrame(self.counts.items(), columns=["ending", "trajectories"])

    def __str__(self) -> str:
        """Return the screen of ``trajudge accept``: how many, why not the others, warnings."""
        finding, tables = accepted_share(self.choice, self.counts), rejected_table(self.counts)
        rest = written_to(self.folder)
        shown = first_screen([finding], tables, (), self.warnings, rest=rest, more=".warnings")
        return shown.rstrip("\n")

    def __repr__(self) -> str:
        return f"<AcceptanceResult: {accepted_share(self.choice, self.counts)}; print() shows it>"

    def _repr_html_(self) -> str:
        rows = [(ending, str(n)) for ending, n in self.counts.items()]
        title = f"{self.choice.name} at threshold {threshold_text(self.choice.threshold)}"
        table = Table(title, ("ending", "trajectories"), rows, names=1)
        return tables_html([table], [*self.warnings, f"written to {self.folder}"])


class RuleAudit(Audit):
    """Where a rule-based evaluator is wrong, and what that changes."""

    def to_frame(self) -> DataFrame:
        """Return a row per group of trajectories: the evaluator's errors with their limits."""
        return _frame(self.errors)

    def __str__(self) -> str:
        """Return the first screen of ``trajudge audit``: errors, and what they change overall."""
        rest = "All groups: to_frame(); the agents' success rates: .rankings; disagreements: .cases"
        return summary(self, rest=rest, full="to_frame()").rstrip("\n")

    def __repr__(self) -> str:
        return f"<RuleAudit: {str(self).splitlines()[0]}; print() shows it>"

    def _repr_html_(self) -> str:
        everything = tables_html(tables(self), sentences(self))
        return screen_html(str(self)) + folded_html(everything)


@in_python(PlanSettings)
def select(
    runs: Runs,
    *,
    annotations: str | None = None,
    labels_by: LabelsBy | None = None,
    task_id: TaskId = "recorded",
    out: str | Path | None = None,
    candidates: str | Path | None = None,
    robustness: Sequence[str | Path] = (),
    **plan: Unpack[PlanSettings],
) -> SelectionResult:
    """Choose the judge and threshold that filter trajectories, and write the decision.

    The candidates are fixed in a file before any label is read; ``candidates`` is such a file and
    replaces the plan, whose keywords are the options of ``trajudge select``. ``out`` is the
    decision's folder (None: ``selections/``, named by the plan). ``robustness`` are files of
    ``trajudge robust``, for a plan with a ``threat``. Raises UserError for judgments, labels or a
    plan that cannot be used.
    """
    check_keywords("select", plan, PlanSettings.__annotations__)
    given = {
        "runs": _folders("select", runs),
        "annotations": annotations,
        "labels_by": labels_by,
        "task_id": task_id,
        "out": out,
        "candidates": candidates,
        "robustness": robustness,
        "plan": settings(PlanConfig, "select", plan),
    }
    found = selecting.select(settings(SelectConfig, "select", given))
    return SelectionResult(found.decision, found.folder)


@in_python(TrainingSettings)
def accept(
    runs: Runs,
    decision: SelectionResult | str | Path | None = None,
    *,
    judge: str | None = None,
    threshold: float | None = None,
    data: str | None = None,
    out: str | Path = "accepted",
    dataset: str | Path | None = None,
    page: Literal["pruned", "full", "none"] = "pruned",
    without_observations: bool = False,
    system: str | Path | None = None,
    any_benchmark: bool = False,
    agents: Literal["same", "any"] | None = None,
    assume_same_judge: bool = False,
    held_out: str | Path | None = None,
    **training: Unpack[TrainingSettings],
) -> AcceptanceResult:
    """Write the trajectories that a decision accepts as conversations for fine-tuning.

    ``judge`` with ``threshold`` replaces a decision, without its guarantee; the other parameters
    are the options of ``trajudge accept``; ``format`` also writes training data in a trainer's
    layout. Raises UserError.
    """
    check_keywords("accept", training, TrainingSettings.__annotations__)
    given = {
        "run": _folders("accept", runs),
        "decision": decision.folder if isinstance(decision, SelectionResult) else decision,
        "judge": judge,
        "threshold": threshold,
        "data": data,
        "out": out,
        "dataset": dataset,
        "page": page,
        "without_observations": without_observations,
        "system": system,
        "any_benchmark": any_benchmark,
        "agents": agents,
        "assume_same_judge": assume_same_judge,
        "held_out": held_out,
        "training": training_settings(training),
    }
    config = settings(AcceptConfig, "accept", given)
    found = accepting.accept(config)
    return AcceptanceResult(found.choice, found.counts, tuple(found.warnings), config.out)


@in_python()
def audit(
    runs: Runs,
    *,
    annotations: str | None = None,
    labels_by: LabelsBy | None = None,
    task_id: TaskId = "recorded",
    split: Split = "all",
    evaluator: str | None = None,
    data: str | None = None,
    task_tables: str | Path | None = None,
    templates: str | Path | None = None,
) -> RuleAudit:
    """Compare the official reward (or the judge ``evaluator``) with the experts and the judges.

    The parameters are the options of ``trajudge audit``. Raises UserError.
    """
    given = {
        "runs": _folders("audit", runs),
        "annotations": annotations,
        "labels_by": labels_by,
        "task_id": task_id,
        "split": split,
        "evaluator": evaluator,
        "data": data,
        "task_tables": task_tables,
        "templates": templates,
    }
    found = auditing.audit(settings(AuditConfig, "audit", given))
    return RuleAudit.model_construct(**dict(found))


def _folders(call: str, runs: Runs) -> tuple[Path, ...]:
    wanted = "judgments with their run, as judge and read_run return them, or folders of runs"
    given = one_or_several(call, runs, Judgments | str | Path, wanted)
    each = [one.folders if isinstance(one, Judgments) else (Path(one),) for one in given]
    return tuple(folder for folders in each for folder in folders)


def _frame(records: Iterable[Record]) -> DataFrame:
    """Return a row per record, its parts side by side: ``precision_low`` is ``precision``'s
    ``low``."""
    from pandas import json_normalize  # noqa: PLC0415 - slow to import

    rows: list[dict[str, Any]] = [record.model_dump(mode="json") for record in records]
    return json_normalize(rows, sep="_")
