"""Amounts, dates, durations and numbers in running text.

``mentions`` finds every one of a kind with its place and its normal form; what a mention means (the
answer, a part of it, something denied) is for the caller to say. ``digits_for_words`` writes
numbers in words as digits, so that one set of patterns reads both.
"""

from __future__ import annotations

from trajudge.rules.values.prose.mentions import ProseKind, ProseMention, mentions, without
from trajudge.rules.values.prose.number_words import digits_for_words, with_fractions

__all__ = ["ProseKind", "ProseMention", "digits_for_words", "mentions", "with_fractions", "without"]
