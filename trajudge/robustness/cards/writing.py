"""All files of a measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.robustness.cards.card import write_cards
from trajudge.robustness.cards.cases import write_cases
from trajudge.robustness.cards.data import CardData
from trajudge.robustness.defences.comparison import DefendedJudgeRow, write_comparison
from trajudge.robustness.measures.contamination import write_contamination
from trajudge.robustness.measures.matrix import write_matrix
from trajudge.robustness.measures.report import JudgeRobustness, write_robustness


class MeasuredRuns(NamedTuple):
    """The runs' folders, the changed runs that they judged, what is known of these, and the
    settings that the figures are of."""

    folders: Sequence[Path]
    attacked: Path
    data: CardData
    settings: Mapping[str, Any]


def write_results(
    judges: Sequence[JudgeRobustness],
    rows: Sequence[DefendedJudgeRow],
    runs: MeasuredRuns,
    out: Path,
) -> tuple[Path, ...]:
    """Write them into ``out``; return files and, where there is one for each judge, their folders.
    ``rows`` compare judges with and without defences. Raises UserError."""
    many = (*write_cards(judges, rows, runs.data, out), *write_cases(judges, runs.attacked, out))
    return (
        *write_robustness(judges, out, runs.settings),
        *write_matrix(judges, out),
        *write_contamination(judges, out),
        *write_comparison(judges, rows, out),
        *dict.fromkeys(file.parent for file in many),
    )
