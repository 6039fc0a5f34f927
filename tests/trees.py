"""What tests of the house read of a module, parsed once however many tests ask."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Outline(NamedTuple):
    """The statements at the top of a module; of all its nodes the imports, and the strings that
    hold a dot, f-strings among them; its text."""

    body: tuple[ast.stmt, ...]
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    strings: tuple[ast.Constant | ast.JoinedStr, ...]
    text: str


@cache
def outline(path: Path) -> Outline:
    """Read a module."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    imports = tuple(n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom))
    strings = tuple(n for n in nodes if isinstance(n, ast.Constant | ast.JoinedStr) and _dotted(n))
    top = tuple(n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom | ast.ClassDef))
    bare = tuple(_without_body(n) if isinstance(n, ast.ClassDef) else n for n in top)
    return Outline(bare, imports, strings, text)


def _dotted(node: ast.Constant | ast.JoinedStr) -> bool:
    if isinstance(node, ast.JoinedStr):
        return True
    return isinstance(node.value, str) and "." in node.value


def _without_body(node: ast.ClassDef) -> ast.ClassDef:
    """Keep the name alone: the trees of all modules are too much to remember."""
    return ast.ClassDef(name=node.name, bases=[], keywords=[], body=[], decorator_list=[])
