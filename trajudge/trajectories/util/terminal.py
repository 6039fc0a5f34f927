"""What is written for people and for programs that watch: untrusted text (names, page text, a
server's words) escaped for a terminal, and standard error as JSON lines."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# C0 and C1 controls (escape sequences begin with one), and what turns the direction of writing.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_FINAL_Y = re.compile("(?<=[^aeiou])y$")
_FINAL_HISS = re.compile("(s|x|z|ch|sh)$")
_LINE_BREAKS = re.compile(r"\s*[\r\n]+\s*")


def one_line(text: str) -> str:
    """``text`` on one line, every control character shown by its number instead of obeyed."""
    joined = _LINE_BREAKS.sub(" ", text.rstrip("\r\n"))
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", joined)


def count_of(count: int, noun: str) -> str:
    """Write ``count`` before ``noun`` (a regular one), in the plural unless it is one."""
    if count == 1:
        return f"1 {noun}"
    stem = _FINAL_HISS.sub(r"\1e", _FINAL_Y.sub("ie", noun))
    return f"{count:,} {stem}s"


def listed(names: Sequence[str], most: int | None = None, *, sign: str = ", ") -> str:
    """List names with ``sign`` between them; of more than ``most`` the first, and how many more."""
    if most is None or len(names) <= most:
        return sign.join(names)
    return f"{sign.join(names[:most])} and {len(names) - most:,} more"


def terminal_console(
    *,
    stderr: bool = False,
    file: IO[str] | None = None,
    width: int | None = None,
    soft_wrap: bool = False,
) -> Console:
    """Create a rich console that shows text as it is: what looks like markup or like the code of
    an emoji (``[bold]``, ``:x:``) is part of a name."""
    from rich.console import Console  # noqa: PLC0415 - plain output needs none of it

    return Console(
        stderr=stderr,
        file=file,
        width=width,
        soft_wrap=soft_wrap,
        markup=False,
        emoji=False,
        highlight=False,
    )


class JsonLines(io.TextIOBase):
    """Standard error as one JSON object per line: ``time`` (UTC), ``event``, and what belongs to
    the event.

    A line of text is a ``note``, a ``warning``, an ``error`` (as it begins) or else ``text``, with
    its ``message``.
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
        import json  # noqa: PLC0415 - where it is asked for
        from datetime import UTC, datetime  # noqa: PLC0415

        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": name, **fields}, ensure_ascii=False)
        self._stream.write(line + "\n")
        self._stream.flush()

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()
