"""The texts of attacks: read from the YAML files of ``robustness/payloads``."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import yaml
from numpy.random import Generator

BENIGN = "benign"


@cache
def payloads(name: str) -> dict[str, Any]:
    """Read ``NAME.yaml``."""
    file = resources.files("trajudge.robustness.payloads").joinpath(f"{name}.yaml")
    read: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return read


def version(name: str) -> int:
    """Return the version of ``NAME.yaml``, which is a part of every perturbation that uses it."""
    return int(payloads(name)["version"])


def wording(goal: str, rng: Generator) -> str:
    """Draw one of the wordings of an injection's goal."""
    wordings: list[str] = payloads("injections")["goals"][goal]
    return wordings[int(rng.integers(len(wordings)))]


def neutral(length: int) -> str:
    """Return neutral sentences of exactly ``length`` characters, the last one cut."""
    whole = " ".join(payloads("injections")["neutral"])
    text = " ".join([whole] * (length // len(whole) + 1))[:length]
    return text if not text.endswith(" ") else f"{text[:-1]}."


def beside(text: str) -> str:
    """Return the benign twin of a text."""
    return neutral(len(text))
