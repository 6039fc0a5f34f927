"""Say what was judged, and the one figure to take away: the lines above every table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trajudge.eval.reporting.formatting import benchmark_name, precision_cell, signed_cell, unit_of
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    LABEL_TITLES,
    OVERALL,
    Comparison,
    Coverage,
    Label,
    Ranking,
    Score,
    ScoreReport,
    UnfinishedRun,
)
from trajudge.judges.model import Status
from trajudge.trajectories.util.terminal import count_of, listed

NO_LABELS = (
    "No expert labels belong to these trajectories, so nothing says how far these verdicts hold: "
    "name labels with "
)
LABELS_OPTION = "--annotations KIND:PATH"
# As many judges are named beside the note that there are no labels.
_UNLABELLED_JUDGES = 12


def finding(
    scores: ScoreReport,
    label: Label | None,
    *,
    option: str = LABELS_OPTION,
    most: int | None = None,
) -> list[str]:
    """Say what was judged, and the one figure to take away; ``option`` names labels. Of more than
    ``most`` names a list holds the first."""
    judges, whole = ordered_judges(scores), _whole(scores)
    benchmarks = _benchmarks(scores)
    named = judges[0] if len(judges) == 1 else f"{len(judges)} judges"
    places = f"{len(benchmarks)} benchmarks" if len(benchmarks) != 1 else _only(benchmarks)
    title = scores.titled(f"{named} on {_judged(whole)} of {places}")
    lines = [title + _unfinished(scores, judges, most)]
    failed = [c.judge for c in whole if c.judged and not c.statuses.get(Status.OK)]
    if failed:
        them = "the judge" if len(failed) == 1 else "these judges"
        lines.append(
            f"Every judgment of {listed(failed, most)} failed: the rates say nothing about {them}"
        )
    if failed and len(failed) == len(judges):
        return lines
    if label is None:
        lines += [*map(_verdicts, whole[:_UNLABELLED_JUDGES]), unscored(scores, option=option)]
    elif len(judges) == 1:
        lines.append(_one_judge(scores, label))
    else:
        lines += ranking_sentences(scores.comparison, label, most)
    return lines


def _unfinished(scores: ScoreReport, judges: list[str], most: int | None) -> str:
    """Say which runs the figures hold a part of, and how large a part; "" where all are whole."""
    if [run.judge for run in scores.unfinished] == judges and len(judges) == 1:
        (run,) = scores.unfinished
        return f"; the run is not finished: {run.judged:,} of {run.due:,} judgments"
    return f"; {named}" if (named := unfinished(scores.unfinished, most)) else ""


def unfinished(runs: Sequence[UnfinishedRun], most: int | None = None) -> str:
    """Name the runs that lack judgments, of more than ``most`` the first; "" where none does."""
    named = [f"{run.judge} ({run.judged:,} of {run.due:,} judgments)" for run in runs]
    return f"not finished: {listed(named, most)}" if named else ""


def unscored(scores: ScoreReport, *, option: str = LABELS_OPTION) -> str:
    """Say why no judge has a rate: nothing was judged, its training set was, or no labels are
    there, which ``option`` names."""
    whole = _whole(scores)
    if any(c.judged for c in whole):
        unsure = max((s.unsure for s in score_rows(scores, "success", OVERALL)), default=0)
        return _open_labels(unsure) if unsure else NO_LABELS + option
    if trained := [c for c in whole if c.training]:
        return (
            f"All {count_of(trained[0].training, 'trajectory')} are the training set of "
            f"{trained[0].judge}, "
            "so nothing is left to score it on: judge others"
        )
    return "Nothing was judged yet"


def _open_labels(unsure: int) -> str:
    labels = "The expert label" if unsure == 1 else f"All {unsure:,} expert labels"
    return f"{labels} of these trajectories leave{'s' * (unsure == 1)} success open: none is scored"


def _verdicts(coverage: Coverage) -> str:
    """Say how often a judge said yes, by label."""
    shares = [
        f"{LABEL_TITLES[label].lower()} {coverage.positive[label]:,} of {count:,}"
        for label, count in coverage.verdicts.items()
    ]
    return f"Verdicts of {coverage.judge}: {', '.join(shares)}"


def _whole(scores: ScoreReport) -> list[Coverage]:
    """Select every judge's coverage of all benchmarks and agents together."""
    return [c for c in scores.coverage if (c.benchmark, c.agent) == (OVERALL, ALL_AGENTS)]


def _judged(whole: list[Coverage]) -> str:
    """Count the trajectories that were judged, from the fewest of a judge to the most."""
    counts = [c.judged for c in whole] or [0]
    least = f"{min(counts):,} to " if min(counts) < max(counts) else ""
    return least + count_of(max(counts), "trajectory")


def _benchmarks(scores: ScoreReport) -> set[str]:
    """Name the benchmarks of which a trajectory was judged; where none was, those of the run."""
    judged = {c.benchmark for c in scores.coverage if c.judged}
    return (judged or {c.benchmark for c in scores.coverage}) - {OVERALL}


def _only(benchmarks: set[str]) -> str:
    return benchmark_name(next(iter(benchmarks)))


def _one_judge(scores: ScoreReport, label: Label) -> str:
    by_baseline = {s.baseline: s for s in score_rows(scores, label, OVERALL)}
    name = LABEL_TITLES[label]
    if False not in by_baseline:
        return f"{name}: no labelled trajectory was judged"
    cells = [precision_cell(by_baseline[False])]
    line = f"{name}: precision {cells[0]}"
    if True in by_baseline and by_baseline[True].n:
        cells.append(precision_cell(by_baseline[True]))
        line += f", rule-based {cells[1]}"
    line += unit_of(*cells)
    for d in scores.against_baseline:
        whole = (d.benchmark, d.label, d.metric) == (OVERALL, label, "precision")
        if whole and d.low is not None and d.high is not None:
            clear = "significant" if d.low > 0 or d.high < 0 else "not significant"
            # A judge or the rule without a verdict on some: the figures above are of others too.
            numbers = {s.n for s in by_baseline.values()}
            both = "" if numbers == {d.n} else f" on the {d.n:,} with both"
            points = signed_cell(d.difference, d.low, d.high)
            line += f"; difference {points} points{both}, {clear}"
    return line


def ranking_sentences(comparison: Comparison, label: Label, most: int | None = None) -> list[str]:
    """Write the order by precision, where the judges were compared, and which of them differ; of
    more than ``most`` names the first."""
    for ranking in comparison.rankings:
        if (ranking.benchmark, ranking.label, ranking.metric) == (OVERALL, label, "precision"):
            lines = [f"Precision: {ranking.order(most)}"]
            if len(ranking.judges) - len(ranking.undefined) > 1:
                lines.append(_significance(comparison, ranking, most))
            return lines
    return []


def _significance(comparison: Comparison, ranking: Ranking, most: int | None) -> str:
    """Say which judges are not told apart, and which differ the other way round where both judged:
    the order is by what each was scored on."""
    text = "Every difference in precision is significant (Holm, α = .05)"
    if any(len(tie) == len(ranking.judges) - len(ranking.undefined) for tie in ranking.ties):
        text = "No difference in precision is significant (Holm, α = .05)"
    elif ranking.ties:
        text = f"Not significantly different (Holm, α = .05): {ranking.tied(most)}"
    reverse = [
        f"{better} > {worse}"
        for better, worse in _significantly_better(comparison, ranking)
        if not ranking.puts_above(better, worse)
    ]
    where = "on the trajectories that both judged, significantly"
    return f"{text}; but {where}: {listed(reverse, most)}" if reverse else text


def _significantly_better(comparison: Comparison, ranking: Ranking) -> Iterator[tuple[str, str]]:
    """Yield the pairs that are told apart, the better judge first."""
    place = (ranking.benchmark, ranking.label, ranking.metric)
    for d in comparison.differences:
        if (d.benchmark, d.label, d.metric) == place and (d.first, d.second) in ranking.apart:
            yield (d.first, d.second) if (d.difference or 0) > 0 else (d.second, d.first)


def ordered_judges(scores: ScoreReport) -> list[str]:
    """Best first where the judges were ranked, else in the scores' order."""
    names = list(dict.fromkeys(c.judge for c in scores.coverage))
    for ranking in scores.comparison.rankings:
        if (ranking.benchmark, ranking.metric) == (OVERALL, "precision"):
            ranked = [judge for judge in ranking.judges if judge in names]
            return [*ranked, *(judge for judge in names if judge not in ranked)]
    return names


def score_rows(scores: ScoreReport, label: Label, benchmark: str) -> list[Score]:
    """Select every evaluator's score on one benchmark, agents together."""
    return [
        s
        for s in scores.scores
        if (s.label, s.benchmark, s.agent) == (label, benchmark, ALL_AGENTS)
    ]
