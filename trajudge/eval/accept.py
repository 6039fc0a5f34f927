"""``trajudge accept``: keep the trajectories that a judge accepts, for fine-tuning."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

from trajudge.eval.acceptance.options import accept_parser
from trajudge.util.commands import FAILURES, OK, read_settings, user_errors

if TYPE_CHECKING:
    from trajudge.eval.acceptance.settings import AcceptConfig


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Apply the choice and write; return the exit code (1: nothing was accepted)."""
    options, rest = accept_parser().parse_known_args(arguments)
    from trajudge.eval.acceptance.accepting import accept  # noqa: PLC0415 - --help needs none of these
    from trajudge.eval.acceptance.screen import acceptance_screen  # noqa: PLC0415
    from trajudge.eval.acceptance.settings import AcceptConfig  # noqa: PLC0415
    from trajudge.eval.acceptance.training.settings import training_settings  # noqa: PLC0415
    from trajudge.util.errors import UserError  # noqa: PLC0415

    training = training_settings(vars(options))
    config = read_settings(AcceptConfig, options, training=training)
    if config.judge and config.data and not (config.run or config.judgments):
        judged = _judged_now(config, rest)
        if judged is None:
            return OK
        config = judged
    elif rest:
        raise UserError(f"no option {rest[0]!r}: see  trajudge accept --help")
    made = accept(config)
    sys.stdout.write(acceptance_screen(config, made))
    return OK if made.counts.get("accepted") else FAILURES


def _judged_now(config: AcceptConfig, rest: Sequence[str]) -> AcceptConfig | None:
    """Ask the judge and keep its run below ``--out``; the screen with its scores is left to
    ``trajudge score``, unless ``--full`` asks for it. None after a dry run. Raises UserError."""
    from trajudge.eval import judge  # noqa: PLC0415 - only a run of the judge needs these
    from trajudge.eval.acceptance.accepting import choose  # noqa: PLC0415
    from trajudge.eval.store.run_folder import read_judgments  # noqa: PLC0415
    from trajudge.util.errors import UserError  # noqa: PLC0415

    choose(config)  # a mistake in it costs no call
    run = config.out / "run"
    split = [] if "--split" in rest else ["--split", "all"]
    wanted = ["--judge", config.judge, "--data", config.data, "--out", str(run), *split, *rest]
    shown = sys.stdout if {"--dry-run", "--full"} & set(rest) else StringIO()
    with redirect_stdout(shown):
        code = judge.main([word for word in wanted if word is not None])
    if code == OK and "--dry-run" in rest:
        return None
    if code not in (OK, FAILURES):
        raise UserError(f"{config.judge} could not be asked (exit code {code}): nothing written")
    asked = sorted({judgment.judge for judgment in read_judgments(run)})
    if len(asked) > 1:
        raise UserError(f"one judge is applied at a time, not {', '.join(asked)}: name one --model")
    return config.model_copy(update={"run": (run,), "judge": asked[0] if asked else config.judge})


if __name__ == "__main__":
    sys.exit(main())
