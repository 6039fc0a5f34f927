"""How a command's ``--help`` is laid out: no wider than a table, paragraphs filled, and the names
of the options that it does not explain."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterable
from textwrap import fill, wrap

from trajudge.trajectories.util.layout.cells import STIFF, broken, loosened
from trajudge.trajectories.util.layout.screen import COLUMNS

_MARGIN = 4
_EDGE = 2  # columns left free, as some terminals wrap a line that fills them
_VALUE = re.compile(r"( --?[a-z][a-z-]*) (?=[^- ])")  # stays beside its option
_COMMAND = re.compile(r" +(trajudge|python) ")


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
    return terminal_width() - _EDGE


def terminal_width() -> int:
    """Return the columns of the terminal, at most 100."""
    return min(shutil.get_terminal_size().columns, COLUMNS)


def fitted(text: str, width: int) -> str:
    """Break the lines that are wider than the screen: an example so that a shell still takes it."""
    return "\n".join(part for line in text.split("\n") for part in _fitted(line, width))


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


def _fitted(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    text = line.lstrip()
    if _COMMAND.match(line):
        return _example(text, " " * (len(line) - len(text)), width)
    start = " " * max(min(len(line), width) - len(text), _MARGIN // 2)
    return broken(start + text, width, indent=start + " " * _MARGIN)


def _example(text: str, start: str, width: int) -> list[str]:
    """Continue a command on the next line, as a shell has it; its remark goes above."""
    words, mark, remark = text.partition(" # ")
    above = broken(f"{start}# {remark}", width, indent=f"{start}# ") if mark else []
    margin = start + " " * _MARGIN
    kept = _VALUE.sub(rf"\1{STIFF}", start + words.rstrip())
    lines = broken(kept, width - len(" \\"), indent=margin, whole=True)
    return [*above, *loosened(" \\\n".join(lines)).split("\n")]
