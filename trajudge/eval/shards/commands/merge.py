"""``trajudge run merge``: an ordinary run of what several workers judged."""

from __future__ import annotations

import argparse
import sys

from trajudge.trajectories.util.exits import OK, TextParser, command
from trajudge.trajectories.util.options import OptionAdder
from trajudge.trajectories.util.terminal import count_of

_DESCRIPTION = """\
Make an ordinary run folder of what  trajudge run work  judged: judgments.jsonl has the bytes of a
run on one machine, and every command reads it.

  trajudge run merge --shared s3://bucket/run --out runs/merged
"""


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = TextParser(prog="trajudge run merge", description=_DESCRIPTION)
    add = OptionAdder(made)
    add.value("--shared", "STORE", "what the workers were given", required=True)
    add.output_folder("--out", "folder to write", required=True)
    add.switch("--full", "show all tables and notes instead of one screen")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Merge, score and print."""
    from trajudge.eval.runs.outputs import show  # noqa: PLC0415 - --help needs none of these
    from trajudge.eval.shards.merge import merge, score_merged  # noqa: PLC0415
    from trajudge.eval.shards.objects.opening import open_store  # noqa: PLC0415
    from trajudge.eval.shards.plan import read_plan  # noqa: PLC0415

    store = open_store(options.shared)
    plan = read_plan(store)
    made = merge(store, plan, options.out)
    scores = score_merged(plan, options.out)
    notes = [
        f"{count_of(made.judgments, 'judgment')} of {count_of(made.shards, 'shard')}; "
        f"{count_of(made.taken_over, 'shard')} changed hands, "
        f"{count_of(made.asked_again, 'reply')} paid for again",
        f"the run is in {options.out}",
    ]
    show(scores, None, (), notes, full=options.full)
    return OK


if __name__ == "__main__":
    sys.exit(main())
