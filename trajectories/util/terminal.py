"""Escape untrusted text for terminal output: names, page text, a server's words."""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# C0 and C1 controls (escape sequences begin with one), and what turns the direction of writing.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_LINE_BREAKS = re.compile(r"\s*[\r\n]+\s*")


def one_line(text: str) -> str:
    """``text`` on one line, every control character shown by its number instead of obeyed."""
    joined = _LINE_BREAKS.sub(" ", text.rstrip("\r\n"))
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", joined)


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
