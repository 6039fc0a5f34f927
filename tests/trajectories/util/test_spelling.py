"""Suggestions for mistyped names."""

from __future__ import annotations

import pytest

from trajudge.util.errors import did_you_mean

KNOWN = ["gpt-4o", "gpt-4o-mini", "gemini/gemini-2.5-pro", "claude-sonnet-4-5", "Qwen/Qwen3-8B"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gtp-4o", "gpt-4o"),
        ("gpt4o-mini", "gpt-4o-mini"),
        ("gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("claude-sonet-4-5", "claude-sonnet-4-5"),
        ("qwen3-8b", "Qwen/Qwen3-8B"),
    ],
)
def test_the_closest_known_name(typed: str, meant: str) -> None:
    assert did_you_mean(typed, KNOWN) == f", did you mean {meant!r}?"


def test_nothing_where_nothing_is_close() -> None:
    assert did_you_mean("my-finetune", KNOWN) == ""
