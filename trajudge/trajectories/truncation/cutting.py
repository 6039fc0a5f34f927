"""Texts cut in the middle to a number of tokens."""

from __future__ import annotations

from collections.abc import Callable

from trajudge.trajectories.tokens import count_tokens, fits


def cut_middle(text: str, budget: int, *, head_share: float = 2 / 3) -> str:
    """Cut ``text`` to at most ``budget`` tokens (if those hold the marker): beginning and end stay.

    The marker names how many characters were left out. Long texts are cut at line breaks.
    """
    if fits(text, budget):
        return text

    def kept(characters: int) -> str:
        head = int(characters * head_share)
        tail = characters - head
        start, end = _to_line_breaks(text, head, len(text) - tail)
        return f"{text[:start]}\n[... {end - start} characters left out ...]\n{text[end:]}"

    # No text is counted at less than a twentieth of a token per character.
    most = min(len(text) - 1, 20 * budget)
    return kept(largest(most, lambda characters: count_tokens(kept(characters)) <= budget))


def _to_line_breaks(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen the cut to complete lines, where a line break is near on both sides."""
    before = text.rfind("\n", max(0, start - 200), start)
    after = text.find("\n", end, end + 200)
    return (start if before < 0 else before), (end if after < 0 else after + 1)


def largest(most: int, holds: Callable[[int], bool]) -> int:
    """Find the largest number in 0..``most`` for which ``holds``, by bisection; 0 if none."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
