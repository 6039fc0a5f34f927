"""Published prompts, read from the packages that hold them: AgentRewardBench's for the simplified
judge, browser-use's for its built-in judge.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from trajudge.prompts.render import TAG, sendable
from trajudge.prompts.untrusted import VERSION, count_changes, neutralise
from trajudge.util.errors import UserError
from trajudge.util.files import read_text

PACKAGE = "agent_reward_bench"

INSTALL = "pip install --no-deps agent-reward-bench"

_NAMES = (
    "SYSTEM_PROMPT",
    "INVERTED_SYSTEM_PROMPT",
    "STEP_TEMPLATE",
    "GOAL_TEMPLATE",
    "ACTION_TEMPLATE",
    "AXTREE_TEMPLATE",
    "FINAL_MSG",
)


CHANGES = "changed_places"

"""The score of a verdict that counts the places of a run that were not sent as recorded."""

Untrusted = Literal["neutralised", "as-recorded"]


@dataclass(frozen=True)
class PublishedText:
    """How a published prompt shows what pages and agents wrote: without the ``tags`` of the prompt
    and the marks of chat templates, or as recorded but for characters that no API takes."""

    tags: frozenset[str]
    untrusted: Untrusted

    @property
    def version(self) -> str:
        """What a prompt's hash holds of it."""
        return f"untrusted text {VERSION}, own tags" if self._neutralises else self.untrusted

    @property
    def _neutralises(self) -> bool:
        return self.untrusted == "neutralised"

    def shown(self, text: str) -> str:
        """Return the text as it is sent."""
        return sendable(neutralise(text, self.tags) if self._neutralises else text)

    def changes(self, texts: Iterable[str | None]) -> int:
        """Count the places of the texts that are not sent as they were recorded."""
        return sum(count_changes(text, self.shown) for text in texts if text is not None)


@dataclass(frozen=True)
class PublishedPrompt:
    """The reference's texts by name. ``hash`` is SHA-256 over them and how ``untrusted`` text is
    written into them."""

    texts: Mapping[str, str]
    screenshot_text: str
    hash: str
    untrusted: PublishedText

    def system(self, success: str) -> str:
        """Return the system prompt that asks for success ``first`` or ``last``."""
        return self.texts["SYSTEM_PROMPT" if success == "first" else "INVERTED_SYSTEM_PROMPT"]

    def step(self, number: int, url: str | None, action: str | None, reasoning: str | None) -> str:
        """Render one step; the reference joins them with nothing in between."""
        return _fill(
            self.texts["STEP_TEMPLATE"],
            step_number=number,
            url=self.untrusted.shown(str(url)),
            action=self.untrusted.shown(str(action)),
            reasoning=self.untrusted.shown(str(reasoning)),
        )

    def before_picture(self, goal: str, steps: str, axtree: str | None) -> list[str]:
        """Render the texts of the user message that come before the picture, in order; ``steps`` as
        ``step`` gives them."""
        texts = [
            _fill(self.texts["GOAL_TEMPLATE"], goal=self.untrusted.shown(goal)),
            _fill(self.texts["ACTION_TEMPLATE"], steps=steps),
        ]
        if axtree is not None:
            texts.append(_fill(self.texts["AXTREE_TEMPLATE"], axtree=self.untrusted.shown(axtree)))
        return texts

    @property
    def final(self) -> str:
        """What ends the user message, after the picture."""
        return self.texts["FINAL_MSG"]


def _fill(template: str, **values: object) -> str:
    """Replace ``{name}`` by the value, nothing else: the template comes from a foreign file."""
    return re.sub(r"\{(\w+)\}", lambda match: str(values[match[1]]), template)


@cache
def load_published(untrusted: Untrusted = "neutralised") -> PublishedPrompt:
    """Load the prompts of the installed package. Raises UserError if it is not installed, or if its
    files do not hold the texts that this version of trajudge knows."""
    folder = package_folder("agentrewardbench", PACKAGE, INSTALL) / "judge"
    return read_published(folder, untrusted)


def package_folder(prompts: str, package: str, install: str) -> Path:
    """Return the folder of the installed package that ``--prompts`` reads, which is not imported.
    Raises UserError if it is not installed."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        name = install.rpartition(" ")[2]
        raise UserError(
            f"--prompts {prompts} reads the judge's own prompts from the package '{name}', which "
            f"is not installed: install it with  {install}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def read_published(folder: Path, untrusted: Untrusted = "neutralised") -> PublishedPrompt:
    """Read the prompts in the package's folder ``judge`` (``defaults.py`` and ``__init__.py``)."""
    texts = _string_constants(_parsed(folder / "defaults.py"))
    missing = [name for name in _NAMES if name not in texts]
    screenshot_text = _screenshot_text(_parsed(folder / "__init__.py"))
    if missing or screenshot_text is None:
        raise UserError(
            f"{folder} lacks the prompt {missing[0] if missing else 'for the screenshot'}: this is "
            "not the known version of agent-reward-bench, install 0.1.2"
        )
    kept = {name: texts[name] for name in _NAMES}
    tags = frozenset(tag for text in kept.values() for tag in TAG.findall(text))
    shown = PublishedText(tags, untrusted)
    content = "\0".join([*kept.values(), screenshot_text, shown.version])
    return PublishedPrompt(kept, screenshot_text, sha256(content.encode()).hexdigest(), shown)


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(read_text(path))
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read as the prompts of agent-reward-bench ({error}): "
            f"install it again with  {INSTALL}"
        ) from error


def _string_constants(module: ast.Module) -> dict[str, str]:
    """Collect module-level ``NAME = "text"`` and ``NAME = NAME.strip()``, in order."""
    texts: dict[str, str] = {}
    for node in module.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        name, value = node.targets[0].id, node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            texts[name] = value.value
        elif name in texts and ast.unparse(value) == f"{name}.strip()":
            texts[name] = texts[name].strip()
    return texts


def _screenshot_text(module: ast.Module) -> str | None:
    """Find the sentence before the screenshot: the first ``{"type": "text", "text": "..."}``."""
    for node in ast.walk(module):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                named = isinstance(key, ast.Constant) and key.value == "text"
                if named and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    return value.value
    return None


PUBLISHED_BROWSER_USE_PACKAGE = "browser_use"

PUBLISHED_BROWSER_USE_INSTALL = "pip install --no-deps browser-use"

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
    folder = package_folder(
        "browser-use", PUBLISHED_BROWSER_USE_PACKAGE, PUBLISHED_BROWSER_USE_INSTALL
    )
    return read_published_judge(folder / "agent" / "judge.py", untrusted)


def read_published_judge(path: Path, untrusted: Untrusted = "neutralised") -> PublishedJudge:
    """Read the prompts in the package's ``agent/judge.py``."""
    try:
        module = ast.parse(read_text(path))
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read as browser-use's judge ({error}): install it again with  "
            f"{PUBLISHED_BROWSER_USE_INSTALL}"
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
