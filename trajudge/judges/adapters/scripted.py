"""Scripted replies from a file or a function, for tests and dry runs."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import orjson
from pydantic import Field, ValidationError

from trajudge.judges.adapters import errors
from trajudge.judges.adapters.base import AdapterResponse
from trajudge.judges.adapters.wire import Finish
from trajudge.judges.model import Reply, Request, Text, Usage
from trajudge.trajectories.model import Record, checked, defaults_of
from trajudge.util.errors import UserError
from trajudge.util.files import read_utf8


class ScriptedReply(Record):
    """One line of a script: a reply, or the name of an error of ``judges.adapters.errors``.

    It answers requests whose prompt contains ``match`` (empty: every request).
    """

    text: str = ""
    match: str = ""
    finish: Finish = "stop"
    error: str = Field(default="", pattern="^$|^[A-Z][A-Za-z]+$")


class ScriptedAdapter:
    """Answers with ``reply_to(request)``, which may raise any CallFailed."""

    name = "scripted"

    def __init__(
        self, reply_to: Callable[[Request], str | Reply], *, endpoint: str = "scripted"
    ) -> None:
        self._reply_to = reply_to
        self.endpoint = endpoint

    async def send(self, request: Request) -> AdapterResponse:
        reply = self._reply_to(request)
        if isinstance(reply, str):
            usage = Usage(input=_tokens(prompt_of(request)), output=_tokens(reply))
            reply = Reply(text=reply, usage=usage)
        if reply.parameters is not request.parameters:
            update = {"model": request.model, "parameters": request.parameters}
            reply = reply.model_copy(update=update)
        return AdapterResponse(reply)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def from_file(path: str | None) -> ScriptedAdapter:
    """Make an adapter that answers from a JSON Lines file: the first line that matches the prompt.

    It does not depend on the order in which requests arrive, so a resumed run gets the same
    replies. Its endpoint, and with it the cache of replies, goes by what the lines say. Raises
    UserError for a file that cannot be read, naming the line.
    """
    if path is None:
        raise UserError("--adapter scripted needs a file of replies: add --script FILE.jsonl")
    lines = read_script(Path(path))
    digest = sha256(b"\n".join(line.model_dump_json().encode() for line in lines)).hexdigest()

    def reply_to(request: Request) -> Reply:
        prompt = prompt_of(request)
        for line in lines:
            if line.match in prompt:
                return _play(line, prompt, request)
        raise errors.BadRequest(f"no line of {path} matches the prompt")

    return ScriptedAdapter(reply_to, endpoint=f"scripted:{digest[:16]}")


def read_script(path: Path) -> list[ScriptedReply]:
    """Read the lines of a script; empty ones are skipped. Raises UserError naming the line."""
    try:
        rows = read_utf8(path).splitlines()
    except OSError as error:
        raise UserError(f"--script {path} cannot be read ({error.strerror})") from None
    lines = []
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        try:
            line = ScriptedReply(**orjson.loads(row))
        except (orjson.JSONDecodeError, TypeError, ValidationError):
            raise UserError(
                f"{path}, line {number}, is not a scripted reply: write an object with text, and "
                "optionally match, finish and error"
            ) from None
        if line.error and line.error not in _ERRORS:
            raise UserError(
                f"{path}, line {number}: unknown error {line.error!r}, choose from "
                f"{', '.join(_ERRORS)}"
            )
        lines.append(line)
    return lines


def prompt_of(request: Request) -> str:
    """Return all text of the prompt, in order."""
    parts = (part for message in request.messages for part in message.parts)
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _play(line: ScriptedReply, prompt: str, request: Request) -> Reply:
    if line.error:
        raise _ERRORS[line.error](line.text or "scripted")
    tokens = {"input": _tokens(prompt), "output": _tokens(line.text)}
    fields = {
        "text": line.text,
        "finish": line.finish,
        "usage": checked(Usage, _NO_TOKENS | tokens),
        "model": request.model,
        "parameters": request.parameters,
    }
    return checked(Reply, _NO_REPLY | fields)


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


_NO_REPLY, _NO_TOKENS = defaults_of(Reply), defaults_of(Usage)


_ERRORS: dict[str, type[errors.CallFailed]] = {
    kind.__name__: kind
    for kind in (
        errors.RateLimited,
        errors.Overloaded,
        errors.ServerFailed,
        errors.Unreachable,
        errors.BadReply,
        errors.ContextOverflow,
        errors.Refused,
        errors.BadRequest,
        errors.Forbidden,
        errors.AuthFailed,
        errors.NoCredit,
        errors.UnknownModel,
    )
}
