"""One question of a report: whether agents succeeded, or whether their process was sound."""

from __future__ import annotations

from collections.abc import Iterable

from trajudge.eval.data.index.columns import UNKNOWN
from trajudge.eval.data.index.judgments import columns_of
from trajudge.eval.scoring.records import Label, ScoreReport
from trajudge.judges.model import Judgment


def question_of(judgments: Iterable[Judgment]) -> Label:
    """Choose the process where judges answered it and none said anything of success."""
    columns = columns_of(judgments)
    success, process = ((columns.verdict(name) != UNKNOWN).any() for name in ("success", "process"))
    return "process" if process and not success else "success"


def about_process(report: ScoreReport) -> ScoreReport:
    """Keep what a report says of the process."""
    comparison = report.comparison
    return report.model_copy(
        update={
            "scores": tuple(s for s in report.scores if s.label == "process"),
            "success_rates": (),
            "estimated_rates": (),
            "against_baseline": (),
            "comparison": comparison.model_copy(
                update={
                    name: tuple(one for one in getattr(comparison, name) if one.label == "process")
                    for name in type(comparison).model_fields
                }
            ),
        }
    )
