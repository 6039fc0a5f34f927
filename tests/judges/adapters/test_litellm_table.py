"""The table of models is what litellm's own table and its own arithmetic say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest

from trajudge.judges.model import Usage
from trajudge.judges.models import Price, _table, capability, generate, is_known, listed_price

MAKERS = {
    *("openai", "anthropic", "gemini", "vertex_ai-language-models", "vertex_ai", "xai"),
    *("deepseek", "mistral", "dashscope", "qwencloud", "qwen_ai_platform"),
}
# Tokens of prompts on both sides of every threshold that a table states.
PROMPTS = (1_000, 32_001, 100_000, 128_000, 128_001, 200_000, 200_001, 256_001, 272_000, 272_001)


@pytest.fixture(scope="module")
def litellm() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    return pytest.importorskip("litellm")


@cache
def stated() -> dict[str, dict[str, Any]]:
    """litellm's entries that chat, by name."""
    if find_spec("litellm") is None:
        pytest.skip("litellm's table")
    source = generate.source_table()
    return {name: entry for name, entry in source.items() if entry.get("mode") == "chat"}


def of_makers() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, entry in stated().items():
        if entry["litellm_provider"] in MAKERS:
            yield name, entry


def test_the_table_is_generated_from_the_installed_litellm() -> None:
    table = _table()
    made = generate.content()
    assert table["source"] == made["source"], "run  python -m trajudge.judges.models.generate"
    assert table["models"] == made["models"]


def test_every_chat_model_that_litellm_states_has_window_and_price_here() -> None:
    windows = prices = 0
    for name, entry in of_makers():
        if entry.get("max_input_tokens"):
            windows += 1
            assert is_known(name), name
            known = capability(name)
            assert known.context == entry["max_input_tokens"], name
            assert known.images == bool(entry.get("supports_vision")), name
            assert known.reasoning == bool(entry.get("supports_reasoning")) or "gpt-5" in name
        if entry.get("input_cost_per_token") is not None or entry.get("tiered_pricing"):
            prices += 1
            assert listed_price(name).price is not None, name
    assert windows > 350
    assert prices > 350


def test_what_litellm_does_not_state_is_unknown_here() -> None:
    silent = [
        name
        for name, entry in stated().items()
        if entry.get("input_cost_per_token") is None and not entry.get("tiered_pricing")
    ]
    assert silent
    assert not [name for name in silent if name.lower() in _table()["models"] if priced(name)]


def priced(name: str) -> bool:
    return "price" in _table()["models"][name.lower()]


@pytest.mark.slow
def test_a_request_costs_what_litellm_bills_for_it(litellm: Any) -> None:
    compared = 0
    for name, entry in of_makers():
        price = listed_price(name).price
        if price is None or entry.get("off_peak_pricing"):
            continue  # by the hour of the day: here it is the full price
        if f"{entry['litellm_provider']}/{name}" in stated():
            continue  # litellm bills by that entry, and so it is compared under that name
        for prompt in PROMPTS:
            usage = Usage(input=prompt - 500, cache_read=300, cache_write=200, output=70)
            bill = billed(litellm, name, entry["litellm_provider"], usage)
            assert price.cost(usage) == pytest.approx(bill, rel=1e-6), (name, prompt)
            compared += 1
    assert compared > 3_000


def billed(litellm: Any, name: str, provider: str, usage: Usage) -> float:
    """What litellm computes for the usage of one call."""
    provider = "vertex_ai" if provider.startswith("vertex_ai") else provider
    told = litellm.Usage(
        prompt_tokens=usage.input + usage.cache_read + usage.cache_write,
        completion_tokens=usage.output,
        prompt_tokens_details={
            "cached_tokens": usage.cache_read,
            "cache_creation_tokens": usage.cache_write,
        },
    )
    prompt, completion = litellm.cost_per_token(
        model=name, custom_llm_provider=provider, usage_object=told
    )
    return float(prompt + completion)


def test_batches_cost_what_litellm_states() -> None:
    compared = 0
    for name, entry in of_makers():
        batch = entry.get("input_cost_per_token_batches")
        if batch is None or entry.get("output_cost_per_token_batches") is None:
            continue
        price: Price | None = listed_price(name).price
        assert price, name
        assert price.batch, name
        assert price.batch.input == pytest.approx(batch * 1e6), name
        assert price.batch.output == pytest.approx(entry["output_cost_per_token_batches"] * 1e6)
        compared += 1
    assert compared > 80
