"""Judges through every adapter, with and without litellm."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

without_litellm = pytest.mark.skipif(
    find_spec("litellm") is None, reason="litellm is not installed (the extra of that name)"
)
ADAPTERS = ["openai", "http", "anthropic", pytest.param("litellm", marks=without_litellm)]
every_adapter = pytest.mark.parametrize("name", ADAPTERS)
