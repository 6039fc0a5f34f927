"""Published prompts, read from the packages that hold them: AgentRewardBench's for the simplified
judge, browser-use's for its built-in judge.

The packages are parsed, not imported: they bring much else with them, and run code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from trajudge.prompts.render import TAG, sendable
from trajudge.prompts.untrusted import VERSION, count_changes, neutralise
from trajudge.util.errors import UserError
from trajudge.util.files import read_text

CHANGES = "changed_places"

"""The score of a verdict that counts the places of a run that were not sent as recorded."""

Untrusted = Literal["neutralised", "as-recorded"]


class Slot(NamedTuple):
    """A place in a text: the expression that fills it, and what stands there for an empty value."""

    name: str
    default: str = ""


Template = tuple[str | Slot, ...]


@dataclass(frozen=True)
class PublishedTexts:
    """Texts of a published prompt by name.

    What pages and agents wrote is ``shown`` without the tags of the prompt and the marks of chat
    templates, or as recorded but for characters that no API takes.
    """

    texts: Mapping[str, Template]
    untrusted: Untrusted

    @property
    def hash(self) -> str:
        """SHA-256 over the texts and how untrusted text is written into them."""
        how = f"version {VERSION}" if self.untrusted == "neutralised" else self.untrusted
        return sha256(repr([*self.texts.items(), how]).encode()).hexdigest()

    def shown(self, text: str) -> str:
        """Return untrusted text as it is sent."""
        return sendable(neutralise(text, self._tags) if self.untrusted == "neutralised" else text)

    @cached_property
    def _tags(self) -> frozenset[str]:
        words = (part for text in self.texts.values() for part in text if isinstance(part, str))
        return frozenset(tag for part in words for tag in TAG.findall(part))

    def changes(self, texts: Iterable[str | None]) -> int:
        """Count the places of the texts that are not sent as they were recorded."""
        return sum(count_changes(text, self.shown) for text in texts if text is not None)

    def fill(self, name: str, **values: str) -> str:
        """Fill a text; the values are never read as templates."""
        parts = self.texts[name]
        return "".join(p if isinstance(p, str) else values[p.name] or p.default for p in parts)


def _package_folder(prompts: str, package: str, name: str) -> Path:
    """Return the folder of the installed package that ``--prompts`` reads. Raises UserError if it
    is not installed."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            f"--prompts {prompts} reads the judge's own prompts from the package '{name}', which "
            f"is not installed: install it with  pip install --no-deps {name}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _parsed(path: Path, name: str) -> ast.Module:
    try:
        return ast.parse(read_text(path))
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read as the prompts of {name} ({error}): install it again with  "
            f"pip install --no-deps {name}"
        ) from error


# AgentRewardBench

_SLOTS = re.compile(r"\{(\w+)\}")
_WHOLE = ("SYSTEM_PROMPT", "INVERTED_SYSTEM_PROMPT", "FINAL_MSG")
_FILLED = ("STEP_TEMPLATE", "GOAL_TEMPLATE", "ACTION_TEMPLATE", "AXTREE_TEMPLATE")


class PublishedPrompt(PublishedTexts):
    """The prompts of AgentRewardBench's simplified judge."""

    def system(self, success: str) -> str:
        """Return the system prompt that asks for success ``first`` or ``last``."""
        return self.fill("SYSTEM_PROMPT" if success == "first" else "INVERTED_SYSTEM_PROMPT")

    def step(self, number: int, url: str | None, action: str | None, reasoning: str | None) -> str:
        """Render one step; the reference joins them with nothing in between."""
        texts = {"url": url, "action": action, "reasoning": reasoning}
        shown = {name: self.shown(str(text)) for name, text in texts.items()}
        return self.fill("STEP_TEMPLATE", step_number=str(number), **shown)

    def before_picture(self, goal: str, steps: str, axtree: str | None) -> list[str]:
        """Render the texts of the user message that come before the picture, in order; ``steps`` as
        ``step`` gives them."""
        texts = [
            self.fill("GOAL_TEMPLATE", goal=self.shown(goal)),
            self.fill("ACTION_TEMPLATE", steps=steps),
        ]
        if axtree is not None:
            texts.append(self.fill("AXTREE_TEMPLATE", axtree=self.shown(axtree)))
        return texts

    @property
    def screenshot_text(self) -> str:
        """The words before the picture."""
        return self.fill("screenshot")

    @property
    def final(self) -> str:
        """What ends the user message, after the picture."""
        return self.fill("FINAL_MSG")


@cache
def load_published(untrusted: Untrusted = "neutralised") -> PublishedPrompt:
    """Load the prompts of the installed package. Raises UserError if it is not installed, or if its
    files do not hold the texts that this version of trajudge knows."""
    folder = _package_folder("agentrewardbench", "agent_reward_bench", "agent-reward-bench")
    return read_published(folder / "judge", untrusted)


def read_published(folder: Path, untrusted: Untrusted = "neutralised") -> PublishedPrompt:
    """Read the prompts in the package's folder ``judge`` (``defaults.py`` and ``__init__.py``)."""
    name = "agent-reward-bench"
    constants = _string_constants(_parsed(folder / "defaults.py", name))
    screenshot = _screenshot_text(_parsed(folder / "__init__.py", name))
    missing = [one for one in (*_WHOLE, *_FILLED) if one not in constants]
    if missing or screenshot is None:
        raise UserError(
            f"{folder} lacks the prompt {missing[0] if missing else 'for the screenshot'}: this is "
            "not the known version of agent-reward-bench, install 0.1.2"
        )
    texts: dict[str, Template] = {one: (constants[one],) for one in _WHOLE}
    for one in _FILLED:
        pieces = _SLOTS.split(constants[one])  # text, name, text, ...
        texts[one] = tuple(Slot(p) if n % 2 else p for n, p in enumerate(pieces))
    return PublishedPrompt({**texts, "screenshot": (screenshot,)}, untrusted)


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


# browser-use

# The texts by their variable, with the values that each is filled with.
_VALUES = {
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


class PublishedJudge(PublishedTexts):
    """The prompts of browser-use's built-in judge."""

    @property
    def mark(self) -> str:
        """What stands where a text was cut."""
        return self.fill("mark")

    def system(self, *, ground_truth: bool, date: str) -> str:
        """Render the system prompt; ``date`` as the package writes it: 2026-01-31 12:00 UTC."""
        section = self.fill("ground_truth_section") if ground_truth else ""
        values = {"ground_truth_section": section, "current_date": date}
        return sendable(self.fill("system_prompt", **values))

    def user(
        self, *, task: str, steps: str, result: str, ground_truth: str | None, images: int
    ) -> str:
        """Render the user's text, whose values are untrusted; ``images`` is how many follow."""
        truth = ""
        if ground_truth is not None:
            truth = self.fill("ground_truth_prompt", ground_truth=self.shown(ground_truth))
        values = {
            "task_truncated": self.shown(task),
            "ground_truth_prompt": truth,
            "steps_text_truncated": self.shown(steps),
            "final_result_truncated": self.shown(result),
            "len(encoded_images)": str(images),
        }
        return sendable(self.fill("user_prompt", **values))


@cache
def load_published_judge(untrusted: Untrusted = "neutralised") -> PublishedJudge:
    """Load the prompts of the installed package. Raises UserError if it is not installed, or if its
    file does not hold the texts that this version of trajudge knows."""
    folder = _package_folder("browser-use", "browser_use", "browser-use")
    return read_published_judge(folder / "agent" / "judge.py", untrusted)


def read_published_judge(path: Path, untrusted: Untrusted = "neutralised") -> PublishedJudge:
    """Read the prompts in the package's ``agent/judge.py``."""
    module = _parsed(path, "browser-use")
    assigned = dict(_assigned(_function(module, "construct_judge_messages")))
    mark = _mark(_function(module, "_truncate_text"))
    for name, values in _VALUES.items():
        named = {part.name for part in assigned.get(name, ()) if isinstance(part, Slot)}
        if name not in assigned or named != values or not mark:
            raise UserError(
                f"{path} does not hold the judge's {name} as it is known: install browser-use "
                "0.13, or leave --prompts out"
            )
    texts = {name: assigned[name] for name in _VALUES}
    return PublishedJudge({**texts, "mark": (mark,)}, untrusted)


def _function(module: ast.Module, name: str) -> Iterator[ast.AST]:
    """Yield the nodes of a function, none where there is no such function."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield from ast.walk(node)


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, Template]]:
    """Yield the strings and f-strings that are assigned, but for the empty ones."""
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            parts = value.values if isinstance(value, ast.JoinedStr) else [value]
            template = tuple(map(_part, parts))
            if all(part is not None and part != "" for part in template):
                yield node.targets[0].id, tuple(part for part in template if part is not None)


def _part(value: ast.expr) -> str | Slot | None:
    """Return a piece of text, or the place of ``name`` or of ``name or "what stands there else"``;
    None for any other value."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else None
    if not isinstance(value, ast.FormattedValue):
        return None
    inner = value.value
    if isinstance(inner, ast.BoolOp) and isinstance(inner.op, ast.Or) and len(inner.values) == 2:
        first, default = inner.values
        if isinstance(default, ast.Constant):
            return Slot(ast.unparse(first), str(default.value))
    return Slot(ast.unparse(inner))


def _mark(nodes: Iterable[ast.AST]) -> str:
    """Return what a function puts behind a text that it cut, "" if it is not as it is known."""
    for node in nodes:
        match node:
            case ast.BinOp(left=ast.Subscript(), right=ast.Constant(value=value)):
                return str(value)
    return ""
