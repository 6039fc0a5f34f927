"""What ``trajudge accept`` shows at its end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trajudge.eval.acceptance.acceptance import ACCEPTED, REJECTED, SUMMARY, AcceptanceFilter
from trajudge.eval.acceptance.accepting import Acceptance
from trajudge.eval.acceptance.settings import AcceptConfig
from trajudge.eval.reporting.sentences import threshold_text, unfinished
from trajudge.util.tables import Table, first_screen
from trajudge.util.terminal import count_of


def acceptance_screen(config: AcceptConfig, made: Acceptance) -> str:
    """Say on one screen what was accepted, why the others were not, and where all of it stands."""
    finding = accepted_share(made.choice, made.counts)
    if cut := unfinished(made.unfinished):
        finding += f"; {cut}"
    rest = written_to(config.out)
    if made.training is not None and config.training is not None:
        rows = ", ".join(f"{count} in {name}" for name, count in made.training.rows.items())
        rest += f"; rows in {config.training.format}/: {rows or 'none'}"
    tables = rejected_table(made.counts)
    return first_screen([finding], tables, (), made.warnings, rest=rest, more=SUMMARY)


def accepted_share(choice: AcceptanceFilter, counts: Mapping[str, int]) -> str:
    """Say how many trajectories the filter accepted of how many."""
    total = count_of(sum(counts.values()), "trajectory")
    return (
        f"{choice.name} at threshold {threshold_text(choice.threshold)}: "
        f"{counts.get('accepted', 0)} accepted of {total}"
    )


def rejected_table(counts: Mapping[str, int]) -> list[Table]:
    """Tabulate the reasons why trajectories were rejected; no table if none was."""
    rejected = [(kind, str(count)) for kind, count in counts.items() if kind != "accepted"]
    table = Table("", ("rejected because", "trajectories"), rejected, names=1)
    return [table] if rejected else []


def written_to(folder: Path) -> str:
    """Name the folder and what it holds."""
    return f"written to {folder}: {ACCEPTED}, {REJECTED}, {SUMMARY}"
