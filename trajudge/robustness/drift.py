"""Drift of a judge's verdicts on fixed runs (canaries): two draws per prompt without the cache,
repeated on a later day."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
from pydantic_core import to_json

from trajudge.annotations.agentrewardbench import family_of
from trajudge.eval.reporting.sentences import probability
from trajudge.eval.runs.settings import RunRequest
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.judging import carried_out, planned
from trajudge.robustness.pairs import IDENTITY, Verdicts, judged_run, verdicts_of
from trajudge.robustness.perturb import expanded, read_variants
from trajudge.robustness.settings import RobustConfig
from trajudge.robustness.subjects import subjects
from trajudge.stats.comparison import exchange_test, holm
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes
from trajudge.util.tables import all_folded
from trajudge.util.terminal import count_of
from trajudge.util.validation import read_records


class Canary(Record):
    """One line: ``requests`` are the hashes of the judge's requests about the unchanged run
    (empty without a model), ``verdicts`` those of the two draws."""

    judge: str
    key: TrajectoryKey
    requests: tuple[str, ...] = ()
    verdicts: tuple[bool, bool]


Canaries = Mapping[str, Mapping[TrajectoryKey, Canary]]


def frozen(folders: Sequence[Path], attacked: Path) -> list[Canary]:
    """Return a canary for each run and judge with both verdicts. Raises UserError without any."""
    identities = {
        one.key: one.of for one in read_variants(attacked) if one.perturbation == IDENTITY
    }
    canaries = []
    for run in map(judged_run, folders):
        for name, judgments in () if run.sources_only else run.judgments.items():
            current = verdicts_of(judgments)
            for again, source in identities.items():
                if source not in current or again not in current:
                    continue
                clean, second = current[source], current[again].success
                if clean.success is not None and second is not None:
                    requests = tuple(sorted(clean.requests))
                    both = (clean.success, second)
                    canaries.append(
                        Canary(judge=name, key=source, requests=requests, verdicts=both)
                    )
    if not canaries:
        raise UserError(
            "--drift: no run has two verdicts of one judge: leave the perturbation identity in"
        )
    return canaries


def read_canaries(file: Path) -> Canaries:
    """Read the file, by judge and run. Raises UserError with the line."""
    anew = "restore the file from a copy, or remove it, so that it is written anew"
    lines = read_records(
        file, Canary.model_validate_json, missing="name another file with --drift", damaged=anew
    )
    canaries: dict[str, dict[TrajectoryKey, Canary]] = {}
    for _, one in lines:
        canaries.setdefault(one.judge, {})[one.key] = one
    if not canaries:
        raise UserError(f"--drift {file}: is empty: remove it, so that it is written anew")
    return canaries


# A round: two draws of every prompt, once a day.

AGAIN = ("canary-1", "canary-2")


class CanaryRound(NamedTuple):
    """The judgments of one day: the runs, the run of each judge on them, and its ``canaries`` by
    name in the round. ``code`` is not 0 if there is nothing to measure."""

    code: int
    asked: Path
    folders: tuple[Path, ...]
    canaries: Canaries


def judge_again(
    request: RunRequest, config: RobustConfig, canaries: Canaries, day: date
) -> CanaryRound:
    """Judge the canaries of every judge in the request again. Judgments of the same day are
    reused, so that an interrupted round continues. Raises UserError."""
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
        identity.model_copy(update={"name": name, "sample": 2 * day.toordinal() + index})
        for index, name in enumerate(AGAIN)
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
    if done.failed is not None:  # a round compares every judge, or reports why it cannot
        raise done.failed
    return CanaryRound(done.code, out / "asked", done.folders, frozen)


# The comparison, beyond the judge's own noise.

LEVEL = 0.05


class JudgeDrift(NamedTuple):
    """One judge's canaries. ``compared`` are those with equal prompts and both new verdicts;
    ``other_prompts`` and ``unanswered`` are the others. ``between``: how often a new verdict
    differs from an old one; ``within``: two verdicts of the same time; ``accepted_then`` and
    ``accepted_now`` are shares of success. ``p_adjusted`` is by Holm over the judges."""

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


def drifts(day: CanaryRound, seed: int) -> list[JudgeDrift]:
    """Compare every judge of the round with its canaries. Raises UserError."""
    variants = read_variants(day.asked)
    again: dict[TrajectoryKey, dict[str, TrajectoryKey]] = {}
    for one in variants:
        again.setdefault(one.of, {})[one.perturbation] = one.key
    judges = []
    for run in map(judged_run, day.folders):
        for name, judgments in run.judgments.items():
            current = verdicts_of(judgments)
            mine = list(day.canaries[name].values())
            judges.append(_drift(name, mine, again, current, np.random.default_rng(seed)))
    adjusted = holm([one.p_value for one in judges])
    return [one._replace(p_adjusted=float(p)) for one, p in zip(judges, adjusted, strict=True)]


def _drift(
    judge: str,
    canaries: Sequence[Canary],
    again: dict[TrajectoryKey, dict[str, TrajectoryKey]],
    current: Verdicts,
    rng: np.random.Generator,
) -> JudgeDrift:
    same = [one for one in canaries if set(one.requests) == _requests(current, one.key)]
    rows: list[tuple[Canary, list[bool]]] = []
    for one in same:
        keys = [again.get(one.key, {}).get(name) for name in AGAIN]
        drawn = [current[key].success for key in keys if key is not None and key in current]
        verdicts = [verdict for verdict in drawn if verdict is not None]
        if len(verdicts) == len(AGAIN):
            rows.append((one, verdicts))
    counts = (len(rows), len(canaries) - len(same), len(same) - len(rows))
    if not rows:
        return JudgeDrift(judge, *counts)
    then = np.array([one.verdicts for one, _ in rows])
    now = np.array([verdicts for _, verdicts in rows])
    tasks = [(one.key.benchmark, family_of(one.key)) for one, _ in rows]
    numbers = {task: index for index, task in enumerate(sorted(set(tasks)))}
    test = exchange_test(then, now, [numbers[task] for task in tasks], rng)
    accepted = (float(then.mean()), float(now.mean()))
    return JudgeDrift(judge, *counts, test.between, test.within, *accepted, test.p_value)


def _requests(current: Verdicts, key: TrajectoryKey) -> set[str]:
    return set(current[key].requests) if key in current else set()


def _lines(one: JudgeDrift) -> list[str]:
    """Describe the result of a judge."""
    lines = [f"{one.judge}: no canary could be compared"]
    if one.between is not None and one.within is not None:
        p = probability(one.p_adjusted)
        p = p if p.startswith("<") else f"= {p}"
        outcome = "its verdicts have changed" if one.has_drifted else "no more than noise"
        lines = [
            f"{one.judge}: {outcome}: {100 * one.between:.1f} % of verdicts differ from the frozen "
            f"ones, {100 * one.within:.1f} % between draws of one time (p {p})",
            f"  {one.compared} canaries: {100 * (one.accepted_then or 0):.1f} % accepted then, "
            f"{100 * (one.accepted_now or 0):.1f} % now",
        ]
    if one.other_prompts:
        lines.append(
            f"  {one.other_prompts} canaries have other prompts than the frozen ones, and show "
            "nothing about the model: the judge, its options, the data or this program has changed"
        )
    if one.unanswered:
        lines.append(f"  {one.unanswered} canaries got no verdict")
    return lines


def freeze(file: Path, folders: Sequence[Path], attacked: Path) -> None:
    """Write the canaries of the runs' judges, and print where. Raises UserError."""
    canaries = frozen(folders, attacked)
    save_bytes(file, b"".join(to_json(one) + b"\n" for one in canaries))
    judges = len({one.judge for one in canaries})
    frozen_of = f"{count_of(len(canaries), 'canary')} of {count_of(judges, 'judge')}"
    _say([f"{frozen_of} frozen in {file}: the same command asks again"])


def _say(lines: Sequence[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in all_folded(lines))


def check_drift(request: RunRequest | None, config: RobustConfig, day: date | None = None) -> int:
    """Judge the canaries again and compare: exit code 1 if a judge changed or cannot be
    compared. ``request`` is None without judges; ``day`` is today in UTC. Raises UserError."""
    if request is None:
        raise UserError(
            f"--drift {config.drift}: is there already, and no judge to ask: name one with "
            "--judge, or another file"
        )
    canaries = read_canaries(config.drift or Path())
    again = judge_again(request, config, canaries, day or datetime.now(UTC).date())
    if again.code != OK or not again.folders:
        return again.code
    measured = drifts(again, config.seed)
    file = again.asked.parent / "drift.json"
    content = [one._asdict() | {"has_drifted": one.has_drifted} for one in measured]
    save_bytes(file, orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
    _say([*(line for one in measured for line in _lines(one)), f"written to {file}"])
    return FAILURES if any(one.has_drifted or not one.compared for one in measured) else OK
