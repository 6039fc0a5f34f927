"""Write the API reference from ``trajudge.__all__``, so that no public name is left out."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

MARK = "<!-- public names -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put a section per public name, functions first, in place of the mark."""
    if MARK not in markdown:
        return markdown
    import trajudge  # noqa: PLC0415 - only this page needs it

    homes = {name: f"trajudge.{home}.{name}" for name, home in trajudge._HOMES.items()}
    functions = [name for name in homes if name.islower()]
    records = [name for name in homes if name not in functions]
    parts = _section("Functions", {name: homes[name] for name in functions})
    for name in KEYWORDS:
        parts += _keywords(name)
    parts += _section("Records", {name: homes[name] for name in records})
    for name in trajudge.__all__:
        if name not in homes:
            module = getattr(trajudge, name)
            parts += _section(f"trajudge.{name}", _members(name, module), about=module.__doc__)
    return markdown.replace(MARK, "\n".join(parts))


# Functions whose further keywords are the options of a command.
KEYWORDS = ("judge", "score", "select", "accept", "audit")


def _keywords(name: str) -> list[str]:
    """Return a table of the keywords of a function, with the option that each is."""
    from trajudge.face.calls import keywords  # noqa: PLC0415 - only this page needs it

    lines = [f"### Keywords of {name}", "", "| keyword | option | |", "| --- | --- | --- |"]
    for keyword, setting in keywords(name).items():
        if keyword == setting.name:  # a field may have another name as well
            about = setting.help.replace("|", "\\|")
            lines.append(f"| `{keyword}` | `{setting.flag}` | {about} |")
    return [*lines, ""]


def _members(name: str, module: Any) -> dict[str, str]:
    """Return the public names of a module, and where each is defined."""
    found = {member: getattr(module, member) for member in module.__all__}
    return {
        f"{name}.{member}": f"{value.__module__}.{value.__qualname__}"
        for member, value in found.items()
    }


def _section(title: str, homes: Mapping[str, str], about: str | None = None) -> list[str]:
    lines = [f"## {title}", "", *([about.split("\n\n")[0], ""] if about else [])]
    for name, home in homes.items():
        lines += [f"::: {home}", "    options:", f"      heading: trajudge.{name}"]
        lines += [f"      toc_label: {name}", ""]
    return lines
