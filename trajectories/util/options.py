"""From a parsed command line to a command's settings."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Callable
from typing import TypeVar

SettingsT = TypeVar("SettingsT")


def read_settings(
    settings: Callable[..., SettingsT], options: Namespace, **others: object
) -> SettingsT:
    """Build a record of settings from the options that are named as its fields.

    An option that was left open (None) keeps the field's default; ``others`` are fields that are
    no options. Raises UserError naming an option whose value its field refuses.
    """
    given = vars(options) | others
    names = inspect.signature(settings).parameters
    try:
        return settings(**{name: given[name] for name in names if given.get(name) is not None})
    except ValueError as error:
        from pydantic import ValidationError  # noqa: PLC0415 - --help needs none of it

        from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

        if not isinstance(error, ValidationError):
            raise
        first = error.errors(include_url=False)[0]
        option = (
            "--" + str(first["loc"][0]).replace("_", "-") if first["loc"] else settings.__name__
        )
        raise UserError(f"{option} {first['input']}: {first['msg'].lower()}") from error
