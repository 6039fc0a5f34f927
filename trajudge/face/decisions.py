"""``select``, ``accept`` and ``audit``: what their commands decide, as data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from trajudge.eval import audit as auditing
from trajudge.eval.accept import accept as acceptance
from trajudge.eval.accept.accept import Acceptance
from trajudge.eval.accept.settings import AcceptConfig
from trajudge.eval.audit import Audit, sentences, summary, tables
from trajudge.eval.reporting.sentences import threshold_text
from trajudge.eval.select import decide
from trajudge.eval.select import decision as selection
from trajudge.eval.select.decision import CandidateResult
from trajudge.eval.select.settings import SelectConfig
from trajudge.eval.select.text import text
from trajudge.eval.settings import AuditConfig
from trajudge.face.calls import check_keywords, one_or_several
from trajudge.face.results import Run, folded_html, screen_html, tables_html
from trajudge.util.settings import make
from trajudge.util.tables import Table

if TYPE_CHECKING:
    from pandas import DataFrame

    from trajudge.trajectories.model import Record

Runs = Run | str | Path | Iterable[Run | str | Path]
"""Judgments, or the folders of their runs; one or several."""


class Decision(selection.Decision):
    """What ``select`` chose, and all that was shown of every candidate; rates and limits are shares
    from 0 to 1. ``best`` is the chosen candidate, None if none qualifies; ``folder`` is where the
    decision was written to."""

    folder: Path = Field(exclude=True)

    @property
    def best(self) -> CandidateResult | None:
        """The judge and threshold to filter with; None: no candidate qualifies."""
        return None if self.chosen is None else self.findings[self.chosen]

    def to_frame(self) -> DataFrame:
        """Return a row per candidate: the verdict on it, its rates with their limits, its yield."""
        return _frame(self.findings)

    def __str__(self) -> str:
        """Return the decision in words, as ``decision.txt`` has it."""
        return text(self)

    def __repr__(self) -> str:
        chosen = "no candidate qualifies" if self.best is None else self.best.name
        return f"<Decision: {chosen}, in {self.folder}; print() shows it>"

    def _repr_html_(self) -> str:
        return screen_html(str(self))


class AcceptanceResult(Acceptance):
    """How many trajectories ended how, and what the user should know."""

    def to_frame(self) -> DataFrame:
        """Return a row per ending, with the number of its trajectories."""
        from pandas import DataFrame  # noqa: PLC0415 - slow to import

        return DataFrame(self.counts.items(), columns=["ending", "trajectories"])

    def __str__(self) -> str:
        """Return the screen of ``trajudge accept``: how many, why not the others, warnings."""
        return self.screen(more=".warnings").rstrip("\n")

    def __repr__(self) -> str:
        return f"<AcceptanceResult: {self.finding}; print() shows it>"

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
        title = f"{self.rule} against the experts on {self.n:,} trajectories"
        return f"<RuleAudit: {title}; print() shows it>"

    def _repr_html_(self) -> str:
        everything = tables_html(tables(self), sentences(self))
        return screen_html(str(self)) + folded_html(everything)


def select(
    runs: Runs,
    *,
    annotations: str | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Decision:
    """Choose the judge and threshold that filter trajectories, and write the decision.

    The candidates are fixed in a file before any label is read. ``out`` is the decision's folder
    (None: ``selections/``, named by the plan). The other keywords are the options of ``trajudge
    select``, such as ``target_precision``; ``candidates`` is a frozen plan and replaces those of
    the plan. Raises UserError for judgments, labels or a plan that cannot be used, TypeError for an
    unknown keyword.
    """
    check_keywords("select", settings)
    given = {"runs": _folders("select", runs), "annotations": annotations, "out": out}
    found, folder = decide.select(make(SelectConfig, {**settings, **given}))
    return Decision.model_construct(**dict(found), folder=folder)


def accept(
    runs: Runs,
    decision: Decision | str | Path | None = None,
    *,
    judge: str | None = None,
    threshold: float | None = None,
    out: str | Path = "accepted",
    **settings: Any,
) -> AcceptanceResult:
    """Write the trajectories that a decision accepts as conversations for fine-tuning.

    ``judge`` with ``threshold`` replaces a decision, without its guarantee; the other keywords are
    the options of ``trajudge accept``; ``format`` also writes training data in a trainer's layout,
    and ``recertify`` names the folder of a sample to label for agents that are new to the decision.
    Raises UserError, and TypeError for an unknown keyword.
    """
    check_keywords("accept", settings)
    given = {
        "run": _folders("accept", runs),
        "decision": decision.folder if isinstance(decision, Decision) else decision,
        "judge": judge,
        "threshold": threshold,
        "out": out,
    }
    return AcceptanceResult(**vars(acceptance.accept(make(AcceptConfig, {**settings, **given}))))


def audit(runs: Runs, *, annotations: str | None = None, **settings: Any) -> RuleAudit:
    """Compare the official reward (or the judge ``evaluator``) with the experts and the judges.

    The other keywords are the options of ``trajudge audit``. Raises UserError, and TypeError for an
    unknown keyword.
    """
    check_keywords("audit", settings)
    given = {"runs": _folders("audit", runs), "annotations": annotations}
    found = auditing.audit(make(AuditConfig, {**settings, **given}))
    return RuleAudit.model_construct(**dict(found))


def _folders(call: str, runs: Runs) -> tuple[Path, ...]:
    wanted = "judgments with their run, as judge and read_run return them, or folders of runs"
    given = one_or_several(call, runs, Run | str | Path, wanted)
    each = [one.folders if isinstance(one, Run) else (Path(one),) for one in given]
    return tuple(folder for folders in each for folder in folders)


def _frame(records: Iterable[Record]) -> DataFrame:
    """Return a row per record, its parts side by side: ``precision_low`` is ``precision``'s
    ``low``."""
    from pandas import json_normalize  # noqa: PLC0415 - slow to import

    rows: list[dict[str, Any]] = [record.model_dump(mode="json") for record in records]
    return json_normalize(rows, sep="_")
