"""``trajudge serve``: a judge's rewards for trainers, over HTTP."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.rewards.options import parser
from trajudge.trajectories.util.exits import OK, command
from trajudge.trajectories.util.options import make_settings, read_settings

if TYPE_CHECKING:
    from pydantic import SecretStr

    from trajudge.rewards.settings import RewardConfig


@command(parser)
def main(options: Namespace) -> int:
    """Serve until it is interrupted."""
    import asyncio  # noqa: PLC0415 - --help needs none of these

    from trajudge.rewards.server.serving import serve  # noqa: PLC0415
    from trajudge.rewards.server.settings import ServerConfig  # noqa: PLC0415

    values = {
        "reward": _reward(options),
        "folder": options.store,
        "token": _token(options.token_file),
        **{name: getattr(options, name) for name in ("host", "port")},
        **({} if options.queue is None else {"queue": options.queue}),
    }
    asyncio.run(serve(make_settings(ServerConfig, values)))
    return OK


def _reward(options: Namespace) -> RewardConfig:
    from trajudge.eval.runs.settings import JudgeConfig  # noqa: PLC0415
    from trajudge.judges.calls.settings import CallConfig  # noqa: PLC0415
    from trajudge.judges.options import named_options  # noqa: PLC0415
    from trajudge.rewards.settings import RewardConfig  # noqa: PLC0415
    from trajudge.rewards.shaping import RewardShaping  # noqa: PLC0415

    shaping = {
        "form": options.form,
        "threshold": options.threshold,
        "reject_below": options.reject_below,
        "side_effect": options.side_effect_penalty,
        "repetition": options.repetition_penalty,
    }
    given = {name: value for name, value in shaping.items() if value is not None}
    return RewardConfig(
        judge=JudgeConfig(
            judge=options.judge,
            model=options.model,
            representation=options.representation,
            options=named_options("--judge-option", options.judge_option),
        ),
        calls=read_settings(CallConfig, options),
        shaping=make_settings(RewardShaping, given),
        calibration=options.calibration_file,
        decision=options.decision,
        unqualified=options.unqualified,
        assume_same_judge=options.assume_same_judge,
        deadline=options.deadline,
    )


def _token(file: Path | None) -> SecretStr | None:
    if file is None:
        return None
    from pydantic import SecretStr  # noqa: PLC0415

    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--token-file {file}: cannot be read ({error})") from error
    if len(text) < 16:
        raise UserError(f"--token-file {file}: its token has fewer than 16 characters")
    return SecretStr(text)


if __name__ == "__main__":
    sys.exit(main())
