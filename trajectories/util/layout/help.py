"""How a command's ``--help`` is laid out: no wider than a table, paragraphs filled, and the names
of the options that it does not explain."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable
from textwrap import fill, wrap

from trajudge.trajectories.util.layout.screen import COLUMNS

_MARGIN = 4


class HelpFormatter(argparse.HelpFormatter):
    """Fills the screen up to 100 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=help_width())


class ParagraphFormatter(HelpFormatter):
    """Keeps what stands indented as it is, such as examples, and fills the paragraphs around it."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(_filled(part, width, indent) for part in text.strip("\n").split("\n\n"))


def help_width() -> int:
    """Return the columns to fill, less what a terminal may wrap at."""
    return min(shutil.get_terminal_size().columns, COLUMNS) - 2


def option_index(groups: Iterable[argparse._ArgumentGroup], width: int) -> list[str]:
    """Name the options of each group, below one another."""
    lines: list[str] = []
    for group in groups:
        names = [a.option_strings[-1] for a in group._group_actions if a.help != argparse.SUPPRESS]
        indent = " " * _MARGIN
        line = f"  {group.title}: {' '.join(names)}"
        lines += wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
    return lines


def _filled(part: str, width: int, indent: str) -> str:
    lines = part.split("\n")
    if any(line.startswith(" ") for line in lines):
        return "\n".join(indent + line for line in lines)
    return fill(part, width, initial_indent=indent, subsequent_indent=indent)
