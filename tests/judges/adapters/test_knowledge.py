"""What is known of the models: capabilities and prices."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from trajudge.judges.model import Usage
from trajudge.judges.models import (
    Capability,
    OwnModels,
    Price,
    ServedModel,
    Tier,
    capability,
    is_known,
    listed_price,
)
from trajudge.util.errors import UserError


def test_the_table_and_the_family_are_joined() -> None:
    assert capability("gpt-4o-2024-05-13").output == 4_096
    assert capability("gpt-4o-2024-11-20").output == 16_384
    assert not capability("o3-mini").images
    assert capability("o3").images
    assert not capability("local:SmolLM2-135M").images
    assert not capability("openai/gpt-5-mini").temperature
    assert capability("gpt-5-chat-latest").temperature
    assert capability("claude-sonnet-4-5").image_max_side == 1_568
    assert capability("claude-opus-4-5").cache_minimum == 4_096


@pytest.mark.parametrize("model", ["my-own-finetune", "claude-opus-99", "gpt-99"])
def test_what_the_table_does_not_list_is_a_guess(model: str) -> None:
    assert not is_known(model)
    assert capability("my-own-finetune") == capability("*")
    assert capability("my-own-finetune").context == 32_768


def test_what_is_not_stated_of_a_model() -> None:
    stated = Capability(context=9_000, output=2_000)
    switches = {name for name, value in stated if value is True}
    numbers = {name: value for name, value in stated if type(value) is int}
    assert switches == {"images", "temperature"}
    assert numbers == {
        **{"context": 9_000, "output": 2_000, "cache_minimum": 1_024, "image_max_side": 2_048},
        **{"image_max_pixels": 4_194_304, "image_max_bytes": 5_000_000},
    }
    assert ServedModel("m") == ServedModel("m", 1.0)


@pytest.mark.parametrize(
    ("switches", "effort", "budget", "reasons"),
    [
        ({}, None, None, False),
        ({}, "low", None, True),
        ({}, None, 2_000, True),
        ({"reasoning": True}, "none", None, False),
        ({"reasoning": True}, "none", 2_000, False),
        ({"reasoning": True}, None, None, True),
        ({"reasoning": True, "thinks_when_told": True}, None, None, False),
        ({"reasoning": True, "default_effort": "none"}, None, None, False),
        ({"reasoning": True, "default_effort": "low"}, None, None, True),
        (
            {"reasoning": True, "thinks_when_told": True, "always_thinks": True},
            *(None, None, True),
        ),
        ({"always_thinks": True}, None, None, False),
    ],
)
def test_who_reasons(
    switches: dict[str, object], effort: str | None, budget: int | None, reasons: bool
) -> None:
    known = Capability.model_validate({"context": 9_000, "output": 2_000, **switches})
    assert known.reasons(effort, budget) is reasons


@pytest.mark.parametrize(
    ("model", "effort", "budget", "tokens"),
    [
        ("gpt-4o", None, None, 1_024),
        ("o3", None, None, 16_000),
        ("gpt-5", None, None, 16_000),
        ("gpt-5", "none", None, 1_024),
        ("gpt-5.4", None, None, 1_024),  # reasons from "low" on, by default not at all
        ("gpt-5.4", "high", None, 16_000),
        ("claude-sonnet-4-5", None, None, 1_024),
        ("claude-sonnet-4-5", None, 30_000, 31_024),
        ("claude-opus-5-5", None, None, 16_000),
        ("gemini/gemini-2.5-pro", None, None, 16_000),
        ("computer-use-preview", None, None, 1_024),  # its limit
    ],
)
def test_a_model_that_reasons_gets_room_for_it(
    model: str, effort: str | None, budget: int | None, tokens: int
) -> None:
    assert capability(model).default_max_tokens(effort, budget) == tokens


def test_a_temperature_goes_where_nothing_reasons() -> None:
    assert capability("gpt-5.4").takes_temperature()
    assert not capability("gpt-5.4").takes_temperature("high")
    assert not capability("gpt-5").takes_temperature()
    assert not capability("claude-opus-4-7").takes_temperature()
    assert capability("gpt-4o").takes_temperature("high")


def test_a_cost_counts_each_kind_of_token_at_its_price() -> None:
    usage = Usage(input=1_000_000, cache_read=1_000_000, output=1_000_000)
    assert listed_price("gpt-4o").cost(usage) == pytest.approx(2.5 + 1.25 + 10)
    written = Usage(cache_write=1_000_000)
    assert listed_price("claude-sonnet-4-5-20250929").cost(written) == pytest.approx(3.75)
    assert listed_price("gpt-4o").cost(written) == pytest.approx(2.5), "without an own price: input"
    thought = Usage(output=3_000_000, reasoning=1_000_000)
    assert listed_price("dashscope/qwen-turbo").cost(thought) == pytest.approx(2 * 0.2 + 0.5)


def test_a_long_prompt_costs_what_its_tier_says() -> None:
    price = listed_price("gpt-5.4").price
    assert price
    assert price.tiers == (Tier(above=272_000, input=5, output=22.5, cache_read=0.5),)
    assert price.cost(Usage(input=272_000)) == pytest.approx(0.272 * 2.5)
    long = Usage(input=200_000, cache_read=72_001, output=1_000)
    assert price.cost(long) == pytest.approx((200_000 * 5 + 72_001 * 0.5 + 1_000 * 22.5) / 1e6)
    assert price.batch
    assert price.batch.cost(Usage(input=1_000_000)) == pytest.approx(2.5)


@pytest.mark.parametrize("model", ["gpt-4o-2024-11-20", "openai/gpt-4o", "gpt-4o-latest"])
def test_a_dated_name_costs_what_its_family_costs(model: str) -> None:
    assert listed_price(model).price == listed_price("gpt-4o").price
    assert listed_price("gpt-4o-2024-05-13").price != listed_price("gpt-4o").price
    assert re.fullmatch(
        r"gpt-4o(-2024-11-20)? in litellm [\d.]+, [\d-]+", listed_price(model).detail
    )


def test_a_clouds_own_row_goes_before_the_makers_with_its_surcharge() -> None:
    own = listed_price("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert own.price and own.price.input == pytest.approx(3.3)
    assert "times" not in own.detail


@pytest.mark.parametrize(
    "model", ["gpt-4o-transcribe-x", "llama-3", "openrouter/openai/gpt-4o", "azure/mine", ""]
)
def test_an_unknown_model_has_no_price_rather_than_none_to_pay(model: str) -> None:
    known = listed_price(model)
    assert known.cost(Usage(input=10)) is None
    assert known.source == "unknown"


def test_the_users_prices_go_first(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[models."gpt-4o"]\ninput = 1\noutput = 2\n[models.own]\ninput=0\noutput=0\n')
    own = OwnModels(None, str(file))
    known = own.price("openai/gpt-4o-2024-11-20")
    assert known
    assert known.cost(Usage(input=1_000_000)) == 1
    assert known.detail == "mine.toml"
    free = own.price("own")
    assert free
    assert free.cost(Usage(input=10)) == 0
    assert own.price("o3") is None


@pytest.mark.parametrize("text", ["models = 3", "[models.x]\ninput = -1\noutput = 1", "x", "a = 1"])
def test_a_wrong_table_is_the_users_to_mend(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"mine\.toml"):
        OwnModels(None, str(file))
    with pytest.raises(UserError, match="nowhere"):
        OwnModels(None, str(tmp_path / "nowhere"))


def test_every_mistake_of_a_file_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[models."a"]\ncontext = -1\nwindow = 3\n[models."b".price]\ninput = 1\n'
        '[models."c".price]\ninput = 1\noutput = 1\n'
        "tiers = [{above = 9, input = 1, output = 1}, {above = 2, input = 1, output = 1}]\n"
    )
    with pytest.raises(UserError) as caught:
        OwnModels(str(file), None)
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("a: context is -1: input should be greater than or equal to 1")
    assert "a: window is no field: known are context, output" in lines[1]
    assert lines[2].endswith("b: price.output is missing: add it")
    assert "c: price is " in lines[3]
    assert lines[3].endswith("tiers must rise by their above")
    assert len(lines) == 4


def test_a_users_model_may_be_told_in_json() -> None:
    own = OwnModels('{"mine": {"context": 9000, "price": {"input": 1, "output": 2}}}', None)
    assert own.entry("mine").facts == {"context": 9_000}
    assert own.price("mine") == own.price("here/mine")
    assert own.entry("other").facts == {}
    assert Price(input=1, output=2) == own.entry("mine").price


def test_the_table_is_read_when_a_model_is_named() -> None:
    code = (
        "import trajudge.judges.calls.handle, trajudge.judges.models as t\n"
        "assert t._table.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
