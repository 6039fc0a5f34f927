"""What a model thought and what it said, where a server left both in one text."""

from __future__ import annotations

import re

# Wrappers of published models and their servers: DeepSeek, Qwen and most others ``<think>``, Seed
# ``<seed:think>``, Kimi ``◁think▷``, Magistral ``[THINK]``; agents' prompts ask for others.
_NAME = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning)"
_OPEN = rf"(?:<{_NAME}>|◁think▷|\[THINK\])"
_CLOSE = rf"(?:</{_NAME}>|◁/think▷|\[/THINK\])"
_MARK = re.compile(_CLOSE, re.IGNORECASE)
_BLOCK = re.compile(rf"{_OPEN}(.*?){_CLOSE}", re.IGNORECASE | re.DOTALL)
_UNCLOSED = re.compile(rf"\s*{_OPEN}(.*)", re.IGNORECASE | re.DOTALL)
# gpt-oss writes each part of a message into a channel of its own (OpenAI's Harmony format).
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]*(?:<\|constrain\|>\w*)?<\|message\|>")
_TOKENS = re.compile(r"<\|(?:start|end|return|call)\|>(?:assistant)?")


def split_thoughts(text: str) -> tuple[list[str], str]:
    """Return the thoughts in a text that a model wrote, and the rest.

    Thoughts are what stands between a wrapper's marks, before a closing mark whose opening one the
    chat template held, and behind an opening mark at the beginning that is never closed.
    """
    if "<|channel|>" in text:
        return _of_channels(text)
    thoughts = [block[1] for block in _BLOCK.finditer(text)]
    rest = _BLOCK.sub("", text)
    if mark := _MARK.search(rest):
        before, rest = rest[: mark.start()], rest[mark.end() :]
        thoughts.insert(0, before)
    if unclosed := _UNCLOSED.fullmatch(rest):
        thoughts.append(unclosed[1])
        rest = ""
    if rest != text:
        rest = rest.strip()
    return [thought.strip() for thought in thoughts if thought.strip()], rest


def _of_channels(text: str) -> tuple[list[str], str]:
    start, *parts = _CHANNEL.split(text)
    thoughts: list[str] = []
    words = [_TOKENS.sub("", start).strip()]
    for channel, content in zip(parts[::2], parts[1::2], strict=True):
        kept = thoughts if channel == "analysis" else words
        kept.append(_TOKENS.sub("", content).strip())
    return [one for one in thoughts if one], "\n".join(filter(None, words))
