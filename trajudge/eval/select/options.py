"""The options of ``trajudge select``."""

from __future__ import annotations

import argparse

from trajudge.util.commands import OptionAdder, TextParser, whole

_DESCRIPTION = """\
Choose the judge, and the threshold on its score, that filters trajectories for fine-tuning: those
candidates that meet a target with the confidence asked for, after correcting for how many were
tried. The candidates are frozen in a file before a label is read.

  trajudge select runs/a runs/b --target-precision 0.8 --rollout-price 0.05
  trajudge select runs/a runs/b --target-precision 0.8 --freeze --out plan
  trajudge select runs/a runs/b --candidates plan/candidates.json
"""
_EPILOG = "exit codes: 0 a judge qualifies, 1 none does, 2 a mistake in the call or its files"


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = TextParser(
        prog="trajudge select",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    add = OptionAdder(made)
    add.runs()
    add.folder("--judgments", "in AgentRewardBench's published layout")
    add.labels("expert labels (default: those of the data)")
    add.task_id()
    add.output_folder("--out", "default: selections/, named by the plan")
    add.switch("--freeze", "only write the plan; no label is read")
    add.file("--candidates", "a frozen plan, instead of what follows")
    add.repeated("--robustness", "FILE", "robustness.json of  trajudge robust, for --threat")
    add.output_file("--plot", "precision against yield, .png, .svg or .pdf")
    add.switch("--full", "print decision.txt instead of one screen")
    add.switch("--json", "print decision.json instead of the text")
    _plan_options(made.add_argument_group("the plan"))
    _candidate_options(made.add_argument_group("the plan's candidates and prices"))
    first = "confidence judgments annotations judge out freeze candidates full"
    return made.show_first("target-precision", "max-false-positives", *first.split())


def _plan_options(group: argparse._ArgumentGroup) -> None:
    add = OptionAdder(group)
    target = group.add_mutually_exclusive_group()
    target.add_argument(
        "--target-precision",
        type=float,
        metavar="RATE",
        help="at least this share of the accepted trajectories succeeded",
    )
    target.add_argument(
        "--max-false-positives",
        type=float,
        metavar="RATE",
        help="at most this share of the failed trajectories is accepted",
    )
    add("--confidence", type=float, metavar="LEVEL", help="default: 0.95")
    add.choice("--correction", ("fixed-sequence", "max-t"), "default: fixed-sequence")
    add.switch("--every-benchmark", "the target has to be met on every benchmark, not only overall")
    add.choice(
        "--threat",
        ("agent", "page", "both"),
        "the target holds under attacks by the agent, the page or both too (with --robustness)",
    )
    add.choice("--split", ("dev", "test", "all"), "of the annotations (default: all)")
    add("--seed", type=whole, metavar="N", help="seed of the resampling (default: 0)")
    add(
        "--margin",
        type=float,
        metavar="M",
        help="transfer the choice to another benchmark only where no two benchmarks differ by more "
        "than this in their true- and false-positive rates (default: 0.1)",
    )


def _candidate_options(group: argparse._ArgumentGroup) -> None:
    add = OptionAdder(group)
    add.repeated("--judge", "NAME", "only this judge; may be repeated")
    add.switch(
        "--ensembles-only",
        "only the panels and cascades: one score named beforehand is tested more sharply",
    )
    add.repeated("--panel", "A,B,…", "the mean of several judges")
    add.repeated("--cascade", "A,B,…", "B is asked where A accepts")
    add.repeated(
        "--thresholds",
        "JUDGE=T,T,…",
        "thresholds on a score (default: 12 at most, spread over the scores from 0.5)",
    )
    add("--rollout-price", type=float, metavar="DOLLARS", help="of one trajectory")
    add("--training-price", type=float, metavar="DOLLARS", help="of one accepted trajectory")
    add.repeated(
        "--judgment-price", "[JUDGE=]DOLLARS", "of one trajectory (default: what the runs paid)"
    )
