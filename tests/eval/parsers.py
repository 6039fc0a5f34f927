"""The parser of each command, and the flags that it has."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from trajudge.eval.cli import every_command, named
from trajudge.util import settings

TABLE = {f"trajudge {name}": command for name, command in every_command().items()}


def parser_of(name: str) -> argparse.ArgumentParser:
    """The command's parser."""
    return settings.parser_of(named(TABLE[name].settings), name)


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command's parser."""
    for name in TABLE:
        yield name, parser_of(name)
