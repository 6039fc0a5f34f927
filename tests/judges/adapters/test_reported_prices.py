"""A server that lists prices, as OpenRouter does, is asked for them: over loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.llm_server import LlmServer
from trajudge.judges.adapters.routing import make_adapter
from trajudge.judges.calls.handle import single_model
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.model import Usage
from trajudge.judges.models import Price

# As OpenRouter lists models; what is not read is left out.
PRICING = {
    "prompt": "0.00000125",
    "completion": "0.00001",
    "request": "0",
    "image": "0.00516",
    "input_cache_read": "0.000000125",
}
LISTED = {"id": "maker/model", "name": "Maker: Model", "context_length": 65_536, "pricing": PRICING}


def config(folder: Path, url: str | None, **options: Any) -> CallConfig:
    return CallConfig(base_url=url, cache=str(folder / "cache"), **options)


def test_the_listed_price_is_taken_and_remembered(tmp_path: Path) -> None:
    with LlmServer(models=[LISTED]) as server:
        url = f"{server.url}/v1"
        handle = single_model("maker/model", config(tmp_path, url, adapter="openai"))
        assert handle.priced.price == Price(input=1.25, output=10, cache_read=0.125)
        told = handle.manifest["prices"]["maker/model"]
        assert (told["source"], told["detail"]) == ("server", url)
        assert Price.model_validate(told["price"]) == handle.priced.price
        assert handle.manifest["windows"]["maker/model"] == {"tokens": 65_536, "source": "server"}
    later = single_model("maker/model", config(tmp_path, url, adapter="openai"))
    usage = Usage(input=1_000_000)
    assert later.price("maker/model", usage) == handle.price("maker/model", usage) == 1.25


def test_openrouter_is_asked_where_litellm_asks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LlmServer(models=[LISTED]) as server:
        monkeypatch.setenv("OPENROUTER_API_BASE", f"{server.url}/v1")
        handle = single_model("openrouter/maker/model", config(tmp_path, None))
        assert handle.priced.price == Price(input=1.25, output=10, cache_read=0.125)
        assert handle.window.tokens == 65_536


@pytest.mark.parametrize(
    "pricing",
    [
        None,
        {"prompt": "-1", "completion": "-1"},  # a router: what it chooses has the price
        {"prompt": "0.1"},
        {"prompt": "x", "completion": "0"},
        {**PRICING, "request": "0.01"},
    ],
)
def test_what_is_no_price_per_token_is_unknown(pricing: object) -> None:
    with LlmServer(models=[{**LISTED, "pricing": pricing}]) as server:
        made, _ = make_adapter("maker/model", adapter="http", base_url=f"{server.url}/v1")
        assert made.reported_price("maker/model") is None  # type: ignore[attr-defined]


def test_the_users_price_goes_before_the_servers(tmp_path: Path) -> None:
    entry = '{"maker/model": {"price": {"input": 2, "output": 3}}}'
    with LlmServer(models=[LISTED]) as server:
        options = config(tmp_path, f"{server.url}/v1", adapter="http", models=entry)
        handle = single_model("maker/model", options)
    assert handle.priced.source == "file"
    assert handle.price("maker/model", Usage(input=1_000_000)) == 2
