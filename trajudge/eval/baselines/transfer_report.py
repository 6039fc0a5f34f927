"""``trajudge score --transfer``: what was trained or chosen on the other benchmarks, a row per
benchmark that was left out and method."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from trajudge.eval.baselines.reading import read_labelled_runs
from trajudge.eval.baselines.transfer import transferred
from trajudge.eval.data.sources import Source
from trajudge.eval.process.question import about_process
from trajudge.eval.reporting.formatting import benchmark_name, percent, rate_cell
from trajudge.eval.reporting.results import results_csv, results_json
from trajudge.eval.runs.settings import ScoreConfig
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.intervals import Bootstrap
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL, Label, Missing, ScoreReport
from trajudge.trajectories.util.layout.screen import LINES
from trajudge.trajectories.util.tables import Table, cut_columns, folded, render, screen_width
from trajudge.trajectories.util.terminal import count_of

_REMARK_LINES = 10
_HEAD = ("left out", "method", "precision [95 %]", "recall", "F1", "bal. acc.", "n", "positives")


def print_transfer(
    source: Source, config: ScoreConfig, specs: Sequence[str], question: Label, missing: Missing
) -> None:
    """Judge every benchmark by what the others teach, and print the scores.

    ``specs`` name the trajectories. Raises UserError where they cannot be read, and for labels of
    fewer than two benchmarks.
    """
    keys = [j.key for j in source.judgments]
    runs = read_labelled_runs(specs, source.labels, keys, question=question)
    found = transferred(runs, source.judgments, source.labels, question)
    report = score(
        found.judgments,
        source.labels,
        rewards={},
        missing=missing,
        bootstrap=Bootstrap(resamples=0),
    )
    mine = tuple(s for s in report.scores if not s.baseline)
    report = report.model_copy(update={"scores": mine, "remarks": found.remarks})
    report = about_process(report) if question == "process" else report
    if config.csv or config.json_output:
        sys.stdout.write(results_csv(report) if config.csv else results_json(report))
    elif config.format != "table" or config.full:
        sys.stdout.write(render([transfer_table(report, question)], config.format))
    else:
        sys.stdout.write(transfer_screen(report, question))


def transfer_table(report: ScoreReport, question: Label) -> Table:
    """Make the table, benchmarks in their order and overall last, methods by name."""
    rows = [
        (
            benchmark_name(s.benchmark),
            s.judge,
            rate_cell(s, "precision"),
            percent(s.recall),
            rate_cell(s, "f1"),
            rate_cell(s, "balanced_accuracy"),
            str(s.n),
            str(s.positives),
        )
        for s in report.scores
        if s.label == question and s.agent == ALL_AGENTS and not s.baseline
    ]
    order = {name: place for place, name in enumerate(dict.fromkeys(row[0] for row in rows))}
    overall = benchmark_name(OVERALL)
    rows.sort(key=lambda row: (row[0] == overall, order[row[0]], row[1]))
    return Table("Leave one benchmark out [95 %]", _HEAD, rows)


def transfer_screen(report: ScoreReport, question: Label) -> str:
    """Lay out the table on one screen: intervals of precision alone, then what was chosen."""
    width = screen_width()
    rows = [
        (*row[:4], row[4].split(" ")[0], row[5].split(" ")[0], *row[6:])
        for row in transfer_table(report, question).rows
    ]
    named = [
        ("" if at and row[0] == rows[at - 1][0] else row[0], *row[1:])
        for at, row in enumerate(rows)
    ]
    rest = "Every method saw no label of the benchmark it is scored on; all intervals: --full"
    below = [line for text in [*report.remarks, rest] for line in folded(text, width)]
    lines = cut_columns(
        *(_HEAD, named, width, LINES - 1 - min(len(below), 8)),
        names=2,
        more=lambda left: f"and {count_of(left, 'more row')}: --full",
    )
    return "\n".join([*lines, "", *below]) + "\n"
