"""A table as terminal table, aligned text, CSV, Markdown or LaTeX."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from trajudge.trajectories.util.tables import Column, terminal_table
from trajudge.trajectories.util.terminal import one_line

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Format = Literal["table", "csv", "markdown", "latex"]
FORMATS: tuple[Format, ...] = get_args(Format)

_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"–": "--", "κ": r"$\kappa$", "<": r"$<$", ">": r"$>$", "|": r"$|$"}
)
_LIMITS_MARK = " [95 %]"
_WITH_LIMITS = re.compile(r"(\S+) \[(\S+), (\S+)\]")
# Only names may be folded on a narrow terminal, never a number.
_FOLDED = {"judge", "status", "cost", "first", "second", "ranking", "ties (Holm, α = .05)"}


class Table(NamedTuple):
    """Cells are ready to be read; the first ``names`` columns hold words, the others figures."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    names: int = 2


def render(tables: Sequence[Table], form: Format) -> str:
    """All tables, one after the other."""
    one = {"table": text, "csv": comma_separated, "markdown": markdown, "latex": latex}[form]
    return "\n".join(one(shown(table)) for table in tables)


def shown(table: Table) -> Table:
    """The table with nothing in its cells that a terminal would obey."""
    return table._replace(rows=[tuple(map(one_line, row)) for row in table.rows])


def text(table: Table) -> str:
    """Aligned columns below the title."""
    widths = [max(map(len, column)) for column in zip(table.head, *table.rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if index < table.names else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (table.head, *table.rows)
    ]
    return "\n".join([table.title, *lines]) + "\n"


def comma_separated(table: Table) -> str:
    """Head and rows, blank where undefined; an estimate with its interval takes three columns.

    The title is left out, so that the file is CSV and nothing else.
    """
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    wide = [_LIMITS_MARK in name for name in table.head]
    names = [name.replace(_LIMITS_MARK, "") for name in table.head]
    writer.writerow(
        part
        for name, three in zip(names, wide, strict=True)
        for part in ([name, f"{name} low", f"{name} high"] if three else [name])
    )
    for row in table.rows:
        writer.writerow(
            part
            for cell, three in zip(row, wide, strict=True)
            for part in (_three(cell) if three else ["" if cell == "–" else cell.strip()])
        )
    return file.getvalue()


def _three(cell: str) -> list[str]:
    """``83.0 [76.4, 88.1]`` as its three numbers."""
    found = _WITH_LIMITS.fullmatch(cell)
    return list(found.groups()) if found else ["" if cell == "–" else cell, "", ""]


def markdown(table: Table) -> str:
    """A pipe table below its title."""
    marks = [":--" if index < table.names else "--:" for index in range(len(table.head))]
    rows = [[_markdown_cell(c) for c in row] for row in (table.head, *table.rows)]
    lines = [f"| {' | '.join(row)} |" for row in (rows[0], marks, *rows[1:])]
    return "\n".join([f"**{table.title}**", "", *lines]) + "\n"


def latex(table: Table) -> str:
    """A ``table`` with a ``tabular`` that needs the package booktabs."""
    columns = "l" * table.names + "r" * (len(table.head) - table.names)
    rows = [" & ".join(c.translate(_LATEX) for c in row) + r" \\" for row in table.rows]
    lines = [
        r"\begin{table}",
        rf"\caption{{{table.title.translate(_LATEX)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(c.translate(_LATEX) for c in table.head) + r" \\",
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def rich_table(table: Table) -> RichTable:
    """For a rich console."""
    columns = [
        Column(name, figures=index >= table.names, folded=name in _FOLDED)
        for index, name in enumerate(table.head)
    ]
    return terminal_table(table.title, columns, table.rows)


def _markdown_cell(cell: str) -> str:
    return cell.strip().replace("\\", r"\\").replace("|", r"\|").replace("\n", " ")
