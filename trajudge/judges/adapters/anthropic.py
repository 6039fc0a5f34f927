"""The anthropic SDK: Claude, and local servers that speak its messages protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import JsonValue

from trajudge.judges.adapters.errors import BadReply
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.adapters.wire import count, finish_of, messages_fields, thoughts_in
from trajudge.judges.model import Message, Part, Picture, Reply, Request, Text, Usage
from trajudge.trajectories.tokens import count_tokens

_TAKEN = {"max_tokens", "temperature", "top_p", "top_k", "stop_sequences", "thinking", "metadata"}


class AnthropicAdapter(ProviderAdapter):
    """Anthropic's messages protocol.

    Parameters that the protocol does not know (``seed``, ``logprobs``) are left out, as
    ``Reply.parameters`` shows; a JSON schema in ``response_format`` goes under its name here.
    """

    name = "anthropic"
    package = "anthropic"
    client = "AsyncAnthropic"
    own_url = "https://api.anthropic.com"
    url_variable = "ANTHROPIC_BASE_URL"
    key_variable = "ANTHROPIC_API_KEY"
    path = "/v1/messages"
    required = frozenset({"max_tokens"})
    prompts_repeat = False

    @staticmethod
    def _root(url: str) -> str:
        return url.removesuffix("/v1")

    def _wanted(self, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        wanted = {name: value for name, value in parameters.items() if name in _TAKEN}
        wanted |= _output_config(parameters.get("response_format"))
        wanted.setdefault("max_tokens", min(self._known.output, 4096))
        return wanted

    def reasoning_fields(self, parameters: Mapping[str, JsonValue], model: str) -> dict[str, Any]:
        return messages_fields(parameters, self._known, model)

    def _takes_temperature(
        self, parameters: Mapping[str, JsonValue], fixed: Mapping[str, Any]
    ) -> bool:
        thinking = fixed.get("thinking") or parameters.get("thinking") or {}
        thinks = isinstance(thinking, Mapping) and thinking.get("type") in {"enabled", "adaptive"}
        return self._known.temperature and not thinks

    def _prompt(self, request: Request) -> dict[str, Any]:
        """Return the messages and the system prompt apart, its last block marked if it is long
        enough to be cached, and so is the last of all where whole prompts repeat."""
        system = [
            self._part(part)
            for message in request.messages
            if message.role == "system"
            for part in message.parts
        ]
        # Our count errs on the high side: no prompt that could be cached goes without its mark.
        tokens = sum(count_tokens(part.get("text", "")) for part in system)
        if system and tokens >= self._known.cache_minimum:
            system[-1]["cache_control"] = {"type": "ephemeral"}
        turns = [self._turn(message) for message in request.messages if message.role != "system"]
        if self.prompts_repeat and turns:
            # The provider passes over the mark of a prompt that is too short.
            turns[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        return {"messages": turns, "system": system} if system else {"messages": turns}

    def _turn(self, message: Message) -> dict[str, Any]:
        return {"role": message.role, "content": [self._part(part) for part in message.parts]}

    def _part(self, part: Part) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        return {"type": "image", "source": self._source(part)}

    def _source(self, picture: Picture) -> dict[str, Any]:
        data = self._base64(picture)
        return {"type": "base64", "media_type": picture.media_type, "data": data}

    def _base64(self, picture: Picture) -> orjson.Fragment:
        return self._images.string(picture)

    def _read(self, content: dict[str, Any], where: str) -> Reply:
        return read_message(content, where=where)


def _output_config(response_format: JsonValue) -> dict[str, JsonValue]:
    """Translate the schema of chat completions' ``response_format`` to the messages protocol."""
    if not isinstance(response_format, dict):
        return {}
    described = response_format.get("json_schema")
    if not isinstance(described, dict) or "schema" not in described:
        return {}
    return {"output_config": {"format": {"type": "json_schema", "schema": described["schema"]}}}


def read_message(content: dict[str, Any], *, where: str) -> Reply:
    """Parse the Reply in a decoded message.

    Raises BadReply without the protocol's fields or its end (``pause_turn``, none), and
    ContextOverflow if the window was full before the answer ended.
    """
    blocks, stop = content.get("content"), content.get("stop_reason")
    if not isinstance(blocks, list):
        raise BadReply(f"{where} answered without content")
    usage = _usage(content.get("usage"))
    texts = (b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text")
    return Reply(
        text="".join(text for text in texts if isinstance(text, str)),
        thoughts=thoughts_in(blocks),
        finish=finish_of(stop, where, usage),
        usage=usage,
        model=str(content.get("model") or ""),
    )


def _usage(fields: object) -> Usage | None:
    """Parse token counts, None where the prompt's or the answer's are not reported."""
    if not isinstance(fields, dict) or fields.get("output_tokens") is None:
        return None
    counts = (
        count(fields, "input_tokens"),
        count(fields, "cache_read_input_tokens"),
        count(fields, "cache_creation_input_tokens"),
        count(fields, "output_tokens"),
        count(fields.get("output_tokens_details"), "thinking_tokens"),
    )
    if None in counts or not any(counts[:3]):
        return None
    sent, cached, written, output, thought = (number or 0 for number in counts)
    return Usage(
        input=sent, cache_read=cached, cache_write=written, output=output, reasoning=thought
    )
