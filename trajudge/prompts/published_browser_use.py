"""browser-use's own prompts for its built-in judge, read from the installed package.

They are not part of this software: they are read at run time from ``browser_use/agent/judge.py``
(MIT), which is parsed, never imported or run. Its f-strings are filled by our own code; one thing
is not as there unless it is sent as recorded: what pages and agents wrote is neutralised.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from trajudge.prompts.published import PublishedText, Untrusted, package_folder
from trajudge.prompts.render import TAG, sendable
from trajudge.trajectories.util.errors import UserError

PACKAGE = "browser_use"
INSTALL = "pip install --no-deps browser-use"
_FUNCTION = "construct_judge_messages"
# The texts by their variable, with the values that each is filled with.
_TEXTS = {
    "ground_truth_section": set[str](),
    "system_prompt": {"ground_truth_section", "current_date"},
    "ground_truth_prompt": {"ground_truth"},
    "user_prompt": {
        "task_truncated",
        "ground_truth_prompt",
        "steps_text_truncated",
        "final_result_truncated",
        "len(encoded_images)",
    },
}


@dataclass(frozen=True)
class Slot:
    """A place in a text: the expression that fills it, and what stands there for an empty value."""

    name: str
    default: str = ""


Template = tuple[str | Slot, ...]


@dataclass(frozen=True)
class PublishedJudge:
    """The package's texts by variable, and the mark of a cut. ``hash`` is SHA-256 over them and how
    ``untrusted`` text is written into them."""

    texts: Mapping[str, Template]
    mark: str
    hash: str
    untrusted: PublishedText

    def system(self, *, ground_truth: bool, date: str) -> str:
        """Render the system prompt; ``date`` as the package writes it: 2026-01-31 12:00 UTC."""
        section = self._filled("ground_truth_section") if ground_truth else ""
        return self._filled("system_prompt", ground_truth_section=section, current_date=date)

    def user(
        self, *, task: str, steps: str, result: str, ground_truth: str | None, images: int
    ) -> str:
        """Render the user's text, whose values are untrusted; ``images`` is how many follow."""
        truth = ""
        if ground_truth is not None:
            truth = self._filled(
                "ground_truth_prompt", ground_truth=self.untrusted.shown(ground_truth)
            )
        return self._filled(
            "user_prompt",
            **{
                "task_truncated": self.untrusted.shown(task),
                "ground_truth_prompt": truth,
                "steps_text_truncated": self.untrusted.shown(steps),
                "final_result_truncated": self.untrusted.shown(result),
                "len(encoded_images)": str(images),
            },
        )

    def _filled(self, name: str, **values: str) -> str:
        parts = (
            part if isinstance(part, str) else values[part.name] or part.default
            for part in self.texts[name]
        )
        return sendable("".join(parts))


@cache
def load_published_judge(untrusted: Untrusted = "neutralised") -> PublishedJudge:
    """Load the prompts of the installed package. Raises UserError if it is not installed, or if its
    file does not hold the texts that this version of trajudge knows."""
    folder = package_folder("browser-use", PACKAGE, INSTALL)
    return read_published_judge(folder / "agent" / "judge.py", untrusted)


def read_published_judge(path: Path, untrusted: Untrusted = "neutralised") -> PublishedJudge:
    """Read the prompts in the package's ``agent/judge.py``."""
    try:
        module = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read as browser-use's judge ({error}): install it again with  "
            f"{INSTALL}"
        ) from error
    texts_of = dict(_assigned(_function(module, _FUNCTION)))
    mark = _mark(_function(module, "_truncate_text"))
    for name, slots in _TEXTS.items():
        named = {part.name for part in texts_of.get(name, ()) if isinstance(part, Slot)}
        if name not in texts_of or named != slots or not mark:
            raise UserError(
                f"{path} does not hold the judge's {name} as it is known: install browser-use "
                "0.13, or leave --prompts out"
            )
    texts = {name: texts_of[name] for name in _TEXTS}
    words = (part for text in texts.values() for part in text if isinstance(part, str))
    tags = frozenset(tag for part in words for tag in TAG.findall(part))
    shown = PublishedText(tags, untrusted)
    content = repr([*texts.items(), mark, shown.version])
    return PublishedJudge(texts, mark, sha256(content.encode()).hexdigest(), shown)


def _function(module: ast.Module, name: str) -> ast.FunctionDef | None:
    functions = (node for node in module.body if isinstance(node, ast.FunctionDef))
    return next((function for function in functions if function.name == name), None)


def _assigned(function: ast.FunctionDef | None) -> Iterator[tuple[str, Template]]:
    """Yield the texts that the function assigns, but for the empty ones."""
    for node in ast.walk(function) if function else ():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = _template(node.value)
            if text is not None and text != ("",):
                yield node.targets[0].id, text


def _template(value: ast.expr) -> Template | None:
    """Return the parts of a string or f-string, None for any other value."""
    if isinstance(value, ast.Constant):
        return (value.value,) if isinstance(value.value, str) else None
    if not isinstance(value, ast.JoinedStr):
        return None
    parts: list[str | Slot] = []
    for part in value.values:
        if isinstance(part, ast.FormattedValue):
            parts.append(_slot(part.value))
        elif isinstance(part, ast.Constant):
            parts.append(str(part.value))
    return tuple(parts)


def _slot(value: ast.expr) -> Slot:
    """Return the place of ``name``, or of ``name or "what stands there else"``."""
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or) and len(value.values) == 2:
        first, default = value.values
        if isinstance(default, ast.Constant):
            return Slot(ast.unparse(first), str(default.value))
    return Slot(ast.unparse(value))


def _mark(function: ast.FunctionDef | None) -> str:
    """Return what the function puts behind a text that it cut, "" if it is not as it is known."""
    nodes = ast.walk(function) if function else ()
    for node in (node for node in nodes if isinstance(node, ast.BinOp)):
        if isinstance(node.left, ast.Subscript) and isinstance(node.right, ast.Constant):
            return str(node.right.value)
    return ""
