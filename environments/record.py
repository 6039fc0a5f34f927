"""Record agents in the environments: ``trajudge env record --configs CASES --out DIR``.

Every agent does every case (``trajudge env generate`` makes them) in real Chromium:
scripted agents with known behaviour, or with ``--model`` any model. What is written:
``trajectories.jsonl.gz`` with ``images/`` (``--data trajudge:DIR``), ``labels.jsonl`` (annotations
that follow from the final state), ``facts.jsonl`` (what they rest on), ``traces/`` (HAR files). A
recording that was killed goes on where it was, and asks a model nothing twice; runs that failed
are told (exit code 1) and tried again by the same command. The same seed gives the same text;
pictures may differ between versions of Chromium.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from trajudge.environments.agents.protocol import Halted
from trajudge.environments.agents.settings import model_side
from trajudge.environments.recording.campaign import Model, Plan, record, table
from trajudge.environments.recording.options import read_options
from trajudge.environments.recording.recorder import run_name
from trajudge.trajectories.util.exits import DONE, FAILURES, user_errors
from trajudge.trajectories.util.terminal import one_line, terminal_console


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = read_options(arguments, __doc__)
    model = None
    if options.model is not None:
        model = Model(model_side(options.model), options.see, options.attempts)
    try:
        plan = Plan(options.cases, options.agents, options.seed, model)
        counts, failed = record(plan, options.out, options.workers)
    except Halted as halted:
        sys.stderr.write(f"stopped: {one_line(str(halted))}; the same command goes on\n")
        return FAILURES
    console = terminal_console()
    console.print(table(counts))
    if failed:
        for job, reason in failed:
            sys.stderr.write(f"failed: {one_line(f'{run_name(job)}: {reason}')}\n")
        sys.stderr.write(f"{len(failed)} runs failed: the same command tries them again\n")
        return FAILURES
    console.print(f"judge them with  trajudge judge --data trajudge:{options.out}")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
