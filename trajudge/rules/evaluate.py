"""``trajudge rules evaluate``: evaluate runs of WebArena, Verified or original, by its rules.

trajudge rules evaluate --tasks webarena-verified.json --runs runs/
trajudge rules evaluate --tasks tasks.json --runs runs/ --mode release-1.2.3 --workers 8 --out out/
trajudge rules evaluate --tasks webarena-verified.json --runs submission.tar.gz --subset NAME
trajudge rules evaluate --tasks test.raw.json --runs runs.jsonl
trajudge rules evaluate --tasks test.raw.json --runs agentlab_results/STUDY

A run of Verified is a folder ``RUNS/TASK_ID`` with ``agent_response.json`` and a trace (schema.md).
Runs of original tasks stand in one file; what it lacks (a page, a decision) makes a run unknown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.rules.options import add_site_options, add_task_options, rules_parser
from trajudge.util.commands import (
    FAILURES,
    OK,
    OptionAdder,
    command,
    positive,
    read_settings,
    saved_behind_output,
    workers,
)


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = rules_parser(
        "evaluate",
        __doc__,
        "0 done, 1 a run could not be judged (its files, its time), 2 a mistake "
        "in the call or its files, 130 interrupted",
    )
    add = OptionAdder(made)
    add_task_options(made)
    add.value("--runs", "PATH", "a folder, submission, study, or file", type=Path, required=True)
    add.output_folder("--out", "where results go (default: below evaluated/)")
    add.repeated("--task", "ID", "only this task; may be repeated")
    add.value("--subset", "NAME|FILE", "only the tasks of this subset; checked by its sum")
    add_site_options(made)
    add.switch("--require-activity", "fail runs that never visit the site")
    add.file("--probes", "ask the sites for their state now")
    add.file("--steps", "steps of each run (default: pages loaded)")
    add.number("--workers", "processes (default: 1)", workers, default=1)
    add.switch("--full", "print all tables instead of one screen")
    add.value("--seconds", "S", "time limit of one run", type=positive)
    first = "tasks runs out task subset mode sites workers full seconds"
    return made.show_first(*first.split())


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Evaluate the runs; show the summary, write it and a result for each task.

    The exit code is 1 if a run could not be judged.
    """
    from trajudge.rules.evaluating import EvaluateConfig, evaluate_runs, write_evaluation  # noqa: PLC0415
    from trajudge.rules.verified.runs import evaluation_screen, show_evaluation  # noqa: PLC0415
    from trajudge.util.tables import folded, screen_width  # noqa: PLC0415

    config = read_settings(EvaluateConfig, options)
    evaluation = evaluate_runs(config)
    results, summary = evaluation.results, evaluation.summary

    def write() -> None:
        written = f"written: {write_evaluation(config, evaluation)}"
        sys.stdout.write("\n".join(folded(written, screen_width())) + "\n")

    with saved_behind_output() as save:
        save(write)
        if options.full:
            show_evaluation(summary, results)
        else:
            sys.stdout.write(evaluation_screen(summary, results, rest="All tables: --full"))
    return FAILURES if summary.not_judged else OK


if __name__ == "__main__":
    sys.exit(main())
