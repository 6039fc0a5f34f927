"""Canaries asked again: two draws of every prompt that no cache holds, once a day."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import NamedTuple

from trajudge.eval.runs.settings import RunRequest
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.drift.canaries import Canaries
from trajudge.robustness.judging import carried_out, planned
from trajudge.robustness.measures.pairs import IDENTITY
from trajudge.robustness.settings import RobustConfig
from trajudge.robustness.sources import subjects
from trajudge.robustness.suite import expanded
from trajudge.util.errors import UserError

AGAIN = ("canary-1", "canary-2")


class CanaryRound(NamedTuple):
    """What was asked on one day: the runs to draw again, the run of each judge on them, and its
    ``canaries`` by the name that it has there. ``code`` is not 0 where there is nothing to
    measure."""

    code: int
    asked: Path
    folders: tuple[Path, ...]
    canaries: Canaries


def asked_again(
    request: RunRequest, config: RobustConfig, canaries: Canaries, day: date
) -> CanaryRound:
    """Ask every judge of the request about its canaries. What was asked on the same day is not
    asked twice, so that an interrupted round goes on. Raises UserError."""
    out = config.out / "canaries" / day.isoformat()
    known = subjects(request.data.data, request.data.annotations, request.data.labels_by)
    keys = {key for some in canaries.values() for key in some}
    kept = tuple(one for one in known.trajectories if one.key in keys)
    if len(kept) < len(keys):
        raise UserError(
            f"--drift {config.drift}: {len(keys) - len(kept)} of its {len(keys)} runs are "
            "not in the data: name the data that they were frozen from with --data"
        )
    identity = catalogue()[IDENTITY]
    draws = [
        identity.model_copy(update={"name": name, "sample": 2 * day.toordinal() + place})
        for place, name in enumerate(AGAIN)
    ]
    expanded(out / "asked", known._replace(trajectories=kept), draws, config.seed)
    alone = config.model_copy(update={"out": out, "suite": "core", "perturbation": ()})
    runs = planned(request, out / "asked", alone)
    frozen = {}
    for plan in runs:
        if plan.judge_id not in canaries:
            raise UserError(
                f"--drift {config.drift}: holds none of {plan.judge_id}: freeze them "
                "into another file"
            )
        frozen[plan.judge_id] = canaries[plan.judge_id]
    done = carried_out(request, runs)
    if done.failed is not None:  # a round compares every judge, or says why it cannot
        raise done.failed
    return CanaryRound(done.code, out / "asked", done.folders, frozen)
