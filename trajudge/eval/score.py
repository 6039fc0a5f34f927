"""Score runs and published judgments again, without a call: ``trajudge score``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trajudge.annotations import frame_of, open_labels, parse_labels, policy_note
from trajudge.eval.analysis.mismatches import Mismatch, find_mismatches, write_mismatches
from trajudge.eval.baselines import (
    baselines_of,
    transfer_scores,
    transfer_screen,
    transfer_table,
    truth_of,
    with_baselines,
)
from trajudge.eval.process import about_process, fault_scores, question_of
from trajudge.eval.ranks import (
    rank_judges,
    ranks_csv,
    ranks_json,
    ranks_screen,
    with_rule_based,
    write_page,
)
from trajudge.eval.reporting.plots import write_plots
from trajudge.eval.reporting.results import results_csv, results_json
from trajudge.eval.reporting.sentences import (
    LABELS_OPTION,
    goal_notes,
    is_labelled,
    notes,
    unscored,
)
from trajudge.eval.reporting.summary import summary
from trajudge.eval.reporting.tables import (
    agents,
    benchmark_rankings,
    paper_table,
    tables,
    with_notes,
)
from trajudge.eval.scoring.compute import metric_scores, score
from trajudge.eval.scoring.estimates import with_estimated_rates
from trajudge.eval.scoring.notes import included, mixed_versions
from trajudge.eval.scoring.observations import without_training
from trajudge.eval.scoring.records import LabelName, Missing, Score, ScoreReport
from trajudge.eval.settings import ScoreConfig
from trajudge.eval.sources import (
    Source,
    combine,
    observed_verdicts,
    policy_name,
    read_runs,
    unmatched_labels_message,
)
from trajudge.eval.store.inputs import open_recorded
from trajudge.eval.store.labels import refuse_conflicts, unanswered_notes
from trajudge.eval.store.task_goals import task_units
from trajudge.eval.submission import write_submission
from trajudge.util.commands import FAILURES, OK, saved_behind_output
from trajudge.util.errors import UserError
from trajudge.util.files import refuse_repeated
from trajudge.util.machine import collection_paused
from trajudge.util.tables import Table, render, screen_width
from trajudge.util.terminal import count_of, one_line

_WARNINGS_BESIDE = 3  # such tables


def report(config: ScoreConfig) -> int:
    """Print and write everything that the options ask for; the exit code."""
    if config.checks:
        if not config.runs:
            raise UserError("--checks: give the folder of a run")
        from trajudge.eval.checks import print_checks  # noqa: PLC0415 - imports every judge

        may = print_checks(config.runs, config.annotations, as_json=config.json_output)
        return OK if may else FAILURES
    if not config.runs and config.judgments is None:
        raise UserError("nothing to score: give the folder of a run, or --judgments DIR")
    if config.ranks or config.html:
        return _rank(config)
    with collection_paused():
        source = read_sources(config)
        with task_units(source.goals, config.task_id):
            if config.transfer:
                return _transfer(source, config)
            scores = score_source(source, config)
            if config.baselines != "off" and not config.table:
                scores = add_baselines(scores, source, config)
            with saved_behind_output() as save:
                if config.submission:
                    judged = source.judgments, source.labels, config.split
                    save(write_submission, config.submission, scores, *judged)
                if config.plots:
                    save(_plots, config.plots, source, scores)
                found = _mismatches(config, source, save)
                _print(
                    scores, source, config, [*_calibration(scores, source, config, save), *found]
                )
    return OK


def _rank(config: ScoreConfig) -> int:
    """Rank the judges of the runs that may be compared; the exit code is 1 where one may not."""
    from trajudge.eval.checks import left_out_runs  # noqa: PLC0415 - imports every judge

    refuse_repeated(config.runs)
    folders = [run for run in config.runs if not run.is_file()]  # a table has no manifest
    left_out = left_out_runs(folders, other_labels=config.annotations is not None)
    kept = tuple(run for run in config.runs if run not in left_out)
    if left_out and not (kept or config.judgments):
        raise UserError(f"no run may be compared: {'; '.join(left_out.values())}")
    config = config.model_copy(update={"runs": kept, "compare": "benchmark"})
    source = with_rule_based(read_sources(config))
    with task_units(source.goals, config.task_id):
        scores = score_source(source, config)
        if config.baselines != "off":
            scores = add_baselines(scores, source, config)
    ranked, reasons = rank_judges(scores, source.labels, source.prompts), [*left_out.values()]
    if not ranked:
        raise UserError(unscored(scores))
    with saved_behind_output() as save:
        if config.html:
            save(write_page, config.html, ranked, scores, reasons)
        if config.csv:
            sys.stdout.write(ranks_csv(ranked))
        elif config.json_output:
            sys.stdout.write(ranks_json(ranked))
        else:
            sys.stdout.write(ranks_screen(ranked, scores, reasons, config.html))
    return FAILURES if left_out else OK


def read_sources(config: ScoreConfig) -> Source:
    """Read runs and published judgments as one, cut to the split. Raises UserError."""
    sources = read_runs(config.runs)
    if config.judgments is not None:
        from trajudge.eval.store.published import (  # noqa: PLC0415 - brings the parsing of replies
            read_published_folder,
        )

        sources.append(read_published_folder(config.judgments, with_labels=not config.annotations))
    combined = combine(sources)
    if not len(combined.judgments):
        raise UserError(
            f"{', '.join(one.name for one in sources)}: no judgment was made yet: judge first, the "
            "command that made the folder goes on"
        )
    for note in combined.notes:
        sys.stderr.write(f"note: {one_line(note)}\n")
    if config.annotations:
        keys = combined.judgments.keys
        combined.labels = open_labels(config.annotations, keys=keys)
        frame = frame_of(config.annotations)
        combined.frames = set() if frame is None else {frame}
        named = parse_labels(config.annotations)
        combined.policies = {f"{named.kind}/{named.policy}"} if named.policy else set()
        if note := policy_note(config.annotations, keys):
            sys.stderr.write(f"note: {one_line(note)}\n")
    if len(combined.policies) > 1:
        raise UserError(
            f"the runs' labels follow several policies ({', '.join(sorted(combined.policies))}): "
            "choose one with --annotations KIND/POLICY:PATH"
        )
    if not config.annotations:
        by_run = [(source.name, source.labels) for source in sources]
        refuse_conflicts(by_run)
        for note in unanswered_notes(by_run):
            sys.stderr.write(f"warning: {one_line(note)}\n")
    if config.split != "all":
        combined.restrict(config.split)
    return combined


def warn_of_unmatched_labels(source: Source, annotations: str) -> None:
    """Say where none of the labels that the user names belongs to a trajectory that was judged."""
    if not any(key in source.labels for key in source.judgments.keys):
        said = unmatched_labels_message(annotations, source.labels, source.judgments[0].key)
        sys.stderr.write(one_line(f"warning: {said}") + "\n")


def score_source(source: Source, config: ScoreConfig) -> ScoreReport:
    """Score what was read, as ``config`` says. Raises UserError where it leaves the protocol of
    several runs open."""
    if config.training_set == "include":
        sys.stderr.write("".join(f"{line}\n" for line in included(source.training)))
        source.training = {}
    is_process = asked_question(source, config) == "process"

    arguments: dict[str, Any] = {
        "rewards": source.rewards,
        "missing": missing_of(config, source.protocols),
        "by_agent": config.by == "agent",
        "training": source.training,
    }

    def scores_by_goal() -> Sequence[Score]:
        scored = metric_scores(source.judgments, source.labels, overall_only=True, **arguments)
        return [each for each in scored if each.label == "process" or not is_process]

    update: dict[str, object] = {}
    by_goal: list[str] = []
    with task_units(source.goals, config.task_id):
        compared = None if config.compare == "none" else config.compare
        scores = score(source.judgments, source.labels, compared=compared, **arguments)
        if is_process:
            scores = about_process(scores)
            held_out = without_training(source.judgments, source.training)
            update["faults"] = tuple(fault_scores(held_out, source.labels))
        else:
            read = source.judgments, source.labels, source.training
            scores = with_estimated_rates(scores, *read)
    if config.task_id != "goal":
        by_goal = [*goal_notes(scores.scores, source.goals, scores_by_goal)]
    update["remarks"] = (
        *mixed_versions(source.versions),
        *scores.remarks,
        *(
            f"labels: drawn from {frame.size:,} trajectories alone ({frame.filter}): rates hold "
            "for these"
            for frame in source.frames
            if frame.filter
        ),
        *by_goal,
    )
    if source.policies:
        update["label_policy"] = policy_name(source.policies)
    update |= {
        "unattributed_cost": source.unattributed_cost,
        "unfinished": tuple(source.unfinished),
    }
    return scores.model_copy(update=update)


def add_baselines(scores: ScoreReport, source: Source, config: ScoreConfig) -> ScoreReport:
    """Add the trivial baselines where there are labels. Raises UserError for trajectories that
    cannot be read where they are asked for; else a note says so."""
    question, wanted = asked_question(source, config), config.baselines == "on"
    keys = truth_of(source.labels, question).keys() & set(source.judgments.keys)
    if not keys:
        return scores
    try:
        specs = config.data or recorded_data(source, config)
        baselines = baselines_of(
            specs, source.labels, keys, question=question, seed=config.seed, is_asked_for=wanted
        )
    except UserError as error:
        if wanted:
            raise
        sys.stderr.write(f"note: no trivial baselines: {one_line(str(error))}\n")
        return scores
    for note in baselines.notes:
        sys.stderr.write(f"note: {one_line(note)}\n")
    observed = observed_verdicts(source, scores.missing, question)
    return with_baselines(scores, baselines.judgments, observed, source.labels)


def recorded_data(source: Source, config: ScoreConfig) -> list[str]:
    """Name the runs' data, and published judgments as the text of the trajectories they hold."""
    published = [f"agentrewardbench-text:{config.judgments}"] if config.judgments else []
    return [*source.data, *published]


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


def asked_question(source: Source, config: ScoreConfig) -> LabelName:
    """Return what is scored: what the command line says, else what the judges answer."""
    return config.question or question_of(source.judgments)


def _transfer(source: Source, config: ScoreConfig) -> int:
    """Print what is chosen or trained on the other benchmarks, scored on each."""
    question, missing = asked_question(source, config), missing_of(config, source.protocols)
    specs = config.data or recorded_data(source, config)
    scores = transfer_scores(source.judgments, source.labels, specs, question, missing)
    if config.csv or config.json_output:
        sys.stdout.write(results_csv(scores) if config.csv else results_json(scores))
    elif config.format != "table" or config.full:
        sys.stdout.write(render([transfer_table(scores, question)], config.format))
    else:
        sys.stdout.write(transfer_screen(scores, question))
    return OK


def _print(scores: ScoreReport, source: Source, config: ScoreConfig, more: list[Table]) -> None:
    """Print results.csv or results.json, the first screen, or tables with notes; below them
    ``more`` tables."""
    if config.csv or config.json_output:
        sys.stdout.write(results_csv(scores) if config.csv else results_json(scores))
        return
    option = LABELS_OPTION
    if config.annotations:  # which name no label of a trajectory that was judged, where it is said
        first, labels = next(iter(source.labels)), count_of(len(source.labels), "label")
        option += f" (not the {labels} of others that were named, {first} for one)"
    if _is_one_screen(config):
        sys.stdout.write(_screen(scores, more, option))
        return
    sentences = notes(scores)
    if not any(map(is_labelled, scores.scores)):
        sentences = [one_line(unscored(scores, option=option)), *sentences]
    numbers = dict.fromkeys(config.table)
    chosen = [paper_table(number, scores, source.representations) for number in numbers]
    shown = [*(chosen or tables(scores)), *more]
    if config.format != "table":
        sys.stdout.write(render(shown, config.format))
        sys.stderr.write("".join(f"{sentence}\n" for sentence in sentences))
    else:
        rest = "--full" if chosen and not config.full else None
        sys.stdout.write(with_notes(shown, sentences, rest=rest))


def _is_one_screen(config: ScoreConfig) -> bool:
    """Tell whether the first screen is asked for, not all tables or some."""
    return not (config.full or config.table or config.format != "table")


def _screen(scores: ScoreReport, kinds: list[Table], option: str) -> str:
    """Lay out the first screen, below it the judges by agent and by benchmark where that was asked
    for, and ``kinds``."""
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
    return summary(scores, also=also, most=_WARNINGS_BESIDE, rest=rest, option=option) + more


def _plots(folder: Path, source: Source, scores: ScoreReport) -> None:
    detailed = score(
        source.judgments,
        source.labels,
        rewards=source.rewards,
        missing=scores.missing,
        by_agent=True,
        compared=None,
        training=source.training,
    )
    observed = observed_verdicts(source, scores.missing)
    written = write_plots(folder, scores, detailed, observed)
    sys.stderr.write(f"{count_of(len(written), 'plot')} in {folder}\n")


def _calibration(
    scores: ScoreReport, source: Source, config: ScoreConfig, save: Callable[..., None]
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

    calibrations = calibrate(
        observed_verdicts(source, scores.missing), source.labels, config.calibration
    )
    if config.calibration_out is not None:
        configured = with_configurations(calibrations, config.runs)
        save(write_calibrations, config.calibration_out, configured)
    if _is_one_screen(config):
        return [calibration_table(calibrations)]
    return calibration_tables(calibrations)


def _mismatches(config: ScoreConfig, source: Source, save: Callable[..., None]) -> list[Table]:
    """Make the table of the kinds of wrong verdicts, where they were sorted; ``save`` them."""
    if (file := config.mismatches) is None:
        return []
    held_out = without_training(source.judgments, source.training)
    data = list(config.data) or list(map(open_recorded, source.data))
    cases, absent = find_mismatches(held_out, source.labels, data)
    if absent:
        sys.stderr.write(
            f"warning: {count_of(len(absent), 'trajectory')} with a wrong verdict not in the data, "
            f"{absent[0]} for one: left out of {file}\n"
        )
    found: list[Mismatch] = list(cases)  # saved as they are where sorting them fails

    def write() -> None:
        write_mismatches(file, found)
        sys.stderr.write(f"{count_of(len(found), 'wrong verdict')} in {file}\n")

    save(write)
    if not config.explain:
        return []
    from trajudge.eval.analysis.explain import (  # noqa: PLC0415 - nothing else asks a model
        explain,
        kinds_table,
    )

    found[:] = explain(cases, config.explain, config.calls)
    reasons = [e.reason for case in found if (e := case.explanation) and e.kind is None]
    if reasons:
        sys.stderr.write(
            f"warning: {len(reasons)} of {count_of(len(cases), 'wrong verdict')} not sorted, "
            f"for one: {one_line(reasons[0])}\n"
        )
    return [kinds_table(found)]
