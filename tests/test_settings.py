"""Parsed options end in ``main``: everything behind it takes typed settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = (
    *("annotations", "environments", "eval", "judges", "prompts", "proxy", "rules"),
    "trajectories",
)
# The readers of parsed options: one for all commands, those of trajudge judge's parser beside it.
READERS = {
    "trajectories/util/options.py": {"read_settings"},
    "trajectories/util/exits.py": {"parse_known_args"},
    "eval/runs/options.py": {"request_of", "_check"},
}


def takers(text: str) -> Iterator[str]:
    """The functions that take or give a Namespace; most modules do not name it at all."""
    for node in ast.walk(ast.parse(text)) if "Namespace" in text else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            signature = ast.unparse(node.args) + (ast.unparse(node.returns) if node.returns else "")
            if "Namespace" in signature:
                yield node.name


@pytest.mark.parametrize("room", ROOMS)
def test_no_function_behind_main_takes_a_namespace(room: str) -> None:
    for path in sorted((ROOT / room).rglob("*.py")):
        name = str(path.relative_to(ROOT))
        found = set(takers(path.read_text()))
        assert found <= READERS.get(name, set()) | {"main"}, name
