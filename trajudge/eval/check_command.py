"""``trajudge run check RUN``: may this run be compared? The exit code says it: 0 yes, 1 no."""

from __future__ import annotations

import argparse
import sys

from trajudge.util.commands import FAILURES, OK, OptionAdder, TextParser, command

_DESCRIPTION = """\
Say whether runs may be compared with others: every judgment is there, once, from one judge with one
configuration; its prompts are those of its card; its labels are those of the annotations; and what
else weakens its figures. No model is asked and no trajectory is read.

  trajudge run check runs/simplified-axtree_gpt-4o-1a2b3c4d

Exit code: 0 the runs may be compared, 1 one may not (an error was found), 2 bad input.
"""


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command's options."""
    made = TextParser(prog="trajudge run check", description=_DESCRIPTION)
    add = OptionAdder(made)
    add.runs()
    add.value(
        "--annotations",
        "KIND:PATH",
        "compare the labels with these (default: those that the run names, if they are available)",
    )
    add.switch("--json", "print JSON instead of sentences")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Check the runs, print what was found and return the exit code."""
    if not options.runs:
        from trajudge.util.errors import UserError  # noqa: PLC0415

        raise UserError("nothing to check: give the folder of a run")
    from trajudge.eval.check_run import check_run, check_screen  # noqa: PLC0415

    checks = [check_run(run, annotations=options.annotations) for run in options.runs]
    if options.json:
        import msgspec  # noqa: PLC0415

        listed = [
            {"comparable": check.comparable, **check.model_dump(mode="json")} for check in checks
        ]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(listed)).decode() + "\n")
    else:
        sys.stdout.write(check_screen(checks))
    return OK if all(check.comparable for check in checks) else FAILURES


if __name__ == "__main__":
    sys.exit(main())
