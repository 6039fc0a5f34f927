"""Generate checked tasks: ``trajudge env generate --app shop --level 2 --count 50``.

Plans, generates and refines cases until there are as many as were asked for, offline and without a
model; with ``--model`` a model chooses among the scenarios and words their goals anew. Writes the
cases as JSON Lines (never an answer: the verifier asks the state again) and a summary beside them.
The same options give the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.progress import Progress

from trajudge.environments.stages import produce
from trajudge.environments.stages.options import read_options
from trajudge.environments.stages.planning import planned
from trajudge.environments.stages.report import remarks, summary, tables, write_report
from trajudge.trajectories.util.exits import DONE, FAILURES, user_errors
from trajudge.trajectories.util.terminal import one_line, terminal_console


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: 0 with as many cases as were asked for, 1 with fewer."""
    specification, model, out = read_options(arguments, __doc__)
    steps = planned(specification, model)
    errors = terminal_console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        line = bar.add_task("generating", total=specification.count)
        produced = produce(specification, steps, lambda done: bar.update(line, completed=done))
    counted = summary(specification, steps, produced)
    write_report(out, counted, produced)
    console = terminal_console()
    for shown in tables(counted):
        console.print(shown)
    for remark in remarks(specification, steps, produced):
        errors.print(one_line(remark), soft_wrap=True)
    if not produced.cases:
        return FAILURES
    console.print(
        f"written to {out}; record agents with\n  trajudge env record --configs {out}",
        soft_wrap=True,
    )
    return DONE if len(produced.cases) == specification.count else FAILURES


if __name__ == "__main__":
    sys.exit(main())
