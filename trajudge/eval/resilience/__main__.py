"""Compare runs with and without faults: ``trajudge proxy results RECORDED``.

Reads what ``trajudge env record --faults`` wrote, or folders of ``trajudge proxy run`` of any agent
(``--clean DIR --faulted DIR --outcomes FILE``). Shows by fault the success retained, exposure,
recovery and McNemar's test, and what recovering took in steps, tokens, dollars and seconds; with
``--judge`` and ``--judged`` how precise judges are on the faulted runs. Writes results.json and CSV
tables.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.util.commands import OK, OptionAdder, Parser, command, read_settings


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge proxy results", description=__doc__)
    add = OptionAdder(made)
    add.value("recordings", "RECORDED", "of env record --faults", nargs="*", type=Path)
    add.folder("--clean", "proxy runs without faults")
    add.folder("--faulted", "proxy runs with faults, by plan", nargs="+")
    add.file(
        "--outcomes",
        "CSV or JSON Lines with task, arm (clean, or a faulted folder's name) and success",
    )
    add.repeated("--judge", "NAME", "a judge that needs no model; repeatable")
    add(
        "--judged",
        type=Path,
        nargs="+",
        action="extend",
        metavar="RUN",
        help="run folders of  trajudge judge  on the arms, any judge; one for each arm",
    )
    add.repeated("--judge-option", "NAME=VALUE", "of the judges that take it")
    add.value("--prices", "FILE", "prices of models that the table does not know")
    add.output_folder("--out", "folder to write", default=Path("resilience"))
    add.switch("--full", "print all tables, not one screen")
    add.output_folder("--plots", "write plots, PNG and SVG")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Compare, show and write."""
    from trajudge.eval.resilience.reading import read_experiment  # noqa: PLC0415 - not for --help
    from trajudge.eval.resilience.results import results_of, write_results  # noqa: PLC0415
    from trajudge.eval.resilience.settings import ResilienceConfig  # noqa: PLC0415
    from trajudge.eval.resilience.tables import all_tables, screen  # noqa: PLC0415
    from trajudge.judges.options import named_options  # noqa: PLC0415
    from trajudge.util.tables import folded, print_tables, screen_width  # noqa: PLC0415

    config = read_settings(ResilienceConfig, options)
    given = named_options("--judge-option", config.judge_option)
    results = results_of(read_experiment(config), config.judge, given, config.judged)
    if config.full:
        print_tables(all_tables(results))
        notes = [line for note in results.notes for line in folded(note, screen_width())]
        sys.stdout.writelines(f"{line}\n" for line in ["", *notes] if notes)
    else:
        place = f"{config.out}/results.json"
        rest = f"agent by agent, costs and latency: --full; everything is in {place}"
        sys.stdout.write(screen(results, rest=rest))
    write_results(results, config.out)
    if config.plots:
        from trajudge.eval.resilience.results import plot_retention  # noqa: PLC0415

        plot_retention(results.measures, config.plots)
    return OK


if __name__ == "__main__":
    sys.exit(main())
