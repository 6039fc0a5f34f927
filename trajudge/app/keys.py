"""The keys of the pages, and a file that gives them to other keys."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import UnsafeFile, read_regular, text_of

KEYS: Mapping[str, str] = {
    "?": "help",
    "g i": "runs",
    "g r": "overview of the run",
    "g c": "compare",
    "g q": "queue",
    "/": "filter",
    "j": "next row",
    "k": "previous row, or keep the answers",
    "x": "select the row, or task broken",
    "[": "previous page",
    "]": "next page",
    "q": "queue of the rows that are ticked",
    "w": "false positives, or rule wrong",
    "r": "rule right",
    "ArrowLeft": "previous step",
    "ArrowRight": "next step",
    "Home": "first step",
    "End": "last step",
    **{str(number): f"tab {number}, or an optimality" for number in range(1, 7)},
    "b": "before and after",
    "d": "what differs",
    "D": "what differs in the pictures, with the tree open",
    "o": "mark of the action, or optimality",
    "m": "mark of the action, beside a form",
    "z": "zoom",
    "t": "judgments, trajectory, or find in the tree",
    "n": "next item, or no",
    "p": "previous item",
    "y": "yes",
    "u": "unsure",
    "S": "clear success",
    "F": "clear failure",
    "s": "success",
    "f": "failure",
    "e": "evidence",
    "c": "comment, or note",
}
"""What each key does, by its name in browsers (``KeyboardEvent.key``); a blank stands between two
that are pressed after each other. Tab, Enter, Escape and keys with Ctrl stay as they are."""

_MOST_BYTES = 100_000
_NAMED = re.compile(r"Arrow(Left|Right|Up|Down)|Home|End|PageUp|PageDown|Insert|Delete|F\d{1,2}")


def read_keys(path: Path) -> Mapping[str, str]:
    """Read the table ``keys`` of a TOML file, from a key of ``KEYS`` to the one that takes its
    place. Raises UserError for a file that is none, a key that is none, and a collision."""
    try:
        table = tomllib.loads(text_of(read_regular(path, _MOST_BYTES), path)).get("keys")
    except (OSError, UnsafeFile, ValueError) as error:
        raise UserError(f"--keys {path}: cannot be read as TOML ({error})") from error
    if not isinstance(table, dict) or not all(isinstance(key, str) for key in table.values()):
        raise UserError(f'--keys {path}: has no table [keys] with lines such as  j = "ArrowDown"')
    for old, new in table.items():
        if old not in KEYS:
            known = ", ".join(KEYS)
            hint = did_you_mean(old, KEYS)
            raise UserError(f"--keys {path}: no page has the key {old!r}{hint}; there are {known}")
        if not all(map(_is_key, new.split(" "))) or new.count(" ") > old.count(" "):
            several = ", or two of them with a blank between" if " " in old else ""
            raise UserError(
                f"--keys {path}: {old} = {new!r}: give one character, or a key such as ArrowDown "
                f"or F2{several}"
            )
    _check_collisions(path, {**{key: key for key in KEYS}, **table})
    return {old: new for old, new in table.items() if old != new}


def _is_key(name: str) -> bool:
    return (len(name) == 1 and name.isprintable() and name != " ") or bool(_NAMED.fullmatch(name))


def _check_collisions(path: Path, whole: Mapping[str, str]) -> None:
    """Refuse two keys that are one, or of which one begins the other."""
    owners: dict[str, str] = {}
    for old, new in whole.items():
        other = owners.setdefault(new, old)
        if other != old:
            raise UserError(
                f"--keys {path}: {new} would be {KEYS[other]} ({other}) and {KEYS[old]} ({old}): "
                "give each a key of its own"
            )
    for new, old in owners.items():
        first = new.split(" ")[0]
        if first != new and first in owners:
            raise UserError(
                f"--keys {path}: {first} is {KEYS[owners[first]]} and begins {new}, which is "
                f"{KEYS[old]}: give one of them another key"
            )
