"""Identities: what is an application's own in every theme, its frame, type and pictures.

A theme varies inside of it. The table is ``identities.toml``; an application names one in its
``app.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

Font = Literal["sans", "serif", "mono"]
IdentityName = Literal[
    "plain", "storefront", "panes", "rail", "magazine", "board", "outline", "till"
]


class Identity(BaseModel):
    """One entry of ``identities.toml``; sizes are in pixels, ``pictures`` maps a page to the kind
    of picture that what it shows has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: Font
    titles: Font
    size: int
    gap: int
    corner: int
    pictures: Mapping[str, str] = {}


def _read() -> dict[str, Identity]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {name: Identity.model_validate(entry) for name, entry in tomllib.loads(text).items()}


IDENTITIES = _read()
