"""Write the reference from the code: a section per public name, and a page per command."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pymdownx.superfences import fence_code_format

sys.path.insert(0, str(Path(__file__).parents[2]))

from trajudge.eval.cli import COMMANDS, Command, named
from trajudge.util.settings import Argument, Setting, options_of

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


MERMAID = Path(__file__).parents[2] / "build/mermaid/package/dist/mermaid.min.js"  # make docs


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of the commands to the navigation, groups as sections; draw diagrams where
    ``make docs`` fetched what draws them, and leave them as text elsewhere."""
    if MERMAID.exists():
        fence = {"name": "mermaid", "class": "mermaid", "format": fence_code_format}
        config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
        config.extra_javascript.append("assets/mermaid.min.js")
    pages: list[dict[str, Any]] = [{"Overview": "commands/index.md"}]
    for name, entry in COMMANDS.items():
        if isinstance(entry, Command):
            pages.append({name: f"commands/{name}.md"})
        else:
            pages.append({name: [{each: f"commands/{name}-{each}.md"} for each in entry.commands]})
    for section in config.nav or []:
        if "Reference" in section:
            section["Reference"].append({"Commands": pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the commands, the changelog, and the script that draws diagrams."""
    if MERMAID.exists():
        script = MERMAID.read_bytes()
        files.append(File.generated(config, "assets/mermaid.min.js", content=script))
    lines = ["# Commands", "", "In the order of the work.", ""]
    for name, entry in COMMANDS.items():
        commands = {"": entry} if isinstance(entry, Command) else entry.commands
        if len(commands) > 1:
            lines += [f"- `trajudge {name}`: {entry.purpose}"]
        for each, command in commands.items():
            words = f"{name} {each}".strip()
            page = f"{words.replace(' ', '-')}.md"
            indent = "    " if each else ""
            lines.append(f"{indent}- [`trajudge {words}`]({page}): {command.purpose}")
            text = "\n".join(_command_page(words, command))
            files.append(File.generated(config, f"commands/{page}", content=text))
    text = "\n".join([*lines, ""])
    files.append(File.generated(config, "commands/index.md", content=text))
    changes = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changes.md", content=changes))
    return files


def _command_page(words: str, command: Command) -> Iterator[str]:
    """Yield the lines of a command's page: description, examples, a table of options a section."""
    kind = named(command.settings)
    yield from (f"# trajudge {words}", "")
    for paragraph in inspect.cleandoc(kind.__doc__ or "").split("\n\n"):
        lines = paragraph.splitlines()
        if all(line.startswith(("  ", "trajudge ")) for line in lines):
            yield from ("```", *inspect.cleandoc("\n" + paragraph).splitlines(), "```", "")
        else:
            yield from (*map(_escaped, lines), "")
    arguments = [one for one in options_of(kind) if isinstance(one.option, Argument)]
    options = [one for one in options_of(kind) if one not in arguments]
    if arguments:
        yield from _table("Arguments", arguments)
    first = [one for one in options if one.name in kind.first]
    if first:
        yield from _table("Options that most calls need", first)
    others = [one for one in options if one not in first]
    for section, group in groupby(others, key=lambda one: one.section):
        yield from _table(section[:1].upper() + section[1:] or "Options", [*group])
    if kind.epilog:
        yield from (_escaped(kind.epilog), "")


def _table(title: str, settings: list[Setting]) -> Iterator[str]:
    yield from (f"## {title}", "", "| | |", "| --- | --- |")
    for one in settings:
        alone = one.is_switch or isinstance(one.option, Argument)
        words = one.flag if alone else f"{one.flag} {one.metavar}".replace("|", "\\|")
        yield f"| `{words}` | {_escaped(one.help)} |"
    yield ""


def _escaped(text: str) -> str:
    """Return text of a help screen as Markdown that shows the same characters."""
    return re.sub(r"([\\`*_<>\[\]|{}])", r"\\\1", text)
