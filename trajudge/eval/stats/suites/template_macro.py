"""Template-macro success: each task template counts once, and is the unit of inference.

Source: WebArena Verified, section 4.4 and appendices H and I: t-intervals over templates, over
the templates of one site, and over sites; agents compared by paired template differences from
the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval, t_quantile

ONE_UNIT = "fewer than two units: their spread is not seen, so there is no interval"


@dataclass(frozen=True, eq=False)
class TemplateMacro:
    """Template-macro (1,), every site's (S,), and the site-macro (1,); ``sites`` in order."""

    overall: Interval
    per_site: Interval
    site_macro: Interval
    sites: tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Anchored:
    """``agent - anchor`` over templates that both attempted: everything (A,) in agent order.

    ``better`` and ``worse`` say where the interval excludes zero. The anchor was chosen for
    being best on this very data, which flatters it.
    """

    anchor: int
    differences: Interval
    templates: Floats
    better: tuple[bool, ...]
    worse: tuple[bool, ...]


def t_interval(groups: Sequence[ArrayLike], confidence: float = 0.95) -> Interval:
    """Means of G groups of units, each with its t-interval over units: (G,). ``nan`` is no unit."""
    means, halves = np.full(len(groups), np.nan), np.full(len(groups), np.nan)
    short = False
    for i, group in enumerate(groups):
        values = np.asarray(group, dtype=float)
        values = values[~np.isnan(values)]
        n = len(values)
        short |= n < 2
        if n:
            means[i] = values.mean()
        if n > 1:
            halves[i] = t_quantile(confidence, n - 1) * values.std(ddof=1) / n**0.5
    notes = (ONE_UNIT,) if short else ()
    return Interval(means, means - halves, means + halves, confidence, notes)


def t_half_width(values: ArrayLike, confidence: float = 0.95) -> float | None:
    """Half of the t-interval over units (n,); None for fewer than two, whose spread is not seen."""
    interval = t_interval([values], confidence)
    return None if np.isnan(interval.low[0]) else float(interval.width[0] / 2)


def template_macro(
    template: ArrayLike, site: ArrayLike, success: ArrayLike, confidence: float = 0.95
) -> TemplateMacro:
    """From attempts (N,): a template is a (site, template) pair, its rate the mean of its tasks.

    ``success`` may be fractional (a task's mean over attempts). Raises ValueError on ``nan``.
    """
    outcome = np.asarray(success, dtype=float)
    if not np.isfinite(outcome).all():
        raise ValueError("success holds nan: decide what a failed run counts as first")
    sites, where = np.unique(np.asarray(site), return_inverse=True)
    names = np.unique(np.asarray(template), return_inverse=True)[1]
    pairs, which = np.unique(np.column_stack([where, names]), axis=0, return_inverse=True)
    which = which.ravel()
    rates = np.bincount(which, outcome) / np.bincount(which)
    per_site = t_interval([rates[pairs[:, 0] == s] for s in range(len(sites))], confidence)
    return TemplateMacro(
        overall=t_interval([rates], confidence),
        per_site=per_site,
        site_macro=t_interval([per_site.estimate], confidence),
        sites=tuple(sites.tolist()),
    )


def anchored_differences(
    rates: ArrayLike, confidence: float = 0.95, anchor: int | None = None
) -> Anchored:
    """Paired template differences (appendix H.2) of agents from ``rates`` (A, T).

    ``nan`` marks templates that an agent did not attempt. The anchor is the agent with the best
    mean over its own templates unless given.
    """
    table = np.asarray(rates, dtype=float)
    if anchor is None:
        anchor = int(np.nanargmax(t_interval(list(table)).estimate))
    gaps = table - table[anchor]
    differences = t_interval(list(gaps), confidence)
    better, worse = (differences.low > 0).tolist(), (differences.high < 0).tolist()
    templates = (~np.isnan(gaps)).sum(axis=1).astype(float)
    return Anchored(anchor, differences, templates, tuple(better), tuple(worse))
