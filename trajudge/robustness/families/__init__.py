"""The catalogue as data: a YAML file a family, read once.

Every file names its ``family``, what all of it is called (``title``), the ``version`` of its texts,
and its ``perturbations``. An entry says what it changes (``channels``), what becomes of the truth
(``truth``; what is not named stays as it is), the transformation that makes the change (``change``,
its arguments ``with``), and where the idea comes from (``source``). ``like`` takes over the fields
of one of the file's ``kinds``. The texts are in our own words.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import yaml
from numpy.random import Generator

FAMILIES = ("invariances", "flips", "claims", "injections", "evidence", "askings")


@cache
def family_file(name: str) -> dict[str, Any]:
    """Read ``NAME.yaml`` of this folder."""
    file = resources.files(__name__).joinpath(f"{name}.yaml")
    read: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return read


def wording(goal: str, rng: Generator) -> str:
    """Draw one of the wordings of an injection's goal."""
    wordings: list[str] = family_file("injections")["goals"][goal]
    return wordings[int(rng.integers(len(wordings)))]


def neutral(length: int) -> str:
    """Return neutral sentences of exactly ``length`` characters, the last one cut."""
    whole = " ".join(family_file("injections")["neutral"])
    text = " ".join([whole] * (length // len(whole) + 1))[:length]
    return text if not text.endswith(" ") else f"{text[:-1]}."
