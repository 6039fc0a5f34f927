"""The part of a sentence that speaks of a value: up to the next comma, semicolon or conjunction."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from trajudge.rules.values.quantities import MONTHS

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_CUT = re.compile(
    r"[;|=→+]|,(?!\d)|->|\b(?:but|and|while|whereas|though|although)\b| - ", re.IGNORECASE
)
_JOINED = re.compile(  # "Saturday and Sunday", "Tuesday, June 16, 2026"
    rf"\b(?:\w+days?|{_MONTH}|\d{{1,4}})(?: ?,| and| ?&)(?= (?:\w+days?|(?:{_MONTH})\b|\d{{4}}\b))",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\s*(?:,|;|&|/|\d{1,2}[).]|,?\s*\band\b|,?\s*\bas well as\b)\s*(?:the\s+)?", re.IGNORECASE
)
_LEADING = re.compile(
    r"\W*(?:in|on|at|for|from|with|during|without|between|as|until|by|of|unlike)\b[^,;]*,",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"[,;]? ?(?:but|and|though|although|yet|which|;)\b,?"
    r"((?: (?:it|he|she|they|this|that|which))?"
    r" (?:is|are|was|were|has|have|had|does|do|did|comes?|came|lacks?|isn't|aren't|hasn't|doesn't"
    r"|don't|didn't|wasn't)\b[^#,;]*)"
    r"|, ((?:all|none|each|both)(?: of (?:them|these|those|which))? [^#,;]*)",
    re.IGNORECASE,
)
_PARENTHESES = re.compile(r"\([^()]*\)")

Span = tuple[int, int]


class Segment(NamedTuple):
    """``own`` is what stands with a value, ``#`` in the place of the value; ``earlier`` are the
    segments before it in the sentence, the nearest first; ``more`` is a clause after it that still
    speaks of it: ``but it has no ...``."""

    own: str
    earlier: tuple[str, ...]
    more: str = ""


def segments(sentence: str, spans: Sequence[Span], sure: Collection[Span]) -> list[Segment]:
    """Return the segment of each span. A list of values stands in one segment, a phrase that opens
    the sentence (``On Friday, ...``) with what follows it; parentheses are their own."""
    outer = _PARENTHESES.sub(lambda match: " " * len(match[0]), sentence)
    groups = _lists(sentence, spans, sure)
    cuts = [match.span() for match in _CUT.finditer(_shielded(outer, sure, groups))]
    blank = _blanked(outer, [span for group in groups if len(group) > 1 for span in group])
    by_span: dict[Span, Segment] = {}
    for group in groups:
        for start, end in group:
            if outer[start:end] == sentence[start:end]:
                by_span[start, end] = _segment(blank, cuts, (start, end), spans)
            else:
                opening, closing = sentence.rfind("(", 0, start), sentence.find(")", end)
                inside = _blanked(sentence, group)[opening + 1 : closing]
                by_span[start, end] = Segment(inside, (outer[:opening],))
    return [by_span[span] for span in spans]


def _lists(text: str, spans: Sequence[Span], sure: Collection[Span]) -> list[list[Span]]:
    """Return the spans in groups: those of one list together."""
    groups: list[list[Span]] = []
    for span in sorted(set(spans)):
        last = groups[-1][-1] if groups else None
        listed = last and last[1] <= span[0] and last in sure and span in sure
        if last and listed and _LIST.fullmatch(text[last[1] : span[0]]):
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _blanked(text: str, spans: Iterable[Span]) -> str:
    for start, end in spans:
        text = text[:start] + f"{'#':<{end - start}}" + text[end:]
    return text


def _shielded(text: str, spans: Collection[Span], groups: Sequence[Sequence[Span]]) -> str:
    """Return the text with letters for every mark that cuts no segment."""
    joined = [match.span() for match in _JOINED.finditer(text)]
    joined += [(group[0][0], group[-1][1]) for group in groups]
    leading = _LEADING.match(text)
    if leading and not any(start < leading.end() for start, _ in spans):
        joined.append((leading.end() - 1, leading.end()))
    for start, end in joined:
        text = text[:start] + "x" * (end - start) + text[end:]
    return text


def _segment(text: str, cuts: Sequence[Span], span: Span, spans: Sequence[Span]) -> Segment:
    start, end = span
    stops = [stop for _, stop in cuts if stop <= start]
    begins = [begin for begin, _ in cuts if begin >= end]
    last = min(begins, default=len(text))
    edges = zip([0, *stops], [begin for begin, stop in cuts if stop <= start], strict=False)
    earlier = [text[a:b] for a, b in edges]
    own = _blanked(text, [span])[max(stops, default=0) : last]
    rest = text[last : min((one for one, _ in spans if one >= last), default=len(text))]
    more = _MORE.match(rest)
    return Segment(own, tuple(reversed(earlier)), (more[1] or more[2]) if more else "")
