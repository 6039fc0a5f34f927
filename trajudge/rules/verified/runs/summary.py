"""Numbers of a batch: success, template-macro success with its t-interval, and why runs failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct

from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.runs.results import TaskResult, premature


class Macro(Struct, frozen=True, kw_only=True):
    """Success of ``runs`` runs: their share, with Wilson's 95 % limits that take templates as
    clusters (None for fewer than two), and the mean over templates with its 95 % t-interval.

    A template is what one site has of it (paper, section 4.4 and appendix H: its 191 templates are
    the pairs of the 190 ids and the sites); ``half_width`` is None for fewer than two, and
    may reach beyond 0 and 1.
    """

    runs: int
    passed: int
    unknown: int
    templates: int
    success: float | None
    success_low: float | None
    success_high: float | None
    template_macro: float | None
    half_width: float | None


class SiteMacro(Struct, frozen=True, kw_only=True):
    """The mean of the sites' template-macros, each site once, with its 95 % t-interval over sites
    (paper, appendix H.3). The tasks of several sites count as one more site."""

    sites: int
    mean: float | None
    half_width: float | None


class PartialScores(Struct, frozen=True, kw_only=True):
    """The mean of the scores that a dialect gives for a part (WebChoreArena), over the runs that
    have one: what is unknown leaves a run without."""

    runs: int
    mean: float | None


class Summary(Struct, frozen=True, kw_only=True):
    """A batch under one mode. ``missing`` are tasks without a run, which count in no rate;
    ``notes`` are what was taken for granted, by how many runs;
    ``not_judged`` are runs whose files could not be read or that took too long.

    ``unachievable`` counts tasks that cannot be done; ``premature`` of them were passed with an
    exploration ratio below τ.
    """

    mode: str
    overall: Macro
    site_macro: SiteMacro
    sites: Mapping[str, Macro]
    failure_modes: Mapping[str, int]
    parse_failures: Mapping[str, int]
    parse_failure_rate: float | None
    unachievable: int
    premature: tuple[str, ...]
    notes: Mapping[str, int]
    missing: int
    partial: PartialScores
    not_judged: tuple[str, ...]
    seconds: float


def summarise(mode: str, results: Sequence[TaskResult], *, missing: int, seconds: float) -> Summary:
    """Return the numbers of a batch. Modes and sites are in order of name, failures by how
    often."""
    strata = sorted({result.stratum for result in results})
    sites = {site: macro(r for r in results if r.stratum == site) for site in strata}
    failures = Counter(mode for result in results for mode in result.failure_modes)
    parse = Counter(result.parse_failure for result in results if result.parse_failure)
    claims = [result for result in results if not result.achievable]
    early = [result for result in claims if result.outcome is Outcome.PASS and premature(result)]
    parts = [result.partial_score for result in results if result.partial_score is not None]
    return Summary(
        mode=mode,
        overall=macro(results),
        site_macro=_site_macro(sites.values()),
        sites=sites,
        failure_modes=_by_count(failures),
        parse_failures=_by_count(parse),
        parse_failure_rate=parse.total() / len(results) if results else None,
        unachievable=len(claims),
        premature=tuple(str(result.task_id) for result in early),
        notes=_by_count(Counter(note for result in results for note in result.notes)),
        missing=missing,
        partial=PartialScores(runs=len(parts), mean=fmean(parts) if parts else None),
        not_judged=tuple(str(result.task_id) for result in results if not result.judged),
        seconds=round(seconds, 3),
    )


def _by_count(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda pair: (-pair[1], pair[0])))


def macro(results: Iterable[TaskResult]) -> Macro:
    """Return the rates of some runs; None where there is nothing to divide by."""
    from trajudge.eval.stats.intervals.clustered_rates import clustered_limits  # noqa: PLC0415 - slow to import
    from trajudge.eval.stats.suites.template_macro import t_half_width  # noqa: PLC0415

    listed = list(results)
    templates: dict[tuple[str, str], list[float]] = {}
    for result in listed:
        templates.setdefault((result.stratum, result.template), []).append(result.score)
    means = [fmean(scores) for scores in templates.values()]
    passed = sum(result.outcome is Outcome.PASS for result in listed)
    low, high = clustered_limits(
        [result.outcome is Outcome.PASS for result in listed],
        [(result.stratum, result.template) for result in listed],
    )
    return Macro(
        runs=len(listed),
        passed=passed,
        unknown=sum(result.outcome is Outcome.UNKNOWN for result in listed),
        templates=len(means),
        success=passed / len(listed) if listed else None,
        success_low=low,
        success_high=high,
        template_macro=fmean(means) if means else None,
        half_width=t_half_width(means),
    )


def _site_macro(sites: Iterable[Macro]) -> SiteMacro:
    from trajudge.eval.stats.suites.template_macro import t_half_width  # noqa: PLC0415

    means = [site.template_macro for site in sites if site.template_macro is not None]
    return SiteMacro(
        sites=len(means),
        mean=fmean(means) if means else None,
        half_width=t_half_width(means),
    )
