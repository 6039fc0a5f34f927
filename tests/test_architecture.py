"""The house's import rule, held by reading every module's imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "trajectories": set[str](),
    "annotations": {"trajectories"},
    "prompts": {"trajectories"},
    "judges": {"trajectories", "prompts"},
    "rules": {"trajectories"},
    "environments": {"trajectories", "annotations", "prompts", "rules", "judges", "eval"},
    "proxy": set[str](),
    "eval": {"trajectories", "annotations", "prompts", "judges", "rules"},
}
HEAVY = {"openai", "anthropic", "litellm", "datasets", "huggingface_hub", "sklearn", "playwright"}


def modules(package: str) -> Iterator[Path]:
    yield from sorted((ROOT / package).rglob("*.py"))


def imported(tree: ast.Module, *, top_level_only: bool = False) -> set[str]:
    """First segments of the absolute imports of a module."""
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            names.add(str(node.module).split(".")[0])
    return names


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_imports_go_one_way(package: str) -> None:
    for module in modules(package):
        ours = imported(ast.parse(module.read_text())) & set(ALLOWED)
        assert ours <= ALLOWED[package] | {package}, module


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_slow_libraries_are_imported_when_first_used(package: str) -> None:
    for module in modules(package):
        names = imported(ast.parse(module.read_text()), top_level_only=True)
        own_name = {module.stem} if module.parent.name == "adapters" else set[str]()
        assert not names & HEAVY - own_name, module


def test_no_package_shadows_the_standard_library() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert not packages & sys.stdlib_module_names
