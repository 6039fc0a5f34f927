"""Tables that rich draws, for what is shown on a terminal alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from trajudge.trajectories.util.terminal import one_line

if TYPE_CHECKING:
    from rich.table import Table as RichTable


class Column(NamedTuple):
    """``figures`` stand right; where the terminal is narrow a ``folded`` column goes over several
    lines, the others, numbers above all, are never broken."""

    name: str
    figures: bool = False
    folded: bool = False


def terminal_table(
    title: str | None, columns: Sequence[Column], rows: Iterable[Sequence[str]]
) -> RichTable:
    """For a rich console; nothing in title or cells is obeyed or taken for markup."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - plain output needs none of it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(
        title=Text(one_line(title), style="table.title") if title else None,
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for column in columns:
        table.add_column(
            Text(column.name),
            justify="right" if column.figures else "left",
            overflow="fold",
            no_wrap=not column.folded,
        )
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    return table
