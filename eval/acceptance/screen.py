"""What ``trajudge accept`` shows at its end."""

from __future__ import annotations

from trajudge.eval.acceptance.acceptance import ACCEPTED, REJECTED, SUMMARY
from trajudge.eval.acceptance.accepting import Acceptance
from trajudge.eval.acceptance.settings import AcceptConfig
from trajudge.eval.reporting.finding import unfinished
from trajudge.eval.reporting.formatting import threshold_text
from trajudge.trajectories.util.tables import Table, first_screen
from trajudge.trajectories.util.terminal import count_of


def acceptance_screen(config: AcceptConfig, made: Acceptance) -> str:
    """Say on one screen what was accepted, why the others were not, and where all of it stands."""
    rejected = [(kind, str(count)) for kind, count in made.counts.items() if kind != "accepted"]
    total = sum(made.counts.values())
    finding = (
        f"{made.choice.name} at threshold {threshold_text(made.choice.threshold)}: "
        f"{made.counts.get('accepted', 0)} accepted of {count_of(total, 'trajectory')}"
    )
    if cut := unfinished(made.unfinished):
        finding += f"; {cut}"
    table = Table("", ("rejected because", "trajectories"), rejected, names=1)
    rest = f"written to {config.out}: {ACCEPTED}, {REJECTED}, {SUMMARY}"
    if made.training is not None and config.training is not None:
        rows = ", ".join(f"{count} in {name}" for name, count in made.training.rows.items())
        rest += f"; rows in {config.training.format}/: {rows or 'none'}"
    tables = [table] if rejected else []
    return first_screen([finding], tables, (), made.warnings, rest=rest, more=SUMMARY)
