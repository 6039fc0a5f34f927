"""``trajudge run work``: one worker of a run that several share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from trajudge.trajectories.util.exits import OK, TextParser, user_errors
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
    words = list(sys.argv[1:] if arguments is None else arguments)
    own, others = parser().parse_known_args(words)
    if own.ray:
        from trajudge.eval.shards.actors import work_on_ray  # noqa: PLC0415

        size = ["--shard-size", str(own.shard_size)] if own.shard_size else []
        shared = ["--shared", own.shared, "--claim", str(own.claim), *size]
        code = work_on_ray(work_alone, [*shared, *others], own.ray)
    else:
        code = work_alone(words)
    if code == OK:  # said here: Ray may end before it has passed on an actor's last lines
        sys.stderr.write(f"all are finished:  trajudge run merge --shared {own.shared} --out DIR\n")
    return code


@user_errors
def work_alone(words: Sequence[str]) -> int:
    """Work in this process until all shards are finished; return the exit code."""
    own, others = parser().parse_known_args(words)
    from trajudge.eval.runs.options import parse  # noqa: PLC0415 - --help needs none of these

    request = parse(others)
    from trajudge.eval.shards.working import work  # noqa: PLC0415

    return work(request, own.shared, own.shard_size, own.claim)


if __name__ == "__main__":
    sys.exit(main())
