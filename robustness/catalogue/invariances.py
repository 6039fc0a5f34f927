"""Family A: changes that no verdict may follow."""

from __future__ import annotations

from numpy.random import Generator

from trajudge.robustness.model import Channel, Perturbation, Subject, keeps
from trajudge.trajectories.model import Trajectory


def identity(subject: Subject, _: Generator) -> Trajectory:
    """Transform nothing."""
    return subject.trajectory


PERTURBATIONS = (
    Perturbation(
        name="identity",
        family="A",
        channels=frozenset({Channel.PROMPT}),
        relations=keeps(),
        stackable=True,
        sample=1,
        summary="Nothing is changed and the same prompt is sent again: the judge's own noise.",
        change=identity,
    ),
)
