"""DIFFERENCES.md is true, complete in its kinds, and in step."""

from __future__ import annotations

import pytest

from trajudge.rules.values import KINDS, Mode, equal
from trajudge.rules.values.differences import EXAMPLES, Difference
from trajudge.rules.verified import differences as document


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.kind)
def test_the_modes_differ_on_every_example(example: Difference) -> None:
    kind, expected, actual, _ = example
    sound = equal(kind, expected, actual, mode=Mode.SOUND)
    release = equal(kind, expected, actual, mode=Mode.RELEASE)
    assert sound.equal is not release.equal


def test_every_kind_has_an_example() -> None:
    assert {example.kind for example in EXAMPLES} == set(KINDS) - {"integer"}


def test_the_file_is_in_step_with_the_examples() -> None:
    stale = "run  python -m trajudge.rules.differences"
    assert document.PATH.read_text(encoding="utf-8") == document.document(), stale


@pytest.mark.parametrize("mode", list(Mode))
def test_a_pattern_fits_no_address_with_a_query(mode: Mode) -> None:
    pattern = "^http://a.test/.*$"
    assert equal("url", pattern, "http://a.test/1", mode=mode).equal
    assert equal("url", pattern, "http://a.test/1?b=2", mode=mode).equal is False
