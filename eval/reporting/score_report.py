"""What ``trajudge score`` does with its options: read, score, print, write."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.eval.comparison.versions import mixed_versions
from trajudge.eval.data.index.judgments import keys_of_judgments
from trajudge.eval.data.inputs import open_recorded
from trajudge.eval.data.published.source import read_published_folder
from trajudge.eval.data.sources import Source, combine, policy_name, read_run
from trajudge.eval.process.faults import fault_scores
from trajudge.eval.process.question import about_process, question_of
from trajudge.eval.runs.settings import ScoreConfig
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.intervals import Bootstrap
from trajudge.eval.scoring.observations import Observations, observe, one_per_trajectory
from trajudge.eval.scoring.records import Label, Missing, ScoreReport
from trajudge.eval.scoring.training import included, without_training
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import OK
from trajudge.trajectories.util.gc_pause import collection_paused
from trajudge.trajectories.util.tables import Table
from trajudge.trajectories.util.terminal import count_of, one_line, terminal_console


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
    if config.transfer:
        return _transfer(source, config)
    scores = score_source(source, config)
    missing = scores.missing
    if config.baselines != "off" and not config.table:
        scores = beside_baselines(scores, source, config)
    if config.submission:
        from trajudge.eval.data.submission import write_submission  # noqa: PLC0415 - only where it is asked for

        write_submission(config.submission, scores, source.judgments, source.labels, config.split)
    if config.plots:
        _plots(config.plots, source, scores)
    more = _mismatches(config, config.mismatches, source) if config.mismatches else []
    _print(config, scores, source, [*_calibration(config, source, missing), *more])
    return OK


def _transfer(source: Source, config: ScoreConfig) -> int:
    """Print what is chosen or trained on the other benchmarks, scored on each."""
    from trajudge.eval.baselines.transfer_report import print_transfer  # noqa: PLC0415 - fits regressions

    question, missing = _question(source, config), _policy(config, source.protocols)
    print_transfer(source, config, config.data or recorded_data(source, config), question, missing)
    return OK


def score_source(source: Source, config: ScoreConfig) -> ScoreReport:
    """Score what was read, as ``config`` says. Raises UserError where it leaves the protocol of
    several runs open."""
    if config.training_set == "include":
        sys.stderr.write("".join(f"{line}\n" for line in included(source.training)))
        source.training = {}
    report = score(
        source.judgments,
        source.labels,
        rewards=source.rewards,
        missing=_policy(config, source.protocols),
        by_agent=config.by == "agent",
        bootstrap=Bootstrap(config.resamples, config.seed),
        compare_by_benchmark=config.compare == "benchmark",
        training=source.training,
    )
    if _question(source, config) == "process":
        held_out = without_training(source.judgments, source.training)
        faults = tuple(fault_scores(held_out, source.labels))
        report = about_process(report).model_copy(update={"faults": faults})
    if source.policies:
        report = report.model_copy(update={"label_policy": policy_name(source.policies)})
    mixed = tuple(mixed_versions(source.versions))
    return report.model_copy(update={"remarks": mixed + report.remarks}) if mixed else report


def _question(source: Source, config: ScoreConfig) -> Label:
    return config.question or question_of(source.judgments)


def beside_baselines(scores: ScoreReport, source: Source, config: ScoreConfig) -> ScoreReport:
    """Add the trivial baselines where there are labels. Raises UserError for trajectories that
    cannot be read where they are asked for; else a note says so."""
    question = _question(source, config)
    if all(getattr(label, question) is None for label in source.labels.values()):
        return scores
    from trajudge.eval.baselines.beside import with_baselines  # noqa: PLC0415 - fits regressions
    from trajudge.eval.baselines.reading import READ_UNASKED, read_baselines  # noqa: PLC0415

    wanted = config.baselines == "on"
    try:
        baselines = read_baselines(
            config.data or recorded_data(source, config),
            source.labels,
            keys_of_judgments(source.judgments),
            question=question,
            seed=config.seed,
            most_bytes=None if wanted else READ_UNASKED,
        )
    except UserError as error:
        if wanted:
            raise
        sys.stderr.write(f"note: no trivial baselines: {one_line(str(error))}\n")
        return scores
    for note in baselines.notes:
        sys.stderr.write(f"note: {one_line(note)}\n")
    observed = observed_verdicts(source, scores.missing, question)
    return with_baselines(scores, baselines, observed, source.labels)


def recorded_data(source: Source, config: ScoreConfig) -> list[str]:
    """Name the runs' data, and published judgments as the text of the trajectories they hold."""
    published = [f"agentrewardbench-text:{config.judgments}"] if config.judgments else []
    return [*source.data, *published]


def read_sources(config: ScoreConfig) -> Source:
    """Read runs and published judgments as one, cut to the split. Raises UserError."""
    sources = [read_run(run) for run in config.runs]
    if config.judgments is not None:
        sources.append(
            read_published_folder(
                config.judgments,
                with_labels=not config.annotations,
                with_index=not config.no_index,
            )
        )
    combined = combine(sources)
    if not len(combined.judgments):
        raise UserError(
            f"{', '.join(one.name for one in sources)}: no judgment was made yet: judge first, the "
            "command that made the folder goes on"
        )
    for note in combined.notes:
        sys.stderr.write(f"note: {one_line(note)}\n")
    if config.annotations:
        from trajudge.annotations import open_annotations, parse_labels, primary_labels  # noqa: PLC0415
        from trajudge.annotations.policies import policy_note  # noqa: PLC0415

        combined.labels = primary_labels(open_annotations(config.annotations))
        named = parse_labels(config.annotations)
        combined.policies = {f"{named.kind}/{named.policy}"} if named.policy else set()
        if note := policy_note(config.annotations):
            sys.stderr.write(f"note: {one_line(note)}\n")
    if len(combined.policies) > 1:
        raise UserError(
            f"the runs' labels follow several policies ({', '.join(sorted(combined.policies))}): "
            "choose one with --annotations KIND/POLICY:PATH"
        )
    if config.split != "all":
        combined.restrict(config.split)
    return combined


def _policy(config: ScoreConfig, protocols: set[str]) -> Missing:
    """Return what the command line says, else what all the runs were made with."""
    if config.missing is not None:
        return config.missing
    if config.protocol is None and len(protocols) > 1:
        raise UserError(
            f"the runs were scored under several protocols ({', '.join(sorted(protocols))}): "
            "choose one with --protocol"
        )
    protocol = config.protocol or min(protocols, default="default")
    return "agentrewardbench" if protocol == "agentrewardbench" else "negative"


def _print(
    config: ScoreConfig, scores: ScoreReport, source: Source, kinds: Sequence[Table]
) -> None:
    if config.csv or config.json_output:
        from trajudge.eval.reporting.results import results_csv, results_json  # noqa: PLC0415

        sys.stdout.write(results_csv(scores) if config.csv else results_json(scores))
        return
    from trajudge.eval.reporting.caveats import notes  # noqa: PLC0415
    from trajudge.eval.reporting.paper_tables import paper_table  # noqa: PLC0415
    from trajudge.eval.reporting.tables import tables  # noqa: PLC0415
    from trajudge.trajectories.util.tables import render, rich_table  # noqa: PLC0415

    numbers = dict.fromkeys(config.table)
    chosen = [paper_table(number, scores, source.representations) for number in numbers]
    if _is_one_screen(config):
        from trajudge.eval.reporting.summary import summary  # noqa: PLC0415

        more = "".join("\n" + render([table], "table").lstrip("\n") for table in kinds)
        sys.stdout.write(summary(scores, also=more.count("\n")) + more)
        return
    shown = [*(chosen or tables(scores)), *kinds]
    if config.format != "table":
        sys.stdout.write(render(shown, config.format))
        sys.stderr.write("".join(note + "\n" for note in notes(scores)))
    elif sys.stdout.isatty():
        from rich.console import Group  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        terminal_console().print(Group(*map(rich_table, shown), *map(Text, notes(scores))))
    else:
        sys.stdout.write("\n".join([render(shown, "table"), *notes(scores)]).rstrip("\n") + "\n")


def _is_one_screen(config: ScoreConfig) -> bool:
    """Tell whether the first screen is asked for, not all tables or some."""
    rest = config.full or config.by is not None or config.compare == "benchmark"
    return not (rest or config.table or config.format != "table")


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


def observed_verdicts(
    source: Source, missing: Missing, question: Label = "success"
) -> dict[str, Observations]:
    """Collect what each judge said."""
    held_out = without_training(source.judgments, source.training)
    return {
        judge: observe(
            one_per_trajectory(j for j in held_out if j.judge == judge),
            question,
            source.labels,
            source.rewards,
            missing,
        )
        for judge in sorted({j.judge for j in held_out})
    }


def _calibration(config: ScoreConfig, source: Source, missing: Missing) -> list[Table]:
    """Make the reliability tables, where they are asked for, and write the maps."""
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
        write_calibrations(config.calibration_out, configured)
    if _is_one_screen(config):
        return [calibration_table(calibrations)]
    return calibration_tables(calibrations)


def _mismatches(config: ScoreConfig, file: Path, source: Source) -> list[Table]:
    """Write the wrong verdicts; the table of their kinds, where they were sorted."""
    from trajudge.eval.analysis.mismatches import find_mismatches, write_mismatches  # noqa: PLC0415

    held_out = without_training(source.judgments, source.training)
    cases, absent = find_mismatches(
        held_out, source.labels, list(config.data) or list(map(open_recorded, source.data))
    )
    if absent:
        sys.stderr.write(
            f"warning: {count_of(len(absent), 'trajectory')} with a wrong verdict not in the data, "
            f"{absent[0]} for one: left out of {file}\n"
        )
    write_mismatches(file, cases)
    if not config.explain:
        sys.stderr.write(f"{count_of(len(cases), 'wrong verdict')} in {file}\n")
        return []
    from trajudge.eval.analysis.explain import explain, kinds_table  # noqa: PLC0415
    from trajudge.judges.calls.handle import single_model  # noqa: PLC0415

    explained = explain(cases, single_model(config.explain, config.calls))
    write_mismatches(file, explained)
    reasons = [e.reason for case in explained if (e := case.explanation) and e.kind is None]
    if reasons:
        sys.stderr.write(
            f"warning: {len(reasons)} of {count_of(len(cases), 'wrong verdict')} not sorted, "
            f"for one: {one_line(reasons[0])}\n"
        )
    sys.stderr.write(f"{count_of(len(cases), 'wrong verdict')} in {file}\n")
    return [kinds_table(explained)]
