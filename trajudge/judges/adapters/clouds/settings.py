"""Settings of the clouds, from the variables that their SDKs read."""

from __future__ import annotations

import os

from trajudge.trajectories.util.errors import UserError


def setting(*variables: str) -> str:
    """Return the first of the environment's ``variables`` that is set, "" if none is."""
    return next(filter(None, (os.environ.get(name, "").strip() for name in variables)), "")


def required(value: str, model: str, *, missing: str, fix: str) -> str:
    """Return ``value``. Raises UserError if it is empty, saying what is ``missing`` to ask
    ``model``, and the ``fix``."""
    if not value:
        raise UserError(f"{missing} is not set, and {model!r} cannot be asked without it: {fix}")
    return value
