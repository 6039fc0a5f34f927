"""The wire: chat messages, JSON bodies, extra fields and headers, reasoning options, finish
reasons, seeds, proxies.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson
from pydantic import JsonValue

from trajudge.judges.adapters.errors import (
    BadReply,
    CallFailed,
    ContextOverflow,
    NoAccess,
    Unreachable,
    causes,
)
from trajudge.judges.adapters.failures import error_of, hidden_failure
from trajudge.judges.model import Message, Part, Picture, Reply, Text, Usage
from trajudge.judges.models import Capability
from trajudge.util.commands import LARGEST
from trajudge.util.errors import UserError
from trajudge.util.files import without_surrogates
from trajudge.util.masking import is_secret_header


def json_bytes(body: dict[str, Any]) -> bytes:
    """Encode the body of a request."""
    return orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS)


def json_object(body: bytes, where: str) -> dict[str, Any]:
    """Decode the JSON object of a body; raises BadReply.

    It is read as Python's json reads it where it is not strict JSON: half a surrogate pair, NaN,
    control characters in a string, a byte order mark or bytes that are no UTF-8 lose no answer.
    """
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = _forgiving(body, where)
    if not isinstance(content, dict):
        raise BadReply(f"{where} answered with JSON that is not an object")
    return content


def storable(value: Any) -> Any:
    """Convert ``value`` (JSON-like) to what UTF-8 and strict JSON can hold: a lone surrogate
    becomes U+FFFD, a number that is not finite None."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value


def _forgiving(body: bytes, where: str) -> Any:
    try:
        return storable(json.loads(body.decode("utf-8-sig", "replace"), strict=False))
    except (ValueError, RecursionError):
        raise BadReply(f"{where} answered with {len(body)} bytes that are not JSON") from None


Finish = Literal["stop", "length", "refused"]

# OpenAI, Anthropic, Cohere (complete), and servers by Hugging Face and Together (eos).
_WHOLE = {"stop", "end_turn", "stop_sequence", "complete", "eos", "eos_token"}

_WHOLE |= {"tool_calls", "tool_use", "tool_call", "function_call"}

_CUT = {"length", "max_tokens", "max_output_tokens", "max_output", "max_new_tokens"}

_WINDOW_FULL = {"model_context_window_exceeded", "model_length"}

# Gemini passes its own words on (SAFETY, "content_filter: RECITATION"), and so does Zhipu
# (sensitive), Bedrock (guardrail_intervened) and Cohere (error_toxic).
_DECLINED = re.compile(
    r"content_filter|refus|safety|recitation|blocklist|prohibited|spii|sensitive|guardrail|toxic"
)


def finish_of(word: object, where: str, usage: Usage | None) -> Finish:
    """Map the ``finish_reason`` or ``stop_reason`` of an answer.

    Raises ContextOverflow if the window was full before the answer ended, BadReply for a word that
    tells of no end; either with the ``usage`` that the answer reports.
    """
    reason = word.strip().lower() if isinstance(word, str) else ""
    if reason in _WHOLE:
        return "stop"
    if reason in _CUT:
        return "length"
    if _DECLINED.search(reason):
        return "refused"
    error: CallFailed
    if reason in _WINDOW_FULL:
        error = ContextOverflow(f"{where}: the answer ran against the end of the context window")
    elif reason:
        error = BadReply(f"{where} broke off its answer (finish reason {reason[:40]!r})")
    else:
        error = BadReply(f"{where} did not say that its answer is complete (no finish reason)")
    error.usage = usage
    raise error


NAMES = ("reasoning_effort", "thinking_budget")

# The least budget that Anthropic takes.
LEAST_BUDGET = 1_024

Fields = dict[str, JsonValue]


def chat_fields(parameters: Mapping[str, JsonValue], host: str, model: str) -> Fields:
    """Return the fields of chat completions at ``host`` for what the parameters say of reasoning.

    Raises UserError for a budget where no field for one is known.
    """
    effort, budget = (parameters.get(name) for name in NAMES)
    if budget is None:
        if effort is None:
            return {}
        return {"reasoning": {"effort": effort}} if _is_openrouter(host) else _effort(effort)
    if _is_openrouter(host):
        return {"reasoning": {"max_tokens": budget}}
    if "googleapis.com" in host or model.startswith("gemini"):
        # The field is named so in the body itself, where no effort may stand beside it.
        return {"extra_body": {"google": {"thinking_config": {"thinking_budget": budget}}}}
    if "aliyuncs.com" in host or model.startswith("qwen"):
        return {"enable_thinking": True, "thinking_budget": budget}
    raise UserError(
        f"--thinking-budget {budget}: {host} is not known to take a budget for {model}: use "
        "--reasoning-effort WORD, or name the server's own field with --extra-body JSON"
    )


def _is_openrouter(host: str) -> bool:
    return host.partition(":")[0].endswith("openrouter.ai")


def _effort(effort: JsonValue) -> Fields:
    return {"reasoning_effort": effort}


def messages_fields(
    parameters: Mapping[str, JsonValue], known: Capability, model: str
) -> dict[str, Any]:
    """Return the fields of Anthropic's messages for what the parameters say of reasoning.

    A model with adaptive thinking is told an effort, an earlier one a budget below ``max_tokens``.
    Raises UserError for what the model does not take.
    """
    effort, budget = (parameters.get(name) for name in NAMES)
    claude = known.thinks_when_told
    fields: dict[str, Any] = {}
    if isinstance(budget, int):
        if claude and known.adaptive_thinking and not known.budget_thinking:
            raise UserError(
                f"--thinking-budget {budget}: {model} thinks as much as it needs and takes no "
                "budget: use --reasoning-effort WORD"
            )
        _check_budget(budget, parameters.get("max_tokens"))
        fields["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if effort is None:
        return fields
    if claude and not (known.effort or known.adaptive_thinking):
        raise UserError(
            f"--reasoning-effort {effort}: {model} takes no effort: use --thinking-budget TOKENS"
        )
    if effort == "none":
        return fields if known.always_thinks or fields else {"thinking": {"type": "disabled"}}
    if known.adaptive_thinking:
        fields.setdefault("thinking", {"type": "adaptive"})
    return {**fields, "output_config": {"effort": effort}}


def _check_budget(budget: int, limit: JsonValue) -> None:
    if budget < LEAST_BUDGET:
        raise UserError(f"--thinking-budget {budget}: must be at least {LEAST_BUDGET:,}")
    if isinstance(limit, int) and budget >= limit:
        raise UserError(
            f"--thinking-budget {budget}: must be less than --max-tokens {limit}, which holds for "
            "thoughts and answer together"
        )


def thoughts_of(message: Mapping[str, Any]) -> str:
    """Return the thoughts beside the answer in a message of chat completions: ``reasoning_content``
    (DeepSeek, vLLM, SGLang, llama.cpp), ``reasoning`` or ``reasoning_details`` (OpenRouter, vLLM),
    parts of the kind ``thinking`` (Mistral)."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(text := message.get(name), str) and text:
            return text
    pieces = message.get("reasoning_details")
    content = message.get("content")
    parts = [*(pieces if isinstance(pieces, list) else ())]
    parts += [p for p in content if _is_thinking(p)] if isinstance(content, list) else []
    return "\n".join(text for part in parts if (text := _text(part)))


def thoughts_in(blocks: list[Any]) -> str:
    """Return the thoughts in the blocks of Anthropic's messages; redacted ones have no text."""
    return "\n".join(text for block in blocks if _is_thinking(block) and (text := _text(block)))


def _is_thinking(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "thinking"


def _text(part: object) -> str:
    if not isinstance(part, dict):
        return ""
    text = part.get("thinking") or part.get("text") or part.get("summary")
    if isinstance(text, list):
        return "".join(_text(piece) for piece in text)
    return text if isinstance(text, str) else ""


BODY, HEADERS = "extra_body", "extra_headers"

HIDDEN = "(secret)"


class Extras(NamedTuple):
    """``body`` fields, and the headers as they may be shown."""

    body: dict[str, Any]
    shown_headers: dict[str, JsonValue]


def split(parameters: Mapping[str, JsonValue]) -> tuple[Extras, dict[str, JsonValue]]:
    """Return the extras among a request's parameters, and the parameters that need no
    translation."""
    body = parameters.get(BODY)
    shown = {HEADERS: parameters[HEADERS]} if HEADERS in parameters else {}
    plain = {k: v for k, v in parameters.items() if k not in (BODY, HEADERS, *NAMES)}
    return Extras(dict(body) if isinstance(body, dict) else {}, shown), plain


def merged(parameters: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Join both; where each has an object under one name, the objects are joined."""
    joined = dict(parameters)
    for name, value in fields.items():
        own = joined.get(name)
        if isinstance(own, dict) and isinstance(value, dict):
            joined[name] = {**own, **value}
        else:
            joined[name] = value
    return joined


def without_secrets(headers: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the headers as journals, manifests and cache keys hold them."""
    return {
        name: HIDDEN if is_secret_header(name, value) else value
        for name, value in sorted(headers.items())
    }


def of_sample(parameters: dict[str, Any], sample: int) -> dict[str, Any]:
    """Return the parameters with the seed of this sample: that of the first one, plus its number,
    for servers give one answer to a request with one seed, however often they are asked."""
    seed = parameters.get("seed")
    if not sample or not isinstance(seed, int):
        return parameters
    return {**parameters, "seed": (seed + sample) % (LARGEST + 1)}


_CREDENTIALS = re.compile(r"(?<=//)[^/@\s'\"]+@")

_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})")


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for ``url``.

    Called once: aiohttp would read the environment again for every request.
    """
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme)


def through_proxy(url: str) -> str:
    """Return `` through the proxy HOST:PORT (VARIABLE)`` where requests to ``url`` go through one,
    else "". Its user and password are left out."""
    proxy = proxy_for(url)
    if not proxy:
        return ""
    scheme = urlsplit(url).scheme
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper())
    variable = next((name for name in names if os.environ.get(name)), "of this system")
    return f" through the proxy {urlsplit(proxy).netloc.rpartition('@')[2]} ({variable})"


def without_credentials(text: str) -> str:
    """Return ``text`` without users and passwords in its URLs."""
    return _CREDENTIALS.sub("", text)


def refused_tunnel(error: BaseException, where: str) -> CallFailed | None:
    """Return the error for a proxy that lets no connection through to ``where`` (host and port);
    None if that is not the reason."""
    status = next(filter(None, map(_tunnel_status, causes(error))), None)
    if status is None:
        return None
    way = through_proxy(f"https://{where}") or " through a proxy"
    if status == 407:
        return NoAccess(f"cannot reach {where}{way}: it asks for a user and a password (407)")
    if status == 403:
        return NoAccess(
            f"cannot reach {where}{way}: it refuses the host (403): allow it there, or name it in "
            "NO_PROXY"
        )
    return Unreachable(f"cannot reach {where}{way}: it answered {status}")


def _tunnel_status(cause: BaseException) -> int | None:
    """Return the status with which a proxy refused to connect, by aiohttp's error or urllib's
    words."""
    if any(kind.__name__ == "ClientHttpProxyError" for kind in type(cause).__mro__):
        status = getattr(cause, "status", None)
        return status if isinstance(status, int) else None
    refused = _TUNNEL.search(str(cause))
    return int(refused[1]) if refused else None


def turn(
    message: Message, data_url: Callable[[Picture], object], *, joins: bool = False
) -> dict[str, Any]:
    """Write one message: its parts as they are; a single text as a string, which servers and chat
    templates understand that know no parts. For one of these, ``joins`` makes several texts one."""

    def content(part: Part) -> dict[str, Any]:
        if isinstance(part, Picture):
            asked = {"detail": part.detail} if part.detail else {}
            return {"type": "image_url", "image_url": {"url": data_url(part), **asked}}
        return {"type": "text", "text": part.text}

    texts = [part.text for part in message.parts if isinstance(part, Text)]
    if len(texts) == len(message.parts) and (joins or len(texts) <= 1):
        return {"role": message.role, "content": "\n\n".join(texts)}
    return {"role": message.role, "content": [content(part) for part in message.parts]}


def read_chat(content: dict[str, Any], *, where: str, key_variable: str) -> Reply:
    """Parse the Reply in a decoded completion.

    Raises BadReply if the fields of the protocol are not there or the answer broke off, and the
    mapped error where a gateway hid one in a 200, for the whole request or for its answer.
    """
    choices = content.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    broken = choice if isinstance(choice, dict) and choice.get("error") else None
    if (not choices or broken) and (error := error_of(broken or content)):
        model = str(content.get("model") or "the model")
        failed = hidden_failure(error, where=where, key_variable=key_variable, model=model)
        raise _billed(failed, content)
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise _billed(BadReply(f"{where} answered without a choice"), content)
    text, refusal = text_of(message.get("content")), refusal_of(message)
    usage = read_usage(content.get("usage"))
    finish = "refused" if refusal else finish_of(_finish_word(choice), where, usage)
    return Reply(
        text=str(refusal) if refusal else text,
        finish=finish,
        usage=usage,
        model=str(content.get("model") or ""),
        logprobs=choice.get("logprobs"),
        thoughts=thoughts_of(message),
    )


def _billed(failed: CallFailed, content: Mapping[str, Any]) -> CallFailed:
    """Return the failure with the usage that the answer reports all the same."""
    failed.usage = read_usage(content.get("usage"))
    return failed


def _finish_word(choice: Mapping[str, Any]) -> object:
    """Return the finish reason: litellm puts its own in place of the server's, and keeps that."""
    own = choice.get("provider_specific_fields")
    native = own.get("native_finish_reason") if isinstance(own, dict) else None
    return choice.get("finish_reason") if native is None else native


def refusal_of(message: Mapping[str, Any]) -> object:
    """Return the model's refusal text; litellm keeps it among the provider's own fields."""
    own = message.get("provider_specific_fields")
    return message.get("refusal") or (own.get("refusal") if isinstance(own, dict) else None)


def text_of(content: object) -> str:
    """Return the text of a message's content, which some servers give in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def read_usage(usage: object) -> Usage | None:
    """Parse token counts, None where the prompt's or the answer's are not reported. Cached tokens
    are taken out of ``input``.

    Thoughts that a server counts in the total alone (xAI, Gemini) are ``output``, as they are
    billed.
    """
    if not isinstance(usage, dict) or usage.get("completion_tokens") is None:
        return None
    details = usage.get("prompt_tokens_details")
    thoughts = usage.get("completion_tokens_details")
    counts = (
        count(usage, "prompt_tokens"),
        count(usage, "completion_tokens"),
        count(usage, "total_tokens"),
        count(thoughts, "reasoning_tokens"),
        count(details, "cached_tokens"),
        count(details, "cache_write_tokens"),
        count(details, "image_tokens"),
    )
    if None in counts or not counts[0]:
        return None
    prompt, answer, total, thought, cached, written, image = (number or 0 for number in counts)
    apart = max(0, total - prompt - answer)
    cached = min(prompt, cached)
    written = min(prompt - cached, written)
    return Usage(
        input=prompt - cached - written,
        cache_read=cached,
        cache_write=written,
        output=answer + apart,
        reasoning=max(thought, apart),
        image=image,
    )


def count(fields: object, name: str) -> int | None:
    """Return a count of tokens, 0 where it is missing, None for what is no count: a string, a
    boolean, a negative number."""
    value = fields.get(name) if isinstance(fields, dict) else None
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None
