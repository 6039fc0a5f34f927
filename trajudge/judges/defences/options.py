"""The defences of a judge as a command line or a caller gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from trajudge.trajectories.added import stable_dump
from trajudge.trajectories.model import Record
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.validation import refused_value

PARTS = ("answer", "reasoning")
"""What an agent says of itself."""


class Defences(Record):
    """Options that every judge takes.

    ``hide``: what of the agent's own words is not shown; ``two_pass``: what is not shown in a
    second pass, which must come to the same verdict. Of judges that ask a model: ``datamark``
    marks untrusted text, ``sandwich`` repeats the goal behind it, ``nonce`` is the seed of what the
    tags around it end in, ``canary`` that of the word that a reply must hold. ``cross_modal``: what
    becomes of a run whose record contradicts itself, which is then not asked about.
    """

    hide: tuple[str, ...] = ()
    two_pass: tuple[str, ...] = ()
    datamark: bool = False
    sandwich: bool = False
    nonce: int | None = Field(default=None, ge=0)
    canary: int | None = Field(default=None, ge=0)
    cross_modal: Literal["abstain", "fail"] | None = None

    @field_validator("hide", "two_pass", mode="before")
    @classmethod
    def _known_parts(cls, given: object) -> tuple[str, ...]:
        if given is None:
            return ()
        words = given.split(",") if isinstance(given, str) else given
        parts = tuple(sorted(set(map(str, words)))) if isinstance(words, list | tuple) else ()
        if not parts or not set(parts) <= set(PARTS):
            raise ValueError(f"name {', '.join(PARTS)}, or both with a comma")
        return parts

    @property
    def given(self) -> dict[str, Any]:
        """Those that are on, as a manifest has them and as they can be given again."""
        return {
            name: value
            for name, value in stable_dump(self).items()
            if getattr(self, name) != type(self).model_fields[name].default
        }

    @property
    def of_prompts(self) -> dict[str, Any]:
        """Those that change a prompt, and are for judges that ask a model."""
        return {name: value for name, value in self.given.items() if name in OF_PROMPTS}

    @property
    def suffix(self) -> str:
        """What they add to a judge's id."""
        hidden = f"-no-{'-'.join(self.hide)}" if self.hide else ""
        twice = f"-two-pass-{'-'.join(self.two_pass)}" if self.two_pass else ""
        checked = f"-cross-modal-{self.cross_modal}" if self.cross_modal else ""
        return hidden + "".join(f"-{name}" for name in self.of_prompts) + twice + checked


DEFENCES = tuple(Defences.model_fields)
OF_PROMPTS = ("datamark", "sandwich", "nonce", "canary")


def read_defences(name: str, kind: type[Record], options: Mapping[str, Any]) -> Defences:
    """Read the defences among the options of the judge ``name``; an option of that name that its
    own class ``kind`` has is not one. Raises UserError."""
    given = {
        option: options[option]
        for option in DEFENCES
        if option in options and option not in kind.model_fields
    }
    try:
        return Defences.model_validate(given)
    except ValidationError as error:
        option, value, why, _ = refused_value(error)
        raise UserError(f"judge {name}: {option} = {value!r}: {why}") from error


def own_options(kind: type[Record], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without those that every judge takes."""
    return {
        option: value
        for option, value in options.items()
        if option not in DEFENCES or option in kind.model_fields
    }
