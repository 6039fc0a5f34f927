"""The files that say in figures what a run was: ``summary.json`` and the plan beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from trajudge.proxy.records.events import FORMAT
from trajudge.proxy.server.settings import ProxySettings
from trajudge.util.files import save_bytes


def write_summary(settings: ProxySettings, tasks: Sequence[dict[str, Any]]) -> None:
    """Write ``summary.json`` and ``plan.json`` into the run's folder. Raises UserError."""
    if settings.out is None:
        return
    summary = {
        "format": FORMAT,
        "plan": settings.plan.digest,
        "seed": settings.seed,
        "tasks": list(tasks),
    }
    save_bytes(settings.out / "summary.json", json.dumps(summary, indent=1).encode())
    plan = settings.plan.model_dump_json(indent=1, exclude_none=True)
    save_bytes(settings.out / "plan.json", plan.encode())
