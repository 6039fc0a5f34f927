"""Original WebArena tasks, as the auditors ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajudge.rules.blind.agents import TEXT_AGENTS
from trajudge.rules.suites import Suite
from trajudge.rules.weaknesses import CATEGORIES, UNIONS, weaknesses
from trajudge.rules.webarena.cases import mutation_suite
from trajudge.rules.webarena.evaluator import WebArenaEvaluator
from trajudge.rules.webarena.files import load_tasks, unread_keys
from trajudge.rules.webarena.model import Trace


def _detect(record: Mapping[str, Any]) -> bool:
    """Its ``eval`` names ``eval_types``."""
    spec = record.get("eval")
    return isinstance(spec, dict) and "eval_types" in spec


SUITE = Suite(
    kind="webarena",
    detect=_detect,
    load=load_tasks,
    notes=unread_keys,
    lint=weaknesses,
    categories=CATEGORIES,
    unions=UNIONS,
    modes=("original",),
    agents=TEXT_AGENTS,
    # Without a judge model: what one would decide is unknown.
    evaluator=lambda mode: WebArenaEvaluator(),
    # A browser that was never used.
    idle_trace=lambda task: Trace(url="about:blank"),
    # A task may start on several pages: the last is the one that is left open.
    start_trace=lambda task: Trace(url=task.start_url.split(" |AND| ")[-1]),
    mutations=mutation_suite,
)
