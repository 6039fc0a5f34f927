"""Solve cases in real Chromium: ``trajudge env validate --cases CASES --out DIR``.

The oracle's plan must solve every case at two viewports, with noise and without (see
``environments.recording.validation``). ``cases.jsonl`` in DIR holds those that passed,
``rejects.jsonl`` the others with the failed step, beside its tree and its screenshot;
``summary.json`` the rates, ``guessing.json`` how often the best guess is right in each scenario
(see ``environments.checks.guessing``). The same command continues a validation that was killed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.environments.options import add_cases, add_seed
from trajudge.util.commands import (
    FAILURES,
    OK,
    OptionAdder,
    Parser,
    command,
    saved_behind_output,
    workers,
)


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge env validate", description=__doc__)
    add = OptionAdder(made)
    add_cases(made)
    add.output_folder("--out", "folder to write", default=Path("validated"))
    add.switch("--thorough", "every viewport with every noise")
    add_seed(made)
    add.number("--workers", "browsers at once (default: 1)", workers, default=1)
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Validate the cases; return 0 if all passed."""
    import orjson  # noqa: PLC0415

    from trajudge.environments.model.case import read_cases, write_cases  # noqa: PLC0415
    from trajudge.environments.recording import validation_run  # noqa: PLC0415
    from trajudge.environments.saving import save_result  # noqa: PLC0415
    from trajudge.util.files import save_bytes  # noqa: PLC0415
    from trajudge.util.tables import print_tables  # noqa: PLC0415

    cases = read_cases(options.cases)
    failures = validation_run.validate_cases(
        cases, options.out, thorough=options.thorough, seed=options.seed, workers=options.workers
    )
    passed = [case for case in cases if failures[case.id] is None]
    rejects = ({"case": name, **broken} for name, broken in failures.items() if broken is not None)
    lines = b"".join(orjson.dumps(reject) + b"\n" for reject in rejects)
    rows = validation_run.summary(cases, failures)
    floors = validation_run.floors_of(cases)
    guessed = {name: floor._asdict() for name, floor in floors.items()}
    with saved_behind_output() as save:
        save(write_cases, options.out / "cases.jsonl", passed)
        save(save_bytes, options.out / "rejects.jsonl", lines)
        save(save_result, options.out / "summary.json", rows)
        save(save_result, options.out / "guessing.json", guessed)
        print_tables([validation_run.summary_table(rows), validation_run.floors_table(floors)])
    return OK if len(passed) == len(cases) else FAILURES


if __name__ == "__main__":
    sys.exit(main())
