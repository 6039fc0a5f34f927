"""Chat completions of OpenAI, of a compatible server or of litellm: turns written, answers
parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trajudge.judges.adapters.errors import BadReply, CallFailed
from trajudge.judges.adapters.protocols.error_body import error_of
from trajudge.judges.adapters.protocols.failures import hidden_failure
from trajudge.judges.adapters.protocols.finish import finish_of
from trajudge.judges.adapters.protocols.reasoning import thoughts_of
from trajudge.judges.model import Message, Part, Picture, Reply, Text, Usage


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
