"""What is known of the models: capabilities and prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from trajudge.judges.model import Usage
from trajudge.judges.models.capabilities import capability
from trajudge.judges.models.prices import load_prices
from trajudge.trajectories.util.errors import UserError


def test_the_more_exact_pattern_goes_first() -> None:
    assert capability("gpt-4o-2024-05-13").output == 4_096
    assert capability("gpt-4o-2024-11-20").output == 16_384
    assert not capability("o3-mini").images
    assert capability("o3").images
    assert not capability("openai/gpt-5-mini").temperature
    assert capability("gpt-5-chat-latest").temperature
    assert capability("claude-sonnet-4-5").image_max_side == 1_568


def test_the_unknown_gets_the_careful_default() -> None:
    assert capability("my-own-finetune") == capability("*")
    assert capability("my-own-finetune").context == 32_768


def test_a_cost_counts_each_kind_of_token_at_its_price() -> None:
    prices = load_prices()
    usage = Usage(input=1_000_000, cache_read=1_000_000, output=1_000_000)
    assert prices.cost(usage, "gpt-4o") == pytest.approx(2.5 + 1.25 + 10)
    written = Usage(cache_write=1_000_000)
    assert prices.cost(written, "claude-sonnet-4-5-20250929") == pytest.approx(3.75)
    assert prices.cost(written, "gpt-4o") == pytest.approx(2.5), "no price of its own: input's"


@pytest.mark.parametrize("model", ["gpt-4o-2024-11-20", "openai/gpt-4o", "gpt-4o-latest"])
def test_a_dated_name_costs_what_its_family_costs(model: str) -> None:
    assert load_prices().price(model) == load_prices().price("gpt-4o")


def test_the_exact_name_goes_before_the_family() -> None:
    exact = load_prices().price("gpt-4o-2024-05-13")
    assert exact is not None
    assert exact.input == 5


@pytest.mark.parametrize("model", ["gpt-4o-audio-preview", "llama-3", "together/gpt-oss", ""])
def test_an_unknown_model_has_no_price_rather_than_none_to_pay(model: str) -> None:
    assert load_prices().cost(Usage(input=10), model) is None


def test_the_users_table_goes_first(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[models."gpt-4o"]\ninput = 1\noutput = 2\n[models.own]\ninput=0\noutput=0\n')
    prices = load_prices(file)
    assert prices.cost(Usage(input=1_000_000), "gpt-4o") == 1
    assert prices.cost(Usage(input=10), "own") == 0
    assert prices.price("o3") == load_prices().price("o3")


@pytest.mark.parametrize("text", ["models = 3", "[models.x]\ninput = -1\noutput = 1", "x", "a = 1"])
def test_a_wrong_table_is_the_users_to_mend(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"mine\.toml"):
        load_prices(file)
    with pytest.raises(UserError, match="nowhere"):
        load_prices(tmp_path / "nowhere")
