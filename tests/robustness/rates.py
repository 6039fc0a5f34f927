"""What ``trajudge robust`` measures, as ``robustness.json`` has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.commands import robust
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer

Rates = dict[str, dict[str, Any]]


def asr(rates: Rates, name: str) -> float:
    assert rates[name]["attack_success"]["trials"] > 0, name
    estimate: float = rates[name]["attack_success"]["estimate"]
    return estimate


Text = Callable[[Incoming], str]


def rates_of(judge: dict[str, Any]) -> Rates:
    return {one["name"]: one for one in judge["rates"]}


def measured_judges(
    attacked: Path, out: Path, *words: str, model: Text | None = None
) -> tuple[list[dict[str, Any]], int]:
    """The judges, and how many requests a ``model`` behind a real server got from them."""
    given = [*words, "--attacked", str(attacked), "--out", str(out), "--yes"]
    sent = 0
    if model is None:
        assert robust(given) == 0
    else:
        given += ["--model", "gpt-4o", "--cache", str(out / "cache.sqlite")]
        with LlmServer(text=model, record=0) as server:
            assert robust([*given, "--base-url", f"{server.url}/v1"]) == 0
            sent = server.stats.requests
    return json.loads((out / "robustness.json").read_text())["judges"], sent
