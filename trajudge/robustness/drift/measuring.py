"""Whether a judge still says of its canaries what it said, beyond its own noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from trajudge.annotations.agentrewardbench import family_of
from trajudge.eval.reporting.sentences import probability
from trajudge.robustness.drift.asking import AGAIN, CanaryRound
from trajudge.robustness.drift.canaries import Canary
from trajudge.robustness.measures.pairing import judged_run
from trajudge.robustness.measures.pairs import Verdicts, verdicts_of
from trajudge.robustness.measures.report import read_variants
from trajudge.stats.comparison import exchange_test, holm
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.files import save_bytes

LEVEL = 0.05


class JudgeDrift(NamedTuple):
    """One judge's canaries. ``compared``: those with the prompts of then and both verdicts of now;
    ``other_prompts`` and ``unanswered`` are the rest. ``between``: how often a verdict of now
    differs from one of then; ``within``: two verdicts of the same time; ``accepted_then`` and
    ``accepted_now`` are shares of success. ``p_adjusted`` by Holm over the judges."""

    judge: str
    compared: int
    other_prompts: int
    unanswered: int
    between: float | None = None
    within: float | None = None
    accepted_then: float | None = None
    accepted_now: float | None = None
    p_value: float = 1.0
    p_adjusted: float = 1.0

    @property
    def has_drifted(self) -> bool:
        return self.p_adjusted < LEVEL


def drifts(asked: CanaryRound, seed: int) -> list[JudgeDrift]:
    """Compare every judge of the round with its canaries. Raises UserError."""
    variants = read_variants(asked.asked)
    again: dict[TrajectoryKey, dict[str, TrajectoryKey]] = {}
    for one in variants:
        again.setdefault(one.of, {})[one.perturbation] = one.key
    found = []
    for run in map(judged_run, asked.folders):
        for name, judgments in run.judgments.items():
            said = verdicts_of(judgments)
            mine = list(asked.canaries[name].values())
            found.append(_drift(name, mine, again, said, np.random.default_rng(seed)))
    adjusted = holm([one.p_value for one in found])
    return [one._replace(p_adjusted=float(p)) for one, p in zip(found, adjusted, strict=True)]


def _drift(
    judge: str,
    canaries: Sequence[Canary],
    again: dict[TrajectoryKey, dict[str, TrajectoryKey]],
    said: Verdicts,
    rng: np.random.Generator,
) -> JudgeDrift:
    same = [one for one in canaries if set(one.requests) == _requests(said, one.key)]
    rows: list[tuple[Canary, list[bool]]] = []
    for one in same:
        keys = [again.get(one.key, {}).get(name) for name in AGAIN]
        verdicts = [said[key].success for key in keys if key is not None and key in said]
        told = [verdict for verdict in verdicts if verdict is not None]
        if len(told) == len(AGAIN):
            rows.append((one, told))
    counts = (len(rows), len(canaries) - len(same), len(same) - len(rows))
    if not rows:
        return JudgeDrift(judge, *counts)
    then, now = np.array([one.verdicts for one, _ in rows]), np.array([told for _, told in rows])
    tasks = [(one.key.benchmark, family_of(one.key)) for one, _ in rows]
    numbers = {task: place for place, task in enumerate(sorted(set(tasks)))}
    test = exchange_test(then, now, [numbers[task] for task in tasks], rng)
    accepted = (float(then.mean()), float(now.mean()))
    return JudgeDrift(judge, *counts, test.between, test.within, *accepted, test.p_value)


def _requests(said: Verdicts, key: TrajectoryKey) -> set[str]:
    return set(said[key].requests) if key in said else set()


def write_drift(found: Sequence[JudgeDrift], file: Path) -> Path:
    """Write the figures as JSON. Raises UserError."""
    content = [one._asdict() | {"has_drifted": one.has_drifted} for one in found]
    save_bytes(file, orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
    return file


def drift_lines(found: Sequence[JudgeDrift]) -> list[str]:
    """Say what was found, a few lines a judge."""
    return [line for one in found for line in _lines(one)]


def _lines(one: JudgeDrift) -> list[str]:
    lines = [f"{one.judge}: no canary could be compared"]
    if one.between is not None and one.within is not None:
        p = probability(one.p_adjusted)
        p = p if p.startswith("<") else f"= {p}"
        told = "its verdicts have changed" if one.has_drifted else "no more than noise"
        lines = [
            f"{one.judge}: {told}: {100 * one.between:.1f} % of verdicts differ from the frozen "
            f"ones, {100 * one.within:.1f} % between draws of one time (p {p})",
            f"  {one.compared} canaries: {100 * (one.accepted_then or 0):.1f} % accepted then, "
            f"{100 * (one.accepted_now or 0):.1f} % now",
        ]
    if one.other_prompts:
        lines.append(
            f"  {one.other_prompts} canaries have other prompts than the frozen ones, and tell "
            "nothing about the model: the judge, its options, the data or this program has changed"
        )
    if one.unanswered:
        lines.append(f"  {one.unanswered} canaries got no verdict")
    return lines
