"""How the original harness compares text: cleaned, whole or as a substring.

The agent's text is data: it never becomes a pattern.
"""

from __future__ import annotations

import re

from trajudge.rules.verdict import Assertion, Outcome, shown

OR = " |OR| "

# What the harness's tokeniser (Penn Treebank conventions) always parts from a word.
_APART = re.escape(';@#$%&?!()[]{}<>*"`«»“”‘’„…')
_AFTER = (
    rf"(?=$|[\s{_APART}]|--|\.\.|[,:](?:\D|$)|'(?:[\s{_APART}',:.]|$|(?:s|m|d|ll|re|ve)\b)"
    rf"|\.[\])}}>\"'»”’]*(?:\s|$))"
)


def clean(text: str) -> str:
    """Lower case, no outer white space, without one pair of outer quotes."""
    text = text.strip()
    for quote in "'\"":
        if text.startswith(quote) and text.endswith(quote):
            text = text[1:-1]
            break
    return text.lower()


def text_assertion(
    name: str, outcome: Outcome, reason: str, reference: str, text: str
) -> Assertion:
    """Record a comparison of cleaned texts."""
    return Assertion(
        name=name,
        outcome=outcome,
        reason=reason,
        expected_normalised=clean(reference),
        found_normalised=shown(text),
        expected=reference,
    )


def exact_match(reference: str, cleaned: str) -> bool:
    """Return the cleaned reference equals the text, which the caller has cleaned (once for all
    checks)."""
    return clean(reference) == cleaned


def must_include(reference: str, cleaned: str, *, tokens: bool = False) -> bool:
    """Return the cleaned reference is part of the cleaned text.

    With ``tokens`` a reference of one character must be a token of its own, so that "2" is not
    found in "12"; the harness asks for it only where the reference is the answer's only one.
    """
    wanted = clean(reference)
    if tokens and len(wanted) == 1:
        return is_token(wanted, cleaned)
    return wanted in cleaned


def is_token(character: str, text: str) -> bool:
    """Tell whether the character stands alone in the text, by the conventions of the Penn Treebank.

    Brackets, quotes, ``$%&?!;@#*`` and final periods are parted from words; ``1,2``, ``2/3``,
    ``2-3`` and ``2.5`` are single tokens. A period before white space ends a token. Linear in
    the length of the text.
    """
    it = re.escape(character)
    before = rf"(?<=[\s{_APART}]{it})|(?<![\s\S]{it})|(?<='{it})(?<!\w'{it})|(?<=--{it})"
    before += rf"|(?<=\.\.{it})" if character.isdigit() else rf"|(?<=\.\.{it})|(?<=[,:]{it})"
    # The character first, what stands before it afterwards: so the search leaps to it.
    return re.search(f"{it}{_AFTER}(?:{before})", text) is not None
