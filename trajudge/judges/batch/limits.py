"""Limits of batch files: the dated table, and what the user says of another server."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from pydantic import ValidationError

from trajudge.judges.batch.records import BatchLimits
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError

_FLAG = "--batch-options"


class BatchTimes(Record):
    """Seconds: ``poll`` before the first look at a batch (later ones are rarer), ``grace`` until a
    submission without an answer, which the provider does not list, may be made again."""

    poll: float = 10.0
    grace: float = 900.0


def batch_limits(service: str, given: dict[str, float]) -> BatchLimits:
    """Return the limits at a service, those that are ``given`` in place of the table's.

    Raises UserError for a service that the table does not know, unless lines and bytes are given.
    """
    table = tomllib.loads(files("trajudge.judges.batch").joinpath("limits.toml").read_text())
    known = dict(table.get(service, {}))
    known |= {n: int(v) for n, v in given.items() if n in BatchLimits.model_fields}
    if not {"lines", "bytes"} <= known.keys():
        raise UserError(
            f"the limits of batch files at {service} are not known: give them with  "
            f"{_FLAG} lines=50000,bytes=200000000"
        )
    try:
        return BatchLimits(**known)
    except ValidationError:
        raise UserError(f"{_FLAG}: lines, bytes, tokens and enqueued are at least 1") from None


def batch_times(given: dict[str, float]) -> BatchTimes:
    """Return the times that are ``given``, the defaults for the others."""
    return BatchTimes(**{n: v for n, v in given.items() if n in BatchTimes.model_fields})


def read_batch_options(text: str | None) -> dict[str, float]:
    """Read ``NAME=NUMBER,...``. Raises UserError."""
    names = (*BatchLimits.model_fields, *BatchTimes.model_fields)
    given: dict[str, float] = {}
    for pair in filter(None, (text or "").split(",")):
        name, _, value = pair.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if name.strip() not in names or not 0 < number < float("inf"):
            raise UserError(
                f"{_FLAG} {pair!r}: write NAME=NUMBER with one of {', '.join(names)}, above 0"
            )
        given[name.strip()] = number
    return given
