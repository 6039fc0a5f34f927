"""Numbers in the messages of servers that refuse a prompt as too long: those of OpenAI, Anthropic,
Gemini, Mistral, Cohere, vLLM, llama.cpp and Text Generation Inference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class OverflowNumbers(NamedTuple):
    """Numbers of a refusal in tokens: the ``window``, the ``prompt`` as the server counted it, and
    what it reserved for the ``reply``; None for what it does not say."""

    window: int | None = None
    prompt: int | None = None
    reply: int | None = None


_NUMBER = r"(\d[\d,]*)"
_WINDOW = (
    rf"maximum context length(?: is| of)? {_NUMBER}",
    rf"context (?:size|window|length) \({_NUMBER}",
    rf"> {_NUMBER} maximum",
    rf"exceed context limit: [\d,]+ \+ [\d,]+ > {_NUMBER}",
    rf"maximum number of tokens allowed \({_NUMBER}",
    rf"with {_NUMBER} maximum context",
    rf"(?:cannot exceed|must be <=|limit of|limit is) {_NUMBER}",
    rf"n_ctx\W+{_NUMBER}",
)
_PROMPT = (
    rf"{_NUMBER} (?:tokens )?in (?:the|your) (?:messages|prompt|input)",
    rf"{_NUMBER} input tokens",
    rf"(?:resulted in|request \(|prompt is too long:|contains|received) {_NUMBER} ?tokens",
    rf"request \({_NUMBER} tokens",
    rf"input token count \({_NUMBER}",
    rf"exceed context limit: {_NUMBER} \+",
    rf"(?:Given:|received) {_NUMBER}",
    rf"n_prompt_tokens\W+{_NUMBER}",
    rf"requested {_NUMBER} tokens",
)
_REPLY = (
    rf"{_NUMBER} (?:tokens )?(?:in|for) the completion",
    rf"exceed context limit: [\d,]+ \+ {_NUMBER}",
    rf"too large: {_NUMBER}",
)


def overflow_numbers(message: str) -> OverflowNumbers:
    """Parse the numbers in a server's message about a prompt that is too long."""
    return OverflowNumbers(*(_first(message, kind) for kind in (_WINDOW, _PROMPT, _REPLY)))


def with_numbers(sentence: str, message: str) -> str:
    """Append to ``said``, which shows a server's ``message`` cut, the numbers that it lacks."""
    stated = overflow_numbers(message)
    if overflow_numbers(sentence) == stated:
        return sentence
    numbers = (
        ("maximum context length is {} tokens", stated.window),
        ("{} tokens in the prompt", stated.prompt),
        ("{} for the completion", stated.reply),
    )
    shown = ", ".join(words.format(number) for words, number in numbers if number is not None)
    return f"{sentence} ({shown})"


def _first(message: str, patterns: tuple[str, ...]) -> int | None:
    return next(_numbers(message, patterns), None)


def _numbers(message: str, patterns: tuple[str, ...]) -> Iterator[int]:
    for pattern in patterns:
        if match := re.search(pattern, message, re.IGNORECASE):
            yield int(match[1].replace(",", ""))
