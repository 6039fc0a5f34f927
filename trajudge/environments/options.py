"""The options of the commands on environments: those they share, and whole groups."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.judges.calls.options import CALL_OPTIONS, call_options
from trajudge.util.commands import OptionAdder, attempt_count, whole

# Spellings of the version before.
# Call options that an agent does not take, or that hold for the whole recording.
_NOT_OF_AGENTS = {"seed", "concurrency", "dry-run", "yes"}


def add_cases(parser: argparse.ArgumentParser) -> None:
    """Add ``--cases``."""
    OptionAdder(parser).file("--cases", "the generated cases", required=True)


def add_save(parser: argparse.ArgumentParser, name: str) -> None:
    """Add ``--save``: the file to write, by default ``name``."""
    OptionAdder(parser).output_file("--save", "file to write", default=Path(name))


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add ``--seed``."""
    add = OptionAdder(parser)
    add.number("--seed", "seed of what is drawn (default: 0)", whole, default=0)


def add_conditions(parser: argparse.ArgumentParser) -> None:
    """Add what a recording meets beside its task: faults, and payloads in the pages."""
    add = OptionAdder(parser)
    add.file(
        "--faults",
        "record a clean arm and one for each fault of this plan, by default with the agents "
        "that recover (resilient)",
    )
    add.switch("--text-only", "with --faults: no pictures")
    add.file(
        "--payloads",
        "YAML of instructions to a judge (goals: {NAME: [TEXT]}) that stand in what the "
        "applications' users wrote, one a run",
    )
    add(
        "--variants",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="record the scripted runs once more with one thing changed, for trajudge robust: all, "
        "or theme, undo, page-visited-native, own-note-native, and with --payloads page-native; "
        "the last two also with -benign",
    )


def add_case_choice(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which cases are generated."""
    from trajudge.environments.apps import APPS  # noqa: PLC0415 - read when help is shown

    where = parser.add_mutually_exclusive_group()
    domains = ", ".join(dict.fromkeys(APPS.values()))
    where.add_argument("--domain", metavar="D", help=f"one of {domains}")
    where.add_argument(
        "--app", metavar="A", help=f"one of {', '.join(APPS)}, or of an installed package"
    )
    parser.add_argument("--scenario", metavar="S", help="only this scenario")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--level", type=int, choices=(1, 2, 3), help="only cases of this level")
    which.add_argument("--vector", metavar="N,N,...", help="only cases with exactly these grades")


def add_wording_model(parser: argparse.ArgumentParser) -> None:
    """Add the model that words goals, and how it is called."""
    group = parser.add_argument_group("a model that words goals (optional)")
    group.add_argument("--model", metavar="NAME", help="e.g. gpt-4o, claude-..., provider/name")
    call_options(group, "base-url", "adapter", "cache")
    OptionAdder(group).number("--max-tokens", "tokens per reply", default=4096)


def add_model_agent(parser: argparse.ArgumentParser) -> None:
    """Add the model that acts as an agent, what it sees, and how it is called."""
    group = parser.add_argument_group("a model as agent")
    add = OptionAdder(group)
    add.value("--model", "NAME", "e.g. gpt-4o, claude-..., provider/name")
    add.choice(
        "--representation",
        ("axtree", "screenshot", "both"),
        "what the model sees of a page (default: axtree)",
        default="axtree",
    )
    add.number("--attempts", "runs per case (default: 1)", attempt_count, default=1)
    call_options(group, *(name for name in CALL_OPTIONS if name not in _NOT_OF_AGENTS))
