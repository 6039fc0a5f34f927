"""The options of ``trajudge env record``, read into typed settings."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trajudge.environments.agents.script import AGENTS
from trajudge.environments.agents.settings import ModelSettings, model_settings
from trajudge.environments.recording.jobs import chosen
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import Parser

# Options of trajudge judge that say how a model is reached.
CALLS = {
    "adapter": "NAME",
    "script": "FILE",
    "base-url": "URL",
    "temperature": "T",
    "max-tokens": "N",
    "rpm": "N",
    "tpm": "N",
    "context": "N",
    "timeout": "SECONDS",
    "max-cost": "DOLLARS",
    "prices": "FILE",
    "cache": "FILE",
}


@dataclass(frozen=True)
class RecordOptions:
    """What to record and where: scripted ``agents`` and a ``model`` (which sees ``see`` of a page
    and does every case ``attempts`` times) on a file of ``cases``."""

    cases: Path
    out: Path
    agents: Sequence[str]
    seed: int
    workers: int
    model: ModelSettings | None
    see: Representation
    attempts: int


def read_options(arguments: Sequence[str] | None, description: str | None) -> RecordOptions:
    """Read the command line. Raises UserError for what cannot be recorded."""
    options = _parser(description).parse_args(arguments)
    for name, least in (("seed", 0), ("workers", 1), ("attempts", 1)):
        if getattr(options, name) < least:
            raise UserError(f"--{name} is {getattr(options, name)}: give a number from {least}")
    model = _model(options)
    return RecordOptions(
        cases=options.configs,
        out=options.out,
        agents=chosen(options.agents or ([] if model else ["all"])),
        seed=options.seed,
        workers=options.workers,
        model=model,
        see=Representation(options.see),
        attempts=options.attempts,
    )


def _model(options: argparse.Namespace) -> ModelSettings | None:
    names = [name.replace("-", "_") for name in CALLS]
    given = {name: getattr(options, name) for name in names}
    if options.model is None:
        for name, value in given.items():
            if value is not None:
                raise UserError(f"--{name.replace('_', '-')} goes with --model NAME")
        return None
    if options.model in AGENTS:
        raise UserError(f"--model {options.model}: a scripted agent is called so")
    return model_settings(options.model, seed=options.seed, **given)


def _parser(description: str | None) -> Parser:
    parser = Parser(prog="trajudge env record", description=description)
    parser.add_argument("--configs", type=Path, required=True, help="file of cases")
    parser.add_argument("--out", type=Path, default=Path("recorded"), help="folder to write into")
    parser.add_argument(
        "--agents",
        nargs="+",
        metavar="AGENT",
        help="scripted agents by name or behaviour, or all (default: all, none with --model)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the agents (default 0)")
    parser.add_argument("--workers", type=int, default=1, help="browsers side by side")
    group = parser.add_argument_group("a model as agent (the options of eval.judge)")
    group.add_argument("--model", metavar="NAME", help="e.g. gpt-4o, claude-..., provider/name")
    group.add_argument(
        "--see",
        choices=("axtree", "screenshot", "both"),
        default="axtree",
        help="what it sees of a page (default axtree)",
    )
    group.add_argument("--attempts", type=int, default=1, help="runs a case (default 1)")
    for name, metavar in CALLS.items():
        group.add_argument(f"--{name}", metavar=metavar)
    return parser
