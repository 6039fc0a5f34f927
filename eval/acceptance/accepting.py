"""Apply a decision, or a judge at a threshold, and write what it accepts."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import orjson

from trajudge.eval.acceptance.acceptance import (
    ACCEPTED,
    SUMMARY,
    AcceptanceFilter,
    acceptor,
    apply,
    write_dataset,
)
from trajudge.eval.acceptance.applying import covered, filter_of, new_agents
from trajudge.eval.acceptance.settings import AcceptConfig
from trajudge.eval.data.inputs import open_recorded, open_spec
from trajudge.eval.data.manifest import code_version
from trajudge.eval.data.run_folder import read_manifest
from trajudge.eval.select.decision import Decision
from trajudge.eval.select.files import write_whole
from trajudge.eval.select.inputs import read_inputs
from trajudge.eval.select.output import read_decision
from trajudge.eval.select.plan import Rule
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.util.errors import UserError


class Acceptance(NamedTuple):
    """What was applied, how many trajectories ended how, and what the user should know."""

    choice: AcceptanceFilter
    counts: dict[str, int]
    warnings: list[str]


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
    format_ = _format(config)
    inputs = read_inputs(config.run, config.judgments)
    warnings: list[str] = []
    if decision is not None:
        choice, warnings = covered(decision, choice, inputs, config)
    spec = _data(config)
    agents: Counter[str] = Counter()
    rule = acceptor(choice, inputs.judgments)
    acceptance = apply(open_source(spec), rule, choice, config.out, agents=agents, **format_)
    if decision is not None:
        warnings += new_agents(decision, agents, config)
    if choice.warning:
        warnings.append(choice.warning)
    made = Acceptance(choice, dict(sorted(acceptance.items())), warnings)
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
    format_: dict[str, Any] = {"page": config.page, "bare_turns": config.without_observations}
    if config.system is not None:
        try:
            format_["system"] = config.system.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"--system {config.system}: cannot be read as text ({error})"
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
        "cautions": made.warnings,
        "version": code_version(),
    }
    write_whole(config.out / SUMMARY, orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
