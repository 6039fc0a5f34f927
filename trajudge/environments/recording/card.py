"""What makes a recording fit to be handed on: a card that describes it, its cases, and their
specifications.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trajudge import __version__
from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.environments.model.case import Case, write_cases
from trajudge.environments.model.config import Engine, split_of
from trajudge.environments.recording.journal import COUNTED, counted
from trajudge.environments.specification import write_tasks
from trajudge.util.files import read_regular, save_bytes
from trajudge.util.tables import Table, markdown, shown
from trajudge.util.terminal import count_of

CARD, CASES, TASKS = "README.md", "cases.jsonl", "tasks.json"
TEMPLATE = Path(__file__).with_name("card.md")


def write_card(folder: Path, cases: Sequence[Case], engine: Engine, seed: int) -> None:
    """Write the card of a recording that is complete, its cases and their specifications. Raises
    UserError if a file cannot be written."""
    labels = [*annotation_store.load(folder / "labels.jsonl")]
    levels = {f"{c.config.app}.{c.config.scenario}": str(c.level) for c in cases}
    tasks = [".".join(one.raw_task_id.split(".")[:2]) for one in labels]
    tables = [
        _table("Runs by application", "application", [one.key.benchmark for one in labels], labels),
        _table("Runs by level", "level", [levels[one] for one in tasks], labels),
        _table("Runs by agent", "agent", [one.key.agent for one in labels], labels),
    ]
    splits = sorted({split_of(case.config.seed) for case in cases})
    template = read_regular(TEMPLATE).decode()
    card = template.format(
        runs=count_of(len(labels), "run"),
        successes=f"{sum(one.success is True for one in labels):,}",
        harmful=f"{sum(one.side_effect is True for one in labels):,}",
        looping=f"{sum(one.repetition is True for one in labels):,}",
        open=f"{sum(one.success is None for one in labels):,}",
        version=__version__,
        engine=engine,
        seed=seed,
        cases=count_of(len(cases), "task"),
        splits=f"split{'s' if len(splits) > 1 else ''} {', '.join(splits)}",
        tables="\n".join(markdown(shown(table)) for table in tables),
    )
    save_bytes(folder / CARD, card.encode())
    write_cases(folder / CASES, cases)
    write_tasks(folder / TASKS, cases)


def _table(title: str, group: str, names: Sequence[str], labels: Sequence[Label]) -> Table:
    """Count runs and labels by group."""
    runs = zip(names, (label.model_dump() for label in labels), strict=True)
    rows = [(name, *(f"{n:,}" for n in row.values())) for name, row in counted(runs).items()]
    return Table(title, (group, *COUNTED), rows)
