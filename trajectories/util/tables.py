"""Tables and sentences on a terminal, one look for every command: nothing is wider than the screen,
and a command prints at most one screen of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from trajudge.trajectories.util.terminal import one_line

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS, LINES, WARNINGS = 100, 40, 5
_LONGEST = 3  # lines that one warning may take
_NARROWEST = 60


class Column(NamedTuple):
    """``figures`` stand right; where the terminal is narrow a ``folded`` column goes over several
    lines, the others, numbers above all, are never broken."""

    name: str
    figures: bool = False
    folded: bool = False


def terminal_table(
    title: str | None, columns: Sequence[Column], rows: Iterable[Sequence[str]]
) -> Table:
    """For a rich console; nothing in title or cells is obeyed by the terminal or taken for
    markup."""
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


def screen_width() -> int:
    """Return the columns to fill: those of the terminal or of ``COLUMNS``, at most 100."""
    return max(_NARROWEST, min(COLUMNS, shutil.get_terminal_size((COLUMNS, LINES)).columns))


def folded(text: str, width: int, *, most: int | None = None) -> list[str]:
    """Break a sentence into lines of at most ``width`` columns, the later ones indented.

    A number stays with its percent sign. Beyond ``most`` lines the rest is cut, with an ellipsis.
    """
    kept = one_line(text).replace(" %", "\0%").replace(" [", "\0[")
    lines = wrap(
        kept, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    ) or [""]
    if most is not None and len(lines) > most:
        last = lines[most - 1]
        lines = [*lines[: most - 1], last[: width - 1].rstrip() + "…"]
    return [line.replace("\0", " ") for line in lines]


def first_warnings(
    warnings: Sequence[str], width: int, *, rest: str, most: int = WARNINGS
) -> list[str]:
    """Fold the first ``most`` warnings, each once, and say where the others stand."""
    each = list(dict.fromkeys(warnings))
    lines = [
        line for warning in each[: max(most, 0)] for line in folded(warning, width, most=_LONGEST)
    ]
    more = len(each) - max(most, 0)
    if more > 0:
        lines += folded(f"{more} more {'warning' if more == 1 else 'warnings'}: {rest}", width)
    return lines


def elided(name: str, width: int) -> str:
    """Shorten a name to ``width`` columns by leaving out its middle."""
    if len(name) <= width:
        return name
    head = max((width - 1) * 2 // 3, 1)
    tail = max(width - 1 - head, 0)
    return name[:head] + "…" + (name[-tail:] if tail else "")


def columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, names: int
) -> list[str]:
    """Align a table within ``width``: the first ``names`` columns hold words and stand left.

    Where the lines would be too long the widest column of words is shortened; figures never are.
    """
    cells = [[one_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    excess = sum(widths) + 2 * (len(widths) - 1) - width
    while excess > 0 and names:
        widest = max(range(names), key=widths.__getitem__)
        if widths[widest] <= 8:
            break
        widths[widest] -= 1
        excess -= 1
    return [
        "  ".join(
            elided(cell, size).ljust(size) if index < names else cell.rjust(size)
            for index, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
