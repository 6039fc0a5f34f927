"""The settings of ``trajudge env record``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from trajudge.environments.agents.script import is_scripted
from trajudge.environments.agents.settings import ModelSettings, model_settings, model_side
from trajudge.environments.model.variant import RunVariant
from trajudge.environments.recording.campaign import Model, RecordingPlan
from trajudge.environments.recording.jobs import chosen
from trajudge.environments.variants.jobs import chosen_variants
from trajudge.trajectories.model import Record, Seed
from trajudge.trajectories.represent import Representation
from trajudge.util.errors import UserError

# How a model is reached: the fields below that are options of trajudge judge.
CALLS = (
    *("adapter", "script", "base_url", "temperature", "max_tokens", "rpm", "tpm", "context"),
    *("timeout", "max_cost", "models", "prices", "cache"),
    *("reasoning_effort", "thinking_budget", "extra_body", "extra_headers"),
)


class RecordConfig(Record):
    """Which cases are recorded, by which agents, and where.

    ``agent`` names scripted agents or behaviours (empty: all, none beside a model); ``model`` sees
    ``representation`` of a page and does every case ``attempts`` times; what follows says how it is
    called (``CallConfig``), None for the defaults. ``faults`` is a plan whose faults are recorded
    one at a time beside a clean arm, ``text_only`` without pictures;
    ``payloads`` are texts that stand in what the applications' users wrote, in the runs of the page
    ``variants`` alone, if variants are named (``all``: every one).
    """

    cases: Path
    out: Path = Path("recorded")
    agent: tuple[str, ...] = ()
    faults: Path | None = None
    payloads: Path | None = None
    variants: tuple[str, ...] = ()
    text_only: bool = False
    seed: Seed = 0
    workers: int = 1
    model: str | None = None
    representation: Literal["axtree", "screenshot", "both"] = "axtree"
    attempts: int = 1
    adapter: str | None = None
    script: str | None = None
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    rpm: float | None = None
    tpm: float | None = None
    context: int | None = None
    timeout: float | None = None
    max_cost: float | None = None
    reasoning_effort: str | None = None
    thinking_budget: int | None = None
    extra_body: str | None = None
    extra_headers: str | None = None
    models: str | None = None
    prices: str | None = None
    cache: str | None = None


def _agents_of(config: RecordConfig) -> list[str]:
    """Read which scripted agents are recorded. Raises UserError for an unknown one."""
    every = ["resilient"] if config.faults else ["all"]
    return chosen(config.agent or ([] if config.model else every))


def _model_of(config: RecordConfig) -> ModelSettings | None:
    """Read how the model is reached; None for none. Raises UserError."""
    options = config.model_dump(include=set(CALLS))
    if config.model is None:
        for name, value in options.items():
            if value is not None:
                raise UserError(f"--{name.replace('_', '-')} goes with --model NAME")
        return None
    if is_scripted(config.model):
        raise UserError(f"--model {config.model}: must not be the name of a scripted agent")
    return model_settings(config.model, seed=config.seed, **options)


def _variants_of(config: RecordConfig) -> list[RunVariant]:
    """Read what is recorded once more. Raises UserError."""
    if config.faults and config.variants:
        raise UserError(
            "--variants: runs are recorded once more without faults: leave --faults out"
        )
    return chosen_variants(config.variants, payloads=config.payloads is not None)


def plan_of(config: RecordConfig) -> RecordingPlan:
    """Open the model, if one is named, and plan the recording. Raises UserError."""
    if config.text_only and config.faults is None:
        raise UserError("--text-only: goes with --faults PLAN: add it, or leave --text-only out")
    settings, agents = _model_of(config), _agents_of(config)
    seen = Representation(config.representation)
    model = Model(model_side(settings), seen, config.attempts) if settings else None
    return RecordingPlan(
        config.cases,
        agents,
        config.seed,
        model,
        config.attempts,
        config.payloads,
        _variants_of(config),
    )
