"""What the test server says: good answers and every kind of trouble, in both protocols.

The wording of errors follows what the services and local servers really send, because adapters
have to recognise it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import orjson

Protocol = Literal["openai", "anthropic"]
OPTIMALITY = (
    "1. Complete Failure",
    "2. Suboptimal",
    "3. Somewhat Optimal",
    "4. Completely Optimal",
)


@dataclass(frozen=True)
class Incoming:
    """One request as the server saw it; ``ordinal`` counts from 0."""

    ordinal: int
    protocol: Protocol
    path: str
    headers: dict[str, str]
    body: bytes
    query: str = ""

    @cached_property
    def payload(self) -> dict[str, Any]:
        loaded: dict[str, Any] = orjson.loads(self.body)
        return loaded

    @cached_property
    def prompt(self) -> str:
        """All texts (and encoded images) of the system prompt and the messages, in order."""
        pieces: list[str] = []
        collect_strings(self.payload.get("system", ""), pieces)
        for message in self.payload.get("messages", []):
            collect_strings(message.get("content", ""), pieces)
        return "\n".join(pieces)

    @cached_property
    def digest(self) -> str:
        return blake2b(self.body, digest_size=16).hexdigest()


def collect_strings(content: Any, into: list[str]) -> None:
    """The text and image strings of a content value of either protocol."""
    if isinstance(content, str):
        into.append(content)
    elif isinstance(content, list):
        for part in content:
            collect_strings(part, into)
    elif isinstance(content, dict):
        for name in ("text", "image_url", "url", "source", "data"):
            collect_strings(content.get(name), into)


@dataclass(frozen=True)
class Outgoing:
    """What goes back. ``cut`` sends half of the body and closes; ``silence`` nothing at all."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    silence: Literal["", "hang", "drop"] = ""


def verdict_text(prompt: str) -> str:
    """A verdict in tags, its labels a fixed function of the prompt."""
    bits = int.from_bytes(blake2b(prompt.encode(), digest_size=8).digest(), "big")
    success = "Successful" if bits % 100 < 35 else "Unsuccessful"
    side = "Yes" if bits // 100 % 10 == 0 else "No"
    loop = "Yes" if bits // 4000 % 3 == 0 else "No"
    return (
        f"<reasoning>Judged prompt {bits % 10**6}.</reasoning><success>{success}</success>"
        f"<side>{side}</side><optimal>{OPTIMALITY[bits // 1000 % 4]}</optimal><loop>{loop}</loop>"
    )


def answer(
    incoming: Incoming,
    text: str,
    *,
    finish: str = "",
    refusal: str | None = None,
    cached_tokens: int = 0,
    logprobs: Any = None,
    thoughts: str = "",
) -> Outgoing:
    """A 200 in the request's protocol. ``finish`` is the protocol's own word, ``logprobs`` are
    OpenAI's, ``thoughts`` the ``reasoning_content`` of vLLM, SGLang and llama.cpp."""
    prompt = max(1, len(incoming.prompt) // 4)
    cached = min(cached_tokens, prompt)
    output = max(1, len(text) // 4) if text else 0
    model = incoming.payload.get("model", "")
    if incoming.protocol == "anthropic":
        content = {
            "id": "msg_" + incoming.digest,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": text}] if text else [],
            "stop_reason": finish or "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": prompt - cached,
                "output_tokens": output,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": cached,
            },
        }
        return Outgoing(200, orjson.dumps(content))
    message = {"role": "assistant", "content": text or None, "refusal": refusal}
    message |= {"reasoning_content": thoughts} if thoughts else {}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": logprobs,
        "finish_reason": finish or "stop",
    }
    content = {
        "id": "chatcmpl-" + incoming.digest,
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
    }
    return Outgoing(200, orjson.dumps(content))


def with_usage(outgoing: Outgoing, change: Callable[[dict[str, Any]], object]) -> Outgoing:
    """The same answer with its usage as ``change`` makes it; without one where that is Ellipsis."""
    content = orjson.loads(outgoing.body)
    content["usage"] = change(content["usage"])
    if content["usage"] is ...:
        del content["usage"]
    return replace(outgoing, body=orjson.dumps(content))


def error(
    incoming: Incoming,
    status: int,
    message: str,
    *,
    kind: str,
    headers: dict[str, str] | None = None,
    **fields: Any,
) -> Outgoing:
    """An error in the request's protocol; ``fields`` stand beside the message (OpenAI only)."""
    if incoming.protocol == "anthropic":
        content = {"type": "error", "error": {"type": kind, "message": message}}
    else:
        content = {"error": {"message": message, "type": kind, **fields}}
    return Outgoing(status, orjson.dumps(content), headers or {})


def rate_limited(incoming: Incoming, headers: dict[str, str]) -> Outgoing:
    """429; ``headers`` say when to come back, or nothing."""
    return error(
        incoming,
        429,
        "Rate limit reached, slow down",
        kind="rate_limit_error" if incoming.protocol == "anthropic" else "requests",
        headers=headers,
        code="rate_limit_exceeded",
    )


def refusal(incoming: Incoming) -> Outgoing:
    if incoming.protocol == "anthropic":
        return answer(incoming, "", finish="refusal")
    return answer(incoming, "", refusal="I'm sorry, I cannot help with that.")


def overflow(incoming: Incoming) -> Outgoing:
    if incoming.protocol == "anthropic":
        message = "prompt is too long: 208310 tokens > 200000 maximum"
        return error(incoming, 400, message, kind="invalid_request_error")
    message = (
        "This model's maximum context length is 128000 tokens. However, your messages resulted "
        "in 140000 tokens. Please reduce the length of the messages."
    )
    code = "context_length_exceeded"
    return error(incoming, 400, message, kind="invalid_request_error", param="messages", code=code)


def llamacpp_overflow(incoming: Incoming) -> Outgoing:
    message = (
        "request (20012 tokens) exceeds the available context size (16384 tokens), "
        "try increasing it"
    )
    return error(
        incoming,
        400,
        message,
        kind="exceed_context_size_error",
        code=400,
        n_prompt_tokens=20012,
        n_ctx=16384,
    )


def vllm_overflow(incoming: Incoming) -> Outgoing:
    message = (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
        "(4000 in the messages, 1000 in the completion). Please reduce the length of the "
        "messages or completion."
    )
    return error(incoming, 400, message, kind="BadRequestError", code=400)


def unsupported(incoming: Incoming, parameter: str) -> Outgoing:
    """400 naming a parameter that the model does not take, as reasoning models answer."""
    if parameter == "max_tokens":
        hint = "Use 'max_completion_tokens' instead."
        message = f"Unsupported parameter: 'max_tokens' is not supported with this model. {hint}"
        code = "unsupported_parameter"
    else:
        message = (
            f"Unsupported value: '{parameter}' does not support 0 with this model. "
            "Only the default (1) value is supported."
        )
        code = "unsupported_value"
    return error(incoming, 400, message, kind="invalid_request_error", param=parameter, code=code)


def plain(status: int, message: str, kind: str, **fields: Any) -> Callable[[Incoming], Outgoing]:
    """A fault that is one error."""
    return lambda incoming: error(incoming, status, message, kind=kind, **fields)


CUT_VERDICT = "<reasoning>The agent did reach the"
FAULTS: dict[str, Callable[[Incoming], Outgoing]] = {
    "429": lambda i: rate_limited(i, {"retry-after": "0.3"}),
    "bare-429": lambda i: rate_limited(i, {}),
    "500": plain(500, "The server had an error", "server_error"),
    "503": plain(503, "Service unavailable", "server_error"),
    "529": plain(529, "Overloaded", "overloaded_error"),
    "hang": lambda _: Outgoing(0, b"", silence="hang"),
    "drop": lambda _: Outgoing(0, b"", silence="drop"),
    "cut": lambda i: Outgoing(200, answer(i, verdict_text(i.prompt)).body, cut=True),
    "malformed": lambda _: Outgoing(200, b'{"id": "chatcmpl-1", "choices": [{"index"'),
    "shapeless": lambda _: Outgoing(200, b'{"status": "ok"}'),
    "refusal": refusal,
    "content-filter": lambda i: answer(i, "", finish="content_filter"),
    "content-policy": plain(
        400,
        "Your request was rejected as a result of our safety system.",
        "invalid_request_error",
        code="content_policy_violation",
    ),
    "empty": lambda i: answer(i, ""),
    "length": lambda i: answer(
        i, CUT_VERDICT, finish="max_tokens" if i.protocol == "anthropic" else "length"
    ),
    "empty-length": lambda i: answer(
        i, "", finish="max_tokens" if i.protocol == "anthropic" else "length"
    ),
    "window-exceeded": lambda i: answer(i, "", finish="model_context_window_exceeded"),
    "overflow": overflow,
    "overflow-llamacpp": llamacpp_overflow,
    "overflow-vllm": vllm_overflow,
    "image-refused": plain(
        400,
        "Invalid content type. image_url is only supported by certain models.",
        "invalid_request_error",
        param="messages.[0].content.[1].type",
    ),
    "image-500": plain(
        500, "image input is not supported - hint: you may need the mmproj", "server_error"
    ),
    "401": plain(401, "Incorrect API key provided", "authentication_error", code="invalid_api_key"),
    "404": plain(404, "The model does not exist", "not_found_error", code="model_not_found"),
    "no-temperature": lambda i: unsupported(i, "temperature"),
    "no-max-tokens": lambda i: unsupported(i, "max_tokens"),
    "no-response-format": lambda i: unsupported(i, "response_format"),
    "no-response-format": lambda i: unsupported(i, "response_format"),
}
