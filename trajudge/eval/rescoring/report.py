"""What ``trajudge score`` does with its options: read, score, print, write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.eval.data.inputs import open_recorded
from trajudge.eval.data.sources import Source
from trajudge.eval.data.task_goals import task_units
from trajudge.eval.rescoring.sources import (
    asked_question,
    beside_baselines,
    missing_of,
    observed_verdicts,
    read_sources,
    recorded_data,
    score_source,
)
from trajudge.eval.runs.settings import ScoreConfig
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.intervals import Bootstrap
from trajudge.eval.scoring.records import Missing, ScoreReport
from trajudge.eval.scoring.training import without_training
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import OK, saved_behind_output
from trajudge.trajectories.util.gc_pause import collection_paused
from trajudge.trajectories.util.tables import Table
from trajudge.trajectories.util.terminal import count_of, one_line

if TYPE_CHECKING:
    from trajudge.eval.analysis.mismatches import Mismatch

_WARNINGS_BESIDE = 3  # such tables


def report(config: ScoreConfig) -> int:
    """Everything that the options ask for; the exit code."""
    with collection_paused():
        return _report(config)


def _report(config: ScoreConfig) -> int:
    if (config.csv or config.json_output) and (config.table or config.format != "table"):
        raise UserError("--csv and --json print every figure: leave out --table and --format")
    if (config.csv or config.json_output) and config.calibration and not config.calibration_out:
        raise UserError(
            "--csv and --json hold no calibration: leave out --calibration, or write it to a file "
            "with --calibration-out FILE"
        )
    source = read_sources(config)
    with task_units(source.goals, config.task_id):
        return _report_of(source, config)


def _report_of(source: Source, config: ScoreConfig) -> int:
    """Print and write what was asked for; the exit code."""
    if config.transfer:
        return _transfer(source, config)
    scores = score_source(source, config)
    missing = scores.missing
    if config.baselines != "off" and not config.table:
        scores = beside_baselines(scores, source, config)
    with saved_behind_output() as save:
        if config.submission:
            from trajudge.eval.data.submission import write_submission  # noqa: PLC0415 - only where it is asked for

            said = scores, source.judgments, source.labels
            save(write_submission, config.submission, *said, config.split)
        if config.plots:
            save(_plots, config.plots, source, scores)
        more = _mismatches(config, config.mismatches, source, save) if config.mismatches else []
        calibration = _calibration(config, source, missing, save)
        _print(config, scores, source, [*calibration, *more])
    return OK


def _transfer(source: Source, config: ScoreConfig) -> int:
    """Print what is chosen or trained on the other benchmarks, scored on each."""
    from trajudge.eval.baselines.transfer_report import print_transfer  # noqa: PLC0415 - fits regressions

    question, missing = asked_question(source, config), missing_of(config, source.protocols)
    print_transfer(source, config, config.data or recorded_data(source, config), question, missing)
    return OK


def _print(
    config: ScoreConfig, scores: ScoreReport, source: Source, kinds: Sequence[Table]
) -> None:
    if config.csv or config.json_output:
        from trajudge.eval.reporting.results import results_csv, results_json  # noqa: PLC0415

        sys.stdout.write(results_csv(scores) if config.csv else results_json(scores))
        return
    from trajudge.eval.reporting.caveats import is_labelled, notes  # noqa: PLC0415
    from trajudge.eval.reporting.finding import unscored  # noqa: PLC0415
    from trajudge.eval.reporting.paper_tables import paper_table  # noqa: PLC0415
    from trajudge.eval.reporting.tables import tables, with_notes  # noqa: PLC0415
    from trajudge.trajectories.util.tables import render  # noqa: PLC0415

    option = _labels_option(config, source)
    told = notes(scores)
    if not any(map(is_labelled, scores.scores)):
        told = [one_line(unscored(scores, option=option)), *told]
    numbers = dict.fromkeys(config.table)
    chosen = [paper_table(number, scores, source.representations) for number in numbers]
    if _is_one_screen(config):
        sys.stdout.write(_screen(scores, kinds, option))
        return
    shown = [*(chosen or tables(scores)), *kinds]
    if config.format != "table":
        sys.stdout.write(render(shown, config.format))
        sys.stderr.write("".join(note + "\n" for note in told))
    else:
        rest = "--full" if chosen and not config.full else None
        sys.stdout.write(with_notes(shown, told, rest=rest))


def _labels_option(config: ScoreConfig, source: Source) -> str:
    """Say how to name labels, and of those that were named whose they are, should none belong to
    a trajectory that was judged."""
    from trajudge.eval.reporting.finding import LABELS_OPTION  # noqa: PLC0415

    if not config.annotations:
        return LABELS_OPTION
    first = next(iter(source.labels))
    labels = count_of(len(source.labels), "label")
    return f"{LABELS_OPTION} (not the {labels} of others that were named, {first} for one)"


def _screen(scores: ScoreReport, kinds: Sequence[Table], option: str) -> str:
    """Lay out the first screen, below it the judges by agent and by benchmark where that was asked
    for, and ``kinds``."""
    from trajudge.eval.reporting.comparison_tables import benchmark_rankings  # noqa: PLC0415
    from trajudge.eval.reporting.overview import agents  # noqa: PLC0415
    from trajudge.eval.reporting.summary import summary  # noqa: PLC0415
    from trajudge.trajectories.util.tables import render, screen_width  # noqa: PLC0415

    more = "".join("\n" + render([table], "table").lstrip("\n") for table in kinds)
    width = screen_width()
    by = {
        "agent by agent": agents(scores, width),
        "benchmark by benchmark": benchmark_rankings(scores.comparison, width),
    }
    names = [name for name, lines in by.items() if lines]
    if not names:
        return summary(scores, also=more.count("\n"), option=option) + more
    more = "\n\n".join("\n".join(by[name]) for name in names) + "\n" + more
    rest = f"All tables: --full; {' and '.join(names)}:"
    also = more.count("\n")
    screen = summary(scores, also=also, most=_WARNINGS_BESIDE, rest=rest, option=option)
    return screen + more


def _is_one_screen(config: ScoreConfig) -> bool:
    """Tell whether the first screen is asked for, not all tables or some."""
    return not (config.full or config.table or config.format != "table")


def _plots(folder: Path, source: Source, scores: ScoreReport) -> None:
    from trajudge.eval.reporting.plots import write_plots  # noqa: PLC0415

    detailed = score(
        source.judgments,
        source.labels,
        rewards=source.rewards,
        missing=scores.missing,
        by_agent=True,
        bootstrap=Bootstrap(resamples=0),
        training=source.training,
    )
    observed = observed_verdicts(source, scores.missing)
    written = write_plots(folder, scores, detailed, observed)
    sys.stderr.write(f"{count_of(len(written), 'plot')} in {folder}\n")


def _calibration(
    config: ScoreConfig, source: Source, missing: Missing, save: Callable[..., None]
) -> list[Table]:
    """Make the reliability tables, where they are asked for, and ``save`` the maps."""
    if config.calibration is None:
        if config.calibration_out is not None:
            raise UserError("--calibration-out needs --calibration auto")
        return []
    from trajudge.eval.analysis.calibration import (  # noqa: PLC0415 - only where it is asked for
        calibrate,
        calibration_table,
        calibration_tables,
        with_configurations,
        write_calibrations,
    )

    calibrations = calibrate(observed_verdicts(source, missing), source.labels, config.calibration)
    if config.calibration_out is not None:
        configured = with_configurations(calibrations, config.runs)
        save(write_calibrations, config.calibration_out, configured)
    if _is_one_screen(config):
        return [calibration_table(calibrations)]
    return calibration_tables(calibrations)


def _mismatches(
    config: ScoreConfig, file: Path, source: Source, save: Callable[..., None]
) -> list[Table]:
    """Make the table of the kinds of wrong verdicts, where they were sorted; ``save`` them."""
    from trajudge.eval.analysis.mismatches import find_mismatches  # noqa: PLC0415

    held_out = without_training(source.judgments, source.training)
    cases, absent = find_mismatches(
        held_out, source.labels, list(config.data) or list(map(open_recorded, source.data))
    )
    if absent:
        sys.stderr.write(
            f"warning: {count_of(len(absent), 'trajectory')} with a wrong verdict not in the data, "
            f"{absent[0]} for one: left out of {file}\n"
        )
    found = list(cases)  # saved as they are where sorting them fails
    save(_save_mismatches, file, found)
    if not config.explain:
        return []
    from trajudge.eval.analysis.explain import explain, kinds_table  # noqa: PLC0415
    from trajudge.judges.calls.handle import single_model  # noqa: PLC0415

    found[:] = explain(cases, single_model(config.explain, config.calls))
    reasons = [e.reason for case in found if (e := case.explanation) and e.kind is None]
    if reasons:
        sys.stderr.write(
            f"warning: {len(reasons)} of {count_of(len(cases), 'wrong verdict')} not sorted, "
            f"for one: {one_line(reasons[0])}\n"
        )
    return [kinds_table(found)]


def _save_mismatches(file: Path, cases: Sequence[Mismatch]) -> None:
    from trajudge.eval.analysis.mismatches import write_mismatches  # noqa: PLC0415

    write_mismatches(file, cases)
    sys.stderr.write(f"{count_of(len(cases), 'wrong verdict')} in {file}\n")
