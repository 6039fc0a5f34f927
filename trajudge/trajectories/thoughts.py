"""Separate a model's reasoning from its text: one table of the chat templates' delimiters.

Sources: the chat templates of the models named below, and the reasoning parsers of vLLM, SGLang and
llama.cpp.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_WRAPPERS = (
    (r"(?i:<think(?:ing)?>)", r"(?i:</think(?:ing)?>)"),  # DeepSeek-R1, Qwen3, GLM-4.5, MiniMax-M2
    (r"(?i:<thought>)", r"(?i:</thought>)"),  # EXAONE Deep
    (r"<seed:think>", r"</seed:think>"),  # Seed-OSS
    ("◁think▷", "◁/think▷"),  # Kimi
    (r"\[THINK\]", r"\[/THINK\]"),  # Magistral
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Command A Reasoning
    (r"<\|channel>thought", r"<channel\|>"),  # Gemma 4
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),  # OpenThinker
)
# Required parts of some of these, in lower case, to skip the patterns for most texts.
_HINTS = ("think", "thought", "channel|>", "analysis")
_START = re.compile("|".join(opening for opening, _ in _WRAPPERS))
_END = re.compile("|".join(closing for _, closing in _WRAPPERS))
# Harmony (gpt-oss): messages in channels, of which "final" is the answer.
_CHANNEL = re.compile(
    r"<\|channel\|>\s{0,3}(analysis|commentary|final)\b[^<]{0,200}"
    r"(?:<\|constrain\|>[^<]{0,40})?(?:<\|message\|>)?"
)
_MESSAGE_END = re.compile(r"<\|(?:end|return|call|start)\|>")
# The same after a server dropped the special tokens: "analysisThe user ...assistantfinalYes."
_BARE_START = re.compile(r"\A\s{0,3}(?:assistant)?analysis(?=[A-Z\"'`(<\[{*])")
_BARE_FINAL = "assistantfinal"
# Further delimiters in agents' messages, which prompts of agents request.
_OF_AGENTS = (
    (r"(?i:<(?:seed:)?(?:thoughts|reasoning)>)", r"(?i:</(?:seed:)?(?:thoughts|reasoning)>)"),
)
_MOST_BLOCKS = 1_000  # of one message: more are not thoughts, and would take quadratic time
_BLOCK = re.compile(
    "|".join(f"(?:{opening})(.*?)(?:{closing})" for opening, closing in (*_WRAPPERS, *_OF_AGENTS)),
    re.DOTALL,
)
_OPENING = re.compile("|".join(opening for opening, _ in (*_WRAPPERS, *_OF_AGENTS)))
# Reasoning that the prompts of judges ask for: only a block that is closed is one.
_REASONING = re.compile(r"<\s{0,3}(/?)\s{0,3}reasoning(?:\s[^<>]{0,200})?>", re.IGNORECASE)


class SplitText(NamedTuple):
    """The parts of a text: the ``answer``, the ``thoughts`` and the content of ``<reasoning>``.
    ``closed``: a block of either ends in the text. ``open``: the text ends inside a block."""

    answer: str
    thoughts: str = ""
    reasoning: str = ""
    closed: bool = False
    open: bool = False


def split_thoughts(text: str, *, reasoning: bool = False) -> SplitText:
    """Separate the thoughts in a model's text from its answer, in linear time.

    Everything before the last closing delimiter is thoughts, because some templates put the opening
    one into the prompt; an unclosed block extends to the end of the text. With ``reasoning``,
    closed blocks ``<reasoning>...</reasoning>`` are removed as well; an unclosed one remains in the
    answer, with ``open`` set.
    """
    split = SplitText(text)
    if not text.isascii() or any(map(text.lower().__contains__, _HINTS)):
        split = _split_template(text)
    if not reasoning or "reasoning" not in split.answer.lower():
        return split
    answer, blocks, is_open = _cut_reasoning(split.answer)
    return split._replace(
        answer=answer,
        reasoning="\n".join(blocks),
        closed=split.closed or bool(blocks),
        open=split.open or is_open,
    )


def split_message(text: str) -> tuple[list[str], str]:
    """Separate the thoughts in an agent's message, without delimiters, from the rest.

    Stricter than ``split_thoughts``, because an agent may write text before its thoughts and may
    quote a delimiter: thoughts are closed blocks, text before a closing delimiter without an
    opening one, and the whole message if it begins with an opening delimiter that is never closed.
    """
    if sum(1 for _ in _OPENING.finditer(text)) > _MOST_BLOCKS:
        return [], text
    channels = _split_channels(text)
    if channels.answer != text:
        return [part for part in (channels.thoughts.strip(),) if part], channels.answer.strip()
    thoughts = [next(filter(None, block.groups()), "") for block in _BLOCK.finditer(text)]
    rest = _BLOCK.sub("", text)
    if end := _END.search(rest):
        thoughts.insert(0, rest[: end.start()])
        rest = rest[end.end() :]
    begun = rest.lstrip()
    if opening := _OPENING.match(begun):
        thoughts.append(begun[opening.end() :])
        rest = ""
    words = rest if rest == text else rest.strip()
    return [thought.strip() for thought in thoughts if thought.strip()], words


def without_thoughts(text: str) -> str:
    """Return the text without the thoughts of its chat template."""
    return split_thoughts(text).answer


def _split_template(text: str) -> SplitText:
    channels = _split_channels(text)
    answer = channels.answer
    last = 0
    for match in _END.finditer(answer):
        last = match.end()
    opened = _START.search(answer, last)
    end = opened.start() if opened else len(answer)
    parts = (channels.thoughts, answer[:last], answer[end:])
    return SplitText(
        answer[last:end],
        "\n".join(part for part in parts if part),
        closed=channels.closed or last > 0,
        open=channels.open or opened is not None,
    )


def _split_channels(text: str) -> SplitText:
    """Separate Harmony's channels. A text without any is an answer."""
    headers = list(_CHANNEL.finditer(text))
    if not headers:
        return _split_bare_channels(text)
    answer: list[str] = []
    thoughts = [text[: headers[0].start()]]
    closed, is_open = False, False
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, limit in zip(headers, ends, strict=True):
        end = _MESSAGE_END.search(text, header.end(), limit)
        body = text[header.end() : end.start() if end else limit]
        is_final = header[1] == "final"
        (answer if is_final else thoughts).append(body)
        is_open = not is_final and end is None and limit == len(text)
        closed |= not is_final and not is_open
    thoughts = [part for part in map(_MESSAGE_END.sub, [""] * len(thoughts), thoughts) if part]
    return SplitText("\n".join(answer), "\n".join(thoughts), closed=closed, open=is_open)


def _split_bare_channels(text: str) -> SplitText:
    start = _BARE_START.match(text)
    if start is None:
        return SplitText(text)
    thoughts, final, answer = text[start.end() :].rpartition(_BARE_FINAL)
    if not final:
        return SplitText("", answer, open=True)
    return SplitText(answer, thoughts, closed=True)


def _cut_reasoning(text: str) -> tuple[str, list[str], bool]:
    """Remove the outermost closed blocks; return the rest, the content of the blocks, and
    whether the text ends inside one."""
    opened: list[re.Match[str]] = []
    pairs: list[tuple[re.Match[str], re.Match[str]]] = []
    for tag in _REASONING.finditer(text):
        if not tag[1]:
            opened.append(tag)
        elif opened:
            start = opened.pop()
            while pairs and pairs[-1][0].start() > start.start():
                pairs.pop()
            pairs.append((start, tag))
    kept, position = [], 0
    for start, end in pairs:
        kept.append(text[position : start.start()])
        position = end.end()
    kept.append(text[position:])
    is_open = bool(opened) and opened[-1].start() >= position
    return "\n".join(kept), [text[a.end() : b.start()].strip() for a, b in pairs], is_open
