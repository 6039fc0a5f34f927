"""Numbers of a batch: success, template-macro success with its t-interval, and why runs failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev

from msgspec import Struct

from rules.verdict import Outcome
from rules.verified.results import TaskResult, premature


class Macro(Struct, frozen=True, kw_only=True):
    """Success of ``runs`` runs: their share, and the mean over templates with its 95 % t-interval
    (paper, section 4.4 and appendix H); the limits are None for fewer than two templates."""

    runs: int
    passed: int
    unknown: int
    templates: int
    success: float | None
    template_macro: float | None
    half_width: float | None


class Summary(Struct, frozen=True, kw_only=True):
    """A batch under one mode. ``missing`` are tasks without a run, which count in no rate.

    ``unachievable`` counts tasks that cannot be done; ``premature`` of them were passed with an
    exploration ratio below τ.
    """

    mode: str
    overall: Macro
    sites: Mapping[str, Macro]
    failure_modes: Mapping[str, int]
    parse_failures: Mapping[str, int]
    parse_failure_rate: float | None
    unachievable: int
    premature: tuple[str, ...]
    missing: int
    seconds: float


def summarise(mode: str, results: Sequence[TaskResult], *, missing: int, seconds: float) -> Summary:
    """The numbers of a batch. Modes and sites are in order of name, failures by how often."""
    sites = sorted({result.site for result in results})
    failures = Counter(mode for result in results for mode in result.failure_modes)
    parse = Counter(result.parse_failure for result in results if result.parse_failure)
    claims = [result for result in results if not result.achievable]
    early = [result for result in claims if result.outcome is Outcome.PASS and premature(result)]
    return Summary(
        mode=mode,
        overall=macro(results),
        sites={site: macro(r for r in results if r.site == site) for site in sites},
        failure_modes=_by_count(failures),
        parse_failures=_by_count(parse),
        parse_failure_rate=parse.total() / len(results) if results else None,
        unachievable=len(claims),
        premature=tuple(str(result.task_id) for result in early),
        missing=missing,
        seconds=round(seconds, 3),
    )


def _by_count(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda pair: (-pair[1], pair[0])))


def macro(results: Iterable[TaskResult]) -> Macro:
    """The rates of some runs; None where there is nothing to divide by."""
    listed = list(results)
    templates: dict[str, list[float]] = {}
    for result in listed:
        templates.setdefault(result.template, []).append(result.score)
    means = [fmean(scores) for scores in templates.values()]
    return Macro(
        runs=len(listed),
        passed=sum(result.outcome is Outcome.PASS for result in listed),
        unknown=sum(result.outcome is Outcome.UNKNOWN for result in listed),
        templates=len(means),
        success=fmean(result.score for result in listed) if listed else None,
        template_macro=fmean(means) if means else None,
        half_width=_half_width(means),
    )


def _half_width(means: Sequence[float]) -> float | None:
    """t(0.975, T - 1) · s / √T over T templates."""
    if len(means) < 2:
        return None
    from scipy.stats import t  # noqa: PLC0415 - only summaries need it

    return float(t.ppf(0.975, len(means) - 1)) * stdev(means) / sqrt(len(means))
