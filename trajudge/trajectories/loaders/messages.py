"""Message logs: conversations of agents with tools, in the formats of the Anthropic, OpenAI, Gemini
and Bedrock APIs, LangChain, the Vercel AI SDK and ShareGPT.

Records are located in files, a format is recognised and translated, its events become steps.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import msgspec

from trajudge.trajectories.loaders import _files as detection
from trajudge.trajectories.loaders._files import (
    Damaged,
    check_structures,
    decode,
    name_of,
    readable,
    reason,
    record_of,
    text,
)
from trajudge.trajectories.loaders._run import Values
from trajudge.trajectories.model import (
    ImageRef,
    Loaded,
    Observation,
    Step,
    Trajectory,
    TrajectoryKey,
    Unreadable,
    Want,
    accept_all,
)
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.trajectories.thoughts import split_message
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder
from trajudge.util.jsonl import Line, read_lines

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

# Parts of a message of the AI SDK that are neither text nor a call.
_SILENT_PARTS = {"step-start", "source-url", "source-document", "source", "file"}

Message = Mapping[str, Any]


def form_of(entries: Sequence[object]) -> str:
    """Describe entries of an unknown format, by roles, types or fields."""
    objects = [one for one in entries if isinstance(one, dict)]
    for name in ("role", "type", "from"):
        if named := [*dict.fromkeys(str(one[name]) for one in objects if name in one)]:
            return f"entries with {name} {', '.join(map(repr, map(_short, named[:3])))}"
    if objects:
        return f"entries with the fields {', '.join(map(_short, list(objects[0])[:5]))}"
    return f"entries of the type {type(entries[0]).__name__}" if entries else "no entry"


class Translator:
    """Translates the entries of one conversation, in order: calls without an id get one, which
    the next result with the same name takes."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, str]] = []
        self._count = 0

    def messages(self, entry: Message) -> Iterator[Message]:
        """Yield the messages of an entry as Anthropic's blocks; messages of OpenAI or Anthropic
        are unchanged."""
        form = next((form for form in FORMS if form.recognises(entry)), None)
        if form is not None:
            yield from form.messages(self, entry)
        else:
            role = entry.get("role")
            yield {**entry, "role": _ROLE_OF[role]} if role in ("human", "ai") else entry

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

    def of_gemini(self, entry: Message) -> Iterator[Message]:
        """Yield the message of a ``Content``."""
        parts = entry["parts"]
        parts = [parts] if isinstance(parts, str) else parts
        blocks = [block for part in parts for block in self._gemini_part(part)]
        is_agent = entry.get("role") in ("model", "assistant")
        yield {"role": "assistant" if is_agent else _user(entry), "content": blocks}

    def of_converse(self, entry: Message) -> Iterator[Message]:
        """Yield the message of Bedrock's Converse API."""
        blocks = [_of_converse(block) for block in entry["content"] if isinstance(block, dict)]
        yield {**entry, "content": [block for block in blocks if block]}

    def of_langchain(self, entry: Message) -> Iterator[Message]:
        """Yield the message of one of LangChain's, in any of its serialisations."""
        if read := _langchain(entry):
            yield _of_langchain(*read)

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

    def of_ai_sdk(self, entry: Message) -> Iterator[Message]:
        """Yield the messages of the AI SDK's parts: a ``UIMessage`` has calls, their results and
        the agent's next text."""
        parts = entry["parts"] if isinstance(entry.get("parts"), list) else entry["content"]
        role = "assistant" if entry.get("role") == "assistant" else _user(entry)
        blocks: list[Message] = []
        results: list[Message] = []
        for part in parts:
            call, result = self._sdk_part(part)
            if results and result is None and record_of(call).get("type") != "tool_use":
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
        """Return the block of a part, and the result that it may have."""
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

    def of_sharegpt(self, entry: Message) -> Iterator[Message]:
        """Yield the message of a turn, whose calls are text."""
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


class MessageForm(NamedTuple):
    """A message format: how its entries are recognised and translated. An entry that is not
    ``clear`` is recognised by its role alone."""

    name: str
    recognises: Callable[[Message], bool]
    messages: Callable[[Translator, Message], Iterator[Message]]
    clear: bool = True


def _is_ai_sdk_message(entry: Message) -> bool:
    parts, content = entry.get("parts"), entry.get("content")
    if isinstance(parts, list):
        return any(isinstance(part, dict) and "type" in part for part in parts)
    return isinstance(content, list) and any(map(_is_sdk_part, content))


def _is_converse_message(entry: Message) -> bool:
    content = entry.get("content")
    return isinstance(content, list) and any(
        isinstance(block, dict) and "type" not in block and block.keys() & _CONVERSE.keys()
        for block in content
    )


# The first that recognises an entry counts; one that none does is OpenAI's or Anthropic's.
FORMS = (
    MessageForm("LangChain", lambda entry: _langchain(entry) is not None, Translator.of_langchain),
    MessageForm(
        "ShareGPT", lambda entry: "from" in entry and "value" in entry, Translator.of_sharegpt
    ),
    MessageForm("Bedrock Converse", _is_converse_message, Translator.of_converse, clear=False),
    MessageForm("Vercel's AI SDK", _is_ai_sdk_message, Translator.of_ai_sdk, clear=False),
    MessageForm(
        "Gemini", lambda entry: isinstance(entry.get("parts"), list | str), Translator.of_gemini
    ),
)

KNOWN = ", ".join(
    ("OpenAI (chat, Responses)", "Anthropic", "inspect_ai", *(form.name for form in FORMS))
)


def unknown_form(entries: Sequence[object]) -> Damaged:
    """Return the error for entries of an unknown format."""
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
        # The blocks contain the calls as well, in the provider's format.
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


def _of_converse(block: Message) -> Message | None:
    """Translate one block of Bedrock's Converse API, a union of one field each; None for an
    uninformative one."""
    name, value = next((one for one in block.items() if one[1] is not None), ("", None))
    if name not in _CONVERSE:
        raise Damaged(_unknown(f"a block with the field {_short(name)}"))
    return _CONVERSE[name](value)


def _text_block(words: object) -> Message:
    return {"type": "text", "text": words}


def _converse_call(value: object) -> Message:
    call = record_of(value)
    named = {"id": call.get("toolUseId"), "name": call.get("name")}
    return {"type": "tool_use", **named, "input": call.get("input")}


def _converse_result(value: object) -> Message:
    result = record_of(value)
    listed = result.get("content")
    parts = [_of_converse(one) for one in listed or () if isinstance(one, dict)]
    named = {"type": "tool_result", "tool_use_id": result.get("toolUseId"), "content": parts}
    return {**named, "is_error": result.get("status") == "error"}


def _converse_thought(value: object) -> Message:
    if "redactedContent" in record_of(value):
        return {"type": "redacted_thinking"}
    return {
        "type": "thinking",
        "thinking": record_of(record_of(value).get("reasoningText")).get("text"),
    }


def _converse_image(value: object) -> Message:
    encoded = record_of(record_of(value).get("source")).get("bytes")
    return {"type": "image", "source": {"data": encoded} if encoded else {"url": "s3://"}}


def _converse_citations(value: object) -> Message:
    parts = record_of(value).get("content")
    return _text_block("".join(str(record_of(one).get("text") or "") for one in parts or ()))


_CONVERSE: dict[str, Callable[[Any], Message | None]] = {
    "text": _text_block,
    "json": lambda value: _text_block(json.dumps(value, ensure_ascii=False)),
    "toolUse": _converse_call,
    "toolResult": _converse_result,
    "reasoningContent": _converse_thought,
    "image": _converse_image,
    "guardContent": lambda value: _text_block(record_of(record_of(value).get("text")).get("text")),
    "citationsContent": _converse_citations,
    "searchResult": lambda value: _text_block(json.dumps(value, ensure_ascii=False)),
    "cachePoint": lambda _: None,
    **{name: lambda _: {"type": "file"} for name in ("document", "video", "audio")},
}


def _sdk_block(kind: str, part: Message) -> Message | None:
    """Return the block of a part of the AI SDK that is neither a call nor a result."""
    if kind == "reasoning":
        return {"type": "thinking", "thinking": part.get("text", part.get("reasoning"))}
    media = str(part.get("mediaType", part.get("mimeType", "")))
    if kind == "image" or (kind == "file" and media.startswith("image/")):
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
    """Return a part of a result's content as a part of a message."""
    if isinstance(part, dict) and part.get("type") in ("media", "image-data", "file-data"):
        return {"type": "image", "image": part.get("data")}
    return part


def _user(entry: Message) -> str:
    role = entry.get("role")
    if role is not None and (not isinstance(role, str) or role not in ROLES):
        raise Damaged(_unknown(form_of([entry])))
    return "system" if role in ("system", "developer") else "user"


def _short(value: object) -> str:
    return readable(str(value))[:40]


MAX_ENTRIES = 20_000

_TEXTS = {"text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal"}

_IMAGES = {"image", "image_url", "input_image", "computer_screenshot"}

_NAMED_CALLS = {"function", "mcp", "custom_tool"}

_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use"}

_SILENT_ROLES = ("system", "developer")

# What a message says, and where other programs write its words.
_HELD = {"content", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning"}

_WORDS_ELSEWHERE = {"text", "message", "value", "body", "output", "parts"}

# Items that say nothing about the run.
_SILENT_ITEMS = {"mcp_list_tools", "additional_tools", "compaction_trigger"}

# Items and blocks that are named in a warning and not read.
_UNREAD_ITEMS = {"compaction", "item_reference", "mcp_approval_request", "mcp_approval_response"}

_FILES = {"document", "file", "input_file", "audio", "input_audio", "video", "container_upload"}

_UNREAD_BLOCKS = _FILES | _IMAGES | {"compaction", "data", "fallback", "citation", "annotations"}

_ARGUMENTS = ("arguments", "input", "action", "operation", "queries", "code")

_OUTPUTS = ("output", "outputs", "results", "error")

_DROPPED = {"encrypted_content", "signature"}

# Makes a reference of what a record gives as an image: a data URL, a URL or the id of a file.
ImageOpener = Callable[[str], ImageRef]


class AgentCall(NamedTuple):
    """One call of a tool. ``text`` is the call in an action, ``name({json})``; ``fields`` are
    the arguments, empty if they are not a JSON object."""

    id: str
    name: str
    text: str
    fields: Mapping[str, Any]

    @property
    def is_computer(self) -> bool:
        """Return True if the tool is a screen, whose texts are not pages."""
        return self.name.lower().rpartition(".")[2] in {"computer", "computer_use"}


class AgentTurn(NamedTuple):
    """The agent's thoughts, text and calls between two observations."""

    thoughts: tuple[str, ...]
    texts: tuple[str, ...]
    calls: tuple[AgentCall, ...]


class CallResult(NamedTuple):
    """The result of the call ``call_id``."""

    call_id: str
    texts: tuple[str, ...]
    images: tuple[ImageRef, ...] = ()
    is_error: bool = False
    url: str | None = None


class UserMessage(NamedTuple):
    """A message of the user, or of the program in the user's name."""

    texts: tuple[str, ...]
    images: tuple[ImageRef, ...] = ()


Event = AgentTurn | CallResult | UserMessage


def read_events(
    items: Sequence[object], open_image: ImageOpener, warnings: list[str]
) -> list[Event]:
    """Return the events of a conversation in order; unreadable parts are reported in ``warnings``.

    Raises Damaged for a conversation of more than 20,000 entries, and for entries of an unknown
    format.
    """
    if len(items) > MAX_ENTRIES:
        raise Damaged(f"the conversation has more than {MAX_ENTRIES:,} entries")
    reader, translator = _EventReader(open_image, warnings), Translator()
    for item in items:
        for entry in translator.messages(item) if isinstance(item, dict) else [item]:
            reader.read(entry)
    reader.close_turn()
    return reader.events


class _EventReader:
    """Collects events; the agent's turn remains open until another event."""

    def __init__(self, open_image: ImageOpener, warnings: list[str]) -> None:
        self.events: list[Event] = []
        self._open_image = open_image
        self._warnings = warnings
        self._thoughts: list[str] = []
        self._texts: list[str] = []
        self._calls: list[AgentCall] = []

    def read(self, item: object) -> None:
        """Read a message or an item of the Responses API."""
        if not isinstance(item, dict):
            self._warn("An entry of the conversation is no object.")
            return
        role, kind = item.get("role"), str(item.get("type", ""))
        if role is not None and not item.keys() & _HELD and item.keys() & _WORDS_ELSEWHERE:
            fields = ", ".join(readable(str(name))[:40] for name in list(item)[:5])
            raise Damaged(f"holds messages with the fields {fields}; read are {KNOWN}")
        if role == "user":
            self._read_user(item.get("content"))
        elif role in ("assistant", "model"):
            self._read_assistant(item)
        elif role in ("tool", "function"):
            self._read_result(item, item.get("tool_call_id"), item.get("content"))
        elif role is None:
            self._read_item(item, kind)
        elif role not in _SILENT_ROLES:
            raise unknown_form([item])

    def close_turn(self) -> None:
        """End the agent's turn, if one is open."""
        if self._thoughts or self._texts or self._calls:
            turn = AgentTurn(tuple(self._thoughts), tuple(self._texts), tuple(self._calls))
            self.events.append(turn)
        self._thoughts, self._texts, self._calls = [], [], []

    def _read_user(self, content: object) -> None:
        self.close_turn()
        own: list[object] = []
        for block in content if isinstance(content, list) else [content]:
            if isinstance(block, dict) and "tool_use_id" in block:
                self._read_result(block, block["tool_use_id"], block.get("content"))
            else:
                own.append(block)
        texts, images = self._contents(own)
        if texts or images:
            self.events.append(UserMessage(texts, images))

    def _read_assistant(self, message: Mapping[str, Any]) -> None:
        if self._texts or self._calls:
            self.close_turn()
        for name in ("reasoning_content", "reasoning"):
            self._add_thought(message.get(name))
        content = message.get("content")
        for block in content if isinstance(content, list) else [content]:
            self._read_block(block)
        if refusal := text(message.get("refusal")):
            self._texts.append(refusal)
        among_blocks = {call.id for call in self._calls if call.id}
        for call in _listed(message, "tool_calls"):
            # Some programs write a call among the blocks as well.
            if not isinstance(call, dict) or call.get("id") not in among_blocks:
                self._read_chat_call(call)
        for call in _listed(message, "function_call"):
            self._read_chat_call(call)

    def _read_block(self, block: object) -> None:
        """Read one block of the agent's message."""
        kind = str(block.get("type", "")) if isinstance(block, dict) else "text"
        if not isinstance(block, dict) or kind in _TEXTS:
            for words in self._contents([block])[0]:
                thoughts, rest = split_message(words)
                for thought in thoughts:
                    self._add_thought(thought)
                self._texts += [rest] if rest else []
        elif kind in ("thinking", "reasoning"):
            if block.get("redacted") is True:
                self._warn("Some of the agent's thinking is redacted.")
                self._add_thought(block.get("summary"))
            else:
                self._add_thought(block.get("thinking", block.get("reasoning")))
        elif kind == "redacted_thinking":
            self._warn("Some of the agent's thinking is redacted.")
        elif kind in _CALLS:
            arguments = block.get("input", block.get("arguments"))
            self._add_call(block.get("id"), block.get("name"), arguments)
            if block.get("result") is not None:  # inspect_ai's form of a tool of the server
                self._read_result(block, block.get("id"), block["result"])
        elif "tool_use_id" in block:
            self._read_result(block, block["tool_use_id"], block.get("content"))
        elif kind in _UNREAD_BLOCKS:
            self._skip(kind)
        else:
            raise unknown_form([block])

    def _read_chat_call(self, call: object) -> None:
        if not isinstance(call, dict):
            raise Damaged(f"a call of a tool is no object, but {type(call).__name__}")
        if call.get("parse_error") or call.get("type") == "invalid_tool_call":
            self._warn("The arguments of a call could not be parsed by the agent's program.")
        function = call.get("function", call.get("custom"))
        if isinstance(function, dict):
            arguments = function.get("arguments")
            if "input" in function:  # a custom tool takes text that need not be JSON
                arguments = {"input": function["input"]}
            name = function.get("name")
        else:  # inspect_ai's form, and LangChain's
            name = function if function is not None else call.get("name")
            arguments = call.get("arguments", call.get("args"))
        self._add_call(call.get("id"), name, arguments)

    def _read_item(self, item: Mapping[str, Any], kind: str) -> None:
        """Read an item of the Responses API without a role."""
        if kind == "reasoning":
            for name in ("summary", "content"):
                parts = item.get(name)
                for part in parts if isinstance(parts, list) else ():
                    self._add_thought(part.get("text") if isinstance(part, dict) else part)
        elif kind.endswith("_call"):
            self._read_call_item(item, kind.removesuffix("_call"))
        elif kind.endswith("_call_output"):
            self._read_result(item, item.get("call_id", item.get("id")), item.get("output"))
        elif kind in _UNREAD_ITEMS:
            self._skip(kind)
        elif kind not in _SILENT_ITEMS:
            raise unknown_form([item])

    def _read_call_item(self, item: Mapping[str, Any], tool: str) -> None:
        output = next((item[key] for key in _OUTPUTS if item.get(key) is not None), None)
        # A tool of the server's own has no ``call_id``, and often no result either.
        call_id = item.get("call_id", item.get("id") if output is not None else None)
        # A call of the server's own tools is named by its type.
        name = item.get("name") or (None if tool in _NAMED_CALLS else tool)
        actions = item.get("actions")
        arguments = next((item[key] for key in _ARGUMENTS if item.get(key) is not None), None)
        if tool == "computer" and isinstance(actions, list) and actions:
            for action in actions:
                self._add_call(call_id, name, action)
        elif tool in ("function", "mcp") or isinstance(arguments, dict):
            self._add_call(call_id, name, arguments)
        else:
            self._add_call(call_id, name, {} if arguments is None else {"input": arguments})
        if output is not None:
            self._read_result({"is_error": item.get("error") is not None}, call_id, output)

    def _read_result(self, record: Mapping[str, Any], call_id: object, content: object) -> None:
        self.close_turn()
        texts, images = self._contents(content if isinstance(content, list) else [content])
        error = record.get("error")
        if isinstance(error, dict):
            texts = tuple(filter(None, [text(error.get("message"))])) or texts
        url = record.get("current_url")
        if url is None and isinstance(content, dict):
            url = content.get("current_url")
        is_error = record.get("is_error") is True or isinstance(error, dict)
        call = call_id if isinstance(call_id, str) else ""
        self.events.append(CallResult(call, texts, images, is_error, text(url)))

    def _contents(self, blocks: Iterable[object]) -> tuple[tuple[str, ...], tuple[ImageRef, ...]]:
        """Return the texts and the images of blocks of content."""
        texts: list[str] = []
        images: list[ImageRef] = []
        for block in blocks:
            if isinstance(block, str):
                texts.append(block)
            elif isinstance(block, dict):
                kind = str(block.get("type", ""))
                if kind in _TEXTS:
                    texts.append(str(block.get("text", block.get("refusal")) or ""))
                elif kind in _IMAGES:
                    images.append(self._open_image(image_source(block)))
                elif kind in _FILES:
                    self._skip(kind)
                else:
                    texts.append(_plain(block))
            elif block is not None:
                texts.append(_plain(block))
        return tuple(filter(None, map(text, texts))), tuple(images)

    def _add_thought(self, thought: object) -> None:
        known = _plain(thought) if isinstance(thought, dict | list) and thought else text(thought)
        if known and known not in self._thoughts:  # some programs write it under two names
            self._thoughts.append(known)

    def _add_call(self, call_id: object, name: object, arguments: object) -> None:
        """Add a call; ``arguments`` is an object or its JSON text. Arguments that are not JSON
        are kept, with a warning. Raises Damaged for a call without a tool's name."""
        if not isinstance(name, str) or not name:
            raise Damaged(f"a call of a tool names no tool (its name is {type(name).__name__})")
        label, fields = readable(name), arguments
        key = call_id if isinstance(call_id, str) else ""
        if isinstance(arguments, str):
            try:
                fields = msgspec.json.decode(arguments.encode("utf-8", "replace") or b"{}")
            except (msgspec.DecodeError, RecursionError):
                self._warnings.append(f"The arguments of a call of {label} are no JSON.")
                written = f"{label}({readable(arguments)})"
                self._calls.append(AgentCall(key, label, written, {}))
                return
        shown = readable(json.dumps({} if fields is None else fields, ensure_ascii=False))
        self._calls.append(AgentCall(key, label, f"{label}({shown})", record_of(fields)))

    def _skip(self, kind: str) -> None:
        if "compaction" in kind:
            self._warn("The conversation was compacted: what the agent saw before is not recorded.")
        else:
            self._warn(f"Entries of the type {readable(kind)[:40]!r} are not read.")

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warnings:
            self._warnings.append(sentence)


def _listed(message: Mapping[str, Any], name: str) -> list[Any]:
    """Return the calls under a name: a list, or what stands there alone."""
    value = message.get(name)
    return value if isinstance(value, list) else [] if value in (None, "", {}) else [value]


def image_source(block: Mapping[str, Any]) -> str:
    """Return the source of a block's image: a data URL, a URL, a path, or a file's id.

    Anthropic: ``source``; OpenAI: ``image_url`` (text, or an object with ``url``) or ``file_id``;
    inspect_ai: ``image``; LangChain: ``base64``, ``data`` or ``url``. Empty without one.
    """
    source = block.get("source", block.get("image_url", block.get("image")))
    if isinstance(encoded := block.get("base64", block.get("data")), str):
        return f"data:;base64,{encoded}"
    source = block.get("url") if source is None else source
    if isinstance(source, dict):
        if isinstance(encoded := source.get("data"), str):
            return f"data:;base64,{encoded}"
        source = source.get("url", source.get("file_id"))
    source = block.get("file_id") if source is None else source
    return source if isinstance(source, str) else ""


def _plain(value: object) -> str:
    """Return an unknown block as JSON, without parts that only its server can read."""
    if isinstance(value, dict):
        value = {name: part for name, part in value.items() if name not in _DROPPED}
    return json.dumps(value, ensure_ascii=False)


LEVELS = 1

_SUFFIXES = (".json", ".jsonl")

# Generic names: the folder has the name of the task.
_NAMELESS = {"messages", "conversation", "trajectory", "history", "log", "responses", "chat"}

# Formats of others whose files look alike.
_OTHERS = {"interact_messages.json", "trajectories.jsonl", "judgments.jsonl"}

_CONTAINER = re.compile(rb'"(?:messages|input|output|conversations?|contents|trajectory)"\s*:\s*\[')

_ENTRY = re.compile(
    rb'"(?:role|type|from)"\s*:\s*"(?:user|assistant|system|developer|tool|message|reasoning'
    rb'|function_call|computer_call|human|ai|model|gpt|constructor)"'
)

# A log of inspect_ai holds messages, too.
_INSPECT = re.compile(rb'"eval"\s*:\s*\{')

_JSON: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


class LogRecord(NamedTuple):
    """A record with a conversation: its messages, its fields, and defaults for task id and
    agent."""

    location: str
    fields: Mapping[str, Any]
    task_id: str
    agent: str


def looks_like_log(file: Path) -> bool:
    """Return True if the first 64 KiB of the file contain a conversation."""
    if file.suffix not in _SUFFIXES or file.name in _OTHERS:
        return False
    head = detection.head(file).lstrip(b"\xef\xbb\xbf \r\n\t")
    is_listed = head.startswith(b"[") or (file.suffix == ".jsonl" and _ENTRY.search(head[:200]))
    is_log = (is_listed or _CONTAINER.search(head)) and _ENTRY.search(head)
    return bool(is_log) and not _INSPECT.search(head)


def log_files(path: Path) -> list[Path]:
    """List the file itself, or the JSON files in the folder and its subfolders."""
    if path.is_file():
        return [path.resolve()]
    inside = detection.files(path, "*.json*", levels=LEVELS)
    return [file for file in inside if file.suffix in _SUFFIXES and file.name not in _OTHERS]


def read_records(file: Path, root: DataFolder) -> Iterator[LogRecord | Unreadable]:
    """Yield the records of a file; invalid ones are Unreadable. Raises UserError for a file that
    cannot be opened."""
    if file.suffix == ".jsonl":
        yield from _records_of_lines(file, root)
        return
    try:
        records = find_records(_decoded(bytes(decode(root, file, msgspec.Raw))))
    except (ValueError, RecursionError) as error:
        yield Unreadable(readable(str(file)), reason(error))
        return
    if not records:
        yield Unreadable(readable(str(file)), f"{file.name} holds no conversation")
    for number, fields in enumerate(records, 1):
        yield _record(file, fields, number if len(records) > 1 else None)


def _records_of_lines(file: Path, root: DataFolder) -> Iterator[LogRecord | Unreadable]:
    """Yield one record per line, or a single one if the lines are messages."""
    lines = (_value(file, line) for line in read_lines(file, folder=root))
    first = next(lines, None)
    if is_entry(first):
        rest = list(lines)
        yield from (one for one in rest if isinstance(one, Unreadable))
        entries = [first, *(one for one in rest if not isinstance(one, Unreadable))]
        yield _record(file, {"messages": entries}, None)
        return
    for number, group in _grouped(chain([] if first is None else [first], lines)):
        value = group[0]
        if isinstance(value, Unreadable):
            yield value
        elif not isinstance(value, dict):
            yield Unreadable(f"{readable(str(file))}:{number}", "the line is no object")
        else:
            for fields in find_records(group if len(group) > 1 else value):
                yield _record(file, fields, number)


def _value(file: Path, line: Line) -> object:
    location = f"{readable(str(file))}:{line.number}"
    if line.problem:
        return Unreadable(location, line.problem)
    try:
        return _decoded(line.data)
    except Damaged as error:
        return Unreadable(location, str(error))
    except (ValueError, RecursionError) as error:
        return Unreadable(location, f"the line is no JSON: {reason(error)}")


def _decoded(content: bytes) -> object:
    """Decode JSON of a bounded number of objects. Raises Damaged, ValueError, RecursionError."""
    check_structures(content)
    return python_json.decode(content, _JSON)


def _record(file: Path, fields: Mapping[str, Any], number: int | None) -> LogRecord:
    folder = file.parent
    name, agent = readable(file.stem), name_of(folder)
    if name.lower() in _NAMELESS:
        name, agent = agent, name_of(folder.resolve().parent)
    suffix = "" if number is None else f"-{number}"
    location = readable(str(file)) + ("" if number is None else f":{number}")
    return LogRecord(location, fields, f"{name}{suffix}", agent)


_LISTS = ("messages", "conversation", "conversations", "contents", "trajectory", "values")

_PLACES = (*_LISTS, "input", "output")

_RUN_FIELDS = (
    *("task_id", "benchmark", "attempt", "agent", "model", "goal", "task", "instruction"),
    *("reward", "score", "success"),
)

_AGENTS = ("assistant", "model")

# An empty message: the API's next output is the agent's next turn.
_BREAK = {"role": "user", "content": None}

_ITEMS = {"message", "reasoning", "compaction", "item_reference"}


def is_entry(value: object) -> bool:
    """Return True if the value is a message or an item of a conversation."""
    if not isinstance(value, dict):
        return False
    kind = str(value.get("type", ""))
    is_item = kind in _ITEMS or kind.endswith(("_call", "_call_output"))
    is_message = isinstance(role := value.get("role"), str) and role in ROLES
    return is_item or is_message or any(form.clear and form.recognises(value) for form in FORMS)


def find_records(value: object) -> list[dict[str, Any]]:
    """Return the records of a file, each with one conversation: the object itself, or those of a
    list. A list of entries, or of an API's requests and responses, is one conversation; with
    APIs whose requests repeat the conversation it is one per task. In a list with other values,
    consecutive requests and responses are joined."""
    objects = [one for one in (value if isinstance(value, list) else [value]) if _is_object(one)]
    exchanges = exchanges_of(objects)
    if exchanges and (isinstance(value, list) or exchanges[0].resends):
        return [{**_stated(run), "messages": _entries_of(run)} for run in _runs(exchanges)]
    merged = [*map(_merged, objects)]
    if not isinstance(value, list):
        return merged
    if any(map(is_entry, merged)):
        return [{"messages": merged}]
    groups = [group for _, group in _grouped(objects)]
    if len(groups) == 1:
        return merged
    return [one for group in groups for one in find_records(group if group[1:] else group[0])]


def _grouped(values: Iterable[object]) -> Iterator[tuple[int, list[Any]]]:
    """Yield values with their positions, from 1: an object alone, or consecutive ones of one run
    with the position of the first. Other values are yielded alone."""
    held: list[Any] = []  # most objects stand alone
    number = 0
    for at, value in enumerate(values, 1):
        if held and _is_object(value) and _is_object(held[0]) and _continues(held, value):
            held.append(value)
            continue
        if held:
            yield number, held
        held, number = [value], at
    if held:
        yield number, held


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def find_entries(value: object) -> list[object]:
    """Return the entries of the conversation that the value is or contains; empty without one."""
    if isinstance(value, dict):
        exchange = _exchange(value)
        if exchange and exchange.response and not exchange.resends:
            return [*exchange.request, *exchange.response]
        lists = (value.get(location) for location in _PLACES)
        entries = next((entries for one in lists if (entries := find_entries(one))), [])
        return [*entries, *_last_message(value)]
    if not isinstance(value, list):
        return []
    if any(is_entry(one) for one in value):
        return value
    return _joined([find_entries(one) for one in value if isinstance(one, dict)])


def listed_entries(value: Mapping[str, Any]) -> list[object]:
    """Return the list in a field for conversations, whatever its entries."""
    return next((entries for name in _PLACES if (entries := _entries(value.get(name)))), [])


def _last_message(value: Mapping[str, Any]) -> list[object]:
    """Return the message that a response of Gemini or Bedrock's Converse API adds to the request
    in the same object."""
    candidates, output = value.get("candidates"), value.get("output")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    message = first.get("content") if isinstance(first, dict) else None
    if message is None and isinstance(output, dict):
        message = output.get("message")
    return [message] if is_entry(message) else []


class ApiExchange(NamedTuple):
    """A request to an API and its response, either empty if it was not recorded; ``fields`` are
    those of both objects. Requests of an API that ``resends`` (chat, messages) repeat the
    conversation; those of the Responses API may have only new entries."""

    fields: Mapping[str, Any]
    request: Sequence[object]
    response: Sequence[object]
    resends: bool


def _exchange(value: dict[str, Any]) -> ApiExchange | None:
    """Read a request, a response, or both: in one object, or under ``request`` and ``response``."""
    request, response = value.get("request"), value.get("response")
    outer = _merged({**value, "response": {}}) if isinstance(request, dict) else value
    inner = response if isinstance(response, dict) else outer
    fields = {**outer, **inner}
    messages = [] if "role" in outer else _messages_of(outer)
    answer = _answer_of(inner)
    if messages or answer:
        return ApiExchange(fields, messages, answer, resends=True)
    if any(_entries(fields.get(name)) for name in _LISTS):
        return None  # ``conversation`` is null or the name of one
    items, output = _entries(outer.get("input")), _entries(inner.get("output"))
    if isinstance(words := outer.get("input"), str):
        items = [{"role": "user", "content": words}]
    output = output if any(map(is_entry, output)) else []
    return ApiExchange(fields, items, output, resends=False) if items or output else None


def _merged(value: dict[str, Any]) -> dict[str, Any]:
    """Return the contents of ``request`` and ``response`` as one object."""
    request, response = value.get("request"), value.get("response")
    if not isinstance(request, dict) or not isinstance(response, dict):
        return value
    rest = {name: value[name] for name in value if name not in ("request", "response")}
    return {**rest, **request, **response}


def _answers(exchange: ApiExchange, last: ApiExchange) -> bool:
    """Return True if the value is the response to the request ``last``."""
    is_response = bool(exchange.response) and not exchange.request
    is_open = bool(last.request) and not last.response
    return is_response and is_open and exchange.resends is last.resends


def _continues(before: Sequence[dict[str, Any]], value: dict[str, Any]) -> bool:
    """Return True if the value is the response, or the next request, of the same run as the
    objects before it."""
    previous = _merged(value).get("previous_response_id")
    if previous and previous == _merged(before[-1]).get("id"):
        return True
    first, last, exchange = map(_exchange, (before[0], before[-1], value))
    if first is None or last is None or exchange is None:
        return False
    if not first.resends or not exchange.request:
        return _answers(exchange, last)
    is_asked_again = bool(first.request) and exchange.resends and (last.response or len(before) > 1)
    return bool(is_asked_again) and _opening(exchange.request) == _opening(first.request)


def exchanges_of(objects: Sequence[dict[str, Any]]) -> list[ApiExchange]:
    """Return the exchanges of a log, requests with the responses that follow them; empty if it
    has other values."""
    made: list[ApiExchange] = []
    for exchange in map(_exchange, objects):
        if exchange is None or (made and made[-1].resends is not exchange.resends):
            return []
        if made and _answers(exchange, made[-1]):
            begun = made.pop()
            exchange = begun._replace(  # noqa: PLW2901 - the same exchange
                fields={**begun.fields, **exchange.fields}, response=exchange.response
            )
        made.append(exchange)
    # A single response is a message of the messages API; one of chat has no task.
    is_log = all(one.request or not one.resends for one in made) and any(
        one.response for one in made
    )
    return made if is_log else []


def _runs(exchanges: Sequence[ApiExchange]) -> Iterator[list[ApiExchange]]:
    """Yield the exchanges of each run; with APIs whose requests repeat the conversation, a
    different first message of the user begins a new run."""
    run: list[ApiExchange] = []
    for exchange in exchanges:
        if run and exchange.resends and _opening(exchange.request) != _opening(run[0].request):
            yield run
            run = []
        is_retry = run and (not run[-1].response or run[-1].request == exchange.request)
        if is_retry and exchange.resends:
            run.pop()
        run.append(exchange)
    if run:
        yield run


def _stated(run: Sequence[ApiExchange]) -> dict[str, Any]:
    """Return the run's fields in the exchanges, of repeated ones the last; their ids belong to
    responses, not to the task."""
    pairs = ((name, one.fields.get(name)) for one in run for name in _RUN_FIELDS)
    return {name: value for name, value in pairs if value is not None}


def _entries_of(run: Sequence[ApiExchange]) -> list[object]:
    if not run[0].resends:
        return _joined([[*one.request, *one.response] for one in run])
    entries = [*run[0].request, *run[0].response]
    for exchange in run[1:]:
        # New entries are those after the agent's last turn that is followed by others.
        turns = [at for at, one in enumerate(exchange.request[:-1]) if _role(one) in _AGENTS]
        entries += [*exchange.request[turns[-1] + 1 if turns else 0 :], *exchange.response]
    return entries


def _joined(exchanges: Sequence[list[object]]) -> list[object]:
    """Join consecutive conversations: one that begins like the first includes all entries
    before; of others, entries with an id that is already present are removed."""
    entries: list[object] = []
    for exchange in exchanges:
        if entries and exchange and exchange[0] == entries[0]:
            entries = list(exchange)
        else:
            known = {_records_id(entry) for entry in entries} - {None}
            new = [entry for entry in exchange if _records_id(entry) not in known]
            entries += [*([_BREAK] if entries else []), *new]
    return entries


def _records_id(entry: object) -> str | None:
    key = entry.get("id") if isinstance(entry, dict) else None
    return key if isinstance(key, str) else None


def _opening(messages: Sequence[object]) -> object:
    """Return the user's first text, which is unchanged when images next to it are removed."""
    first = next((entry for entry in messages if _role(entry) == "user"), None)
    content = first.get("content") if isinstance(first, dict) else None
    blocks = content if isinstance(content, list) else [content]
    texts = (block.get("text") if isinstance(block, dict) else block for block in blocks)
    return next((text for text in texts if text), None)


def _entries(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _messages_of(value: Mapping[str, Any]) -> list[object]:
    messages = value.get("messages")
    return messages if isinstance(messages, list) and any(map(_role, messages)) else []


def _answer_of(value: Mapping[str, Any]) -> list[object]:
    """Return the agent's message in a response of the chat or the messages API."""
    if value.get("type") == "message" and _role(value) == "assistant":
        return [value]
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return [message] if _role(message) == "assistant" else []


def _role(value: object) -> object:
    return value.get("role") if isinstance(value, dict) else None


_FINISHING = {"done", "finish", "submit", "terminate", "answer"}

_ANSWER_FIELDS = ("text", "answer", "result")

# Replacements that programs write for images removed from long conversations.
_REMOVED = re.compile(
    r"\[\s*(?:image|screenshot)s?\s+(?:removed|omitted|pruned|cleared)[^\]]*\]", re.I
)


class Course(NamedTuple):
    """The steps of a run and its end; ``telemetry`` counts the steps with an action and the
    tools' errors."""

    steps: tuple[Step, ...]
    answer: str | None
    terminated: bool
    truncated: bool
    telemetry: dict[str, float]


def course_of(events: Sequence[Event], goals: Collection[str], warnings: list[str]) -> Course:
    """Return the course of a conversation. ``goals`` are the user's texts that state the task
    and are no observation, however often they are repeated."""
    turns = [event for event in events if isinstance(event, AgentTurn)]
    last = turns[-1] if turns else None
    walk = _Walk(goals, warnings)
    for event in events:
        if isinstance(event, AgentTurn):
            walk.take_turn(event, is_last=event is last)
        elif isinstance(event, CallResult):
            walk.results.append(event)
        else:
            walk.messages.append(event)
    walk.close()
    finishing = last.calls[-1] if last and last.calls else None
    finished = finishing is not None and finishing.name.lower() in _FINISHING
    answer = _last_words(finishing) if finishing else "\n".join(last.texts if last else ())
    return Course(
        steps=tuple(walk.steps),
        answer=text(answer),
        terminated=finished or text(answer) is not None,
        truncated=finishing is not None and not finished,
        telemetry={
            "n_steps": float(sum(step.action is not None for step in walk.steps)),
            "n_err": float(walk.errors),
        },
    )


def _last_words(call: AgentCall) -> str | None:
    """Return the answer of a finishing call, as JSON if it is not a text; None for any other
    call."""
    if call.name.lower() not in _FINISHING:
        return None
    values = [call.fields[name] for name in _ANSWER_FIELDS if call.fields.get(name) is not None]
    words = next((value for value in values if isinstance(value, str)), None)
    return json.dumps(values[0], ensure_ascii=False) if values and words is None else words


class _Walk:
    """Converts a conversation to steps, with the observations since the last step."""

    def __init__(self, goals: Collection[str], warnings: list[str]) -> None:
        self.steps: list[Step] = []
        self.results: list[CallResult] = []
        self.messages: list[UserMessage] = []
        self.errors = 0
        self._reasoning: list[str] = []
        self._calls: dict[str, AgentCall] = {}
        self._waiting: list[AgentCall] = []
        self._goals = {goal.strip() for goal in goals}
        self._warnings = warnings

    def take_turn(self, turn: AgentTurn, *, is_last: bool) -> None:
        """Add a step for a turn with calls; keep the text of one without for the next step."""
        self._reasoning += turn.thoughts
        if turn.calls or not is_last:
            self._reasoning += turn.texts
        if turn.calls:
            self._add_step("\n".join(call.text for call in turn.calls))
            self._waiting = [call for call in turn.calls if call.id]
            self._calls |= {call.id: call for call in self._waiting}

    def close(self) -> None:
        """Add the last step, if there was an observation or a thought after the last call."""
        if self.results or self.messages or self._reasoning or not self.steps:
            self._add_step(None)
        elif self._waiting:
            self._check_answered(())

    def _add_step(self, action: str | None) -> None:
        step = Step(
            index=len(self.steps),
            observation=self._observe(),
            reasoning="\n".join(self._reasoning) or None,
            action=action,
        )
        self.steps.append(step)
        self._reasoning = []

    def _observe(self) -> Observation:
        """Return the observations since the last step, results in the order of their calls."""
        order = {call.id: location for location, call in enumerate(self._waiting)}
        results = sorted(self.results, key=lambda result: order.get(result.call_id, len(order)))
        self._check_answered(results)
        pages: list[str] = []
        errors: list[str] = []
        images: list[ImageRef] = []
        for result in results:
            self._take_result(result, pages, errors, images)
        for message in self.messages:
            pages += (one for one in message.texts if one.strip() not in self._goals)
            images += message.images
        self.results, self.messages, self._waiting = [], [], []
        self.errors += len(errors)
        kept = [page for page in pages if not _REMOVED.fullmatch(page.strip())]
        if len(kept) < len(pages) and not images:
            images.append(ImageRef(problem="the picture was removed before the run was recorded"))
            self._warnings.append(f"The picture of step {len(self.steps) + 1} was removed.")
        return Observation(
            url=next((result.url for result in reversed(results) if result.url), None),
            axtree="\n".join(kept) or None,
            screenshot=images[-1] if images else None,
            page_error="\n".join(errors) or None,
        )

    def _take_result(
        self, result: CallResult, pages: list[str], errors: list[str], images: list[ImageRef]
    ) -> None:
        call = self._calls.get(result.call_id)
        if call is None:
            self._warnings.append(f"A result names no call: {result.call_id[:80]!r}.")
        images += result.images
        words = "\n".join(result.texts)
        if result.is_error or words.lstrip().lower().startswith("error"):
            errors.append(words or "the tool gave an error without words")
        elif call is None or not call.is_computer:
            pages += result.texts
        else:
            pages += (one for one in result.texts if _REMOVED.fullmatch(one.strip()))

    def _check_answered(self, results: Sequence[CallResult]) -> None:
        answered = {result.call_id for result in results}
        for call in self._waiting:
            if call.id not in answered:
                self._warnings.append(f"A call of {call.name} has no result.")


KIND = "messages"
DETECTION_RANK = 3

# Fields with the outcome: they become the reward, and reach no prompt.
LEAKS = ("reward", "score", "success")

_GOALS = ("goal", "task", "instruction")

_MESSAGES_AGENTS = ("agent", "model")

_RESPONSES = ("resp_", "msg_", "chatcmpl-")

_MAX_WARNINGS = 50

_MAX_ID = 1000


def detect(path: Path) -> bool:
    """Return True if the file, or one in the folder or its subfolders, is a message log."""
    if path.is_file():
        return looks_like_log(path)
    return any(map(looks_like_log, log_files(path)[: detection.MAX_FILES]))


def load(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
    """Yield the conversations of the file, or of the files in the folder and its subfolders.

    Runs of the same agent on the same task without an ``attempt`` are numbered in the order in
    which they are read. Raises UserError without a JSON file.
    """
    files = log_files(path)
    if not files:
        raise UserError(f"{path} holds no message log: --data {KIND}:PATH needs .json or .jsonl")
    root = DataFolder(files[0].parent if path.is_file() else path)
    return _load(files, root, want, needs)


def _load(files: list[Path], root: DataFolder, want: Want, needs: Needs) -> Loaded:
    attempts: Counter[TrajectoryKey] = Counter()
    for record in _records(files, root):
        if isinstance(record, Unreadable):
            yield record
            continue
        key, values = None, Values(with_pictures=bool(needs.screenshots) or needs.goal_images)
        try:
            key = _key(record, attempts, values)
            if want(key):
                yield _trajectory(record, key, values)
        except (ValueError, OSError, RecursionError) as error:
            yield Unreadable(record.location, reason(error), key)


def _records(files: list[Path], root: DataFolder) -> Iterator[LogRecord | Unreadable]:
    for file in files:
        try:
            yield from read_records(file, root)
        except UserError as error:
            yield Unreadable(readable(str(file)), reason(error))


def _key(record: LogRecord, attempts: Counter[TrajectoryKey], values: Values) -> TrajectoryKey:
    fields = record.fields
    agents = (values.name(fields.get(name), name) for name in _MESSAGES_AGENTS)
    names = (
        values.name(fields.get("benchmark"), "benchmark") or KIND,
        next(filter(None, agents), None) or record.agent,
        _task_id(fields, values) or record.task_id,
    )
    if max(map(len, names)) > _MAX_ID:
        raise Damaged(f"the name of the task or of its agent has more than {_MAX_ID:,} characters")
    benchmark, agent, task_id = names
    key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=task_id)
    # Labels refer to the attempt, from which a counted one may differ.
    attempt = values.whole(fields.get("attempt"), "attempt")
    if attempt is not None and 0 <= attempt < 10**9:
        return key.model_copy(update={"attempt": attempt})
    if attempt is not None:
        values.warnings.append("The attempt is not read: it is no number from 0.")
    attempts[key] += 1
    return key.model_copy(update={"attempt": attempts[key] - 1})


def _task_id(fields: Mapping[str, Any], values: Values) -> str | None:
    """Return the task's id; the id of an API's response does not count."""
    task_id = values.name(fields.get("task_id", fields.get("id")), "task_id")
    return None if task_id is None or task_id.startswith(_RESPONSES) else task_id


def _trajectory(record: LogRecord, key: TrajectoryKey, values: Values) -> Trajectory:
    fields, warnings = record.fields, values.warnings
    reward = _reward(fields, values)
    entries = find_entries(fields)
    events = read_events(entries, image_opener(values), warnings)
    if not any(isinstance(event, AgentTurn) for event in events):
        met = form_of(entries or listed_entries(fields))
        raise Damaged(f"holds no turn of an agent, but {met}; read are {KNOWN}")
    opening = next(
        (event.texts for event in events if isinstance(event, UserMessage) and event.texts), ()
    )
    stated = values.first_text(fields, _GOALS)
    goal = stated or "\n".join(opening)
    repeated = (stated,) if stated else (goal, *opening)
    course = course_of(events, repeated, warnings)
    return Trajectory(
        key=key,
        raw_task_id=_task_id(fields, Values()) or record.task_id,
        goal=goal,
        steps=course.steps,
        answer=course.answer,
        official_reward=reward,
        terminated=course.terminated,
        truncated=course.truncated,
        telemetry=course.telemetry,
        metadata={"warnings": [*dict.fromkeys(warnings)][:_MAX_WARNINGS]},
    )


def _reward(fields: Mapping[str, Any], values: Values) -> float | None:
    """Return the first reward; different further ones give a warning."""
    read = {name: values.number(fields.get(name), name) for name in LEAKS}
    stated = {name: reward for name, reward in read.items() if reward is not None}
    if len({*stated.values()}) > 1:
        first, *others = stated
        values.warnings.append(f"The reward is that of {first}; {', '.join(others)} differs.")
    return next(iter(stated.values()), None)


def image_opener(values: Values) -> ImageOpener:
    """Return a function that opens the images of one conversation, counted from 1."""
    count = 0

    def open_image(source: str) -> ImageRef:
        nonlocal count
        count += 1
        if source.lower().startswith("data:"):
            ref = values.inline_picture(source, f"number {count}")
        else:
            where = repr(readable(source)[:80]) if source else "nothing"
            problem = f"number {count} is given as {where}, which is not fetched"
            values.warnings.append(f"The picture {problem}.")
            ref = ImageRef(problem=f"the picture {problem}")
        return ref or ImageRef(problem=f"the picture number {count} is empty")

    return open_image
