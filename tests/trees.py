"""What tests of the house read of a module, parsed once however many tests ask."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef})
_KINDS = _FUNCTIONS | {ast.Import, ast.ImportFrom, ast.Constant, ast.JoinedStr}


class Docstring(NamedTuple):
    """The first line of what a function says of itself."""

    function: str
    line: int
    text: str
    of_property: bool


class Outline(NamedTuple):
    """Of a module the classes and imports at its top, and the names of what is defined there; of
    all its nodes the imports, and the strings that hold a dot, f-strings among them; its functions'
    docstrings; the names that functions give to values, each with its last line; its text."""

    body: tuple[ast.stmt, ...]
    defined: tuple[str, ...]
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    strings: tuple[ast.Constant | ast.JoinedStr, ...]
    docstrings: tuple[Docstring, ...]
    local_names: dict[str, int]
    text: str


@cache
def outline(path: Path) -> Outline:
    """Read a module."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    by_kind: dict[type[ast.AST], list[Any]] = {kind: [] for kind in _KINDS}
    for node in ast.walk(tree):
        if (kind := type(node)) in _KINDS:
            by_kind[kind].append(node)
    imports = (*by_kind[ast.Import], *by_kind[ast.ImportFrom])
    strings = (*(n for n in by_kind[ast.Constant] if _dotted(n)), *by_kind[ast.JoinedStr])
    functions: list[Function] = by_kind[ast.FunctionDef] + by_kind[ast.AsyncFunctionDef]
    docstrings = tuple(one for function in functions for one in _docstring(function))
    top = tuple(n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom | ast.ClassDef))
    bare = tuple(_without_body(n) if isinstance(n, ast.ClassDef) else n for n in top)
    defined = tuple(n.name for n in tree.body if isinstance(n, ast.ClassDef | Function))
    return Outline(bare, defined, imports, strings, docstrings, _local_names(functions), text)


def _docstring(function: Function) -> Iterator[Docstring]:
    if text := ast.get_docstring(function):
        decorators = " ".join(map(ast.unparse, function.decorator_list))
        first = text.splitlines()[0]
        yield Docstring(function.name, function.lineno, first, "property" in decorators)


def _local_names(functions: list[Function]) -> dict[str, int]:
    names: dict[str, int] = {}
    inner: set[ast.AST] = set()
    for function in sorted(functions, key=lambda one: one.lineno):
        if function in inner:
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.arg):
                names[node.arg] = node.lineno
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] = node.lineno
            elif isinstance(node, Function):
                inner.add(node)
    return names


def _dotted(node: ast.Constant) -> bool:
    return isinstance(node.value, str) and "." in node.value


def _without_body(node: ast.ClassDef) -> ast.ClassDef:
    """Keep the name alone: the trees of all modules are too much to remember."""
    return ast.ClassDef(name=node.name, bases=[], keywords=[], body=[], decorator_list=[])
