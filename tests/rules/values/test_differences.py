"""DIFFERENCES.md is true of values, and complete in its kinds."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import pytest
from pydantic import JsonValue

from tests.rules.files import DIFFERENCES
from trajudge.rules.values import KINDS, Mode, equal

TABLE = DIFFERENCES.partition("\n## Values\n")[2].partition("\n## ")[0].strip().splitlines()[2:]


class Difference(NamedTuple):
    """One row: a specification's value, an agent's, and each mode's verdict."""

    kind: str
    expected: JsonValue
    actual: JsonValue
    release: bool
    sound: bool


def _row(line: str) -> Difference:
    kind, *cells, why = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    assert why.endswith(".")
    expected, actual = (json.loads(cell.strip("`").replace("\\|", "|")) for cell in cells[:2])
    verdicts = [{"equal": True, "different": False}[cell] for cell in cells[2:]]
    return Difference(kind, expected, actual, *verdicts)


EXAMPLES = [_row(line) for line in TABLE]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.kind)
def test_the_modes_differ_as_written(example: Difference) -> None:
    kind, expected, actual, release, sound = example
    assert bool(equal(kind, expected, actual, mode=Mode.SOUND).equal) is sound
    assert bool(equal(kind, expected, actual, mode=Mode.RELEASE).equal) is release
    assert sound is not release


def test_every_kind_has_an_example() -> None:
    assert {example.kind for example in EXAMPLES} == set(KINDS) - {"integer"}
    assert len(EXAMPLES) == 64


@pytest.mark.parametrize("mode", list(Mode))
def test_a_pattern_fits_no_address_with_a_query(mode: Mode) -> None:
    pattern = "^http://a.test/.*$"
    assert equal("url", pattern, "http://a.test/1", mode=mode).equal
    assert equal("url", pattern, "http://a.test/1?b=2", mode=mode).equal is False
