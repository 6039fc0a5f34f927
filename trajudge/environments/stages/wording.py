"""What a goal's wording must keep to, whoever wrote it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from trajudge.environments.model.spec import Scenario

_UNPRINTED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
SHORTEST, LONGEST = 10, 400
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_DIGITS = re.compile(r"\d+")
_ADDRESS = re.compile(r"://|www\.|```|</?[a-z]", re.IGNORECASE)


def fault(scenario: Scenario, text: str) -> str:
    """Tell why this is no wording of the scenario's goal; "" if it is one."""
    bare = _PLACEHOLDER.sub("", text)
    stated = {number for goal in scenario.goals for number in _numbers(goal)}
    added = [number for number in _numbers(text) if number not in stated]
    faults = {
        f"{len(text)} characters: {SHORTEST} to {LONGEST} are allowed": not (
            SHORTEST <= len(text) <= LONGEST
        ),
        "not one line of plain text": any(
            unicodedata.category(character) in _UNPRINTED for character in text
        ),
        "other placeholders than the scenario's goal": _places(text)
        not in [_places(goal) for goal in scenario.goals],
        "a stray brace": "{" in bare or "}" in bare,
        "a link or markup": bool(_ADDRESS.search(bare)),
        f"a number that the scenario does not state: {''.join(added[:1])[:20]}": bool(added),
    }
    return next((reason for reason, broken in faults.items() if broken), "")


def _places(text: str) -> Counter[str]:
    return Counter(_PLACEHOLDER.findall(text))


def _numbers(goal: str) -> list[str]:
    return _DIGITS.findall(_PLACEHOLDER.sub("", goal))
