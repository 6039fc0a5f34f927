"""The specification's own mistake is no verdict on the agent's value."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from trajudge.rules.values import equal


def test_an_exploding_pattern_is_a_verdict_with_its_reason() -> None:
    verdict = equal("string", "^(a|aa)+$", "a" * 60 + "b")
    assert verdict.equal is None
    assert "took more than" in verdict.reason


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("string", "^(a$"),
        ("string", "^a{1000}{1000}$"),
        ("string", "^" + "a" * 20_000 + "$"),
        ("number", "about five"),
        ("date", "^2023.*$"),
        ("colour", "red"),
        ("string", ["b", "^(a$"]),
    ],
)
def test_the_specifications_own_mistake_is_no_verdict_on_the_value(
    kind: str, expected: JsonValue
) -> None:
    verdict = equal(kind, expected, "a")
    assert verdict.equal is None
    assert verdict.reason


def test_an_alternative_that_is_met_needs_no_other() -> None:
    assert equal("string", ["^(b$", "a"], "a").equal is True
    assert equal("string", ["b", "c"], "a").equal is False


def test_a_value_beyond_the_limits_is_the_agents_failure() -> None:
    assert equal("string", "^a*$", "a" * 1_000_001).equal is False
    assert equal("number", 5, "9" * 10_000).equal is False
