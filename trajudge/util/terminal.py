"""Text for people and for monitoring programs: untrusted text on one line, progress, the display
width of text, and the layout of ``--help``."""

from __future__ import annotations

import argparse
import io
import json
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from textwrap import fill, wrap
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


# C0 and C1 controls (escape sequences begin with one), and what turns the direction of writing.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_FINAL_Y = re.compile("(?<=[^aeiou])y$")

_FINAL_HISS = re.compile("(s|x|z|ch|sh)$")

_LINE_BREAKS = re.compile(r"\s*[\r\n]+\s*")


def one_line(text: str) -> str:
    """Return ``text`` on one line, with every control character replaced by its number."""
    joined = _LINE_BREAKS.sub(" ", text.rstrip("\r\n"))
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", joined)


def count_of(count: int, noun: str) -> str:
    """Write ``count`` before ``noun`` (a regular one), in the plural unless it is one."""
    if count == 1:
        return f"1 {noun}"
    stem = _FINAL_HISS.sub(r"\1e", _FINAL_Y.sub("ie", noun))
    return f"{count:,} {stem}s"


def listed(names: Sequence[str], most: int | None = None, *, sign: str = ", ") -> str:
    """Join names with ``sign``; if there are more than ``most``, the first ones and the number
    of the others."""
    if most is None or len(names) <= most:
        return sign.join(names)
    return f"{sign.join(names[:most])} and {len(names) - most:,} more"


def terminal_console(
    *,
    stderr: bool = False,
    file: IO[str] | None = None,
) -> Console:
    """Return a rich console that shows text literally: markup or emoji codes (``[bold]``,
    ``:x:``) are part of a name."""
    from rich.console import Console  # noqa: PLC0415 - plain output needs none of it

    return Console(
        stderr=stderr,
        file=file,
        markup=False,
        emoji=False,
        highlight=False,
    )


class JsonLines(io.TextIOBase):
    """Standard error as one JSON object per line: ``time`` (UTC), ``event``, and the event's
    fields.

    A line of text is a ``note``, a ``warning``, an ``error`` (by its beginning) or else ``text``,
    with its ``message``.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in filter(str.strip, lines):
            head, colon, message = line.partition(": ")
            if colon and head in ("note", "warning", "error"):
                self.event(head, message=message)
            else:
                self.event("text", message=line)
        return len(text)

    def event(self, name: str, **fields: Any) -> None:
        """Write one event."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": name, **fields}, ensure_ascii=False)
        self._stream.write(line + "\n")
        self._stream.flush()

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()


def log_as_json() -> None:
    """Write JSON lines to standard error until the command ends."""
    if not isinstance(sys.stderr, JsonLines):
        sys.stderr = JsonLines(sys.stderr)


ShowProgress = Callable[[str, int, int], None]

"""Takes what is counted, how many are done and how many there are."""

PLAIN_EVERY = 10.0  # seconds between two lines of progress where no terminal shows a bar

_BAR_AFTER = 1.0  # seconds: a quicker command shows no bar

_outer: list[tuple[str, ShowProgress]] = []  # what the block that shows progress is doing


@contextmanager
def progress_bar(doing: str = "") -> Iterator[ShowProgress]:
    """Yield a function that shows progress on standard error.

    A terminal gets a bar that disappears at the end of the block, anything else a line every ten
    seconds. ``doing`` is shown until something is counted; without it the bar appears with the
    first call. A nested block uses the outer one's bar.
    """
    if _outer:
        outer_doing, show = _outer[0]
        try:
            yield show
        finally:
            if outer_doing:
                show(outer_doing, 0, 0)
        return
    with _bar(doing) if sys.stderr.isatty() else _plain_lines(doing) as show:
        _outer.append((doing, show))
        try:
            yield show
        finally:
            _outer.clear()


@contextmanager
def _bar(doing: str) -> Iterator[ShowProgress]:
    lock, is_over = threading.Lock(), False
    progress: Progress | None = None
    label, done, total = doing, 0, 0

    def draw() -> None:
        from rich.progress import Progress  # noqa: PLC0415 - only where somebody looks

        nonlocal progress
        with lock:
            if is_over:
                return
            if progress is None:
                console = terminal_console(stderr=True)
                # Text for a file must not be written above the bar.
                above = sys.stdout.isatty()
                progress = Progress(console=console, transient=True, redirect_stdout=above)
                progress.start()
            if not progress.tasks or progress.tasks[0].total != (total or None):
                for row in progress.task_ids:
                    progress.remove_task(row)
                progress.add_task(label, total=total or None)
            progress.update(progress.task_ids[0], description=label, completed=done)

    def show(*now: Any) -> None:
        nonlocal label, done, total
        label, done, total = now
        draw()

    timer = threading.Timer(_BAR_AFTER, draw)
    timer.daemon = True
    if doing:
        timer.start()
    try:
        yield show
    finally:
        timer.cancel()
        with lock:
            is_over = True
            if progress is not None:
                progress.stop()


@contextmanager
def _plain_lines(doing: str) -> Iterator[ShowProgress]:
    is_over, begun, line = threading.Event(), time.monotonic(), doing

    def repeat() -> None:
        while not is_over.wait(PLAIN_EVERY):
            sys.stderr.write(f"{line}, {time.monotonic() - begun:.0f} s\n")
            sys.stderr.flush()

    lines = threading.Thread(target=repeat, daemon=True)

    def show(label: str, done: int, total: int) -> None:
        nonlocal line
        line = f"{label}: {done:,} of {total:,}" if total else label
        if lines.ident is None:
            lines.start()

    if doing:
        lines.start()
    try:
        yield show
    finally:
        is_over.set()


COLUMNS, LINES = 100, 40

# What our own texts consist of; each takes one column, and measuring it needs no library.
_NARROW = re.compile("[ -~\xa0-\u02ff\u0370-\u0482\u2010-\u2027\u2030-\u205e\u2190-\u22ff]*")

_WORD = re.compile(r"[ \t\n]+|[^ \t\n]+")

_JOINTS = "-_/:.,;|"  # after which a long word is broken rather than elsewhere

STIFF = "\xa0"  # a space where no line is broken


def cells(text: str) -> int:
    """Return the display width of a line of text."""
    if _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - only names that others gave need it

    return cell_len(text)


def elided(name: str, width: int) -> str:
    """Shorten a name to ``width`` columns by removing its middle."""
    if cells(name) <= width:
        return name
    units = list(_units(name))
    head = _first(units, min(max((width - 1) * 2 // 3, 1), width - 1))
    tail = _first(reversed(units), width - 1 - cells("".join(head)))
    return f"{''.join(head)}…{''.join(reversed(tail))}"


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Pad a text to ``width`` columns, left- or with ``right`` right-aligned."""
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks


def broken(text: str, width: int, *, indent: str = "", whole: bool = False) -> list[str]:
    """Wrap a text at spaces into lines of at most ``width`` columns, the later ones indented.

    A word longer than a line is broken after a punctuation mark if it has one; ``whole``: a path
    only between wide characters, so that it can be copied.
    """
    lines: list[str] = []
    line = ""
    for part in _WORD.findall(text):
        if not part.strip():
            line += part if line.strip() or not lines else ""
            continue
        if cells(line + part) <= width:
            line += part
            continue
        if line.strip():
            lines.append(line.rstrip())
            line = indent
        path = whole and "/" in part
        *full, last = _pieces(part, width - cells(line), width - cells(indent), whole=path)
        for piece in full:
            lines.append(line + piece)
            line = indent
        line += last
    return [*lines, line.rstrip()] if line.strip() else lines


def stiff(text: str, *parts: str) -> str:
    """Replace the spaces between a number and its percent sign and inside ``parts`` by
    unbreakable ones, until ``loosened``."""
    for part in (" %", *parts):
        text = text.replace(part, part.replace(" ", STIFF))
    return text


def loosened(text: str) -> str:
    """Replace the unbreakable spaces of ``stiff`` by ordinary ones."""
    return text.replace(STIFF, " ")


def hanging(label: str, text: str, width: int) -> list[str]:
    """Put a text after its label, with a hanging indent."""
    return broken(label + text, width, indent=" " * len(label))


def _units(text: str) -> Iterator[str]:
    """Split a text at the positions where a terminal could break it: combining marks and joined
    emoji stay together."""
    unit = ""
    for character in text:
        size = cells(character)
        if unit and size and cells(unit + character) - cells(unit) == size:
            yield unit
            unit = ""
        unit += character
    if unit:
        yield unit


def _first(units: Iterable[str], width: int) -> list[str]:
    """Return as many units as fit into ``width`` columns."""
    chosen: list[str] = []
    for unit in units:
        width -= cells(unit)
        if width < 0:
            break
        chosen.append(unit)
    return chosen


def _pieces(word: str, width: int, later: int, *, whole: bool) -> list[str]:
    """Split a word into lines: the first has ``width`` columns, the others ``later``."""
    left = cells(word)
    if left <= width:
        return [word]
    pieces: list[str] = []
    units, start = list(_units(word)), 0
    while left > width:
        # No more of them fit on the line, because each except the first takes a column.
        kept = _cut(units[start : start + max(width, 0) + 1], width, whole=whole)
        if not kept:
            break
        pieces.append("".join(units[start : start + kept]))
        start += kept
        left, width = left - cells(pieces[-1]), later
    return [*pieces, "".join(units[start:])]


def _cut(units: list[str], width: int, *, whole: bool) -> int:
    """Return the number of units on a line of ``width`` columns; 0 if the word is not broken."""
    most = max(len(_first(units, width)), 1)
    if whole:
        wide = (n for n in range(most, 0, -1) if cells(units[n - 1]) > 1)
        return next(wide, 0)
    joints = (n for n in range(most, most // 2, -1) if units[n - 1] in _JOINTS)
    return next(joints, most)


_MARGIN = 4

_EDGE = 2  # columns left free, as some terminals wrap a line that fills them

_VALUE = re.compile(r"( --?[a-z][a-z-]*) (?=[^- ])")  # stays beside its option

_COMMAND = re.compile(r" +(trajudge|python) ")


class ParagraphFormatter(argparse.HelpFormatter):
    """Fills the screen up to 100 columns; indented text, such as examples, is kept."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=help_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(_filled(part, width, indent) for part in text.strip("\n").split("\n\n"))


def help_width() -> int:
    """Return the number of columns, without those at which a terminal may wrap."""
    return terminal_width() - _EDGE


def terminal_width() -> int:
    """Return the columns of the terminal, at most 100."""
    return min(shutil.get_terminal_size().columns, COLUMNS)


def fitted(text: str, width: int) -> str:
    """Wrap the lines that are wider than the screen: examples so that a shell still accepts
    them."""
    return "\n".join(part for line in text.split("\n") for part in _fitted(line, width))


def option_index(groups: Iterable[argparse._ArgumentGroup], width: int) -> list[str]:
    """List the options of each group, below one another."""
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
    """Continue a command on the next line in the shell's syntax; its remark goes above."""
    words, mark, remark = text.partition(" # ")
    above = broken(f"{start}# {remark}", width, indent=f"{start}# ") if mark else []
    margin = start + " " * _MARGIN
    kept = _VALUE.sub(rf"\1{STIFF}", start + words.rstrip())
    lines = broken(kept, width - len(" \\"), indent=margin, whole=True)
    return [*above, *loosened(" \\\n".join(lines)).split("\n")]
