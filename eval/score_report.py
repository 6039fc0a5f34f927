"""What ``eval.score`` does with its options: read, score, print, write."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from eval.garbage import collection_paused
from eval.observations import Observations, observe, one_per_trajectory
from eval.rendering import Table
from eval.scores import Missing, Scores
from eval.scoring import score
from eval.sources import Source, combine, read_published_folder, read_run
from eval.uncertainty import Bootstrap
from trajectories.errors import UserError
from trajectories.exits import DONE
from trajectories.terminal import one_line, terminal_console


def report(options: Namespace) -> int:
    """Everything that the options ask for; the exit code."""
    with collection_paused():
        return _report(options)


def _report(options: Namespace) -> int:
    source = read_sources(options)
    missing = _policy(options, source.protocols)
    bootstrap = Bootstrap(options.resamples, options.seed)
    scores = score(
        source.judgments,
        source.labels,
        rewards=source.rewards,
        missing=missing,
        by_agent=options.by == "agent",
        bootstrap=bootstrap,
        compare_by_benchmark=options.compare == "benchmark",
    )
    if options.submission:
        from eval.submission import write_submission  # noqa: PLC0415 - only where it is asked for

        write_submission(options.submission, scores, source.judgments, source.labels, options.split)
    if options.plots:
        _plots(options, source, scores)
    more = _mismatches(options, source) if options.mismatches else []
    _print(options, scores, source, [*_calibration(options, source, missing), *more])
    return DONE


def read_sources(options: Namespace) -> Source:
    """Runs and published judgments as one, cut to the split. Raises UserError."""
    sources = [read_run(run) for run in options.runs]
    if options.judgments is not None:
        sources.append(
            read_published_folder(
                options.judgments,
                with_labels=not options.annotations,
                with_index=not options.no_index,
            )
        )
    combined = combine(sources)
    for note in combined.notes:
        sys.stderr.write(f"note: {one_line(note)}\n")
    if options.annotations:
        from annotations import open_annotations, primary_labels  # noqa: PLC0415

        combined.labels = primary_labels(open_annotations(options.annotations))
    if options.split != "all":
        combined.restrict(options.split)
    return combined


def _policy(options: Namespace, protocols: set[str]) -> Missing:
    """What the command line says, else what all the runs were made with."""
    if options.missing is not None:
        return options.missing  # type: ignore[no-any-return]
    if options.protocol is None and len(protocols) > 1:
        raise UserError(
            f"the runs were scored under several protocols ({', '.join(sorted(protocols))}): "
            "choose one with --protocol"
        )
    protocol = options.protocol or next(iter(protocols), "default")
    return "agentrewardbench" if protocol == "agentrewardbench" else "negative"


def _print(options: Namespace, scores: Scores, source: Source, kinds: Sequence[Table]) -> None:
    if options.csv or options.json:
        from eval.results import results_csv, results_json  # noqa: PLC0415

        sys.stdout.write(results_csv(scores) if options.csv else results_json(scores))
        return
    from eval.notes import notes  # noqa: PLC0415
    from eval.paper_tables import paper_table  # noqa: PLC0415
    from eval.rendering import render, rich_table  # noqa: PLC0415
    from eval.tables import tables  # noqa: PLC0415

    numbers = dict.fromkeys(options.table or ())
    chosen = [paper_table(number, scores, source.representations) for number in numbers]
    shown = [*(chosen or tables(scores)), *kinds]
    if options.format != "table":
        sys.stdout.write(render(shown, options.format))
        sys.stderr.write("".join(note + "\n" for note in notes(scores)))
    elif sys.stdout.isatty():
        from rich.console import Group  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        terminal_console().print(Group(*map(rich_table, shown), *map(Text, notes(scores))))
    else:
        sys.stdout.write("\n".join([render(shown, "table"), *notes(scores)]).rstrip("\n") + "\n")


def _plots(options: Namespace, source: Source, scores: Scores) -> None:
    from eval.plots import write_plots  # noqa: PLC0415

    detailed = score(
        source.judgments,
        source.labels,
        rewards=source.rewards,
        missing=scores.missing,
        by_agent=True,
        bootstrap=Bootstrap(resamples=0),
    )
    observed = _observed(source, scores.missing)
    written = write_plots(options.plots, scores, detailed, observed)
    sys.stderr.write(f"{len(written)} plots are in {options.plots}\n")


def _observed(source: Source, missing: Missing) -> dict[str, Observations]:
    """What each judge said of success."""
    return {
        judge: observe(
            one_per_trajectory(j for j in source.judgments if j.judge == judge),
            "success",
            source.labels,
            source.rewards,
            missing,
        )
        for judge in sorted({j.judge for j in source.judgments})
    }


def _calibration(options: Namespace, source: Source, missing: Missing) -> list[Table]:
    """The reliability tables, where they are asked for; the maps are written."""
    if options.calibration is None:
        if options.calibration_out is not None:
            raise UserError("--calibration-out needs --calibration isotonic or platt")
        return []
    from eval.calibration import (  # noqa: PLC0415 - only where it is asked for
        calibrate,
        calibration_tables,
        write_calibrations,
    )

    found = calibrate(_observed(source, missing), source.labels, options.calibration)
    if options.calibration_out is not None:
        write_calibrations(options.calibration_out, found)
    return calibration_tables(found)


def _mismatches(options: Namespace, source: Source) -> list[Table]:
    """Write the wrong verdicts; the table of their kinds, where they were sorted."""
    from eval.mismatches import find_mismatches, write_mismatches  # noqa: PLC0415

    cases, absent = find_mismatches(source.judgments, source.labels, options.data or source.data)
    if absent:
        sys.stderr.write(
            f"warning: {len(absent)} trajectories with a wrong verdict are not in the data, "
            f"{absent[0]} for one: they are left out of {options.mismatches}\n"
        )
    write_mismatches(options.mismatches, cases)
    if not options.explain:
        sys.stderr.write(f"{len(cases)} wrong verdicts are in {options.mismatches}\n")
        return []
    from eval.explain import explain, kinds_table  # noqa: PLC0415

    explained = explain(cases, _model_options(options))
    write_mismatches(options.mismatches, explained)
    reasons = [e.reason for case in explained if (e := case.explanation) and e.kind is None]
    if reasons:
        sys.stderr.write(
            f"warning: {len(reasons)} of {len(cases)} wrong verdicts were not sorted, "
            f"for one: {one_line(reasons[0])}\n"
        )
    sys.stderr.write(f"{len(cases)} wrong verdicts are in {options.mismatches}\n")
    return [kinds_table(explained)]


def _model_options(options: Namespace) -> Namespace:
    """The options of ``eval.judge`` for the model that explains."""
    from eval.options import parse  # noqa: PLC0415

    words = []
    for name in ("adapter", "base_url", "script", "prices", "max_cost", "cache"):
        value = getattr(options, name)
        if value is not None:
            words += ["--" + name.replace("_", "-"), str(value)]
    made = parse(words)
    # One model beside one judge, which brings no models of its own.
    made.model, made.judge = options.explain, made.judge[0]
    return made
