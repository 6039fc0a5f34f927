"""The code speaks the field's words: what the glossary replaced does not come back."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.trees import Outline, outline

PACKAGE = Path(__file__).parents[1] / "trajudge"
NO_VERB = frozenset({"A", "All", "An", "Every", "How", "Raises", "The", "What", "Whether"})
# By room: names of classes and functions that had to be looked up to be understood.
REPLACED = {
    "judges": {
        *("Answer", "Answered", "Asked", "Asker", "Asking", "Circuit", "Counts", "DryLine"),
        *("DryRun", "Encoded", "Entry", "Fitted", "Flight", "Form", "Gate", "Learned", "Line"),
        *("OwnForm", "Pace", "Prices", "PublishedForm", "Reader", "RecordingAsk", "Replay"),
        *("Said", "Sent", "TellsWindow", "Ticket", "TooLong", "Unread", "Window", "about"),
        *("ask_down", "ask_of_steps", "read_whole", "some_text", "together", "words"),
    },
    "rules": {
        *("Audit", "Broken", "Mistake", "NaiveAgent", "Score", "Trials", "folded", "given_away"),
        *("hosts_of", "opened", "plain", "tidy"),
    },
    "trajectories": {
        *("Counts", "Kept", "Ladder", "MemoryGate", "Rung", "Source", "Summary", "View"),
        *("ahead", "called", "instance", "named"),
    },
}

# Public classes that share a name, and why they may; no other name stands for two things.
SHARED = {
    **dict.fromkeys(
        (
            "Address",
            "Option",
            "ParseFailure",
            "Request",
            "Response",
            "Run",
            "Task",
            "Trace",
            "Url",
            "Verdict",
        ),
        "rules: the terms of WebArena and of WebArena Verified, as their own code has them",
    ),
    **dict.fromkeys(
        ("Case", "Difference", "Filter", "Group", "Outcome", "Reference"),
        "a plain word of two rooms that do not meet",
    ),
}
ROOMS = (
    *("annotations", "environments", "eval", "judges", "prompts", "proxy", "rules"),
    *("robustness", "stats", "trajectories", "util"),
)
# No function's docstring begins with a word of NO_VERB or one that ruff's D401 (pyproject.toml)
# knows; neither knows every noun, so a docstring may still begin with one ("Precision of ...").
IMPERATIVE = (*ROOMS, "face")
# Names that fit every value and tell of none, and the rooms whose functions do without them.
VAGUE = frozenset(
    {"asked", "data", "found", "given", "got", "said", "thing", "things", "told", "what"}
)
NAMED = (
    *("annotations", "environments", "eval/accept", "eval/analysis", "proxy", "robustness"),
    "eval/labelling",
    *("eval/reporting", "eval/scoring", "eval/select", "judges/methods", "prompts", "stats"),
    "trajectories",
)


@cache
def _modules(room: str) -> dict[str, Outline]:
    """The modules of a room, by their place in the house."""
    return {
        path.relative_to(PACKAGE).as_posix(): outline(path)
        for path in sorted((PACKAGE / room).rglob("*.py"))
    }


@pytest.mark.parametrize("room", IMPERATIVE)
def test_docstrings_of_functions_begin_with_a_verb(room: str) -> None:
    without_verb = [
        f"{name}:{doc.line} {doc.function}: {doc.text}"
        for name, module in _modules(room).items()
        for doc in module.docstrings
        if not doc.of_property and doc.text.split()[0] in NO_VERB
    ]
    assert without_verb == []


@pytest.mark.parametrize("room", NAMED)
def test_local_names_say_what_they_hold(room: str) -> None:
    vague = {
        f"{name}:{line} {local}"
        for name, module in _modules(room).items()
        for local, line in module.local_names.items()
        if local in VAGUE
    }
    assert vague == set()


@pytest.mark.parametrize("room", REPLACED)
def test_replaced_names_do_not_return(room: str) -> None:
    returned = {
        f"{name}: {defined}"
        for name, module in _modules(room).items()
        for defined in module.defined
        if defined in REPLACED[room]
    }
    assert returned == set()


def test_a_public_class_name_stands_for_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for room in ROOMS:
        for name, module in _modules(room).items():
            for node in module.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(name)
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in SHARED} == {}
