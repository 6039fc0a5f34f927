"""The options that say how a model is called, for commands with a parser of their own."""

from __future__ import annotations

from typing import Any

from trajudge.judges.calls.settings import CallConfig
from trajudge.util.settings import add_option, options_of

CALL_OPTIONS = {one.name.replace("_", "-"): one for one in options_of(CallConfig)}


def call_options(group: Any, *names: str) -> None:
    """Add the options that say how a model is called: those of ``names``, by default all."""
    for name in names or CALL_OPTIONS:
        one = CALL_OPTIONS[name]
        add_option(group, one, default=False if one.is_switch else None)
