"""Right, wrong or open: what a message in prose says the answer is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from trajudge.environments.verify.mentions import ProseMention
from trajudge.environments.verify.prose import cues
from trajudge.environments.verify.prose.counting import counts_another, is_in_unit
from trajudge.environments.verify.prose.languages import negates, unreadable
from trajudge.environments.verify.prose.outcomes import in_passing, outcome, place_of
from trajudge.environments.verify.prose.passages import (
    MOST_MENTIONS,
    Mention,
    lines,
    passage,
)
from trajudge.environments.verify.prose.question import Question, question
from trajudge.environments.verify.prose.ranges import alternatives, listed_with, without_ranges
from trajudge.environments.verify.prose.roles import (
    MentionRole,
    Weighed,
    is_hedged,
    is_of_another,
    weigh,
)
from trajudge.environments.verify.prose.wanted import Wanted
from trajudge.rules.limits import InvalidValue

ROUGHLY = 0.01  # of the right value, within which "about 190" may pass for it
LONGEST = 10_000  # characters of a message that are read
FEW = 3  # doubtful values beside the right one in a bare list; more are a list of guesses
_RANK = {
    MentionRole.PLAIN: 0,
    MentionRole.HEDGED: 1,
    MentionRole.ELSEWHERE: 2,
    MentionRole.ASIDE: 2,
    MentionRole.BOUND: 3,
    MentionRole.FOREIGN: 3,
    MentionRole.DENIED: 4,
}
_STATED = (MentionRole.PLAIN, MentionRole.HEDGED)


class Reading(NamedTuple):
    """``right`` None: open to argument. ``stated`` are the values that the message states as an
    answer, ``doubtful`` those that it may."""

    right: bool | None
    reason: str
    stated: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


def read(message: str, goal: str, wanted: Wanted) -> Reading:
    """Tell what a message says is the answer."""
    mentions = passage(message, wanted.find, wanted.tidy)
    shown = tuple(dict.fromkeys(one.form for one in mentions))
    missing = [form for form in wanted.forms if not any(wanted.same(form, one) for one in shown)]
    if missing and _may_hold(message, goal, missing, mentions, wanted):
        return Reading(None, "not readable for certain", (), shown)
    if missing:
        if len(wanted.forms) == len(shown) == 1 and _is_about(mentions[0], missing[0]):
            return Reading(None, "said roughly", (), shown)
        some = len(missing) < len(wanted.forms)
        return Reading(False, "incomplete" if some else "the answer is not in the message", shown)
    if len(mentions) > MOST_MENTIONS:
        return Reading(None, "too many values", shown)
    parsed = question(goal)
    several = len(wanted.forms) > 1
    weighed = [weigh(one, parsed, wanted.family, several) for one in mentions]
    weighed = without_ranges(weighed, wanted, parsed)
    right, reason = _verdict(message, parsed, wanted, weighed)
    clear = dict.fromkeys(one.mention.form for one in weighed if one.role is MentionRole.PLAIN)
    rest = dict.fromkeys(one.mention.form for one in weighed if one.role is not MentionRole.PLAIN)
    return Reading(right, reason, tuple(clear), tuple(rest))


def _may_hold(
    message: str, goal: str, missing: Sequence[str], mentions: Sequence[Mention], wanted: Wanted
) -> bool:
    """Tell whether a message may state what was not found in it: in another language, or in parts
    of which each stands in it."""
    if unreadable(message):
        return not any(one.sure and one.text not in goal for one in mentions)
    return wanted.hint(message, missing)


def denied(message: str, value: str) -> bool:
    """Tell whether every mention of a text is denied: ``the code is not ...``."""
    pattern = re.compile(re.escape(value), re.IGNORECASE)

    def find(sentence: str) -> list[ProseMention]:
        return [ProseMention(*one.span(), value, True) for one in pattern.finditer(sentence)]

    weighed = [weigh(one, question(""), "code") for one in passage(message, find)]
    return bool(weighed) and all(one.role is MentionRole.DENIED for one in weighed)


def says_not_done(message: str) -> bool:
    """Tell whether a message says that the work was not done, or could not be."""
    try:
        return any(cues.NOT_DONE.search(line) for line in lines(message[:LONGEST], str))
    except InvalidValue:
        return False


def _is_about(mention: Mention, wanted: str) -> bool:
    """Tell whether a mention gives the wanted number roughly, and says so: ``around $190``."""
    if not is_hedged(mention):
        return False
    numbers = [form.rpartition(" ")[2] for form in (mention.form, wanted)]
    try:
        stated, right = map(float, numbers)
    except ValueError:
        return False
    return abs(stated - right) <= ROUGHLY * abs(right)


def _verdict(
    message: str, question: Question, wanted: Wanted, weighed: Sequence[Weighed]
) -> tuple[bool | None, str]:
    """Decide by the wanted values alone where that can be done, else against the others."""
    ours = [one for one in weighed if wanted.has(one.mention.form)]
    held = [[one for one in ours if wanted.same(form, one.mention.form)] for form in wanted.forms]
    worst = max(min(_RANK[one.role] for one in some) for some in held)
    others = _others(weighed, ours, wanted, question)
    if worst >= _RANK[MentionRole.BOUND]:
        return False, "denied, a bound or of something else"
    offered = _offered_together(message, weighed, others, wanted)
    if offered is not None:
        return offered
    sure = [one for one in others if one.mention.sure]
    others = sure if any(one.mention.sure for one in weighed) else others
    others = [one for one in others if one.role in _STATED]
    if worst >= _RANK[MentionRole.ELSEWHERE]:
        together = {one.mention.sentence for one in ours}
        instead = any(
            one.mention.sentence in together
            or ((one.concludes or one.supported or one.near) and not one.mention.inside)
            for one in others
            if one.role is MentionRole.PLAIN and not one.loose
        )
        return (False, "another answer") if instead else (None, "an aside")
    ours = [one for one in ours if one.role in _STATED]
    right = _against(message, question, ours, others, len(wanted.forms) > 1)
    doubt = "open to argument" if right is None else _doubt(message, question, wanted, ours, held)
    if right and worst == _RANK[MentionRole.HEDGED]:
        doubt = doubt or "said with doubt"
    if right is False:
        return False, "other candidates"
    return (None, doubt) if doubt else (True, "")


def _offered_together(
    message: str, weighed: Sequence[Weighed], others: Sequence[Weighed], wanted: Wanted
) -> tuple[bool | None, str] | None:
    """Decide a message that offers a right value among others: ``3 or 4``, ``3, 4, 5``."""
    either = alternatives(weighed, wanted)
    if either is not None:
        return (False, "other candidates") if either else (None, "open to argument")
    guesses = [one for one in others if not one.mention.sure]
    surely = any(one.mention.sure for one in weighed) and wanted.family != "duration"
    if guesses and surely and _is_bare_list(message, weighed):
        return (None if len(guesses) <= FEW else False), "other candidates"
    return None


def _others(
    weighed: Sequence[Weighed], ours: Sequence[Weighed], wanted: Wanted, question: Question
) -> list[Weighed]:
    """Return the mentions of other values, without those that are denied anywhere, that the goal
    states (unless it states the answer too), or that count something else: numbers without a unit
    beside one in the unit that is asked for."""
    places = {place_of(one) for one in ours}
    gone = {one.mention.form for one in weighed if one.role is MentionRole.DENIED}
    in_goal = wanted.in_goal()
    if not in_goal & set(wanted.forms):
        gone |= in_goal
    others = [
        one
        for one in weighed
        if not wanted.has(one.mention.form)
        and place_of(one) not in places
        and one.mention.form not in gone
    ]
    if any(
        one.role is MentionRole.PLAIN and not one.loose and not one.mention.inside for one in ours
    ):
        others = [one for one in others if not one.loose]
    if wanted.family == "number" and any(is_in_unit(one.mention, question) for one in ours):
        others = [one for one in others if one.concludes or is_in_unit(one.mention, question)]
    return others


def _doubt(
    message: str,
    question: Question,
    wanted: Wanted,
    ours: Sequence[Weighed],
    held: Sequence[Sequence[Weighed]],
) -> str:
    """Say why a message that states the right values, and no others, may still not mean them."""
    every = [one for some in held for one in some]
    unsure = any(not any(one.mention.sure for one in some) for some in held)
    doubts = {
        "said and denied": any(one.role is MentionRole.DENIED for one in every),
        "the value of another thing": all(
            is_of_another(one.mention, question, message) for one in ours
        ),
        "given up or not finished": bool(cues.GAVE_UP.search(message.replace("’", "'"))),
        "said in passing": in_passing(ours, question),
        "a number of something else": wanted.family == "number"
        and all(counts_another(one.mention, question) for one in ours),
        "in another language": unreadable(message) and negates(message),
        "open to argument": unsure
        and (wanted.family in ("date", "names") or any(one.mention.sure for one in every)),
    }
    return next((reason for reason, holds in doubts.items() if holds), "")


def _against(
    message: str,
    question: Question,
    ours: Sequence[Weighed],
    others: Sequence[Weighed],
    several: bool,
) -> bool | None:
    """Weigh the wanted values against others that the message states too."""
    outside = [one for one in ours if not one.mention.inside]
    if outside:
        ours, others = outside, [one for one in others if not one.mention.inside]
    elif any(not one.mention.inside for one in others):
        return None if any(one.concludes for one in ours) else False
    if not others:
        return True
    if _is_bare_list(message, [*ours, *others]):
        figures = not ours[0].mention.form[-1:].isdigit() and cues.NAME_WITH_FIGURE.search(message)
        return None if figures or cues.DASHED.search(message) else False
    counts_something_else = all(one.loose for one in ours) and not all(one.loose for one in others)
    contrasted = any(cues.CONTRASTED.search(one.mention.before) for one in others)
    right = None if counts_something_else or contrasted else outcome(ours, others, question)
    if right is not False and listed_with(ours, others):
        return False if several and all(one.mention.sure for one in others) else None
    return right


def _is_bare_list(message: str, weighed: Sequence[Weighed]) -> bool:
    """Tell whether the message is nothing but values."""
    rest = message.casefold()
    for one in weighed:
        rest = rest.replace(one.mention.text.casefold(), " ")
    return not re.search(r"[=→]|->", rest) and not re.search(r"[^\W\d_]{2,}", rest)
