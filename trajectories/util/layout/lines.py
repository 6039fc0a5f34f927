"""The lines of a table, none longer than the screen: its columns of figures stand in blocks one
below the other where they are too many, and words go over several lines where there are no figures.
Figures are never cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from textwrap import wrap

from trajudge.trajectories.util.terminal import elided

GAP = 2
NARROWEST = 8  # to which a column of words is shortened
UNDEFINED = frozenset({"", "–"})

Row = Sequence[str]


def aligned(rows: Iterable[Row], widths: Sequence[int], names: int, gap: int = GAP) -> list[str]:
    """One line per row: the first ``names`` cells cut to their width and left, others right."""
    return [
        (" " * gap)
        .join(
            elided(cell, width).ljust(width) if index < names else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        .rstrip()
        for row in rows
    ]


def widths_of(rows: Iterable[Row]) -> list[int]:
    """Return the width of every column."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def narrowed(widths: Sequence[int], names: int, width: int) -> list[int]:
    """Narrow the first ``names`` columns, the widest first, until the line has ``width``."""
    made = list(widths)
    excess = _length(made, GAP) - width
    while excess > 0 and names:
        widest = max(range(names), key=made.__getitem__)
        if made[widest] <= NARROWEST:
            break
        made[widest] -= 1
        excess -= 1
    return made


def stacked(head: Row, rows: Sequence[Row], width: int, *, names: int) -> list[str]:
    """Lay out a table whose first ``names`` columns hold words, in lines of at most ``width``.

    What is too wide gets its head folded, or narrower gaps; else its columns of figures go into
    several blocks, each beside the names. A block without one figure is left out, and named.
    """
    widths = widths_of([head, *rows])
    if _length(widths, GAP) <= width:
        return aligned([head, *rows], widths, names)
    if names >= len(head):
        return wrapped(head, rows, width)
    least = _least_widths(head, rows, names)
    if _length(least, GAP) > width >= _length(widths, 1):
        return aligned([head, *rows], widths, names, gap=1)
    return _blocks(head, rows, _beside(least, width, names), width, names)


def _length(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def wrapped(head: Row, rows: Sequence[Row], width: int) -> list[str]:
    """Lay out columns of words; the widest go over several lines."""
    widths = narrowed(widths_of([head, *rows]), len(head), width)
    return [line for row in (head, *rows) for line in _folded_row(row, widths, len(head))]


def _words(text: str) -> str:
    """Keep a number and its percent sign together where lines are broken."""
    return text.replace(" %", "\0%")


def _folded_row(row: Row, widths: Sequence[int], names: int) -> list[str]:
    cells = [wrap(cell, size) or [""] for cell, size in zip(row, widths, strict=True)]
    return aligned(zip_longest(*cells, fillvalue=""), widths, names)


def _is_empty(rows: Sequence[Row], column: int) -> bool:
    return bool(rows) and all(row[column] in UNDEFINED for row in rows)


def _chosen(row: Row, columns: Sequence[int]) -> list[str]:
    return [row[n] for n in columns]


def _least_widths(head: Row, rows: Sequence[Row], names: int) -> list[int]:
    """Return the widths of the columns where the heads of figures are folded at every space."""
    words = [max(_words(name).split(), key=len, default="") for name in head]
    return [*widths_of([head, *rows])[:names], *widths_of([words, *rows])[names:]]


def _beside(sizes: Sequence[int], width: int, names: int) -> list[int]:
    """Narrow the names where not all columns fit, so that figures have half of the width, or what
    they need of it."""
    if _length(sizes, GAP) <= width:
        return list(sizes)
    rest = width - sum(GAP + size for size in sizes[names:])
    room = max(rest, min(width // 2, width - GAP - max(sizes[names:], default=0)))
    return [*narrowed(sizes[:names], names, room), *sizes[names:]]


def _blocks(
    head: Row, rows: Sequence[Row], sizes: Sequence[int], width: int, names: int
) -> list[str]:
    """Lay out as many columns of figures as fit beside the names, then the next."""
    blocks: list[list[str]] = []
    empty: list[str] = []
    for part in _parts(sizes, width, names):
        if blocks and all(_is_empty(rows, n) for n in part):
            empty += _chosen(head, part)
            continue
        columns = [*range(names), *part]
        widths = [sizes[n] for n in columns]
        lines = _head_lines(_chosen(head, columns), widths, names)
        blocks.append([*lines, *aligned([_chosen(row, columns) for row in rows], widths, names)])
    names_of_empty = f"without a figure: {', '.join(empty)}"
    left_out = wrap(names_of_empty, width, subsequent_indent="  ", break_on_hyphens=False)
    lines = [line for block in blocks for line in ("", *block)][1:]
    return [*lines, *(left_out if empty else [])]


def _head_lines(head: Row, widths: Sequence[int], names: int) -> list[str]:
    """Fold the heads of figures to the width of their columns; all end on the last line."""
    folded = [
        [name] if index < names else wrap(_words(name), size, break_long_words=False)
        for index, (name, size) in enumerate(zip(head, widths, strict=True))
    ]
    most = max(map(len, folded))
    padded = [[*[""] * (most - len(lines)), *lines] for lines in folded]
    lines = aligned(zip(*padded, strict=True), widths, names)
    return [line.replace("\0", " ") for line in lines]


def _parts(sizes: Sequence[int], width: int, names: int) -> list[list[int]]:
    """Divide the columns after the names among blocks of ``width``."""
    left = _length(sizes[:names], GAP)
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
