"""The options of ``trajudge env generate``, read into what the stages take."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trajudge.environments.agents.settings import ModelSettings, model_settings
from trajudge.environments.apps import APPS
from trajudge.environments.checks.difficulty import DIMENSIONS
from trajudge.environments.model.case import Vector
from trajudge.environments.model.options import checked
from trajudge.environments.stages.model import Specification
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import Parser


class GenerateOptions(NamedTuple):
    """What to generate, the model that words goals (None: the templates do), the file."""

    specification: Specification
    model: ModelSettings | None
    out: Path


def read_options(arguments: Sequence[str] | None, description: str | None) -> GenerateOptions:
    """Read the command line. Raises UserError for what cannot be asked for."""
    options = parser(description).parse_args(arguments)
    model = None
    if options.model is not None:
        names = ("base_url", "adapter", "cache", "max_tokens")
        model = model_settings(options.model, **{name: getattr(options, name) for name in names})
    return GenerateOptions(specified(options), model, options.out)


def specified(options: argparse.Namespace) -> Specification:
    """Read what the options ask for. Raises UserError."""
    apps = tuple(
        name
        for name, domain in APPS.items()
        if options.app in (None, name) and options.domain in (None, domain)
    )
    if not apps:
        known = ", ".join(f"{name} ({domain})" for name, domain in APPS.items())
        asked = f"--app {options.app}" if options.app else f"--domain {options.domain}"
        raise UserError(f"{asked}: there is no such application; choose from {known}")
    return checked(
        Specification,
        apps=apps,
        scenario=options.scenario,
        level=options.level,
        vector=_vector(options.vector),
        count=options.count,
        seed=options.seed,
        noise=options.noise,
    )


def _vector(text: str | None) -> Vector | None:
    if text is None:
        return None
    grades = [int(part) if part in ("1", "2", "3") else 0 for part in text.split(",")]
    if len(grades) != len(DIMENSIONS) or 0 in grades:
        raise UserError(
            f"--vector is {text!r}: give seven numbers from 1 to 3 for {', '.join(DIMENSIONS)}, "
            "such as 3,1,2,3,2,3,2"
        )
    depth, breadth, interaction, visual, information, reasoning, risk = grades
    return (depth, breadth, interaction, visual, information, reasoning, risk)


def parser(description: str | None) -> Parser:
    """Make the command's parser."""
    made = Parser(prog="trajudge env generate", description=description, allow_abbrev=False)
    add = made.add_argument
    where = made.add_mutually_exclusive_group()
    where.add_argument("--domain", metavar="D", help=f"one of {', '.join(APPS.values())}")
    where.add_argument("--app", metavar="A", help=f"one of {', '.join(APPS)}")
    add("--scenario", metavar="S", help="only this scenario")
    which = made.add_mutually_exclusive_group()
    which.add_argument("--level", type=int, choices=(1, 2, 3), help="only cases of this level")
    which.add_argument("--vector", metavar="N,N,...", help="only cases with exactly these grades")
    add("--count", type=int, default=20, metavar="N", help="how many cases (default 20)")
    add("--seed", type=int, default=0, metavar="N", help="of everything that is drawn (default 0)")
    add("--noise", action="store_true", help="cookie bars, promotions, latency, errors to retry")
    add("--out", type=Path, default=Path("cases.jsonl"), metavar="FILE")
    model = made.add_argument_group("a model that words goals (optional)").add_argument
    model("--model", metavar="NAME")
    model("--base-url", metavar="URL", help="a server that speaks the adapter's protocol")
    model("--adapter", choices=("openai", "anthropic", "litellm", "http"))
    model("--cache", metavar="FILE", help="where replies are kept (default: ~/.cache/trajudge)")
    model("--max-tokens", type=int, default=4096, metavar="N", help="of a reply (default 4096)")
    return made
