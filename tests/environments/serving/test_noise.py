"""Noise: seeded, declared, and dismissed through the accessibility tree."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.environments.kit.words import WORDS
from trajudge.environments.model.config import Config
from trajudge.environments.serving.noise import EVERY, KINDS, Noise, noise, overlays, stumble

CONFIGS = st.builds(
    Config,
    app=st.just("shop"),
    scenario=st.sampled_from(("buy", "price")),
    instance=st.integers(0, 20),
    profile=st.integers(0, 11),
    theme=st.integers(0, 11),
    ui=st.integers(0, 11),
    noise=st.integers(1, 200),
    seed=st.integers(0, 20),
)


def of(kind: str, config: Config) -> Noise:
    return next(item for item in noise(config) if item.kind == kind)


def test_index_zero_is_a_quiet_site() -> None:
    assert noise(Config(app="shop", scenario="buy", noise=0, seed=5)) == ()


def test_index_one_has_every_kind() -> None:
    config = Config(app="shop", scenario="buy", noise=1)
    assert tuple(item.kind for item in noise(config)) == KINDS


@given(CONFIGS)
def test_every_other_index_has_at_least_one_kind_and_each_at_most_once(config: Config) -> None:
    kinds = [item.kind for item in noise(config)]
    assert kinds
    assert len(kinds) == len(set(kinds))


@given(CONFIGS)
def test_noise_depends_on_no_other_axis(config: Config) -> None:
    moved = config.model_copy(update={"instance": 3, "profile": 4, "theme": 5, "ui": 6})
    assert noise(moved) == noise(config)


def test_indices_differ() -> None:
    told = [noise(Config(app="shop", scenario="buy", noise=index)) for index in range(2, 402)]
    assert len(set(told[:38])) > 25
    # One kind for certain, each other in one of two.
    assert sum(map(len, told)) / 400 == pytest.approx(1 + (len(KINDS) - 1) / 2, abs=0.1)


@given(CONFIGS)
def test_times_stay_within_their_bounds(config: Config) -> None:
    for item in noise(config):
        assert item.at >= 1
        assert (0.05 <= item.seconds <= 0.4) == (item.kind == "latency")


@given(CONFIGS)
def test_what_is_dismissible_names_a_button_that_the_kit_words(config: Config) -> None:
    for item in noise(config):
        assert item.dismissible == (item.a11y is not None)
        if item.a11y:
            role, key = item.a11y
            assert role == "button"
            assert key in WORDS


@given(CONFIGS)
def test_a_declaration_can_be_written_down(config: Config) -> None:
    for item in noise(config):
        assert json.loads(json.dumps(item._asdict()))["kind"] == item.kind


@pytest.fixture
def config() -> Config:
    return Config(app="shop", scenario="buy", noise=EVERY)


def test_a_promotion_covers_the_page_from_its_document_until_it_is_closed(config: Config) -> None:
    promotion = of("promotion", config)
    assert overlays([promotion], promotion.at - 1, set()) == ()
    for document in (promotion.at, promotion.at + 3):
        (overlay,) = overlays([promotion], document, set())
        assert overlay.modal
        assert overlay.action == "/dismiss/promotion"
    assert overlays([promotion], promotion.at, {"promotion"}) == ()


def test_a_cookie_bar_is_there_from_the_first_document_and_does_not_cover_the_page(
    config: Config,
) -> None:
    (overlay,) = overlays([of("cookies", config)], 1, {"promotion"})
    assert not overlay.modal


def test_latency_and_inline_errors_are_not_drawn(config: Config) -> None:
    assert overlays([of("latency", config), of("inline-error", config)], 9, set()) == ()


def test_an_inline_error_asks_to_try_again(config: Config) -> None:
    assert of("inline-error", config).text


def test_a_submission_meets_an_inline_error_once() -> None:
    items = [Noise("latency"), Noise("inline-error", at=3, text="Try again.")]
    met: set[str] = set()
    assert [stumble(items, document, met) for document in (2, 3, 4)] == ["", "Try again.", ""]
    assert met == {"inline-error"}
