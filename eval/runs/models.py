"""The models of a run: the judge's own, and those of its roles and members."""

from __future__ import annotations

from dataclasses import replace

from trajudge.eval.runs.members import MEMBER, member_models
from trajudge.eval.runs.settings import ROLES, JudgeConfig
from trajudge.judges.calls.handle import ModelHandle, single_model
from trajudge.judges.calls.settings import CallConfig


def make_model_handle(config: JudgeConfig, calls: CallConfig) -> ModelHandle:
    """Make the model of ``--model`` and the options beside it. Raises UserError for what cannot
    work."""
    named = {role: getattr(config, f"{role}_model") for role in ROLES}
    others = {
        role: single_model(model, calls)
        for role, model in named.items()
        if model is not None and model != config.model
    }
    others |= {MEMBER + model: single_model(model, calls) for model in member_models(config)}
    if config.model is None:
        raise ValueError("a model handle has a model")
    return replace(single_model(config.model, calls), others=others)
