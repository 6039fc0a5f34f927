"""Values that stand together: the ends of a range, an "either or", the members of a list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from trajudge.environments.verify.prose import cues
from trajudge.environments.verify.prose.question import Question
from trajudge.environments.verify.prose.roles import MentionRole, Weighed
from trajudge.environments.verify.prose.wanted import Wanted

_BETWEEN = re.compile(r"\s*(?:,|;|&|,?\s*\band\b|,?\s*\bas well as\b)\s*(?:the\s+)?", re.IGNORECASE)
_NOT_OFFERED = {MentionRole.DENIED, MentionRole.ELSEWHERE, MentionRole.FOREIGN}


def _neighbours(weighed: Sequence[Weighed]) -> list[tuple[Weighed, Weighed]]:
    """Return the values that follow one another in a sentence; of two readings of one value the
    sure one."""
    places: dict[tuple[int, int], Weighed] = {}
    for one in weighed:
        place = one.mention.sentence, len(one.mention.whole_before)
        if place not in places or (one.mention.sure and not places[place].mention.sure):
            places[place] = one
    pairs = pairwise(places.values())
    return [(a, b) for a, b in pairs if a.mention.sentence == b.mention.sentence]


def without_ranges(weighed: Sequence[Weighed], wanted: Wanted, question: Question) -> list[Weighed]:
    """Make both ends of a range bounds; where both are wanted, the range is the outcome."""
    end = MentionRole.HEDGED if wanted.family == "names" else MentionRole.BOUND
    bounds: set[int] = set()
    outcomes: set[int] = set()
    for a, b in _neighbours(weighed):
        between = b.mention.before
        if cues.MOVED_FROM.search(a.mention.whole_before):
            continue
        opened = cues.OPENS_RANGE.search(a.mention.before)
        if cues.RANGE.match(between) and (opened or between.strip().casefold() != "and"):
            if question.takes_until and wanted.has(b.mention.form):
                bounds.add(id(a))
                continue
            if question.takes_from and wanted.has(a.mention.form):
                bounds.add(id(b))
                continue
            both = wanted.has(a.mention.form) and wanted.has(b.mention.form)
            (outcomes if both else bounds).update((id(a), id(b)))
    return [
        one._replace(role=end)
        if id(one) in bounds
        else one._replace(role=MentionRole.PLAIN, concludes=True)
        if id(one) in outcomes
        else one
        for one in weighed
    ]


def alternatives(weighed: Sequence[Weighed], wanted: Wanted) -> bool | None:
    """Tell whether a wanted value stands in an "either or" with another that is surely one; None if
    it stands in none."""
    for a, b in _neighbours(weighed):
        mixed = wanted.has(a.mention.form) is not wanted.has(b.mention.form)
        offered = not {a.role, b.role} & _NOT_OFFERED
        if mixed and cues.OR.match(b.mention.before) and offered:
            return a.mention.sure and b.mention.sure
    return None


def listed_with(ours: Sequence[Weighed], others: Sequence[Weighed]) -> bool:
    """Tell whether every wanted value stands in a list with another: the words before a list hold
    for all of it, so that none of them lifts one value above the others."""
    wanted, strange = ({id(one) for one in some} for some in (ours, others))
    mixed: set[int] = set()
    for group in _lists([*ours, *others]):
        members = {id(one) for one in group}
        if members & strange:
            mixed |= members & wanted
    return bool(ours) and mixed == wanted


def _lists(mentions: Sequence[Weighed]) -> Iterator[list[Weighed]]:
    """Yield the mentions that follow one another with nothing but a comma or "and" between."""
    ranked = sorted(mentions, key=lambda one: (_sentence(one), len(one.mention.whole_before)))
    group = ranked[:1]
    for one, other in pairwise(ranked):
        if _sentence(one) == _sentence(other) and _BETWEEN.fullmatch(other.mention.before):
            group.append(other)
            continue
        yield group
        group = [other]
    yield group


def _sentence(one: Weighed) -> int:
    return one.mention.sentence
