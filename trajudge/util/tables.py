"""Tables and sentences with one layout for all commands: on a terminal, in a file or a pipe, as
CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from itertools import accumulate, zip_longest
from typing import Literal, NamedTuple, TypeVar, get_args

from trajudge.util.terminal import (
    COLUMNS,
    LINES,
    broken,
    cells,
    count_of,
    elided,
    loosened,
    one_line,
    padded,
    stiff,
)

T = TypeVar("T")


GAP = 2

NARROWEST = 8  # to which a column of words is shortened

UNDEFINED = frozenset({"", "–"})

Row = Sequence[str]


def aligned(rows: Iterable[Row], widths: Sequence[int], names: int, gap: int = GAP) -> list[str]:
    """Return one line per row: the first ``names`` cells truncated to their width and
    left-aligned, the others right-aligned."""
    return [
        (" " * gap)
        .join(
            padded(elided(cell, width) if index < names else cell, width, right=index >= names)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        .rstrip()
        for row in rows
    ]


def widths_of(rows: Iterable[Row]) -> list[int]:
    """Return the width of every column."""
    return [max(map(cells, column)) for column in zip(*rows, strict=True)]


def narrowed(
    widths: Sequence[int], names: int, width: int, least: Sequence[int] | None = None
) -> list[int]:
    """Narrow the first ``names`` columns, the widest first, until the line has ``width``; none
    below its ``least`` (default: 8)."""
    made = list(widths)
    least = least or [NARROWEST] * names
    excess = length_of(made) - width
    while excess > 0 and (wider := [n for n in range(names) if made[n] > least[n]]):
        made[max(wider, key=made.__getitem__)] -= 1
        excess -= 1
    return made


def length_of(widths: Sequence[int], gap: int = GAP) -> int:
    """Return the width of a line with such columns."""
    return sum(widths) + gap * (len(widths) - 1)


def stacked(head: Row, rows: Sequence[Row], width: int, *, names: int) -> list[str]:
    """Lay out a table whose first ``names`` columns contain words, in lines of at most ``width``.

    If it is too wide, its head is folded, or its gaps are narrowed; else its columns of figures are
    split into several blocks, each with the names. Blocks without a figure are omitted, and listed.
    """
    widths = widths_of([head, *rows])
    if length_of(widths) <= width:
        return aligned([head, *rows], widths, names)
    if names >= len(head):
        return wrapped(head, rows, width)
    least = _least_widths(head, rows, names)
    if length_of(least) > width >= length_of(widths, 1):
        return aligned([head, *rows], widths, names, gap=1)
    return _blocks(head, rows, _fit_columns(least, width, names), width, names)


def wrapped(head: Row, rows: Sequence[Row], width: int) -> list[str]:
    """Lay out columns of words; the widest are wrapped, inside a word only if the longest words
    of all columns do not fit side by side."""
    count = len(head)
    words = [max(map(_longest_word, column)) for column in zip(head, *rows, strict=True)]
    widths = narrowed(widths_of([head, *rows]), count, width, words)
    widths = narrowed(narrowed(widths, count, width), count, width, [1] * count)
    return [line for row in (head, *rows) for line in _folded_row(row, widths, count)]


def _longest_word(text: str) -> int:
    return max(map(cells, stiff(text).split(" ")))


def _folded(cell: str, width: int) -> list[str]:
    return [loosened(line) for line in broken(stiff(cell), width)] or [""]


def _folded_row(
    row: Row, widths: Sequence[int], names: int, *, names_too: bool = True
) -> list[str]:
    """Lay out a row whose figures, and unless ``names_too`` is false words, are wrapped if they
    are wider than their columns."""
    lines = [
        _folded(cell, size) if names_too or index >= names else [cell]
        for index, (cell, size) in enumerate(zip(row, widths, strict=True))
    ]
    return aligned(zip_longest(*lines, fillvalue=""), widths, names)


def _least_widths(head: Row, rows: Sequence[Row], names: int) -> list[int]:
    """Return the widths of the columns if the heads of figures are folded at every space."""
    widths = widths_of([head, *rows])
    figures = widths_of(rows) if rows else [0] * len(head)
    heads = map(_longest_word, head)
    return [*widths[:names], *map(max, figures[names:], list(heads)[names:])]


def _fit_columns(sizes: Sequence[int], width: int, names: int) -> list[int]:
    """Narrow the names if the columns do not fit, so that figures get half of the width, or as
    much as they need; and figures that still do not fit."""
    if length_of(sizes) <= width:
        return list(sizes)
    narrowest = length_of(narrowed(sizes[:names], names, 0))
    most = max(width - GAP - narrowest, width // 3)
    figures = [min(size, most) for size in sizes[names:]]
    beside_widest = width - GAP - max(figures, default=0)
    room = max(
        width - sum(GAP + size for size in figures),
        min(max(width // 2, narrowest), beside_widest),
    )
    made = narrowed(sizes[:names], names, room)
    return [*narrowed(made, names, room, [1] * names), *figures]


def _blocks(
    head: Row, rows: Sequence[Row], sizes: Sequence[int], width: int, names: int
) -> list[str]:
    """Lay out as many columns of figures as fit next to the names, then the next ones."""
    blocks: list[list[str]] = []
    empty: list[str] = []
    for part in _parts(sizes, width, names):
        if blocks and rows and all(row[n] in UNDEFINED for row in rows for n in part):
            empty += [head[n] for n in part]
            continue
        columns = [*range(names), *part]
        widths = [sizes[n] for n in columns]
        lines = _head_lines([head[n] for n in columns], widths, names)
        for row in rows:
            lines += _folded_row([row[n] for n in columns], widths, names, names_too=False)
        blocks.append(lines)
    left_out = broken(f"without a figure: {', '.join(empty)}", width, indent="  ")
    lines = [line for block in blocks for line in ("", *block)][1:]
    return [*lines, *(left_out if empty else [])]


def _head_lines(head: Row, widths: Sequence[int], names: int) -> list[str]:
    """Fold the heads of figures to the width of their columns; all end on the last line."""
    folded = [
        [name] if index < names else _folded(name, size)
        for index, (name, size) in enumerate(zip(head, widths, strict=True))
    ]
    most = max(map(len, folded))
    level = [[*[""] * (most - len(lines)), *lines] for lines in folded]
    return aligned(zip(*level, strict=True), widths, names)


def _parts(sizes: Sequence[int], width: int, names: int) -> list[list[int]]:
    """Divide the columns after the names among blocks of ``width``."""
    left = length_of(sizes[:names])
    parts: list[list[int]] = []
    used = width
    for column in range(names, len(sizes)):
        needed = GAP + sizes[column]
        if used + needed > width:
            parts.append([])
            used = left
        parts[-1].append(column)
        used += needed
    return parts


WARNINGS = 5

_LONGEST = 3  # lines that one sentence may take

_FEWER_NAMES = (24, 16, 12, 8, 6, 5, 4, 3, 2, 1)

_NARROWEST = 60

Format = Literal["table", "csv", "markdown", "latex"]

FORMATS: tuple[Format, ...] = get_args(Format)

_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"–": "--", "κ": r"$\kappa$", "<": r"$<$", ">": r"$>$", "|": r"$|$"}
)

_LIMITS_MARK = " [95 %]"

_WITH_LIMITS = re.compile(r"(\S+) \[(\S+), (\S+)\]")


class Table(NamedTuple):
    """A table of formatted cells; the first ``names`` columns contain words, the others figures."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    names: int = 2


Columns = Mapping[str, Callable[[T], str]]

"""The head of each column, and what it says of a row."""


def table_of(title: str, columns: Columns[T], rows: Iterable[T], names: int = 2) -> Table:
    """Return a table from columns that are declared as head and cell."""
    cells = [tuple(cell(row) for cell in columns.values()) for row in rows]
    return Table(title, tuple(columns), cells, names)


def render(tables: Sequence[Table], form: Format) -> str:
    """Render all tables, one after the other."""
    one = {"table": text, "csv": comma_separated, "markdown": markdown, "latex": latex}[form]
    return "\n".join(one(shown(table)) for table in tables)


def shown(table: Table) -> Table:
    """Replace what a terminal would obey in the table's cells."""
    return table._replace(rows=[tuple(map(one_line, row)) for row in table.rows])


def without_limits(table: Table) -> Table:
    """Leave out the intervals beside estimates."""
    rows = [tuple(_WITH_LIMITS.sub(r"\1", cell) for cell in row) for row in table.rows]
    head = tuple(name.replace(_LIMITS_MARK, "") for name in table.head)
    return table._replace(head=head, rows=rows)


def text(table: Table, width: int | None = None) -> str:
    """Aligned columns below the title, in lines of at most ``width`` (default: the screen's)."""
    width = width or screen_width()
    title = folded(table.title, width) if table.title else [""]
    lines = stacked(table.head, table.rows, width, names=table.names)
    return "\n".join([*title, *lines]) + "\n"


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
    match = _WITH_LIMITS.fullmatch(cell)
    return list(match.groups()) if match else ["" if cell == "–" else cell, "", ""]


def markdown(table: Table) -> str:
    """Render a pipe table below its title."""
    marks = [":--" if index < table.names else "--:" for index in range(len(table.head))]
    head, *rows = [[_markdown_cell(c) for c in row] for row in (table.head, *table.rows)]
    lines = [f"| {' | '.join(row)} |" for row in (head, marks, *rows)]
    return "\n".join([f"**{table.title}**", "", *lines]) + "\n"


def latex(table: Table) -> str:
    """Render a ``table`` with a ``tabular`` that needs the package booktabs."""
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


def print_tables(tables: Sequence[Table]) -> None:
    """Print on standard output, as text."""
    sys.stdout.write(render(tables, "table"))


def _markdown_cell(cell: str) -> str:
    return cell.strip().replace("\\", r"\\").replace("|", r"\|").replace("\n", " ")


def screen_width() -> int:
    """Return the number of columns of the terminal or of ``COLUMNS``, at most 100."""
    return max(_NARROWEST, min(COLUMNS, shutil.get_terminal_size((COLUMNS, LINES)).columns))


def folded(text: str, width: int, *, most: int | None = None) -> list[str]:
    """Wrap a sentence into lines of at most ``width`` columns, the later ones indented.

    A number stays with its percent sign. If there are more than ``most`` lines, the middle is
    removed, because sentences begin with what happened and end with the reason; names longer than a
    line are shortened first. Without ``most`` they are kept, as paths to copy.
    """
    kept = stiff(one_line(text), " [")
    lines = broken(kept, width, indent="  ", whole=True) or [""]
    if most is not None and (len(lines) > most or max(map(cells, lines)) > width):
        lines = _cut_to(kept, width, most)
    return [loosened(line) for line in lines]


def _cut_to(text: str, width: int, most: int) -> list[str]:
    """Wrap a sentence into ``most`` lines, with words removed from its middle if there are too
    many."""
    words = text.split(" ")
    for longest in (width - 2, width // 2, width // 3):
        words = [elided(word, longest) for word in words]
        lines = broken(" ".join(words), width, indent="  ")
        if len(lines) <= most:
            return lines
    begin = _first_words(words, most * (width - 2) * 2 // 5)
    last = _first_words(words[::-1], most * (width - 2))
    for room in range(most * (width - 2) * 3 // 5, -1, -1):
        end = _first_words(last, room)[::-1]
        lines = broken(" ".join([*begin, "…", *end]), width, indent="  ")
        if len(lines) <= most:
            break
    return lines


def _first_words(words: Sequence[str], width: int) -> list[str]:
    """Return the first words that fit into ``width`` columns."""
    sizes = accumulate(cells(word) + 1 for word in words)
    return [word for word, size in zip(words, sizes, strict=True) if size <= width]


def all_folded(sentences: Iterable[str]) -> list[str]:
    """Wrap sentences to the width of the screen."""
    width = screen_width()
    return [line for sentence in sentences for line in folded(sentence, width)]


def fitted(sentences: Callable[[int | None], Sequence[str]], width: int) -> list[str]:
    """Return sentences with as many names in their lists as fit into their lines.

    ``sentences`` is called with the maximum number of names of a list (None: all) and returns as
    many sentences for any number.
    """
    chosen = list(sentences(None))
    for names in _FEWER_NAMES:
        long = [n for n, each in enumerate(chosen) if len(folded(each, width)) > _LONGEST]
        if not long:
            break
        shorter = sentences(names)
        for n in long:
            chosen[n] = shorter[n]
    return chosen


def first_warnings(
    warnings: Sequence[str], width: int, *, rest: str, most: int = WARNINGS
) -> list[str]:
    """Wrap the first ``most`` warnings, without repetitions, and state where the others are."""
    each = list(dict.fromkeys(warnings))
    lines = [
        line for warning in each[: max(most, 0)] for line in folded(warning, width, most=_LONGEST)
    ]
    more = len(each) - max(most, 0)
    if more > 0:
        lines += folded(f"{count_of(more, 'more warning')}: {rest}", width)
    return lines


def columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, names: int
) -> list[str]:
    """Align a table within ``width``: the first ``names`` columns contain words and are
    left-aligned.

    If lines would be too long the widest column of words is shortened; figures never are: if they
    do not fit, they are laid out in blocks one below the other.
    """
    cells = [[one_line(cell) for cell in row] for row in (head, *rows)]
    widths = narrowed(widths_of(cells), names, width)
    if length_of(widths) > width:
        return stacked(cells[0], cells[1:], width, names=names)
    return aligned(cells, widths, names)


def cut_columns(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    room: int,
    *,
    names: int,
    more: Callable[[int], str],
) -> list[str]:
    """Align as many of the first rows as ``room`` lines hold; ``more`` describes the number of
    omitted rows in one line. Returns nothing without rows."""
    for kept in range(min(len(rows), max(room, 1)), 0, -1):
        left = len(rows) - kept
        lines = columns(head, rows[:kept], width, names=names)
        lines += [elided(more(left), width)] if left else []
        if len(lines) <= room or kept == 1:
            return lines
    return []


def first_screen(
    above: Sequence[str],
    tables: Sequence[Table],
    below: Sequence[str] = (),
    warnings: Sequence[str] = (),
    *,
    rest: str,
    more: str = "--full",
    most: int = WARNINGS,
    width: int | None = None,
    full: bool = False,
) -> str:
    """Lay out finding, tables, sentences and warnings, with a newline at the end: at most 40 lines,
    or with ``full`` all of them.

    ``rest`` states where the other results are, ``more`` where omitted rows are. Tables share the
    remaining lines; if these are few, fewer than ``most`` warnings are shown.
    """
    width, limit = width or screen_width(), LINES
    if full:
        most, limit = max(len(warnings), 1), sys.maxsize
    head = [line for text in above for line in folded(text, width, most=_LONGEST)]
    tail = [line for text in below for line in folded(text, width, most=_LONGEST)]
    last = folded(rest, width)
    least = len(head) + len(tail) + len(last) + 6 * len(tables) + 1
    for count in range(most, 0, -1):
        folded_warnings = first_warnings(warnings, width, rest=more, most=count)
        if least + len(folded_warnings) <= limit:
            break
    room = limit - len(head) - len(tail) - len(folded_warnings) - len(last) - 1
    body: list[str] = []
    for number, table in enumerate(tables):
        share = max((room - len(body)) // (len(tables) - number), 5)
        body += ["", *_cut(table, width, share - 1, more)]
    return "\n".join([*head, *body, "", *tail, *folded_warnings, *last]) + "\n"


def _cut(table: Table, width: int, room: int, more: str) -> list[str]:
    """Lay out a table in ``room`` lines, and state how many rows did not fit."""
    titled = folded(table.title, width, most=2) if table.title else []
    lines = cut_columns(
        *(table.head, table.rows, width, room - len(titled)),
        names=table.names,
        more=lambda left: f"and {left} more: {more}",
    )
    return [*titled, *lines]
