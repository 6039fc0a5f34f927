"""What is watched while rewards are given, and when they stop."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from trajudge.trajectories.model import Record, Seed


class WatchConfig(Record):
    """``canaries`` are trajectories (KIND:PATH) of which one is judged again, past the cache, after
    every ``every`` rewards; a judge that did not move gives another verdict than at first in
    at most ``noise`` of them. ``audit_share`` of the rewards are to be audited: the mean reward
    may lie ``gap`` above the share of true successes. The judge may fail in ``failures`` of the
    rewards. ``alpha`` is the probability that rewards which should go on are ever stopped, all
    tests together; with ``keep_going`` they are only reported. ``journal`` keeps what was seen.

    Two signs stop nothing, but have ten times as many rewards audited. With ``probes`` half of the
    canaries that the judge rejected are asked doctored as well, and accepted in at most ``fooled``.
    The form of accepted runs is held to that of the first ``baseline`` of them; while it stays, a
    sign of a change comes once in ``run_length`` accepted runs or more, in the mean."""

    canaries: str | None = None
    every: int = Field(default=100, ge=1)
    noise: float = Field(default=0.05, gt=0, lt=1)
    audit_share: float = Field(default=0.005, ge=0, le=1)
    gap: float = Field(default=0.1, gt=0, lt=1)
    failures: float = Field(default=0.2, gt=0, lt=1)
    probes: bool = True
    fooled: float = Field(default=0.1, gt=0, lt=1)
    baseline: int = Field(default=200, ge=20)
    run_length: int = Field(default=100_000, ge=100)
    alpha: float = Field(default=0.01, gt=0, lt=1)
    keep_going: bool = False
    journal: Path | None = None
    seed: Seed = 0
