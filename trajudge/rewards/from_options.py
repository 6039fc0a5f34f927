"""Settings from the options of ``trajudge serve``."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from pydantic import SecretStr

from trajudge.eval.runs.plan import without_effect
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.options import named_options
from trajudge.rewards.settings import RewardConfig
from trajudge.rewards.shaping import ALLOWING, RewardShaping
from trajudge.rewards.watch.settings import WatchConfig
from trajudge.util.commands import make_settings, read_settings
from trajudge.util.errors import UserError
from trajudge.util.files import read_text

WATCHED = "watch.jsonl"
# A field of RewardShaping, and the option that sets it.
_SHAPING = {
    "threshold": "threshold",
    "reject_below": "reject_below",
    "side_effect": "side_effect_penalty",
    "repetition": "repetition_penalty",
}


def reward_config(options: Namespace) -> RewardConfig:
    """Make the settings of rewards from the options of ``trajudge serve``. Raises UserError."""
    watch = {
        "canaries": options.canaries,
        "every": options.canary_every,
        "audit_share": options.audit_share,
        "keep_going": options.keep_going,
        "journal": options.store / WATCHED,
    }
    judge = JudgeConfig(
        judge=options.judge,
        model=options.model,
        representation=options.representation,
        options=named_options("--judge-option", options.judge_option),
    )
    calls = read_settings(CallConfig, options)
    models = () if judge.model is None else (judge.model,)
    for line in without_effect((judge.judge,), models, judge, calls):
        sys.stderr.write(f"warning: {line}\n")
    return RewardConfig(
        judge=judge,
        calls=calls,
        shaping=_shaping(options),
        calibration=options.calibration_file,
        decision=options.decision,
        unqualified=options.unqualified,
        assume_same_judge=options.assume_same_judge,
        deadline=options.deadline,
        watch=make_settings(WatchConfig, watch),
    )


def _shaping(options: Namespace) -> RewardShaping:
    """Make the settings of the value. Raises UserError in the words of the options."""
    values = {name: getattr(options, dest) for name, dest in _SHAPING.items()}
    try:
        return make_settings(RewardShaping, {"form": options.form, **values})
    except UserError as error:
        said = str(error).removesuffix(ALLOWING)  # which no option does
        for name, dest in _SHAPING.items():
            said = said.replace(f"{name}=", f"--{dest.replace('_', '-')} ")
        raise UserError(said) from None


def read_token(file: Path | None) -> SecretStr | None:
    """Read the token of ``--token-file``. Raises UserError for one that is short."""
    if file is None:
        return None
    try:
        text = read_text(file).strip()
    except OSError as error:
        raise UserError(f"--token-file {file}: cannot be read ({error.strerror})") from error
    if len(text) < 16:
        raise UserError(f"--token-file {file}: its token has fewer than 16 characters")
    return SecretStr(text)
