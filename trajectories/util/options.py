"""From a command line to a command's settings: argument types, and the one reader of options."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

SettingsT = TypeVar("SettingsT")


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    with suppress(ValueError):
        if (value := int(text)) >= 1:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")


def whole(text: str) -> int:
    """Read a whole number of at least 0."""
    with suppress(ValueError):
        if (value := int(text)) >= 0:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")


def amount(text: str) -> float:
    """Read a finite number of at least 0."""
    with suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")


def positive(text: str) -> float:
    """Read a finite number above 0."""
    with suppress(ValueError):
        if 0 < (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")


def read_settings(
    settings: Callable[..., SettingsT], options: argparse.Namespace, /, **others: object
) -> SettingsT:
    """Build a record of settings from the options that are named as its fields.

    ``others`` are fields that are no options. Raises UserError as ``make_settings`` does.
    """
    return make_settings(settings, vars(options) | others)


def make_settings(settings: Callable[..., SettingsT], values: Mapping[str, object]) -> SettingsT:
    """Build a record of settings from the values of its fields; None keeps a field's default.

    Raises UserError naming the first option whose value its field refuses.
    """
    names = inspect.signature(settings).parameters
    given = {name: values[name] for name in names if values.get(name) is not None}
    try:
        return settings(**given)
    except ValueError as error:
        from pydantic import ValidationError  # noqa: PLC0415 - --help needs none of it

        from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

        if not isinstance(error, ValidationError):
            raise
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]).replace("_", "-") if first["loc"] else "options"
        raise UserError(f"--{name} is {first['input']!r}: {first['msg'].lower()}") from None
