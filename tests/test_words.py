"""The code speaks the field's words: what the glossary replaced does not come back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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
    *("robustness", "trajectories"),
)
# No function's docstring begins with a word of NO_VERB or one that ruff's D401 (pyproject.toml)
# knows; neither knows every noun, so a docstring may still begin with one ("Precision of ...").
IMPERATIVE = (*ROOMS, "trajudge/face")
# Names that fit every value and tell of none, and the rooms whose functions do without them.
VAGUE = frozenset(
    {"asked", "data", "found", "given", "got", "said", "thing", "things", "told", "what"}
)
NAMED = (
    *("annotations", "environments", "eval/acceptance", "eval/analysis", "eval/audit"),
    *("eval/batches", "eval/checking", "eval/imported", "eval/labelling", "eval/leaderboard"),
    *("eval/reporting", "eval/scoring", "eval/select", "eval/stats", "judges/methods", "prompts"),
    "trajectories",
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _modules(room: str) -> dict[str, ast.Module]:
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / room).rglob("*.py"))
    }


def _begins_without_verb(room: str) -> Iterator[str]:
    for name, module in _modules(room).items():
        for node in ast.walk(module):
            if not isinstance(node, Function) or _is_property(node):
                continue
            text = ast.get_docstring(node)
            if text and text.split()[0] in NO_VERB:
                yield f"{name}:{node.lineno} {node.name}: {text.splitlines()[0]}"


def _is_property(node: Function) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


@pytest.mark.parametrize("room", IMPERATIVE)
def test_docstrings_of_functions_begin_with_a_verb(room: str) -> None:
    assert list(_begins_without_verb(room)) == []


def _local_names(function: Function) -> Iterator[tuple[str, int]]:
    """The names that a function gives to values, with their lines; those inside it too."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


@pytest.mark.parametrize("room", NAMED)
def test_local_names_say_what_they_hold(room: str) -> None:
    vague = {
        f"{module}:{line} {name}"
        for module, tree in _modules(room).items()
        for node in ast.walk(tree)
        if isinstance(node, Function)
        for name, line in _local_names(node)
        if name in VAGUE
    }
    assert vague == set()


@pytest.mark.parametrize("room", REPLACED)
def test_replaced_names_do_not_return(room: str) -> None:
    defined = {
        f"{name}: {node.name}"
        for name, module in _modules(room).items()
        for node in module.body
        if isinstance(node, ast.ClassDef | Function) and node.name in REPLACED[room]
    }
    assert defined == set()


def test_a_public_class_name_stands_for_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for room in ROOMS:
        for name, module in _modules(room).items():
            for node in module.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(name)
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in SHARED} == {}
