"""The options of ``trajudge serve``."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.judges.calls.options import CALL_OPTIONS, call_options
from trajudge.util.commands import OptionAdder, TextParser, amount, port, positive

_DESCRIPTION = """\
Serve a judge's rewards to trainers over HTTP. A judge that fails, is late or may not spend more
abstains; it never gives a number.

  trajudge serve --model gpt-4o --calibration-file calibration.json --max-cost 50
  trajudge serve --judge heuristic --port 0
"""
_ONLY_OF_RUNS = frozenset({"dry-run", "yes"})


def parser() -> TextParser:
    """Make the command's parser."""
    made = TextParser(prog="trajudge serve", description=_DESCRIPTION)
    _judge(made.add_argument_group("the judge"))
    _value(made.add_argument_group("the value"))
    _watch(made.add_argument_group("the watch"))
    _server(made.add_argument_group("the server"))
    calls = (name for name in CALL_OPTIONS if name not in _ONLY_OF_RUNS)
    call_options(made.add_argument_group("the calls"), *calls)
    first = "judge model base-url calibration-file decision form deadline max-cost port token-file"
    return made.show_first(*first.split())


def _judge(group: argparse._ArgumentGroup) -> None:
    add = OptionAdder(group)
    add.value("--judge", "NAME", "the judge to ask", default="simplified")
    add.value("--model", "NAME", "the model that it asks")
    add.repeated("--judge-option", "NAME=VALUE", "one of its options", default=[])
    add.choice(
        "--representation",
        ("axtree", "screenshot", "both", "none"),
        "what the judge sees of the final page (default: the judge's own)",
    )


def _value(group: argparse._ArgumentGroup) -> None:
    add = OptionAdder(group)
    add.file("--calibration-file", "what  trajudge score --calibration-out  wrote of this judge")
    add.folder("--decision", "take the threshold of this selection")
    add.switch(
        "--unqualified", "take the nearest candidate of a decision in which no judge qualified"
    )
    add.switch(
        "--assume-same-judge", "what a decision does not record of its judge is as it is here"
    )
    add.choice(
        "--form",
        ("identity", "verdict", "gate", "logit"),
        "probability of success (default), 0 or 1, 0 or 1 or none, or log-odds",
        default="identity",
    )
    add.value("--threshold", "T", "accept from this score on", type=float)
    add.value("--reject-below", "T", "of a gate: 0 below this (default: 0.5)", type=amount)
    add.value(
        "--side-effect-penalty", "SHARE", "taken off for a side effect (default: 0.5)", type=amount
    )
    add.value(
        "--repetition-penalty",
        "SHARE",
        "taken off for going round in circles (default: 0.1)",
        type=amount,
    )


def _watch(group: argparse._ArgumentGroup) -> None:
    add = OptionAdder(group)
    add.value(
        "--canaries", "KIND:PATH", "trajectories that are judged again and again, past the cache"
    )
    add.number("--canary-every", "one after N rewards (default: 100)")
    add.value(
        "--audit-share",
        "SHARE",
        "of the rewards, listed at /v1/audits (default: 0.005)",
        type=amount,
    )
    add.switch("--keep-going", "report what would stop the rewards")


def _server(group: argparse._ArgumentGroup) -> None:
    add = OptionAdder(group)
    add.value("--host", "ADDRESS", "address to listen on (default: 127.0.0.1)", default="127.0.0.1")
    add.number("--port", "0: a free one (default: 8377)", port, default=8377)
    add.file("--token-file", "file with the token that clients must send")
    add.output_folder(
        "--store",
        "pushed trajectories, their images and what was paid (default: rewards)",
        default=Path("rewards"),
    )
    add.value(
        "--deadline",
        "SECONDS",
        "a reward that takes longer abstains; its judge goes on (default: none)",
        type=positive,
    )
    add.number("--queue", "rewards at work at most (default: 1000)")
