"""AgentRewardBench's published counts, as the published files have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trajudge.annotations.agentrewardbench import BENCHMARKS

JUDGES = ("webjudge-7b", "webjudge-gpt-4o")
AGENTS = {
    "Claude 3.7 Sonnet": "GenericAgent-anthropic_claude-3.7-sonnet",
    "GPT-4o": "GenericAgent-gpt-4o-2024-11-20",
    "Llama 3.3": "GenericAgent-meta-llama_Llama-3.3-70B-Instruct",
    "Qwen2.5-VL": "GenericAgent-Qwen_Qwen2.5-VL-72B-Instruct",
    "All": "all",
}
BENCHMARK_IDS = {name: id_ for id_, name in BENCHMARKS.items()} | {"Overall": "all"}


def percent(rate: float) -> float:
    """As the paper's tables show a fraction."""
    return round(100 * rate, 1)


def arrays(folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results["webjudge"]  # type: ignore[no-any-return]
