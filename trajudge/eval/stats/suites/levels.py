"""What a hierarchical bootstrap resamples, and how it draws rollouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Leaf = Literal["exact", "gaussian"]
"""Rollouts drawn as binomials, or as one normal of the same mean and variance per app or
scenario: quicker, and close once an app holds dozens of cells."""

Configurations = Literal["axes", "whole"]
"""Levels of each axis drawn independently (a full factorial was run), or configurations drawn
whole (a few were sampled out of a large grid)."""


@dataclass(frozen=True)
class Levels:
    """Which levels are resampled within every (fixed) app; all of them is section 4.3.

    ``axes`` is one switch for all environmental axes, or one per axis.
    """

    scenarios: bool = True
    axes: bool | tuple[bool, ...] = True
    rollouts: bool = True

    def axis_switches(self, n_axes: int) -> tuple[bool, ...]:
        """One switch per axis. Raises ValueError where their number does not match."""
        if isinstance(self.axes, bool):
            return (self.axes,) * n_axes
        if len(self.axes) != n_axes:
            raise ValueError(f"{len(self.axes)} switches for {n_axes} axes")
        return self.axes
