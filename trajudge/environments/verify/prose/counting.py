"""What a number counts or is measured in, beside what the goal asks for."""

from __future__ import annotations

import re

from trajudge.environments.verify.prose import cues
from trajudge.environments.verify.prose.passages import Mention
from trajudge.environments.verify.prose.qualifiers import counts
from trajudge.environments.verify.prose.question import Question, stems, unit


def is_of_other_unit(mention: Mention, question: Question) -> bool:
    """Tell whether it is measured in another unit than the goal counts: ``14 hours`` of days."""
    unit_of_it = measured(mention) if question.counted_unit else ""
    return bool(unit_of_it) and unit_of_it != question.counted_unit


def is_in_unit(mention: Mention, question: Question) -> bool:
    """Tell whether it is measured in the unit that the goal asks for: ``87.5 %``."""
    return bool(question.counted_unit) and measured(mention) == question.counted_unit


def measured(mention: Mention) -> str:
    """Return the unit of a number, "" if it has none."""
    if cues.PER_CENT.match(mention.whole_after):
        return "percent"
    counted = cues.COUNTED.match(mention.whole_after)
    return unit(counted[1].split()[0].strip("-")) if counted else ""


def counts_another(mention: Mention, question: Question) -> bool:
    """Tell whether a number counts something that the goal, which asks how many, does not name."""
    figure = question.counts and mention.text[:1].isdigit()
    counted = cues.COUNTED.match(mention.whole_after) if figure else None
    words = counted[1].casefold().split() if counted else []
    if not words or words[0].strip("-") in cues.FUNCTION_WORDS or unit(words[0]):
        return False
    return not stems(" ".join(words)) & (question.stems | cues.COUNTABLE_STEMS)


def is_loose(mention: Mention, question: Question) -> bool:
    """Tell whether a number counts or names something that the goal does not speak of, or of
    which the goal states how many."""
    if question.asks_year:
        return not cues.ANY_YEAR.fullmatch(mention.form)
    if question.counted_unit and measured(mention) == question.counted_unit:
        return False
    per_cent = cues.PER_CENT.match(mention.after) and not cues.PER_CENT.search(question.text)
    model = cues.MODEL_NAME.search(mention.whole_before)
    return bool(cues.YEAR.fullmatch(mention.text) or per_cent or model) or _counts_stranger(
        mention, question
    )


def _counts_stranger(mention: Mention, question: Question) -> bool:
    counted = cues.COUNTED.match(mention.whole_after)
    if not counted:
        return False
    word = re.findall(r"[^\W\d_]+", counted[1])[0]
    if cues.REFERRED.search(mention.before) or counts(question.text, word):
        return True
    return word.casefold() not in cues.FUNCTION_WORDS and not stems(counted[1]) & question.stems
