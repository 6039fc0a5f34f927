"""Runs and published judgments scored again, without a call: what ``trajudge score`` does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.annotations.model import SampleFrame
from trajudge.eval.checks import left_out_runs, print_checks
from trajudge.eval.process import about_process, fault_scores, question_of
from trajudge.eval.ranks import (
    rank_judges,
    ranks_csv,
    ranks_json,
    ranks_screen,
    with_rule_based,
    write_page,
)
from trajudge.eval.reporting.sentences import goal_notes, unscored
from trajudge.eval.scoring.comparison import mixed_versions
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.intervals import Bootstrap
from trajudge.eval.scoring.observations import (
    Observations,
    included,
    observe,
    one_per_trajectory,
    without_training,
)
from trajudge.eval.scoring.records import Label, Missing, ScoreReport
from trajudge.eval.settings import ScoreConfig
from trajudge.eval.sources import Source, combine, policy_name, read_runs, strangers_said
from trajudge.eval.store.inputs import open_recorded
from trajudge.eval.store.labels import refuse_conflicts
from trajudge.eval.store.published import read_published_folder
from trajudge.eval.store.table import keys_of_judgments
from trajudge.eval.store.task_goals import task_units
from trajudge.util.commands import FAILURES, OK, saved_behind_output
from trajudge.util.errors import UserError
from trajudge.util.files import refuse_repeated
from trajudge.util.machine import collection_paused
from trajudge.util.tables import Table
from trajudge.util.terminal import count_of, one_line

if TYPE_CHECKING:
    from trajudge.eval.analysis.mismatches import Mismatch


def read_sources(config: ScoreConfig) -> Source:
    """Read runs and published judgments as one, cut to the split. Raises UserError."""
    sources = read_runs(config.runs)
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
        _take_labels(combined, config.annotations)
    if len(combined.policies) > 1:
        raise UserError(
            f"the runs' labels follow several policies ({', '.join(sorted(combined.policies))}): "
            "choose one with --annotations KIND/POLICY:PATH"
        )
    if not config.annotations:
        refuse_conflicts((source.name, source.labels) for source in sources)
    if config.split != "all":
        combined.restrict(config.split)
    return combined


def _take_labels(combined: Source, annotations: str) -> None:
    """Put the labels that the user names in the place of those of the runs, and say which policy
    made them. Raises UserError."""
    from trajudge.annotations import (  # noqa: PLC0415
        frame_of,
        open_labels,
        parse_labels,
        policy_note,
    )

    combined.labels, frame = open_labels(annotations), frame_of(annotations)
    combined.frames = set() if frame is None else {frame}
    named = parse_labels(annotations)
    combined.policies = {f"{named.kind}/{named.policy}"} if named.policy else set()
    if note := policy_note(annotations):
        sys.stderr.write(f"note: {one_line(note)}\n")


def warn_of_strangers(source: Source, annotations: str) -> None:
    """Say where none of the labels that the user names belongs to a trajectory that was judged."""
    if not any(key in source.labels for key in keys_of_judgments(source.judgments)):
        said = strangers_said(annotations, source.labels, source.judgments[0].key)
        sys.stderr.write(one_line(f"warning: {said}") + "\n")


def score_source(source: Source, config: ScoreConfig) -> ScoreReport:
    """Score what was read, as ``config`` says. Raises UserError where it leaves the protocol of
    several runs open."""
    with task_units(source.goals, config.task_id):
        report = _score_source(source, config)
    if config.task_id == "goal":
        return report

    def by_goal() -> ScoreReport:
        whole = config.model_copy(update={"resamples": 0, "baselines": "off"})
        return _score_source(source, whole)

    notes = goal_notes(report, source.goals, by_goal)
    return report.model_copy(update={"remarks": (*report.remarks, *notes)})


def _score_source(source: Source, config: ScoreConfig) -> ScoreReport:
    if config.training_set == "include":
        sys.stderr.write("".join(f"{line}\n" for line in included(source.training)))
        source.training = {}
    report = score(
        source.judgments,
        source.labels,
        rewards=source.rewards,
        missing=missing_of(config, source.protocols),
        by_agent=config.by == "agent",
        bootstrap=Bootstrap(config.resamples, config.seed),
        compare_by_benchmark=config.compare == "benchmark",
        training=source.training,
    )
    if asked_question(source, config) == "process":
        held_out = without_training(source.judgments, source.training)
        faults = tuple(fault_scores(held_out, source.labels))
        report = about_process(report).model_copy(update={"faults": faults})
    if source.policies:
        report = report.model_copy(update={"label_policy": policy_name(source.policies)})
    more = {
        "remarks": (
            *mixed_versions(source.versions),
            *report.remarks,
            *frame_notes(source.frames),
        ),
        "beside": source.beside,
        "unfinished": tuple(source.unfinished),
    }
    return report.model_copy(update=more)


def frame_notes(frames: Iterable[SampleFrame]) -> Iterator[str]:
    """Say of labels that were drawn from a part of the trajectories what rates hold for."""
    for frame in frames:
        if frame.filter:
            yield (
                f"labels: drawn from {frame.size:,} trajectories alone ({frame.filter}): rates "
                "hold for these"
            )


def beside_baselines(scores: ScoreReport, source: Source, config: ScoreConfig) -> ScoreReport:
    """Add the trivial baselines where there are labels. Raises UserError for trajectories that
    cannot be read where they are asked for; else a note says so."""
    question = asked_question(source, config)
    if all(getattr(label, question) is None for label in source.labels.values()):
        return scores
    from trajudge.eval.baselines import (  # noqa: PLC0415
        READ_UNASKED,
        read_baselines,
        with_baselines,
    )

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


def missing_of(config: ScoreConfig, protocols: set[str]) -> Missing:
    """Return what a failed judgment counts as: what the command line says, else what all the runs
    were made with. Raises UserError where these differ."""
    if config.missing is not None:
        return config.missing
    if config.protocol is None and len(protocols) > 1:
        raise UserError(
            f"the runs were scored under several protocols ({', '.join(sorted(protocols))}): "
            "choose one with --protocol"
        )
    protocol = config.protocol or min(protocols, default="default")
    return "agentrewardbench" if protocol == "agentrewardbench" else "negative"


def asked_question(source: Source, config: ScoreConfig) -> Label:
    """Return what is scored: what the command line says, else what the judges answer."""
    return config.question or question_of(source.judgments)


_WARNINGS_BESIDE = 3  # such tables


def report(config: ScoreConfig) -> int:
    """Everything that the options ask for; the exit code."""
    with collection_paused():
        return _report(config)


def _report(config: ScoreConfig) -> int:
    if config.checks:
        if not config.runs:
            raise UserError("--checks: give the folder of a run")
        may = print_checks(config.runs, config.annotations, as_json=config.json_output)
        return OK if may else FAILURES
    if not config.runs and config.judgments is None:
        raise UserError("nothing to score: give the folder of a run, or --judgments DIR")
    if config.ranks or config.html:
        return _rank(config)
    source = read_sources(config)
    with task_units(source.goals, config.task_id):
        return _report_of(source, config)


def _rank(config: ScoreConfig) -> int:
    """Rank the judges of the runs that may be compared; the exit code is 1 where one may not."""
    refuse_repeated(config.runs)
    left_out = left_out_runs(config.runs, other_labels=config.annotations is not None)
    kept = tuple(run for run in config.runs if run not in left_out)
    if left_out and not (kept or config.judgments):
        raise UserError(f"no run may be compared: {'; '.join(left_out.values())}")
    config = config.model_copy(update={"runs": kept, "compare": "benchmark"})
    source = with_rule_based(read_sources(config))
    with task_units(source.goals, config.task_id):
        report = score_source(source, config)
        if config.baselines != "off":
            report = beside_baselines(report, source, config)
    tables, reasons = rank_judges(report, source.labels), [*left_out.values()]
    if not tables:
        raise UserError(unscored(report, option=_labels_option(config, source)))
    with saved_behind_output() as save:
        if config.html:
            save(write_page, config.html, tables, report, reasons)
        if config.csv:
            sys.stdout.write(ranks_csv(tables))
        elif config.json_output:
            sys.stdout.write(ranks_json(tables))
        else:
            sys.stdout.write(ranks_screen(tables, report, reasons, config.html))
    return FAILURES if left_out else OK


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
            from trajudge.eval.submission import write_submission  # noqa: PLC0415 - only where it is asked for

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
    from trajudge.eval.baselines import print_transfer  # noqa: PLC0415 - fits regressions

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
    from trajudge.eval.reporting.sentences import is_labelled, notes  # noqa: PLC0415
    from trajudge.eval.reporting.tables import (  # noqa: PLC0415
        paper_table,
        tables,
        with_notes,
    )
    from trajudge.util.tables import render  # noqa: PLC0415

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
    from trajudge.eval.reporting.sentences import LABELS_OPTION  # noqa: PLC0415

    if not config.annotations:
        return LABELS_OPTION
    first = next(iter(source.labels))
    labels = count_of(len(source.labels), "label")
    return f"{LABELS_OPTION} (not the {labels} of others that were named, {first} for one)"


def _screen(scores: ScoreReport, kinds: Sequence[Table], option: str) -> str:
    """Lay out the first screen, below it the judges by agent and by benchmark where that was asked
    for, and ``kinds``."""
    from trajudge.eval.reporting.summary import summary  # noqa: PLC0415
    from trajudge.eval.reporting.tables import agents, benchmark_rankings  # noqa: PLC0415
    from trajudge.util.tables import render, screen_width  # noqa: PLC0415

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
