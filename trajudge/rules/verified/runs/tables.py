"""Show the summary of evaluated runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from trajudge.rules.output import first, show
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.runs.results import TaskResult
from trajudge.rules.verified.runs.summary import Macro, Summary
from trajudge.trajectories.util.tables import Table, first_screen
from trajudge.trajectories.util.terminal import one_line

_COLUMNS = (
    *("site", "runs", "passed", "unknown", "success", "95 %"),
    *("templates", "template macro", "macro's 95 %"),
)
_REASONS, _FIRST_REASONS = 10, 3
_REASON = 300
_SPREAD = 1e-9  # half a width below which shares are the same, but for their last digits
_SCREEN = ("site", "runs", "passed", "unknown", "success [95 %]", "template macro [95 %]")


def show_evaluation(summary: Summary, results: Sequence[TaskResult]) -> None:
    """Print the summary of a batch, and why the first runs did not pass."""
    rows = [("all", summary.overall), *summary.sites.items()]
    show(f"{summary.mode}: {len(results)} runs", _COLUMNS, [_row(*row) for row in rows])
    for note in _notes(summary):
        sys.stdout.write(f"{note}\n")
    if summary.failure_modes:
        modes = list(summary.failure_modes.items())[:20]
        show("what did not hold", ("check", "runs"), modes)
    if summary.parse_failures:
        show("unreadable answers", ("class", "runs"), list(summary.parse_failures.items()))
    sys.stdout.writelines(f"{line}\n" for line in _reasons(results, _REASONS))


def evaluation_screen(
    summary: Summary, results: Sequence[TaskResult], *, rest: str, width: int | None = None
) -> str:
    """Lay out the summary in at most 40 lines: the success, each site, what did not hold, why.

    ``rest`` says where everything else stands.
    """
    whole = summary.overall
    finding = f"{summary.mode}: {whole.passed} of {whole.runs} runs passed"
    if whole.success is not None:
        finding += f", success {_rate(whole)} ({_unit(_limits_of(whole))})"
    if whole.unknown:
        finding += f"; {whole.unknown} unknown, which count as not passed"
    sites = [("all", whole), *(summary.sites.items() if len(summary.sites) > 1 else ())]
    failures = [(name, str(runs)) for name, runs in summary.failure_modes.items()]
    tables = [Table("", _SCREEN, [_short_row(*row) for row in sites], names=1)]
    if failures:
        tables.append(Table("", ("what did not hold", "runs"), failures, names=1))
    told = list(_notes(summary))
    if summary.not_judged:  # the note that comes last is the one to see first
        told = [f"warning: {told[-1]}", *told[:-1]]
    reasons = _reasons(results, _FIRST_REASONS)
    return first_screen([finding], tables, reasons, told, rest=rest, width=width)


def _short_row(site: str, macro: Macro) -> tuple[str, ...]:
    mean = _share(macro.template_macro, _limits(macro.template_macro, macro.half_width))
    return (site, *map(str, (macro.runs, macro.passed, macro.unknown)), _rate(macro), mean)


def _rate(macro: Macro) -> str:
    return _share(macro.success, _limits_of(macro))


def _limits_of(macro: Macro) -> tuple[float, float] | None:
    low, high = macro.success_low, macro.success_high
    return None if low is None or high is None else (low, high)


def _unit(limits: tuple[float, float] | None) -> str:
    return "%" if limits is None else "%, 95 % interval"


def _share(share: float | None, limits: tuple[float, float] | None) -> str:
    if share is None:
        return ""
    ends = "" if limits is None else f" [{100 * limits[0]:.1f}, {100 * limits[1]:.1f}]"
    return f"{100 * share:.1f}{ends}"


def _limits(mean: float | None, half_width: float | None) -> tuple[float, float] | None:
    """Return the ends of a t-interval of shares, which lie from 0 to 1; None where the shares show
    no spread, of which a t-interval would make certainty."""
    if mean is None or half_width is None or half_width < _SPREAD:
        return None
    return max(mean - half_width, 0.0), min(mean + half_width, 1.0)


def _notes(summary: Summary) -> Iterator[str]:
    """Yield what the table does not say, one line each."""
    if summary.partial.mean is not None:
        mean, runs = summary.partial.mean, summary.partial.runs
        yield f"mean score, parts counted: {100 * mean:.1f} % of {runs} runs that have one"
    macro = summary.site_macro
    if macro.mean is not None and macro.sites > 1:
        limits = _limits(macro.mean, macro.half_width)
        share = _share(macro.mean, limits)
        yield f"site macro: {share} over {macro.sites} sites ({_unit(limits)})"
    rows = (summary.overall, *summary.sites.values())
    if any(_limits(row.template_macro, row.half_width) is None for row in rows if row.runs):
        yield (
            "an interval is blank where there is one template, or where the means of all are the "
            "same: it does not show the spread over templates"
        )
    if summary.missing:
        yield f"{summary.missing} tasks have no run and count in no rate"
    if summary.premature:
        yield f"{len(summary.premature)} passes gave up early (R < 0.5)"
    for note, runs in summary.notes.items():
        yield f"note, in {runs} runs: {one_line(note)}"
    if summary.not_judged:
        yield f"runs that could not be judged: {first(summary.not_judged)}"


def _reasons(results: Sequence[TaskResult], most: int) -> list[str]:
    """Say why the first runs did not pass, those first that the rules could not decide."""
    order = {Outcome.UNKNOWN: 0, Outcome.FAIL: 1}
    found = sorted((r for r in results if r.outcome in order), key=lambda r: order[r.outcome])
    lines = []
    for result in found[:most]:
        reason = one_line("; ".join(result.reasons))
        cut = reason if len(reason) <= _REASON else f"{reason[: _REASON - 1]}…"
        named = f"{result.task_id} ({one_line(result.run)})" if result.run else result.task_id
        lines.append(f"task {named}: {result.outcome}: {cut}")
    if len(found) > most:
        lines.append(f"and {len(found) - most} more that did not pass: see tasks/")
    return lines


def _row(site: str, macro: Macro) -> tuple[object, ...]:
    shares = (macro.success, macro.template_macro)
    success, mean = ("" if share is None else f"{share:.1%}" for share in shares)
    spread = _limits(macro.template_macro, macro.half_width)
    counts = (site, macro.runs, macro.passed, macro.unknown)
    return (*counts, success, _range(_limits_of(macro)), macro.templates, mean, _range(spread))


def _range(limits: tuple[float, float] | None) -> str:
    return "" if limits is None else f"{limits[0]:.1%} to {limits[1]:.1%}"
