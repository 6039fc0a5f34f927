"""The token estimate errs on the high side and never beyond the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajectories.tokens import (
    ImagePricing,
    count_tokens,
    fits,
    image_tokens,
    likely_tokens,
)

ANY = st.text(st.characters(), max_size=200)


@given(ANY)
def test_a_count_is_at_most_the_bytes(text: str) -> None:
    assert 0 <= count_tokens(text) <= len(text.encode("utf-8", "surrogatepass"))
    assert bool(text) == bool(count_tokens(text))


@given(ANY, ANY)
def test_more_text_never_counts_less(text: str, more: str) -> None:
    assert count_tokens(text + more) >= max(count_tokens(text), count_tokens(more))


@given(ANY)
def test_what_is_likely_is_less_than_what_is_safe(text: str) -> None:
    assert 0 <= likely_tokens(text) <= count_tokens(text)


@given(ANY, st.integers(0, 400))
def test_fits_agrees_with_the_count(text: str, budget: int) -> None:
    assert fits(text, budget) == (count_tokens(text) <= budget)


# The right-hand numbers are what OpenAI's cl100k encoding gives for these texts.
@pytest.mark.parametrize(
    ("text", "cl100k"),
    [
        ("The agent clicked the button and waited for the page to load.", 13),
        ("[a12] button 'Add to cart', clickable, visible", 12),
        ("https://shop.test/catalog/items?id=4821&sort=price", 14),
        ('{"success": true, "reward": 0.5, "steps": 12}', 19),
        ("点击搜索按钮查看价格", 6),
        ("Нажмите кнопку поиска", 9),
        ("🛒🛍️✅", 9),
        ("\ue001\ue002\ue003", 9),
    ],
)
def test_the_estimate_is_not_below_a_real_tokenizer(text: str, cl100k: int) -> None:
    assert cl100k <= count_tokens(text) <= 4 * cl100k


@pytest.mark.parametrize(
    ("size", "pricing", "tokens"),
    [
        ((1024, 1024), "openai", 765),
        ((512, 512), "openai", 255),
        ((2048, 4096), "openai", 1105),
        ((512, 512), "openai-mini", 8500),
        ((750, 1000), "anthropic", 1000),
        ((10_000, 10_000), "anthropic", 1599),
        ((1280, 720), "unknown", 1229),
        ((100, 100), "unknown", 255),
    ],
)
def test_images_count_by_the_providers_formula(
    size: tuple[int, int], pricing: ImagePricing, tokens: int
) -> None:
    assert image_tokens(*size, pricing) == tokens


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_the_default_is_the_larger_of_two(width: int, height: int) -> None:
    assert image_tokens(width, height) >= image_tokens(width, height, "openai")
    assert image_tokens(width, height) >= image_tokens(width, height, "anthropic")
