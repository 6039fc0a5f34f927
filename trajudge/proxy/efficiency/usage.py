"""Tokens in the answers of model APIs, whole and streamed: OpenAI (chat, responses) and Anthropic.

This module imports nothing, so that whoever reads such answers can share it. A count that an answer
does not state is None, never 0. ``input`` holds the tokens that are billed in full: the prompt's
tokens are ``input + cache_read + cache_write``, as far as they are stated.
"""

USAGE_FIELDS = ("input", "cache_read", "cache_write", "output", "reasoning")


def usage_of(answer: object) -> dict[str, int | None] | None:
    """Return the token counts of a whole answer; None for one that states none."""
    return parse_usage(answer.get("usage")) if isinstance(answer, dict) else None


def parse_usage(usage: object) -> dict[str, int | None] | None:
    """Return the counts of a ``usage`` object of either protocol; None if it states none."""
    if not isinstance(usage, dict):
        return None
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        counts = _with_details(usage, "prompt_tokens", "completion_tokens", "cache_write_tokens")
    elif "input_tokens_details" in usage or "output_tokens_details" in usage:
        counts = _with_details(usage, "input_tokens", "output_tokens")
    else:
        counts = {
            "input": _count(usage, "input_tokens"),
            "cache_read": _count(usage, "cache_read_input_tokens"),
            "cache_write": _count(usage, "cache_creation_input_tokens"),
            "output": _count(usage, "output_tokens"),
            "reasoning": None,
        }
    return counts if any(count is not None for count in counts.values()) else None


def _with_details(
    usage: dict[str, object], sent: str, received: str, stored: str = ""
) -> dict[str, int | None]:
    """Read the counts of one of OpenAI's protocols, which name them differently and put details
    beside them; ``stored`` is the detail that says what the cache took in, if there is one."""
    details, spent = usage.get(f"{sent}_details"), usage.get(f"{received}_details")
    read, written = _count(details, "cached_tokens"), _count(details, stored)
    return {
        "input": _rest(_count(usage, sent), read, written),
        "cache_read": read,
        "cache_write": written,
        "output": _count(usage, received),
        "reasoning": _count(spent, "reasoning_tokens"),
    }


def _rest(prompt: int | None, read: int | None, written: int | None) -> int | None:
    """Return the part of a prompt that no cache served."""
    return None if prompt is None else max(0, prompt - (read or 0) - (written or 0))


def _count(fields: object, name: str) -> int | None:
    value = fields.get(name) if isinstance(fields, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if value >= 0 else None


class StreamedAnswer:
    """The state of a streamed answer: feed it each event's JSON object, in order.

    ``began``: an event carried content (text, reasoning, a tool call). ``usage`` is None until the
    stream states it; the output of an Anthropic stream that ends early stays None, because its
    first event states only what had been written by then.
    """

    def __init__(self) -> None:
        self.began = False
        self.ended = False
        self.model = ""
        self.error = ""
        self._usage: dict[str, int | None] = {}

    @property
    def usage(self) -> dict[str, int | None] | None:
        """Return the counts so far; None where none was stated."""
        return self._usage if any(n is not None for n in self._usage.values()) else None

    def feed(self, event: object) -> None:
        """Take in one event."""
        if not isinstance(event, dict):
            return
        kind = event.get("type")
        inner = event.get("message") if kind == "message_start" else event.get("response")
        body = inner if isinstance(inner, dict) else event
        if not self.model and isinstance(body.get("model"), str):
            self.model = body["model"]
        if event.get("error") and not self.error:
            self.error = str(event["error"])[:200]
        counts = parse_usage(body.get("usage"))
        if counts and kind == "message_start":
            counts["output"] = None
        for name, count in (counts or {}).items():
            if count is not None or name not in self._usage:
                self._usage[name] = count
        self.began = self.began or _has_content(event, kind)
        self.ended = self.ended or _is_end(event, kind)


def _has_content(event: dict[str, object], kind: object) -> bool:
    if isinstance(kind, str):
        return kind == "content_block_delta" or kind.endswith(".delta")
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    delta = first.get("delta") if isinstance(first, dict) else None
    text = first.get("text") if isinstance(first, dict) else None
    spoken = isinstance(delta, dict) and any(
        value for name, value in delta.items() if name not in ("role", "refusal_reason")
    )
    return spoken or bool(text)


def _is_end(event: dict[str, object], kind: object) -> bool:
    if isinstance(kind, str):
        return kind in ("message_stop", "response.completed", "response.incomplete")
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, dict) and bool(first.get("finish_reason"))
