"""Write the API reference from ``trajudge.__all__``, so that no public name is left out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

MARK = "<!-- public names -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put a section per public name, functions first, in place of the mark."""
    if MARK not in markdown:
        return markdown
    import trajudge  # noqa: PLC0415 - only this page needs it

    functions = [name for name in trajudge.__all__ if name.islower()]
    classes = [name for name in trajudge.__all__ if name not in functions]
    parts = [*_section("Functions", functions), *_section("Records", classes)]
    return markdown.replace(MARK, "\n".join(parts))


def _section(title: str, names: list[str]) -> list[str]:
    import trajudge  # noqa: PLC0415

    lines = [f"## {title}", ""]
    for name in names:
        home = f"trajudge.{trajudge._HOMES[name]}.{name}"
        lines += [f"::: {home}", "    options:", f"      heading: trajudge.{name}"]
        lines += [f"      toc_label: {name}", ""]
    return lines
