"""Conversations as events: what an agent said and called, and what it was given.

Each part is read where it stands, whichever API it belongs to: by ``role`` for messages, by
``type`` for the items of the Responses API and for blocks of content. inspect_ai's messages have
the names of chat with blocks of their own; ``dialects`` translates the forms of other programs.
Signatures and encrypted content are dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.loaders.files import Damaged, readable, text
from trajudge.trajectories.loaders.messages.dialects import KNOWN, Translator, unknown_form
from trajudge.trajectories.model import ImageRef
from trajudge.trajectories.thoughts import split_message

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
    """One call of a tool. ``text`` is the call as an action shows it, ``name({json})``; ``fields``
    the arguments, empty where they are no JSON object."""

    id: str
    name: str
    text: str
    fields: Mapping[str, Any]

    @property
    def is_computer(self) -> bool:
        """Tell whether the tool is a screen, whose texts are no page."""
        return self.name.lower().rpartition(".")[2] in {"computer", "computer_use"}


class AgentTurn(NamedTuple):
    """What the agent thought, said and called before it saw anything new."""

    thoughts: tuple[str, ...]
    texts: tuple[str, ...]
    calls: tuple[AgentCall, ...]


class CallResult(NamedTuple):
    """What a tool gave back for the call ``call_id``."""

    call_id: str
    texts: tuple[str, ...]
    images: tuple[ImageRef, ...] = ()
    is_error: bool = False
    url: str | None = None


class UserMessage(NamedTuple):
    """What the user, or the program in the user's name, told or showed."""

    texts: tuple[str, ...]
    images: tuple[ImageRef, ...] = ()


Event = AgentTurn | CallResult | UserMessage


def _make_call(call_id: object, name: object, arguments: object, warnings: list[str]) -> AgentCall:
    """Make a call of its parts; ``arguments`` is an object or its JSON text. Arguments that are no
    JSON stay as they are, with a warning. Raises Damaged for a call that names no tool."""
    if not isinstance(name, str) or not name:
        raise Damaged(f"a call of a tool names no tool (its name is {type(name).__name__})")
    label = readable(name)
    fields = arguments
    if isinstance(arguments, str):
        try:
            fields = msgspec.json.decode(arguments.encode("utf-8", "replace") or b"{}")
        except (msgspec.DecodeError, RecursionError):
            warnings.append(f"The arguments of a call of {label} are no JSON.")
            return AgentCall(_id(call_id), label, f"{label}({readable(arguments)})", {})
    shown = readable(json.dumps({} if fields is None else fields, ensure_ascii=False))
    by_name = fields if isinstance(fields, dict) else {}
    return AgentCall(_id(call_id), label, f"{label}({shown})", by_name)


def _id(value: object) -> str:
    return value if isinstance(value, str) else ""


def read_events(
    items: Sequence[object], open_image: ImageOpener, warnings: list[str]
) -> list[Event]:
    """Return the events of a conversation in order; what cannot be read is said in ``warnings``.

    Raises Damaged for a conversation of more than 20,000 entries, and for one with entries that
    are of no form known.
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
    """Collects events; the agent's turn stays open until something else happens."""

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
        """Read one block of what the agent gave."""
        kind = str(block.get("type", "")) if isinstance(block, dict) else "text"
        if not isinstance(block, dict) or kind in _TEXTS:
            for words in self._contents([block])[0]:
                thoughts, rest = split_message(words)
                for thought in thoughts:
                    self._add_thought(thought)
                self._texts += [rest] if rest else []
        elif kind in ("thinking", "reasoning"):
            self._read_thinking(block)
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

    def _read_thinking(self, block: Mapping[str, Any]) -> None:
        if block.get("redacted") is True:
            self._warn("Some of the agent's thinking is redacted.")
            self._add_thought(block.get("summary"))
        else:
            self._add_thought(block.get("thinking", block.get("reasoning")))

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
        """Read an item of the Responses API that has no role."""
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
        """Return the texts and the pictures of blocks of content."""
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
        self._calls.append(_make_call(call_id, name, arguments, self._warnings))

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
    """Return where a block says its picture is: a data URL, a URL, a path, or a file's id.

    Anthropic: ``source``; OpenAI: ``image_url`` (text, or an object with ``url``) or ``file_id``;
    inspect_ai: ``image``; LangChain: ``base64``, ``data`` or ``url``. Empty if nowhere.
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
    """Return what has no form of its own as JSON, without what only its server can read."""
    if isinstance(value, dict):
        value = {name: part for name, part in value.items() if name not in _DROPPED}
    return json.dumps(value, ensure_ascii=False)
