"""The rates in ``robustness.json``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.llm_replies import Incoming

Rates = dict[str, dict[str, Any]]


def asr(rates: Rates, name: str) -> float:
    assert rates[name]["attack_success"]["trials"] > 0, name
    estimate: float = rates[name]["attack_success"]["estimate"]
    return estimate


Text = Callable[[Incoming], str]
