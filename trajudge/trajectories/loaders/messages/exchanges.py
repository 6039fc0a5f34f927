"""Logs of requests and responses of the chat and messages APIs, one after the other.

A request holds the conversation so far under ``messages``, a response only what came next: a chat
response under ``choices``, one of Anthropic's is the agent's message itself. Both may stand in one
object. What a request adds stands behind its last turn of the agent's, whatever the program has
removed from the turns before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_AGENTS = ("assistant", "model")


class SentAndGiven(NamedTuple):
    """A request and the entries of its response, none where none was recorded; ``fields`` are those
    of both objects."""

    fields: Mapping[str, Any]
    sent: Sequence[object]
    given: Sequence[object]


def is_request(value: object) -> bool:
    """Tell whether the value is a conversation that may be the request of a response."""
    return isinstance(value, dict) and "role" not in value and bool(_sent(value))


def is_response(value: object) -> bool:
    """Tell whether the value is a response of either API."""
    return isinstance(value, dict) and bool(_given(value))


def goes_on(before: Sequence[object], value: object) -> bool:
    """Tell whether the value is the response, or the next request, of the same run as the objects
    before it."""
    first, part = (next(_parts([one]), {}) for one in (before[0], value))
    if not is_request(first):
        return False
    is_answered = any(map(is_response, _parts(before[-1:])))
    if is_request(part):
        return (is_answered or len(before) > 1) and _opening(_sent(part)) == _opening(_sent(first))
    return is_response(part) and not is_answered


def exchanges_of(values: Sequence[object]) -> list[SentAndGiven]:
    """Return the exchanges of a log; none if it does not hold requests that responses follow."""
    made: list[SentAndGiven] = []
    for value in _parts(values):
        if is_request(value):
            made.append(SentAndGiven(value, _sent(value), _given(value)))
        elif made and not made[-1].given and is_response(value):
            fields, sent, _ = made[-1]
            made[-1] = SentAndGiven({**fields, **value}, sent, _given(value))
        else:
            return []
    return made if any(exchange.given for exchange in made) else []


def runs_of(exchanges: Sequence[SentAndGiven]) -> Iterator[tuple[Mapping[str, Any], list[object]]]:
    """Yield the fields and the conversation of each run: another first message of the user's begins
    another one."""
    run: list[SentAndGiven] = []
    for exchange in exchanges:
        if run and _opening(exchange.sent) != _opening(run[0].sent):
            yield _joined(run)
            run = []
        if run and (not run[-1].given or run[-1].sent == exchange.sent):
            run.pop()  # it was sent again
        run.append(exchange)
    if run:
        yield _joined(run)


def _joined(run: Sequence[SentAndGiven]) -> tuple[Mapping[str, Any], list[object]]:
    entries = [*run[0].sent, *run[0].given]
    for exchange in run[1:]:
        entries += [*_news(exchange.sent), *exchange.given]
    return {name: value for one in run for name, value in one.fields.items()}, entries


def _news(sent: Sequence[object]) -> Sequence[object]:
    """Return what stands behind the last turn of the agent's that something follows; all of it
    where there is none."""
    turns = [place for place, entry in enumerate(sent[:-1]) if _role(entry) in _AGENTS]
    return sent[turns[-1] + 1 :] if turns else sent


def _opening(sent: Sequence[object]) -> object:
    """Return the first text of the user's, which stays when pictures beside it are removed."""
    first = next((entry for entry in sent if _role(entry) == "user"), None)
    content = first.get("content") if isinstance(first, dict) else None
    blocks = content if isinstance(content, list) else [content]
    texts = (block.get("text") if isinstance(block, dict) else block for block in blocks)
    return next((text for text in texts if text), None)


def _parts(values: Sequence[object]) -> Iterator[dict[str, Any]]:
    """Yield requests and responses by themselves, also those that stand in one object."""
    for value in values:
        if not isinstance(value, dict):
            continue
        request, response = value.get("request"), value.get("response")
        rest = {name: part for name, part in value.items() if name not in ("request", "response")}
        yield {**rest, **request} if isinstance(request, dict) else value
        if isinstance(response, dict):
            yield response


def _sent(value: Mapping[str, Any]) -> list[object]:
    messages = value.get("messages")
    return messages if isinstance(messages, list) and any(map(_role, messages)) else []


def _given(value: Mapping[str, Any]) -> list[object]:
    """Return the agent's message of a response."""
    if value.get("type") == "message" and _role(value) == "assistant":
        return [value]
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return [message] if _role(message) == "assistant" else []


def _role(value: object) -> object:
    return value.get("role") if isinstance(value, dict) else None
