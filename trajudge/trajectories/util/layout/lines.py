"""The lines of a table, none longer than the screen: its columns of figures stand in blocks one
below the other where they are too many, and words go over several lines where there are no figures.
Figures are never cut; one that is wider than the screen goes over several lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from trajudge.trajectories.util.layout.cells import broken, cells, elided, loosened, padded, stiff

GAP = 2
NARROWEST = 8  # to which a column of words is shortened
UNDEFINED = frozenset({"", "–"})

Row = Sequence[str]


def aligned(rows: Iterable[Row], widths: Sequence[int], names: int, gap: int = GAP) -> list[str]:
    """One line per row: the first ``names`` cells cut to their width and left, others right."""
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
    """Lay out a table whose first ``names`` columns hold words, in lines of at most ``width``.

    What is too wide gets its head folded, or narrower gaps; else its columns of figures go into
    several blocks, each beside the names. A block without one figure is left out, and named.
    """
    widths = widths_of([head, *rows])
    if length_of(widths) <= width:
        return aligned([head, *rows], widths, names)
    if names >= len(head):
        return wrapped(head, rows, width)
    least = _least_widths(head, rows, names)
    if length_of(least) > width >= length_of(widths, 1):
        return aligned([head, *rows], widths, names, gap=1)
    return _blocks(head, rows, _beside(least, width, names), width, names)


def wrapped(head: Row, rows: Sequence[Row], width: int) -> list[str]:
    """Lay out columns of words; the widest go over several lines, broken inside a word only where
    the longest words of all columns have no room beside each other."""
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
    """Lay out a row whose figures, and unless ``names_too`` is false words, are broken where they
    are wider than their columns."""
    lines = [
        _folded(cell, size) if names_too or index >= names else [cell]
        for index, (cell, size) in enumerate(zip(row, widths, strict=True))
    ]
    return aligned(zip_longest(*lines, fillvalue=""), widths, names)


def _is_empty(rows: Sequence[Row], column: int) -> bool:
    return bool(rows) and all(row[column] in UNDEFINED for row in rows)


def _chosen(row: Row, columns: Sequence[int]) -> list[str]:
    return [row[n] for n in columns]


def _least_widths(head: Row, rows: Sequence[Row], names: int) -> list[int]:
    """Return the widths of the columns where the heads of figures are folded at every space."""
    widths = widths_of([head, *rows])
    figures = widths_of(rows) if rows else [0] * len(head)
    heads = map(_longest_word, head)
    return [*widths[:names], *map(max, figures[names:], list(heads)[names:])]


def _beside(sizes: Sequence[int], width: int, names: int) -> list[int]:
    """Narrow the names where not all columns fit, so that figures have half of the width, or what
    they need of it; and figures that do not fit even so."""
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
        for row in rows:
            lines += _folded_row(_chosen(row, columns), widths, names, names_too=False)
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
