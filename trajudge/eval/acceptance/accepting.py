"""Apply a decision, or a judge at a threshold, and write what it accepts."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from trajudge.eval.acceptance.acceptance import (
    ACCEPTED,
    NO_OBSERVATION,
    REJECTED,
    SUMMARY,
    AcceptanceFilter,
    acceptor,
    apply,
    write_dataset,
)
from trajudge.eval.acceptance.applying import covered, filter_of, new_agents
from trajudge.eval.acceptance.held_out import read_held_out
from trajudge.eval.acceptance.settings import AcceptConfig
from trajudge.eval.acceptance.training.card import TrainingCounts, training_warnings
from trajudge.eval.acceptance.training.export import ExportSource, export_training, guarantee
from trajudge.eval.acceptance.training.formats import unit
from trajudge.eval.acceptance.training.runs import RunCollector
from trajudge.eval.scoring.records import UnfinishedRun
from trajudge.eval.select.decision import Decision
from trajudge.eval.select.evidence import read_inputs
from trajudge.eval.select.decision import read_decision
from trajudge.eval.select.plan import Rule
from trajudge.eval.store.inputs import open_recorded, open_spec
from trajudge.eval.store.manifest import code_version
from trajudge.eval.store.run_folder import read_manifest
from trajudge.trajectories.loaders import open_source
from trajudge.util.errors import UserError
from trajudge.util.files import read_text, save_bytes
from trajudge.util.terminal import count_of


class Acceptance(NamedTuple):
    """What was applied, how many trajectories ended how, what the user should know, the rows of
    training data, and the runs that lack judgments."""

    choice: AcceptanceFilter
    counts: dict[str, int]
    warnings: list[str]
    training: TrainingCounts | None = None
    unfinished: tuple[UnfinishedRun, ...] = ()


def accept(config: AcceptConfig) -> Acceptance:
    """Write the accepted trajectories as conversations and the others with the reason.

    Raises UserError for settings that contradict each other, for files that cannot be read or
    written, and for judgments that the decision does not cover.
    """
    decision, choice = choose(config)
    if not config.run and config.judgments is None:
        raise UserError(
            "no judgments to apply it to: give --run RUN or --judgments DIR, or --judge NAME with "
            "--data KIND:PATH to ask the judge now"
        )
    if config.training is not None:
        unit(config.training)
    format_ = _format(config)
    inputs = read_inputs(config.run, config.judgments)
    warnings: list[str] = []
    if decision is not None:
        choice, warnings = covered(decision, choice, inputs, config)
    if config.held_out is not None:
        choice = choice._replace(held_out=read_held_out(config.held_out))
    spec = _data(config)
    runs = RunCollector(config.training, choice, config.without_observations)
    screenshots = config.training is not None and config.training.with_screenshots
    acceptance = apply(
        open_source(spec),
        acceptor(choice, inputs.judgments),
        choice,
        config.out,
        bare_turns=config.without_observations,
        screenshots=screenshots,
        decided=runs,
        **format_,
    )
    if decision is not None:
        warnings += new_agents(decision, runs.agents, config)
    if choice.warning:
        warnings.append(choice.warning)
    if bare := acceptance.get(NO_OBSERVATION):
        warnings.append(
            f"left out, because the page before an action was not recorded: "
            f"{count_of(bare, 'run')}: {REJECTED} says what supplies it; or export them as they "
            "are with --without-observations"
        )
    training = None
    if config.training is not None:
        source = ExportSource(choice, guarantee(decision), spec, config.data or spec, format_)
        training = export_training(source, runs.listed, config.training, config.out)
        warnings += training_warnings(config.training, training)
    counts = dict(sorted(acceptance.items()))
    made = Acceptance(choice, counts, warnings, training, inputs.unfinished)
    _write_summary(config, made, config.data or spec)
    if config.dataset:
        write_dataset(config.out / ACCEPTED, config.dataset)
    return made


def choose(config: AcceptConfig) -> tuple[Decision | None, AcceptanceFilter]:
    """Take the choice from the settings, or from their decision. Raises UserError."""
    if config.decision is not None and config.judge is None:
        if config.threshold is not None:
            raise UserError("--threshold is part of the decision: leave it out, or use --judge")
        decision = read_decision(config.decision)
        return decision, filter_of(decision, config.decision)
    if config.decision is not None or config.judge is None:
        raise UserError("give either --decision DIR, or --judge NAME with --threshold T")
    if config.threshold is None or not 0 < config.threshold <= 1:
        raise UserError(
            f"--judge {config.judge} needs --threshold with a number above 0 and at most 1, "
            f"not {config.threshold}: for a verdict 1"
        )
    return None, AcceptanceFilter(config.judge, Rule(judges=(config.judge,)), config.threshold)


def _format(config: AcceptConfig) -> dict[str, Any]:
    """Settle how conversations are written. Raises UserError."""
    format_: dict[str, Any] = {"page": config.page}
    if config.system is not None:
        try:
            format_["system"] = read_text(config.system)
        except OSError as error:
            raise UserError(
                f"--system {config.system}: cannot be read ({error.strerror})"
            ) from error
    return format_


def _data(config: AcceptConfig) -> str:
    """Name the trajectories: ``data``, or what the first run was made from. Raises UserError."""
    if config.data:
        return open_spec(config.data)
    if not config.run:
        raise UserError("published judgments need their trajectories: give --data KIND:PATH")
    spec = read_manifest(config.run[0]).get("data")
    if not isinstance(spec, str):
        raise UserError(f"{config.run[0]}: its manifest names no data: give --data KIND:PATH")
    return open_recorded(spec)


def _write_summary(config: AcceptConfig, made: Acceptance, spec: str) -> None:
    choice = made.choice
    summary = {
        "judge": choice.name,
        "rule": choice.rule.model_dump(mode="json"),
        "threshold": choice.threshold,
        "decision": choice.decision,
        "benchmarks": sorted(choice.benchmarks) if choice.benchmarks is not None else None,
        "data": spec,
        "runs": [str(run) for run in config.run],
        "judgments": str(config.judgments) if config.judgments else None,
        "counts": made.counts,
        "training": _training(config, made),
        "cautions": made.warnings,
        "unfinished": [run.model_dump() for run in made.unfinished],
        "version": code_version(),
    }
    save_bytes(config.out / SUMMARY, orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")


def _training(config: AcceptConfig, made: Acceptance) -> dict[str, Any] | None:
    if made.training is None or config.training is None:
        return None
    return {**config.training.model_dump(mode="json"), **made.training._asdict()}
