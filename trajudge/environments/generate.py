"""Generate checked tasks: ``trajudge env generate --app shop --level 2 --count 50``.

Plans, generates and refines cases until there are as many as were asked for, offline and without a
model; with ``--model`` a model chooses among the scenarios and words their goals anew. Writes the
cases as JSON Lines (never an answer: the verifier asks the state again) and a summary beside them,
and in ``CASES.tasks.json`` the same tasks in WebArena Verified's form, which hold the answers. The
same options give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from shlex import quote

from trajudge.environments.options import add_case_choice, add_seed, add_wording_model
from trajudge.util.commands import (
    FAILURES,
    OK,
    OptionAdder,
    Parser,
    case_count,
    command,
    read_settings,
    saved_behind_output,
    workers,
)


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge env generate", description=__doc__)
    add = OptionAdder(made)
    add_case_choice(made)
    add.number("--count", "number of cases (default: 20)", case_count, default=20)
    add_seed(made)
    add.switch("--noise", "cookie bars, promotions, latency, errors to retry")
    add.number("--workers", "processes at once (default: 1)", workers, default=1)
    add.output_file("--save", "file to write", default=Path("cases.jsonl"))
    add_wording_model(made)
    first = "domain app scenario level count seed noise workers save model"
    return made.show_first(*first.split())


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Generate cases; return 0 with as many as were asked for, 1 with fewer."""
    from trajudge.environments.stages import produce, report  # noqa: PLC0415 - --help needs none of these
    from trajudge.environments.stages.planning import planned  # noqa: PLC0415
    from trajudge.environments.stages.settings import GenerateConfig, model_of, specification_of  # noqa: PLC0415
    from trajudge.util.tables import print_tables  # noqa: PLC0415
    from trajudge.util.terminal import (  # noqa: PLC0415
        one_line,
        progress_bar,
        terminal_console,
    )

    config = read_settings(GenerateConfig, options)
    specification, out = specification_of(config), config.save
    report.check_place(out)
    steps = planned(specification, model_of(config))
    errors = terminal_console(stderr=True)
    with progress_bar() as show:

        def progress(cases: int, tried: int) -> None:
            show(f"generating ({tried:,} tried)", cases, specification.count)

        produced = produce(specification, steps, progress, workers=config.workers)
    counted = report.summary(specification, steps, produced)
    console = terminal_console()
    with saved_behind_output() as save:
        save(report.write_report, out, counted, produced)
        print_tables(report.tables(counted))
        for remark in report.remarks(specification, steps, produced):
            errors.print(one_line(remark), soft_wrap=True)
    if not produced.cases:
        return FAILURES
    solve = f"trajudge env validate --cases {quote(str(out))}"
    console.print(f"written to {out}; solve them in Chromium with\n  {solve}", soft_wrap=True)
    return OK if len(produced.cases) == specification.count else FAILURES


if __name__ == "__main__":
    sys.exit(main())
