"""What a mention is there for, told by the words around it."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from trajudge.environments.verify.prose import cues
from trajudge.environments.verify.prose.counting import is_loose, is_of_other_unit
from trajudge.environments.verify.prose.passages import Mention
from trajudge.environments.verify.prose.qualifiers import Conflict, Standing, standing
from trajudge.environments.verify.prose.question import (
    Question,
    identifiers,
    opposed,
    opposite,
    periods,
    proper_names,
    quoted,
    stem,
    stems,
    superlatives,
)


class MentionRole(Enum):
    """PLAIN may be the answer; HEDGED too, said with doubt. BOUND is an end of a range or a limit,
    ASIDE something beside the answer (a part, a comparison, what was thought first), ELSEWHERE the
    value of something else that was not asked for, FOREIGN surely so (another train, the opposite),
    DENIED what is said not to be so."""

    PLAIN = "plain"
    HEDGED = "hedged"
    BOUND = "bound"
    ASIDE = "aside"
    ELSEWHERE = "elsewhere"
    FOREIGN = "foreign"
    DENIED = "denied"


class Weighed(NamedTuple):
    """A mention with its role; ``concludes``: the words say that this is the outcome; ``words``:
    those of the goal that stand with it; ``supported``: a qualifier of the goal is one of them;
    ``loose``: it counts or names something that the goal does not speak of (a year, a percentage,
    ``Model 360``, ``8 cores``)."""

    mention: Mention
    role: MentionRole
    concludes: bool
    words: frozenset[str]
    supported: bool
    loose: bool

    @property
    def near(self) -> int:
        """How many of the goal's words stand with it."""
        return len(self.words)


def weigh(mention: Mention, question: Question, family: str, several: bool = False) -> Weighed:
    """Tell what a mention is there for; ``several``: one of a list of answers."""
    words = clause(mention)
    concludes = bool(
        cues.CONCLUDES.search(mention.before)
        or (family != "names" and cues.CONCLUDES_AFTER.search(mention.after))
        or cues.MOVED_TO.search(mention.whole_before)
        or superlatives(words) & question.superlatives
        or (family == "date" and question.takes_until and cues.DAY_UNTIL.search(mention.before))
        or (cues.OF_THEM.search(mention.after) and stems(words) & question.stems)
    )
    narrowed = standing(mention, question, family)
    role = _role(mention, words, question, family, narrowed)
    if (
        several
        and family == "names"
        and role is MentionRole.PLAIN
        and _is_left_out(mention, question)
    ):
        role = MentionRole.DENIED
    return Weighed(
        mention=mention,
        role=role,
        concludes=concludes,
        words=stems(words) & question.stems,
        supported=narrowed.supported,
        loose=family == "number" and is_loose(mention, question),
    )


def clause(mention: Mention) -> str:
    """Return the words that stand with a mention, up to the next comma or conjunction."""
    before = cues.CLAUSE.split(mention.before)[-1]
    after = cues.CLAUSE.split(mention.after)[0]
    return f"{before} {after}"


def is_hedged(mention: Mention) -> bool:
    """Tell whether a value is said with doubt."""
    return bool(
        cues.HEDGE.search(mention.before)
        or cues.HEDGE_AFTER.search(mention.after)
        or cues.JUST_THERE_AFTER.search(mention.after)
        or cues.NEGATED_NEARBY.search(mention.before)
    )


def is_of_another(mention: Mention, question: Question, message: str) -> bool:
    """Tell whether a value stands with the name of another thing than the goal asks about."""
    words = clause(mention)
    lower = words.casefold()
    others = question.names - question.subjects
    part = cues.CONTRAST.split(mention.whole_before)[-1].casefold()
    if any(name in part for name in others) and not any(name in part for name in question.subjects):
        return bool(question.subjects)
    subject = cues.SUBJECT.search(mention.segment.own)
    named = stems(subject[1]) - cues.NEUTRAL_STEMS if subject else frozenset()
    familiar = named & question.stems or superlatives(words) & question.superlatives
    agent = mention.before.casefold().endswith(" by ")
    if question.stems and named and not familiar and not agent:
        return True
    if named and question.key and question.key not in stems(mention.segment.own):
        return True
    around = " ".join((*reversed(mention.segment.earlier[:2]), mention.segment.own))
    strangers = (proper_names(words) | proper_names(around)) - question.names
    lower += around.casefold()
    mine = [name for name in question.subjects if name in message.casefold()]
    return bool(strangers and mine and not any(name in lower for name in mine))


def _role(
    mention: Mention, words: str, question: Question, family: str, narrowed: Standing
) -> MentionRole:
    denied = _is_denied(mention, narrowed)
    if denied is not None:
        return denied
    turned = opposed(mention.segment.own, question.text)
    if (
        narrowed.conflict is Conflict.HARD
        or turned
        or (family == "number" and is_of_other_unit(mention, question))
    ):
        return MentionRole.FOREIGN
    bound = _is_bound(mention, question, family)
    if bound is not None:
        return MentionRole.BOUND if bound else MentionRole.PLAIN
    if narrowed.conflict is Conflict.SOFT or _is_elsewhere(mention, words, question, family):
        return MentionRole.ELSEWHERE
    if _is_beside(mention, question, family, narrowed.settled):
        return MentionRole.ASIDE
    doubtful = is_hedged(mention) or (is_negated(mention, question) and not narrowed.settled)
    return MentionRole.HEDGED if doubtful else MentionRole.PLAIN


def _is_denied(mention: Mention, narrowed: Standing) -> MentionRole | None:
    """Return the role of what is denied; an exception may be what is asked for."""
    if cues.EXCEPTED.search(mention.whole_before):
        return MentionRole.HEDGED if narrowed.excepted else MentionRole.DENIED
    denied = cues.DENIED_AFTER.search(mention.after) and not narrowed.settled
    return MentionRole.DENIED if denied or cues.DENIED.search(mention.before) else None


def _is_bound(mention: Mention, question: Question, family: str) -> bool | None:
    """Tell whether it is a bound that does not answer the goal; None for what is no bound."""
    before, after = mention.before, mention.after
    if cues.UP_TO.search(before) or cues.AT_MOST_AFTER.search(after):
        return not question.takes_upper
    if cues.AT_LEAST.search(before):
        return not question.takes_lower
    if family == "date" and question.takes_until and cues.DAY_UNTIL.search(before):
        return False
    if family == "date" and question.takes_until and cues.DAY_BOUND.search(before):
        return None  # "free again after": a reader may take it
    bound = cues.STRICT.search(before) or cues.BOUND_AFTER.search(after)
    if family == "date":
        bound = bound or cues.DAY_BOUND.search(before) or cues.DAY_UNTIL.search(before)
    elif family == "names":
        bound = bound or cues.NAME_BOUND.search(before)
    return True if bound else None


def _is_elsewhere(mention: Mention, words: str, question: Question, family: str) -> bool:
    """Tell whether it is the value of another thing, for another period, or at the other end."""
    named = identifiers(words)
    kinds = {word for word, _ in question.identifiers}
    if any(word in kinds for word, _ in named) and not named & question.identifiers:
        return True
    titles = quoted(words) if question.quoted else frozenset()
    if titles and not titles & question.quoted:
        return True
    extremes, wanted = superlatives(words), question.superlatives
    if extremes & opposite(wanted) and not extremes & wanted:
        return True
    if opposed(words, question.text) or (family == "names" and _is_other_end(mention, question)):
        return True
    return family == "money" and _is_other_figure(mention, words, question)


def is_negated(mention: Mention, question: Question) -> bool:
    """Tell whether the clause is negated and the goal is not: ``23 members have not paid``."""
    negated = cues.NEGATED.search(mention.segment.own)
    return bool(negated) and not cues.NEGATED.search(question.text)


def _is_other_figure(mention: Mention, words: str, question: Question) -> bool:
    """Tell whether it is an amount that is lacking, or one for another period."""
    if cues.SHORTFALL.search(words) and not cues.SHORTFALL.search(question.text):
        return True
    stated = periods(mention.after[:25]) or periods(words)
    return bool(question.periods and stated) and not stated & question.periods


def _is_other_end(mention: Mention, question: Question) -> bool:
    """Tell whether a name stands where the goal has its own: ``the manager of X``."""
    owner = cues.OWNER.search(mention.after)
    owned = cues.OWNED.search(mention.before)
    return any(bool(noun) and stem(noun[1]) in question.stems for noun in (owner, owned) if noun)


def _is_beside(mention: Mention, question: Question, family: str, settled: bool) -> bool:
    before, after = mention.before, mention.after
    counted_from = family == "date" and cues.DAYS_FROM.search(before)
    if (
        counted_from
        or (cues.BESIDE.search(before) and not cues.EQUALS.search(before))
        or (cues.BESIDE_AFTER.search(after) and not settled)
    ):
        return True
    if cues.EARLIER.search(before) or cues.EARLIER_AFTER.search(after):
        return not (family == "date" and question.takes_until)
    if is_superseded(mention):
        return True
    if family == "names":
        return bool(cues.RELATIVE.search(before))
    out_of = cues.OUT_OF if family == "number" else cues.MONEY_OUT_OF
    if family in ("number", "money") and out_of.search(mention.whole_before):
        return True
    return _is_per_unit(mention, question)


def is_superseded(mention: Mention) -> bool:
    """Tell whether a value held until something changed: ``moved from X to Y``."""
    before, after = mention.whole_before, mention.whole_after
    was = cues.WAS.search(mention.before) or cues.WAS_AFTER.search(mention.after)
    return bool(cues.MOVED_FROM.search(before) or (was and cues.SUPERSEDED_AFTER.search(after)))


def _is_per_unit(mention: Mention, question: Question) -> bool:
    """Tell whether it is the figure of one (``80 minutes per coat``) and the goal asks for none."""
    each = cues.EACH_AFTER.search(mention.after)
    if not each:
        return bool(cues.EACH_BEFORE.search(mention.before))
    if periods(mention.after[:25]) & question.periods:
        return False
    unit = next((group for group in each.groups() if group), "")
    per_unit = rf"(?:\b(?:per|an?|each|every|one) |/ ?){re.escape(unit)}"
    return not (unit and re.search(per_unit, question.text, re.IGNORECASE))


def _is_left_out(mention: Mention, question: Question) -> bool:
    """Tell whether the part of the sentence says that its names are not on the list."""
    before = cues.CONTRAST.split(mention.whole_before)[-1]
    after = cues.CONTRAST.split(mention.whole_after)[0]
    cues_found = cues.LEFT_OUT.findall(f"{before} {after}")
    return any(cue.casefold() not in question.text.casefold() for cue in cues_found)
