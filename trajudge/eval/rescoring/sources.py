"""Runs and published judgments read and scored, as the options of ``trajudge score`` say."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from trajudge.annotations.model import SampleFrame
from trajudge.eval.comparison.versions import mixed_versions
from trajudge.eval.data.index.judgments import keys_of_judgments
from trajudge.eval.data.label_conflicts import refuse_conflicts
from trajudge.eval.data.published.source import read_published_folder
from trajudge.eval.data.sources import Source, combine, policy_name, read_runs, strangers_said
from trajudge.eval.data.task_goals import task_units
from trajudge.eval.process.faults import fault_scores
from trajudge.eval.process.question import about_process, question_of
from trajudge.eval.reporting.goals import goal_notes
from trajudge.eval.runs.settings import ScoreConfig
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.intervals import Bootstrap
from trajudge.eval.scoring.observations import Observations, observe, one_per_trajectory
from trajudge.eval.scoring.records import Label, Missing, ScoreReport
from trajudge.eval.scoring.training import included, without_training
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.terminal import one_line


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
    from trajudge.annotations import frame_of, open_labels, parse_labels  # noqa: PLC0415
    from trajudge.annotations.policies import policy_note  # noqa: PLC0415

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
