"""Names of models in the clouds, held to the model table of litellm."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import orjson
import pytest

from trajudge.judges.models import ServedModel, is_known, listed_price, served_model


@pytest.mark.parametrize(
    ("model", "name", "surcharge"),
    [
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5-20250929", 1.1),
        ("bedrock/global.anthropic.claude-opus-4-6-v1", "claude-opus-4-6", 1.0),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet-20241022", 1.0),
        (
            "bedrock/arn:aws:bedrock:us-east-1:1:inference-profile/us-gov.anthropic.claude-opus-5",
            "claude-opus-5",
            1.2,
        ),
        ("vertex/claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929", 1.0),
        ("vertex/claude-opus-4-6@default", "claude-opus-4-6", 1.0),
        ("azure/GPT-4o", "gpt-4o", 1.0),
        ("gemini/gemini-2.5-flash", "gemini-2.5-flash", 1.0),
    ],
)
def test_the_makers_name_and_the_clouds_surcharge(model: str, name: str, surcharge: float) -> None:
    assert served_model(model) == ServedModel(name, surcharge)
    if name.startswith("claude-"):
        assert is_known(model)


LITELLM = find_spec("litellm")
CLOUDS = re.compile(r"bedrock(_converse)?$|vertex_ai-anthropic")
# Regions that are no part of the name, retired models, and one that no list price is known of.
UNCOMPARED = ("bedrock", "claude-3", "mythos")


@pytest.mark.skipif(LITELLM is None, reason="litellm's table of prices")
def test_prices_in_the_clouds_are_those_that_litellm_states() -> None:
    assert LITELLM
    assert LITELLM.origin
    file = Path(LITELLM.origin).with_name("model_prices_and_context_window_backup.json")
    compared = 0
    for model, stated in orjson.loads(file.read_bytes()).items():
        own = listed_price(model).price
        if own is None or not CLOUDS.match(stated.get("litellm_provider", "")):
            continue
        if any(word in model for word in UNCOMPARED) or "claude" not in model:
            continue
        compared += 1
        assert own.input == pytest.approx(stated["input_cost_per_token"] * 1e6), model
        assert own.output == pytest.approx(stated["output_cost_per_token"] * 1e6), model
    assert compared >= 20
