"""Knows the labels of the folder that it judges."""

from __future__ import annotations

from pathlib import Path

from trajudge.annotations import open_annotations, primary_labels
from trajudge.judges.model import Judge, Model, Skipped, Verdict
from trajudge.trajectories.model import Record, Trajectory

needs_model = False


class Options(Record):
    labels: Path


def judge(options: Options) -> Judge:
    known = primary_labels(open_annotations(f"trajudge:{options.labels}"))

    async def judged(trajectory: Trajectory, ask: Model) -> Verdict:
        truth = known[trajectory.key].success
        if truth is None:
            raise Skipped("nobody knows")
        return Verdict(success=truth)

    return judged
