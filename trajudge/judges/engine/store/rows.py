"""Answers as rows of the cache: encoded and decoded."""

from __future__ import annotations

import sqlite3
import time
from typing import Protocol

import orjson

from trajudge.judges.adapters.errors import ContextOverflow, Refused
from trajudge.judges.engine.store.reply_log import ReplyRow
from trajudge.judges.model import Reply
from trajudge.trajectories.model import defaults_of

Outcome = Reply | Refused | ContextOverflow
"""What is worth keeping: asking again would cost the same money or fail the same way."""


class RequestKey(Protocol):
    """What identifies a request, and who was asked: all that is kept of it."""

    @property
    def hash(self) -> str: ...

    @property
    def endpoint(self) -> str: ...

    @property
    def model(self) -> str: ...


def row_of(request: RequestKey, outcome: Outcome) -> ReplyRow:
    """Encode an answer that came now."""
    match outcome:
        case Reply():
            kind, body = "reply", _reply_body(outcome)
        case Refused():
            kind, body = "refused", str(outcome)
        case ContextOverflow():
            kind, body = "context_overflow", str(outcome)
    key = bytes.fromhex(request.hash)
    return (key, kind, body, request.endpoint, request.model, time.time())


_DEFAULTS = defaults_of(Reply)


def _reply_body(reply: Reply) -> str:
    """Encode a reply as JSON, without what has its default: what pydantic writes, in a fraction of
    the time."""
    usage = reply.usage and {name: count for name, count in vars(reply.usage).items() if count}
    fields = vars(reply) | {"usage": usage}
    try:
        told = {name: value for name, value in fields.items() if value != _DEFAULTS[name]}
        return orjson.dumps(told).decode()
    except orjson.JSONEncodeError:
        return reply.model_dump_json(exclude_defaults=True)


def outcome_of(kind: str, body: str) -> Outcome:
    """Decode an answer. Raises sqlite3.DatabaseError, pydantic's ValidationError."""
    match kind:
        case "reply":
            return Reply.model_validate_json(body)
        case "refused":
            return Refused(body)
        case "context_overflow":
            return ContextOverflow(body)
        case _:
            raise sqlite3.DatabaseError(f"unknown outcome {kind!r}")
