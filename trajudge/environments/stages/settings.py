"""The settings of ``trajudge env generate``, and the specification that they ask for."""

from __future__ import annotations

from pathlib import Path

from trajudge.environments.agents.settings import ModelSettings, model_settings
from trajudge.environments.apps import APPS, DOOR, load_app
from trajudge.environments.checks.difficulty import DIMENSIONS
from trajudge.environments.model.case import Vector
from trajudge.environments.stages.model import SuiteSpecification
from trajudge.trajectories.model import Record, Seed
from trajudge.util.commands import make_settings
from trajudge.util.errors import UserError


class GenerateConfig(Record):
    """Which cases are generated, and the model that words their goals (None: the templates do).

    ``vector`` is seven grades from 1 to 3, ``N,N,...``, in the order of the difficulty dimensions.
    """

    domain: str | None = None
    app: str | None = None
    scenario: str | None = None
    level: int | None = None
    vector: str | None = None
    count: int = 20
    seed: Seed = 0
    noise: bool = False
    workers: int = 1
    save: Path = Path("cases.jsonl")
    model: str | None = None
    base_url: str | None = None
    adapter: str | None = None
    cache: str | None = None
    max_tokens: int = 4096


def model_of(config: GenerateConfig) -> ModelSettings | None:
    """Read how the model is reached; None for none. Raises UserError."""
    if config.model is None:
        return None
    calls = config.model_dump(include={"base_url", "adapter", "cache", "max_tokens"})
    return model_settings(config.model, **calls)


def specification_of(config: GenerateConfig) -> SuiteSpecification:
    """Read what is to be generated. Raises UserError."""
    apps = _apps(config.app, config.domain)
    wanted = config.model_dump(include={"scenario", "level", "count", "seed", "noise"})
    return make_settings(
        SuiteSpecification, {**wanted, "apps": apps, "vector": _vector(config.vector)}
    )


def _apps(app: str | None, domain: str | None) -> tuple[str, ...]:
    """Return the applications to choose from: all of ours, those of a domain, or one, which may be
    of an installed package. Raises UserError."""
    apps = tuple(name for name, of in APPS.items() if app in (None, name) and domain in (None, of))
    if apps:
        return apps
    if app is not None and domain is None and DOOR.knows(app):
        return (load_app(app).id,)
    known = ", ".join(f"{name} ({of})" for name, of in APPS.items())
    theirs = "".join(f", {name} (of the package {package})" for name, package in DOOR.installed())
    name, value = ("app", app) if domain is None else ("domain", domain)
    raise UserError(f"--{name} {value}: there is no such application; choose from {known}{theirs}")


def _vector(text: str | None) -> Vector | None:
    if text is None:
        return None
    grades = [int(part) if part in ("1", "2", "3") else 0 for part in text.split(",")]
    if len(grades) != len(DIMENSIONS) or 0 in grades:
        raise UserError(
            f"--vector is {text!r}: give seven numbers from 1 to 3 for {', '.join(DIMENSIONS)}, "
            "such as 3,1,2,3,2,3,1"
        )
    depth, breadth, interaction, visual, information, reasoning, risk = grades
    return (depth, breadth, interaction, visual, information, reasoning, risk)
