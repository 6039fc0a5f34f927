"""Make an ordinary run folder of a sharded run whose shards are all finished."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import orjson

from trajudge.annotations import store as annotation_store
from trajudge.eval.data.call_log import CALLS
from trajudge.eval.data.effective import merged
from trajudge.eval.data.index.call_ledger import PAYMENTS
from trajudge.eval.data.index.judgments import read_run_judgments
from trajudge.eval.data.manifest import open_folder
from trajudge.eval.data.run_folder import (
    JUDGMENTS,
    LABELS,
    MANIFEST,
    RECORDS,
    REWARDS,
    read_labels,
    read_rewards,
    write_lines,
    writing,
)
from trajudge.eval.runs.outputs import missing_policy, write_scores
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.paid_beside import paid_beside
from trajudge.eval.scoring.records import ScoreReport
from trajudge.eval.shards.claims import ShardClaims
from trajudge.eval.shards.objects.store import ObjectStore
from trajudge.eval.shards.outcome import (
    ShardOutcome,
    content_of,
    finished,
    read_outcome,
    records_of,
)
from trajudge.eval.shards.plan import ShardPlan
from trajudge.eval.shards.replies import asked_again, kept_of
from trajudge.judges.training_set import key_hash
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.errors import UserError


class MergedRun(NamedTuple):
    """What was merged: shards, judgments, how many shards changed hands, and how many answers were
    paid for beyond the first to their request."""

    folder: Path
    shards: int
    judgments: int
    taken_over: int
    asked_again: int


def merge(store: ObjectStore, plan: ShardPlan, folder: Path) -> MergedRun:
    """Write the run folder: ``judgments.jsonl`` has the bytes of a run on one machine.

    Raises UserError if a shard is not finished, is damaged, or if the folder holds something.
    """
    check_finished(store, plan)
    if (folder / MANIFEST).is_file() or (folder / JUDGMENTS).is_file():
        raise UserError(f"--out {folder}: holds a run already: name a new folder")
    outcomes = {name: read_outcome(store, name) for name in plan.names}
    sent = merged(entry for outcome in outcomes.values() for entry in outcome.sent)
    open_folder(folder, plan.manifest.model_copy(update={"sent": sent}))
    for name in (JUDGMENTS, CALLS):
        write_lines(folder / name, _lines(store, outcomes, name))
    _write_sorted(store, outcomes, folder)
    _write_records(store, outcomes, folder)
    paid_again = _write_payments(store, outcomes, folder)
    return MergedRun(
        folder,
        shards=len(outcomes),
        judgments=sum(outcome.judgments for outcome in outcomes.values()),
        taken_over=sum(outcome.turn > 1 for outcome in outcomes.values()),
        asked_again=paid_again,
    )


def check_finished(store: ObjectStore, plan: ShardPlan) -> None:
    """Raise UserError that says how many shards are left, and who works on some."""
    done = finished(store)
    left = [name for name in plan.names if name not in done]
    if not left:
        return
    claims = ShardClaims(store, "")
    holders = sorted({holder for name in left if (holder := claims.holder(name))})
    at_work = f"{len(holders)} at work ({', '.join(holders[:3])})" if holders else "none at work"
    raise UserError(
        f"{store.address}: {len(left)} of {len(plan.shards)} shards are not finished, workers: "
        f"{at_work}: wait, or start more with  trajudge run work"
    )


def score_merged(plan: ShardPlan, folder: Path) -> ScoreReport:
    """Score the merged run and write its results. Raises UserError."""
    manifest = plan.manifest
    judgments = read_run_judgments(folder / JUDGMENTS, folder / CALLS)
    hashes = set(manifest.training_keys)
    trained = {key for key in judgments.columns.keys if hashes and key_hash(key) in hashes}
    scores = score(
        judgments,
        read_labels(folder),
        rewards=read_rewards(folder),
        missing=missing_policy(manifest.protocol),
        training={manifest.judge: trained} if trained else {},
    )
    beside = paid_beside(folder / PAYMENTS, judgments.columns.calls)
    scores = scores.model_copy(update={"beside": beside})
    return write_scores(folder, scores, manifest.annotations)


def _lines(store: ObjectStore, outcomes: Mapping[str, ShardOutcome], name: str) -> Iterator[bytes]:
    for shard, outcome in outcomes.items():
        yield content_of(store, shard, outcome, name)


def _write_payments(store: ObjectStore, outcomes: Iterable[str], folder: Path) -> int:
    """Write what all workers paid, in the order of shards, workers and their commits; return how
    many answers came beyond the first to their request."""
    lines: list[bytes] = []
    again = 0
    for shard in outcomes:
        kept = kept_of(store, shard)
        lines += kept.payments
        again += asked_again(kept.replies)
    if lines:
        write_lines(folder / PAYMENTS, (line + b"\n" for line in lines))
    return again


def _write_sorted(store: ObjectStore, outcomes: Mapping[str, ShardOutcome], folder: Path) -> None:
    """Write labels and rewards, which a run's folder has in the order of their keys."""
    labels = [*_lines(store, outcomes, LABELS)]
    header = annotation_store.header_line()
    rows = [row for part in labels for row in part.splitlines(keepends=True) if row != header]
    write_lines(folder / LABELS, [header, *sorted(rows, key=_order)])
    rewards = [
        row for part in _lines(store, outcomes, REWARDS) for row in part.splitlines(keepends=True)
    ]
    write_lines(folder / REWARDS, sorted(rewards, key=_order))


def _order(line: bytes) -> tuple[str, str, str, int]:
    return TrajectoryKey.model_validate(orjson.loads(line)["key"]).order


def _write_records(store: ObjectStore, outcomes: Mapping[str, ShardOutcome], folder: Path) -> None:
    for shard, outcome in outcomes.items():
        for name, content in records_of(store, shard, outcome):
            with writing(folder):
                (folder / RECORDS).mkdir(exist_ok=True)
                write_bytes(folder / RECORDS / name, content.encode())
