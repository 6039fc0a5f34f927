"""Prompt folders: Jinja2 templates with a card (source, deviations, scale), and their rendering."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from importlib import resources
from typing import TYPE_CHECKING

import yaml
from pydantic import BaseModel, ConfigDict, Field

from trajudge.prompts.untrusted import JUDGE_TAGS, VERSION, neutralise

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment


class Deviation(BaseModel):
    """One difference from the paper."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    why: str


class Own(BaseModel):
    """What one of several judges with the same prompts has for itself: its ``deviations`` come on
    top of theirs, the rest takes the place of theirs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    input: str
    calls: str
    deviations: tuple[Deviation, ...] = ()


class Card(BaseModel):
    """``card.yaml`` of a prompt folder. ``calls`` is a formula in T, the number of steps;
    ``judges`` are those that share the folder, where there are several.

    ``version`` is raised with every change of what the judge is shown or asked, and of how its
    replies are read; cards without one are of the first. ``left_out`` are rules of the source that
    the prompts do not hold: id (``judges.fidelity``) to the reason.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    paper: str
    section: str
    input: str
    scale: str
    binarisation: str
    calls: str
    version: int = Field(default=1, ge=1)
    deviations: tuple[Deviation, ...] = ()
    left_out: dict[str, str] = Field(default_factory=dict)
    judges: dict[str, Own] = Field(default_factory=dict, exclude=True)

    def of(self, judge: str) -> Card:
        """Return the card of one judge, with what it has for itself where several share the
        folder."""
        fields: dict[str, object] = {"name": judge, "judges": {}}
        if own := self.judges.get(judge):
            fields |= {**dict(own), "deviations": self.deviations + own.deviations}
        return self.model_copy(update=fields)


def read_card(text: str) -> Card:
    """Read the card in a YAML text. Raises pydantic.ValidationError where a field is missing."""
    return Card.model_validate(yaml.safe_load(text))


TAG = re.compile(r"</?([a-z_]+)")

# A comment on a line of its own, before the rule: {# R V3 #}, or {# R V3 V4 #} for two in one.
_RULES = re.compile(r"^\{# R ([\w.-]+(?: [\w.-]+)*) #\}\n(?=.)", re.MULTILINE)

_UNSENDABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")

_CONTROL_BYTES = bytes({*range(0x20), 0x7F} - set(b"\t\n\r"))

_CONTROL = _CONTROL_BYTES.decode()

# A plain character, so that no text takes more tokens than it was counted for.
_UNKNOWN = "?"


def sendable(text: str) -> str:
    """Put ``?`` in place of what no JSON API takes: control characters, lone surrogates."""
    return text if _is_sendable(text) else _UNSENDABLE.sub(_UNKNOWN, text)


def _is_sendable(text: str) -> bool:
    """Return True if it is sendable: nearly every text is, and both ways tell it many times faster
    than the pattern."""
    if text.isascii():
        return not any(map(text.__contains__, _CONTROL))
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return False
    return len(encoded.translate(None, _CONTROL_BYTES)) == len(encoded)


@dataclass(frozen=True)
class Prompt:
    """A folder of templates with its card. ``hash`` is SHA-256 over all its files and
    the ``prompts.untrusted.VERSION`` that writes untrusted text into them; ``rules`` are the ids of
    the source's rules that the templates mark; ``files`` are the texts by their names."""

    files: Mapping[str, str] = field(repr=False, compare=False)
    card: Card
    hash: str
    tags: frozenset[str]
    rules: frozenset[str]

    def render(self, template: str, **values: object) -> str:
        """Render ``template`` (``system``, ``user``, ...) to sendable text, every printed value
        neutralised.

        Raises jinja2.UndefinedError if the template names a value that was not given.
        """
        return sendable(self._template(f"{template}.jinja").render(values))

    def _template(self, name: str) -> Template:
        """Return a template with its globals in one dict: jinja2 chains those of the environment
        behind its own, and every rendering copies the chain, which takes as long as a short
        template."""
        if name not in self._loaded:
            self._loaded[name] = self._environment.get_template(name)
            self._loaded[name].globals = dict(self._loaded[name].globals)
        return self._loaded[name]

    @cached_property
    def _loaded(self) -> dict[str, Template]:
        return {}

    @cached_property
    def _environment(self) -> ImmutableSandboxedEnvironment:
        import jinja2.sandbox  # noqa: PLC0415 - judges without a prompt need none

        return jinja2.sandbox.ImmutableSandboxedEnvironment(
            loader=jinja2.DictLoader(self.files),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # plain text: finalize neutralises
            auto_reload=False,
            trim_blocks=True,
            keep_trailing_newline=False,
            finalize=_neutraliser(self.tags),
        )


@cache
def load_prompt(name: str) -> Prompt:
    """Load the prompt folder ``name`` of this package. Raises FileNotFoundError if there is
    none."""
    folder = resources.files("trajudge.prompts").joinpath(name)
    files = {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith((".jinja", ".yaml"))
    }
    return prompt_of(files)


def prompt_of(files: Mapping[str, str]) -> Prompt:
    """Build a prompt from its files: name to text; ``card.yaml`` and templates ``*.jinja``."""
    templates = {name: text for name, text in files.items() if name.endswith(".jinja")}
    tags = frozenset(tag for text in templates.values() for tag in TAG.findall(text))
    marks = (mark for text in templates.values() for mark in _RULES.findall(text))
    rules = frozenset(rule for mark in marks for rule in mark.split())
    digest = sha256(f"untrusted text\0{VERSION}\0".encode())
    for name in sorted(files):
        digest.update(f"{name}\0{files[name]}\0".encode())
    card = read_card(files["card.yaml"])
    return Prompt(files, card, digest.hexdigest(), tags, rules)


def _neutraliser(tags: frozenset[str]) -> Callable[[object], str]:
    """Return what makes a printed value harmless text."""
    tags |= JUDGE_TAGS

    def finalize(value: object) -> str:
        if type(value) is str:
            return neutralise(value, tags)
        return str(value) if type(value) is int else neutralise(str(value), tags)

    return finalize
