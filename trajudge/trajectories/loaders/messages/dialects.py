"""Conversations as other programs write them, in the form of the chat and messages APIs.

LangChain and LangGraph (``type: human``, ``messages_to_dict``, serialized constructors, ``role:
ai``), Vercel's AI SDK (``ModelMessage``, ``UIMessage``), Gemini (``parts``), Bedrock Converse and
ShareGPT. Each entry becomes messages with ``role`` and blocks of content of the Anthropic API,
which ``reading`` reads; what is of no form known is refused with the form met.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trajudge.trajectories.loaders.files import Damaged, readable

KNOWN = (
    "OpenAI (chat, Responses), Anthropic, inspect_ai, LangChain, Vercel's AI SDK, Gemini, Bedrock "
    "Converse and ShareGPT"
)
ROLES = frozenset(
    {"user", "assistant", "model", "tool", "function", "system", "developer", "human", "ai"}
)
_ROLE_OF = {"human": "user", "ai": "assistant"}
_LANGCHAIN = {
    **{"human": "user", "ai": "assistant", "system": "system", "tool": "tool"},
    **{"function": "function", "chat": "", "remove": "system"},
    **{"HumanMessageChunk": "user", "AIMessageChunk": "assistant", "SystemMessageChunk": "system"},
    **{"ToolMessageChunk": "tool", "FunctionMessageChunk": "function", "ChatMessageChunk": ""},
    **{"HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system"},
    **{"ToolMessage": "tool", "FunctionMessage": "function", "ChatMessage": ""},
}
_SHAREGPT = {
    **{"human": "user", "user": "user", "system": "system"},
    **{"gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant", "model": "assistant"},
    **{"bing": "assistant", "bard": "assistant", "function_call": "call", "tool_call": "call"},
    **{"observation": "tool", "tool": "tool", "function_response": "tool", "tool_response": "tool"},
}
_SNAKE = re.compile(r"_([a-z])")
_TOOL_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_TOOL_RESPONSE = re.compile(r"\s*<tool_response>\s*(.*?)\s*</tool_response>\s*", re.DOTALL)
_CALL_BLOCKS = {"tool_use", "tool_call", "function_call", "tool_call_chunk", "input_json_delta"}
# Parts of a message of the AI SDK that are no words and no act.
_SILENT_PARTS = {"step-start", "source-url", "source-document", "source", "file"}
Message = Mapping[str, Any]


def is_foreign(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry is a message of one of these forms."""
    return (
        _langchain(entry) is not None
        or isinstance(entry.get("parts"), list | str)
        or ("from" in entry and "value" in entry)
        or entry.get("role") in ("human", "ai")
    )


def form_of(entries: Sequence[object]) -> str:
    """Describe the form of entries that are none that is known, by roles, types or fields."""
    objects = [one for one in entries if isinstance(one, dict)]
    for name in ("role", "type", "from"):
        if named := [*dict.fromkeys(str(one[name]) for one in objects if name in one)]:
            return f"entries with {name} {', '.join(map(repr, map(_short, named[:3])))}"
    if objects:
        return f"entries with the fields {', '.join(map(_short, list(objects[0])[:5]))}"
    return f"entries of the type {type(entries[0]).__name__}" if entries else "no entry"


class Translator:
    """Translates the entries of one conversation, in their order: calls without an id get one,
    which the next result of the same name takes."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, str]] = []
        self._count = 0

    def messages(self, entry: Message) -> Iterator[Message]:
        """Yield the messages of an entry; one that is in no foreign form as it is."""
        read = _langchain(entry)
        content = entry.get("content")
        if read is not None:
            yield _of_langchain(*read)
        elif "from" in entry and "value" in entry:
            yield from self._of_sharegpt(entry)
        elif isinstance(parts := entry.get("parts"), list | str):
            parts = [parts] if isinstance(parts, str) else parts
            if any(isinstance(part, dict) and "type" in part for part in parts):
                yield from self._of_parts(entry, parts)
            else:
                yield self._of_gemini(entry, parts)
        elif isinstance(content, list) and any(map(_is_converse, content)):
            blocks = [_of_converse(block) for block in content if isinstance(block, dict)]
            yield {**entry, "content": [block for block in blocks if block]}
        elif isinstance(content, list) and any(map(_is_sdk_part, content)):
            yield from self._of_parts(entry, content)
        else:
            yield {**entry, "role": _ROLE_OF[entry["role"]]} if is_foreign(entry) else entry

    def _call(self, name: object, arguments: object, call_id: object = None) -> Message:
        self._count += 1
        key = call_id if isinstance(call_id, str) and call_id else f"call-{self._count}"
        self._waiting.append((key, str(name)))
        return {"type": "tool_use", "id": key, "name": name, "input": arguments}

    def _result(
        self, name: object, content: object, call_id: object = None, *, is_error: bool = False
    ) -> Message:
        if not isinstance(call_id, str) or not call_id:
            same = (key for key, called in self._waiting if name is None or called == name)
            call_id = next(same, "")
        self._waiting = [one for one in self._waiting if one[0] != call_id]
        blocks = content if isinstance(content, list) else [content]
        result = {"type": "tool_result", "tool_use_id": call_id, "content": blocks}
        return {**result, "is_error": is_error}

    def _of_gemini(self, entry: Message, parts: Sequence[object]) -> Message:
        blocks = [block for part in parts for block in self._gemini_part(part)]
        is_agent = entry.get("role") in ("model", "assistant")
        return {"role": "assistant" if is_agent else _user(entry), "content": blocks}

    def _gemini_part(self, part: object) -> Iterator[Message]:
        if not isinstance(part, dict):
            yield {"type": "text", "text": part}
            return
        fields = {_SNAKE.sub(lambda match: match[1].upper(), key): part[key] for key in part}
        fields = {key: value for key, value in fields.items() if value is not None}
        call, result = fields.get("functionCall"), fields.get("functionResponse")
        if isinstance(call, dict):
            yield self._call(call.get("name"), call.get("args"), call.get("id"))
        elif isinstance(result, dict):
            response = result.get("response")
            only = response if isinstance(response, dict) and len(response) == 1 else {}
            is_error = "error" in only
            shown = next(
                (only[key] for key in ("result", "output", "error") if key in only), response
            )
            parts = result.get("parts")
            more = [
                block
                for one in (parts if isinstance(parts, list) else ())
                for block in self._gemini_part(one)
            ]
            yield self._result(
                result.get("name"), [shown, *more], result.get("id"), is_error=is_error
            )
        elif isinstance(blob := fields.get("inlineData"), dict):
            mime = str(blob.get("mimeType", blob.get("mime_type", "")))
            source = {"type": "base64", "data": blob.get("data")}
            yield (
                {"type": "image", "source": source}
                if mime.startswith("image/")
                else {"type": "file"}
            )
        elif isinstance(code := fields.get("executableCode"), dict):
            yield self._call("code_execution", {"code": code.get("code")}, code.get("id"))
        elif isinstance(ran := fields.get("codeExecutionResult"), dict):
            yield self._result("code_execution", ran.get("output"), ran.get("id"))
        elif "text" in fields:
            kind = "thinking" if fields.get("thought") is True else "text"
            yield {"type": kind, kind: fields["text"]}
        elif "fileData" in fields:
            yield {"type": "file"}
        elif fields.keys() - {"thoughtSignature", "thought"}:
            raise Damaged(_unknown(f"a part with the fields {', '.join(map(_short, fields))}"))

    def _of_parts(self, entry: Message, parts: Sequence[object]) -> Iterator[Message]:
        """Yield the messages of the AI SDK's parts: a ``UIMessage`` holds calls, their results and
        what the agent said next."""
        role = "assistant" if entry.get("role") == "assistant" else _user(entry)
        blocks: list[Message] = []
        results: list[Message] = []
        for part in parts:
            call, result = self._sdk_part(part)
            if results and result is None and not _is_call(call):
                yield {"role": role, "content": blocks}
                yield {"role": "user", "content": results}
                blocks, results = [], []
            blocks += [call] if call else []
            results += [result] if result else []
        if blocks:
            yield {"role": role, "content": blocks}
        if results:
            yield {"role": "user", "content": results}

    def _sdk_part(self, part: object) -> tuple[Message | None, Message | None]:
        """Return the block of a part, and the result that it holds, too."""
        if not isinstance(part, dict):
            return {"type": "text", "text": part}, None
        kind = str(part.get("type", ""))
        if kind == "tool-result":
            return None, self._sdk_result(part.get("toolName"), part.get("toolCallId"), part)
        if kind.startswith("tool-approval-"):
            return None, None
        if kind == "dynamic-tool" or kind.startswith("tool-"):
            return self._sdk_call(kind, part)
        return _sdk_block(kind, part), None

    def _sdk_call(self, kind: str, part: Message) -> tuple[Message, Message | None]:
        inner = part.get("toolInvocation")
        fields: Message = inner if isinstance(inner, dict) else part
        name = fields.get("toolName")
        if kind not in ("tool-call", "tool-invocation", "dynamic-tool"):
            name = kind.removeprefix("tool-")
        arguments = fields.get("input", fields.get("args", fields.get("rawInput")))
        call = self._call(name, arguments, fields.get("toolCallId"))
        if all(fields.get(one) is None for one in ("output", "result", "errorText")):
            return call, None
        return call, self._sdk_result(name, call["id"], fields)

    def _sdk_result(self, name: object, call_id: object, fields: Message) -> Message:
        output = fields.get("output", fields.get("result"))
        error = fields.get("errorText")
        is_error = error is not None or fields.get("isError") is True
        if isinstance(output, dict) and isinstance(output.get("type"), str) and "value" in output:
            is_error |= output["type"].startswith("error")
            output = output["value"]
            if isinstance(output, list):
                output = [self._sdk_part(_content_part(one))[0] for one in output]
        return self._result(name, output if error is None else error, call_id, is_error=is_error)

    def _of_sharegpt(self, entry: Message) -> Iterator[Message]:
        role, value = _SHAREGPT.get(str(entry["from"])), entry["value"]
        if role is None:
            raise Damaged(_unknown(form_of([entry])))
        if role == "tool":
            wrapped = _TOOL_RESPONSE.fullmatch(value) if isinstance(value, str) else None
            yield {
                "role": "user",
                "content": [self._result(None, wrapped[1] if wrapped else value)],
            }
        elif role in ("call", "assistant"):
            yield {"role": "assistant", "content": [*self._sharegpt_blocks(value, role)]}
        else:
            yield {"role": role, "content": value}

    def _sharegpt_blocks(self, value: object, role: str) -> Iterator[Message]:
        written = value if isinstance(value, str) else json.dumps(value)
        calls = [written] if role == "call" else _TOOL_CALL.findall(written)
        words = "" if role == "call" else _TOOL_CALL.sub("", written)
        if words.strip():
            yield {"type": "text", "text": words.strip()}
        for call in calls:
            try:
                read = msgspec.json.decode(call.encode("utf-8", "replace"))
            except (msgspec.DecodeError, RecursionError):
                raise Damaged(f"a call of a tool is no JSON: {_short(call)!r}") from None
            for one in read if isinstance(read, list) else [read]:
                if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                    raise Damaged(f"a call of a tool names no tool: {_short(call)!r}")
                yield self._call(one["name"], one.get("arguments", one.get("parameters")))


def unknown_form(entries: Sequence[object]) -> Damaged:
    """Return the refusal of entries that are of no form known."""
    return Damaged(_unknown(form_of(entries)))


def _unknown(met: str) -> str:
    return f"holds {met}: read are conversations of {KNOWN}"


def _langchain(entry: Message) -> tuple[str, Message] | None:
    """Return the role and the fields of a message of LangChain, None for another."""
    if entry.get("lc") == 1 and isinstance(fields := entry.get("kwargs"), dict):
        named = entry.get("id")
        kind = fields.get("type") or (named[-1] if isinstance(named, list) and named else "")
    elif isinstance(fields := entry.get("data"), dict) and "content" in fields:
        kind = entry.get("type", fields.get("type"))
    elif "role" not in entry and "content" in entry:
        kind, fields = entry.get("type"), entry
    else:
        return None
    role = _LANGCHAIN.get(kind) if isinstance(kind, str) else None
    if role == "":
        role = str(fields.get("role"))
        role = _ROLE_OF.get(role, role)
    return None if role is None else (role, fields)


def _of_langchain(role: str, fields: Message) -> Message:
    more = fields.get("additional_kwargs")
    more = more if isinstance(more, dict) else {}
    calls = [
        call
        for name in ("tool_calls", "invalid_tool_calls")
        for call in (fields.get(name) or ())
        if isinstance(call, dict)
    ]
    ids = {call.get("id") for call in calls}
    content = fields.get("content")
    if isinstance(content, list) and calls:
        # The calls stand among the blocks as well, as the provider wrote them.
        content = [
            block
            for block in content
            if not isinstance(block, dict)
            or str(block.get("type")) not in _CALL_BLOCKS
            or (block.get("type") == "tool_use" and block.get("id") not in ids)
        ]
    return {
        "role": role,
        "content": content,
        "tool_calls": calls or more.get("tool_calls"),
        "function_call": None if calls else more.get("function_call"),
        "refusal": more.get("refusal"),
        "reasoning_content": more.get("reasoning_content"),
        "tool_call_id": fields.get("tool_call_id"),
        "is_error": fields.get("status") == "error",
    }


def _is_converse(block: object) -> bool:
    return isinstance(block, dict) and "type" not in block and bool(block.keys() & _CONVERSE.keys())


def _of_converse(block: Message) -> Message | None:
    """Translate one block of Bedrock's Converse API, a union of one field each; None for one that
    says nothing."""
    name, value = next((one for one in block.items() if one[1] is not None), ("", None))
    if name not in _CONVERSE:
        raise Damaged(_unknown(f"a block with the field {_short(name)}"))
    return _CONVERSE[name](value)


def _text_block(words: object) -> Message:
    return {"type": "text", "text": words}


def _converse_call(value: object) -> Message:
    call = _fields(value)
    named = {"id": call.get("toolUseId"), "name": call.get("name")}
    return {"type": "tool_use", **named, "input": call.get("input")}


def _converse_result(value: object) -> Message:
    result = _fields(value)
    listed = result.get("content")
    parts = [_of_converse(one) for one in listed or () if isinstance(one, dict)]
    named = {"type": "tool_result", "tool_use_id": result.get("toolUseId"), "content": parts}
    return {**named, "is_error": result.get("status") == "error"}


def _converse_thought(value: object) -> Message:
    if "redactedContent" in _fields(value):
        return {"type": "redacted_thinking"}
    return {
        "type": "thinking",
        "thinking": _fields(_fields(value).get("reasoningText")).get("text"),
    }


def _converse_image(value: object) -> Message:
    encoded = _fields(_fields(value).get("source")).get("bytes")
    return {"type": "image", "source": {"data": encoded} if encoded else {"url": "s3://"}}


def _converse_citations(value: object) -> Message:
    parts = _fields(value).get("content")
    return _text_block("".join(str(_fields(one).get("text") or "") for one in parts or ()))


_CONVERSE: dict[str, Callable[[Any], Message | None]] = {
    "text": _text_block,
    "json": lambda value: _text_block(json.dumps(value, ensure_ascii=False)),
    "toolUse": _converse_call,
    "toolResult": _converse_result,
    "reasoningContent": _converse_thought,
    "image": _converse_image,
    "guardContent": lambda value: _text_block(_fields(_fields(value).get("text")).get("text")),
    "citationsContent": _converse_citations,
    "searchResult": lambda value: _text_block(json.dumps(value, ensure_ascii=False)),
    "cachePoint": lambda _: None,
    **{name: lambda _: {"type": "file"} for name in ("document", "video", "audio")},
}


def _fields(value: object) -> Message:
    return value if isinstance(value, dict) else {}


def _sdk_block(kind: str, part: Message) -> Message | None:
    """Return the block of a part of the AI SDK that is neither a call nor a result."""
    if kind == "reasoning":
        return {"type": "thinking", "thinking": part.get("text", part.get("reasoning"))}
    if kind == "image" or (kind == "file" and _media(part).startswith("image/")):
        source = part.get("image", part.get("url", part.get("data")))
        if isinstance(source, str) and "://" not in source[:20] and not source.startswith("data:"):
            source = f"data:;base64,{source}"
        return {"type": "image", "source": {"url": source}}
    return None if kind in _SILENT_PARTS or kind.startswith("data-") else part


def _is_sdk_part(part: object) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(part, dict) and (
        (isinstance(kind, str) and kind.startswith("tool-"))
        or (kind == "reasoning" and "text" in part)
    )


def _content_part(part: object) -> object:
    """Return a part of a result's content in the form of a message's parts."""
    if isinstance(part, dict) and part.get("type") in ("media", "image-data", "file-data"):
        return {"type": "image", "image": part.get("data")}
    return part


def _is_call(block: Message | None) -> bool:
    return block is not None and block.get("type") == "tool_use"


def _media(part: Message) -> str:
    return str(part.get("mediaType", part.get("mimeType", "")))


def _user(entry: Message) -> str:
    role = entry.get("role")
    if role is not None and (not isinstance(role, str) or role not in ROLES):
        raise Damaged(_unknown(form_of([entry])))
    return "system" if role in ("system", "developer") else "user"


def _short(value: object) -> str:
    return readable(str(value))[:40]
