"""A wait in the proxy is awaited: one that blocks would hold back every other request."""

from __future__ import annotations

import ast
from pathlib import Path

import trajudge.proxy


def test_nothing_in_the_proxy_sleeps() -> None:
    modules = sorted(Path(next(iter(trajudge.proxy.__path__))).rglob("*.py"))
    sleeps = [
        f"{module.name}:{node.lineno}"
        for module in modules
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and ast.unparse(node) == "time.sleep")
        or (isinstance(node, ast.ImportFrom) and node.module == "time" and _names(node))
    ]
    assert "addon.py" in {module.name for module in modules}
    assert not sleeps


def _names(node: ast.ImportFrom) -> bool:
    return "sleep" in {alias.name for alias in node.names}
