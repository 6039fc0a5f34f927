"""The paper's own prompts for the simplified judge, read from the installed package.

They are not part of this software: they are read at run time from ``agent-reward-bench``, whose
files are parsed, never imported or run. What the reference does with them (AgentRewardBench 0.1.2)
is done here by our own code, with its oddities: steps follow each other without a line break, and
a missing url, action or reasoning is shown as None. One thing is not as there unless it is sent as
recorded: what pages and agents wrote is neutralised (``prompts.untrusted``) where it could pass for
a tag of these texts or a chat template's mark.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from trajudge.prompts.render import TAG, sendable
from trajudge.prompts.untrusted import VERSION, count_changes, neutralise
from trajudge.trajectories.util.errors import UserError

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
        return ast.parse(path.read_text(encoding="utf-8"))
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
