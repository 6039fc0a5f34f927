"""Recordings with and without faults: one folder an arm, paired by case, agent and attempt.

A plan's faults are recorded one at a time, each in an arm of its own, so that what happens can be
told to be its doing; the clean arm goes through the same proxy. ``resilience.json`` names the arms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from trajudge.environments.recording.campaign import CampaignResult, RecordingPlan, record
from trajudge.environments.recording.fault_proxy import FaultArm
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, write_bytes

CLEAN = "clean"
ARMS = "resilience.json"
_FORMAT = "trajudge-resilience"


class ArmResult(NamedTuple):
    """What was recorded in an arm."""

    name: str
    recorded: CampaignResult


def arms_of(path: Path, *, pictures: bool = True) -> list[FaultArm]:
    """Return the clean arm and one for each fault of a plan. Raises UserError for a file that is no
    plan; what is wrong with a fault the proxy says when its arm begins."""
    try:
        plan = json.loads(read_regular(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a fault plan in --faults") from error
    except ValueError as error:
        raise UserError(f"{path}: no JSON ({error}): docs/proxy.md shows a plan") from error
    faults = plan.get("faults") if isinstance(plan, dict) else None
    if not isinstance(faults, list) or not faults:
        raise UserError(f"{path}: names no faults: docs/proxy.md shows a plan")
    names = [fault.get("id") if isinstance(fault, dict) else None for fault in faults]
    if not all(isinstance(name, str) and name not in ("", CLEAN) for name in names):
        raise UserError(f"{path}: each fault needs an id of its own, other than {CLEAN!r}")
    if len(set(names)) < len(names):
        raise UserError(f"{path}: two faults have one id: give each its own")
    rest = {name: value for name, value in plan.items() if name != "faults"}
    alone = [
        FaultArm(fault["id"], {**rest, "faults": [fault]}, pictures=pictures) for fault in faults
    ]
    return [FaultArm(CLEAN, {**rest, "faults": []}, pictures=pictures), *alone]


def record_arms(
    plan: RecordingPlan, arms: Sequence[FaultArm], out: Path, workers: int = 1
) -> list[ArmResult]:
    """Record what is missing of every arm, the clean one first. Raises UserError and Halted."""
    results: list[ArmResult] = []
    spent = 0.0
    for arm in arms:
        recorded = record(plan, out / arm.name, workers, arm, spent=spent)
        results.append(ArmResult(arm.name, recorded))
        if plan.model is not None:
            spent += _spent_in(out / arm.name)
    content: Mapping[str, Any] = {
        "format": _FORMAT,
        "version": 1,
        "seed": plan.seed,
        "arms": {arm.name: dict(arm.plan) for arm in arms},
    }
    write_bytes(out / ARMS, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return results


def _spent_in(folder: Path) -> float:
    """Return what the runs of an arm cost, in US dollars: one budget holds for all arms."""
    if store.find_file(folder) is None:
        return 0.0
    runs = (run for run in store.read(folder) if isinstance(run, Trajectory))
    return sum(run.telemetry.get("cost", 0.0) for run in runs)
