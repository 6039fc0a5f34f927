"""The token estimate is near the real counts, and never beyond the bytes."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds.token_corpora import corpora, encodings
from trajudge.trajectories.tokens import (
    ENCODINGS,
    Encoding,
    ImagePricing,
    count_tokens,
    counting_for,
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


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "kind",
    [
        "sample trees 1",
        "python 1",
        "licences 1",
        "urls 1",
        "ru 1",
        "el 1",
        "ar 1",
        "hi 1",
        "zh_CN 1",
        "ja 1",
        "ko 1",
        "de 1",
        "it 1",
        "nl 1",
        "eu 1",
    ],
)
def test_the_estimate_is_near_openais_own_tables(
    kind: str, encoding: Encoding, texts: dict[str, str], known: dict[str, Any]
) -> None:
    if kind not in texts:
        pytest.skip(f"this machine has no corpus of 20 kB: {kind}")
    with counting_for(encoding):
        ratio = count_tokens(texts[kind]) / len(known[encoding].encode_ordinary(texts[kind]))
    assert 0.97 <= ratio <= 1.15


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return corpora("ru el ar hi zh_CN ja ko de it nl eu")


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    if find_spec("litellm") is None:
        pytest.skip("litellm, whose wheel holds the tables, is not installed")
    return encodings()


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
