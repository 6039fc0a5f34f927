"""``trajudge run work``: one worker of a run that several share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from trajudge.trajectories.util.exits import TextParser, user_errors
from trajudge.trajectories.util.options import OptionAdder, positive

_DESCRIPTION = """\
Judge with as many workers as you like, on one machine or many: start the same command on each. The
first cuts the run into shards; every worker takes one at a time. One that dies loses what was in
flight, and another goes on with its shard.

  trajudge run work --shared shared/run --model gpt-4o --data DIR --rpm 500 --max-cost 20
  trajudge run work --shared s3://bucket/run --model gpt-4o --data DIR
  trajudge run merge --shared s3://bucket/run --out runs/merged

All options of  trajudge judge  but --out, --batch, --retry-failed and --export are taken; --rpm,
--tpm and --max-cost hold for all workers together. One judge and one model a run. An object store
needs the extra shards.
"""


def parser() -> argparse.ArgumentParser:
    """Make the parser of the worker's own options."""
    made = TextParser(prog="trajudge run work", description=_DESCRIPTION)
    add = OptionAdder(made)
    add.value("--shared", "STORE", "folder or address that all workers share", required=True)
    add.number(
        "--shard-size", "trajectories of a shard (default: a hundredth of the run, at least 500)"
    )
    add.value(
        "--claim",
        "SECONDS",
        "after this time without a sign of its worker a shard is taken over (default: 60)",
        type=positive,
        default=60.0,
    )
    add.number("--ray", "start N workers as actors of Ray (extra ray)")
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Work until all shards are finished; return the exit code."""
    own, words = parser().parse_known_args(sys.argv[1:] if arguments is None else arguments)
    if own.ray:
        from trajudge.eval.shards.actors import work_on_ray  # noqa: PLC0415

        size = ["--shard-size", str(own.shard_size)] if own.shard_size else []
        shared = ["--shared", own.shared, "--claim", str(own.claim), *size]
        return work_on_ray(main, [*shared, *words], own.ray)
    from trajudge.eval.runs.options import parse  # noqa: PLC0415 - --help needs none of these

    request = parse(words)
    from trajudge.eval.shards.working import work  # noqa: PLC0415

    return work(request, own.shared, own.shard_size, own.claim)


if __name__ == "__main__":
    sys.exit(main())
