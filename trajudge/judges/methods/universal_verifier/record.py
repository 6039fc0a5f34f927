"""What the verifier keeps of a judgment: rubric, evidence, votes, failure points."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trajudge.judges.methods.universal_verifier.options import UniversalVerifierOptions
from trajudge.judges.methods.universal_verifier.replies.critical_point import CriticalPoint
from trajudge.judges.methods.universal_verifier.replies.evidence import Evidence
from trajudge.judges.methods.universal_verifier.replies.failures import (
    FailureAnalysis,
    TaskValidity,
)
from trajudge.judges.methods.universal_verifier.replies.verdict import (
    OutcomeVerdict,
    ViolationVerdict,
)
from trajudge.judges.methods.universal_verifier.rubric_items import (
    RubricItem,
    baseline_totals,
    totals,
)
from trajudge.judges.model import Verdict
from trajudge.trajectories.model import Record


class VerifierRecord(Record):
    """All that a judgment rests on, as written to ``records/`` of a run folder.

    ``steps`` are the numbers (from 1) of the steps whose screenshots were numbered from 0;
    ``relevance`` has shape (screenshots, criteria); ``ranked`` and ``evidence`` are by criterion,
    the best screenshot first. ``instances`` are the scorings of all votes, ``median`` the one that
    counts, ``votes`` those on the outcome (None: no usable reply).
    """

    format: Literal["universal-verifier"] = "universal-verifier"
    version: int = 1
    critical_point: CriticalPoint | None = None
    steps: tuple[int, ...] = ()
    without_screenshot: int = 0
    relevance: tuple[tuple[int, ...], ...] = ()
    ranked: dict[int, tuple[int, ...]] = Field(default_factory=dict)
    evidence: dict[int, tuple[Evidence, ...]] = Field(default_factory=dict)
    instances: tuple[tuple[RubricItem, ...], ...] = ()
    median: int = 0
    outcome: bool | None = None
    votes: tuple[OutcomeVerdict | None, ...] = ()
    violation: ViolationVerdict | None = None
    failures: FailureAnalysis | None = None
    validity_after: TaskValidity | None = None
    validity_before: TaskValidity | None = None
    retried: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()

    @property
    def items(self) -> tuple[RubricItem, ...]:
        """The scored rubric that counts, penalties at its end."""
        return self.instances[self.median]

    @property
    def process_score(self) -> float:
        """Earned of offered points."""
        return totals(self.items).score

    @property
    def speaker(self) -> OutcomeVerdict | None:
        """The first vote that agrees with the outcome."""
        agreeing = (v for v in self.votes if v is not None and v.output_success == self.outcome)
        return next(agreeing, None)


def success_of(record: VerifierRecord, options: UniversalVerifierOptions) -> bool | None:
    """Return the verdict that ``options.success`` asks for; None where the record lacks it."""
    process = record.process_score >= options.process_threshold
    if options.success == "process":
        return process
    if record.outcome is None:
        return None
    if options.success == "both":
        return record.outcome and process
    if options.success == "safe":
        if record.violation is None:
            return None
        return record.outcome and not record.violation.cp_violation
    return record.outcome


def verdict_of(record: VerifierRecord, success: bool) -> Verdict:
    """Build the verdict. There is no ``score``: points for the process are no confidence in
    success."""
    penalties = sum(item.penalty for item in record.items)
    return Verdict(
        success=success,
        side_effect=penalties > 0,
        scores=_scores(record, penalties),
        reasoning=record.speaker.reasoning if record.speaker else "",
        fallback=_fallback(record),
        record=record.model_dump(mode="json"),
    )


def _scores(record: VerifierRecord, penalties: int) -> dict[str, float]:
    points = totals(record.items)
    scores = {
        "process": points.score,
        "process_baseline": baseline_totals(record.items).score,
        "max_points": points.max,
        "earned_points": points.earned,
        "criteria": float(len(record.items) - penalties),
        "penalties": float(penalties),
    }
    if record.violation is not None:
        scores["violation"] = float(record.violation.cp_violation)
    if record.failures is not None and record.failures.first_failure_step is not None:
        scores["first_failure_step"] = float(record.failures.first_failure_step)
    if record.validity_after is not None:
        for name in ("ambiguous", "invalid"):
            flag = getattr(record.validity_after, f"is_{name}")
            if flag is not None:
                scores[name] = float(flag)
    return scores


def _fallback(record: VerifierRecord) -> str:
    sections = [
        ("asked again", record.retried),
        ("went on without", record.skipped),
        ("cut", record.cut),
    ]
    parts = [f"{heading}: {', '.join(names)}" for heading, names in sections if names]
    if record.without_screenshot:
        parts.append(f"steps without a screenshot: {record.without_screenshot}")
    return "; ".join(parts)
