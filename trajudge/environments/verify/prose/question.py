"""What the words of a goal say about its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations

from trajudge.rules.values.quantities import MONTHS

_LITTLE = """
    a an the of in on at to for from by with and or is are was were be been it its this that these
    those which what who whom whose when where how much many do does did i my me we our you your all
    any each every one there their they have has had will would can could should may must not no if
    then than as so find tell give name show report answer please them him her his most more only
    according see look using use come take takes
"""
_STOP = frozenset(_LITTLE.split())
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ENDINGS = ("ings", "ing", "ies", "ied", "ed", "es", "s", "ly", "y", "e")
_PERIOD = re.compile(
    r"\b(?:per|an?|each|every|/)[ ]?(hour|day|week|month|year)\b"
    r"|\b(hour|dai|week|month|year|annual)ly\b"
    r"|\b(annual|yearly)\b|/ ?(hour|day|week|month|year|mo|yr)\b",
    re.IGNORECASE,
)
_PERIODS = {"dai": "day", "annual": "year", "yearly": "year", "mo": "month", "yr": "year"}
_UPPER = re.compile(
    r"\b(?:at most|maximum|highest|up to|limit|until|allow(?:s|ed)?|may|longest|no more than)\b",
    re.I,
)
_UNTIL = re.compile(
    r"\b(?:until|till|by (?:which|what|when)|deadline|due|expir\w+|latest|valid|runs? out"
    r"|last (?:day|date)|ends?|close[sd]?|closing)\b",
    re.IGNORECASE,
)
_BEGIN = re.compile(r"\b(?:begins?|starts?|opens?|from (?:which|what|when))\b", re.IGNORECASE)
_KEY = re.compile(
    r"\b(?:who|what|which) (?:is|are|was|were) the (?:[a-z]+ )?([a-z]+) (?:of|between|for)\b",
    re.IGNORECASE,
)
_RELATIONS = {"difference", "average", "sum", "deposit", "surcharge", "discount", "deadline"}
_LOWER = re.compile(
    r"\b(?:at least|minimum|lowest|from which|since when|no less than)\b", re.IGNORECASE
)
_SUPERLATIVES = (
    ("cheapest lowest least minimum smallest fewest shortest lightest min dryest "
     "narrowest closest nearest slowest", 0),
    ("dearest highest most maximum largest biggest longest heaviest max peak peaks tallest top "
     "busiest widest dampest furthest best", 1),
    ("earliest soonest oldest", 2),
    ("last latest newest recent", 3),
)  # fmt: skip
_GROUP = {word: group for words, group in _SUPERLATIVES for word in words.split()}
_OPPOSITE = {0: 1, 1: 0, 2: 3, 3: 2}
_IDENTIFIER = re.compile(
    r"\b([^\W\d_]+)[-_#]?(\d[\w-]*)"  # lynx-04
    r"|\b([A-Z][a-z]+|(?i:clause|rule|section|room|desk|bench|ticket|order|post|level|week))"
    r" (?:number )?#?(\d+)\b"  # Oak 2, clause 7
)
_QUOTED = re.compile(r"\"([^\"]{2,60})\"")
_PROPER = re.compile(r"(?<=[a-z,:] )[A-Z][\w'-]*(?: [A-Z][\w'-]*)*")
_ASKS = re.compile(r"\b(?:which|what|who|when|how|where)\b", re.IGNORECASE)


def proper_names(text: str) -> frozenset[str]:
    """Return the words in capitals within a sentence: ``the Harbour Blue`` names one."""
    return frozenset(
        name.casefold()
        for name in _PROPER.findall(text)
        if len(name) > 1 and name.casefold() not in MONTHS and not name.endswith("day")
    )


_PHRASE = re.compile(
    r"(?:\b([^\W\d_]+)\.? )?(?<![.?!] )(?<!\A)\b((?:(?:Dr|Prof|Mrs?|Ms)\.? )?[A-Z][\w'-]+"
    r"(?: (?:[A-Z][\w'-]*))*)"
)


def proper_phrases(text: str) -> list[tuple[str, str]]:
    """Return the proper names in a text, each with the word before it: ``depot`` and ``West``."""
    return [
        (before.casefold(), name.replace(".", "").removesuffix("'s"))
        for before, name in _PHRASE.findall(text)
        if name.casefold().split()[0] not in MONTHS and not name.endswith("day")
    ]


_UNITS = """
    second sec s|minute min|hour hr h|day d|week wk|month mo|year yr|gram g|kilogram kg kilo
    |pound lb lbs|ounce oz|meter metre m|kilometer kilometre km|mile mi|foot feet ft|inch
    |centimeter centimetre cm|millimeter millimetre mm|yard yd|liter litre l
    |milliliter millilitre ml|gallon gal|tonne ton t|percent percentage %|gigabyte gb|megabyte mb
    |kilobyte kb|terabyte tb
"""
_UNIT = {
    name: names.split()[0]
    for names in " ".join(_UNITS.split()).split("|")
    for name in names.split()
}
_ANTONYMS = """
    open close|begin end|start finish|start end|arrive depart|buy sell|send receive
    |approve decline|join leave|leave return|approve reject|lend borrow|rise fall|win lose
    |increase decrease|gain lose
"""
_OTHER_VERB: dict[str, set[str]] = {}
for _pair in " ".join(_ANTONYMS.split()).split("|"):
    for _one, _other in permutations(_pair.split()):
        _OTHER_VERB.setdefault(_one, set()).add(_other)
_HOW_MANY = re.compile(r"\bhow many ([a-z-]+)(?: ([a-z]+))?", re.IGNORECASE)
_IN_UNITS = re.compile(r"\b(?:what|which|in|of) ((?!second\b)[a-z]{3,})\b", re.IGNORECASE)


def unit(word: str) -> str:
    """Return the unit of measurement that a word names, "" for another word."""
    word = word.casefold()
    return _UNIT.get(word) or _UNIT.get(word.removesuffix("s"), "")


def opposed(text: str, goal: str) -> bool:
    """Tell whether a text has the opposite of a verb of the goal, and not the verb: ``closes``."""
    wanted = _verbs(goal)
    stated = _verbs(text) if wanted else frozenset[str]()
    return not stated & wanted and any(_OTHER_VERB[verb] & wanted for verb in stated)


@lru_cache(maxsize=512)
def _verbs(text: str) -> frozenset[str]:
    words = [word.casefold() for word in _WORD.findall(text)]
    bases = {base for word in words for base in (word, word[:-1], word[:-2])}
    return frozenset(bases & _OTHER_VERB.keys())


def stem(word: str) -> str:
    """Return a crude stem: ``delivery``, ``delivered`` and ``delivers`` have the same."""
    word = word.casefold()
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def stems(text: str) -> frozenset[str]:
    """Return the stems of the words in a text that mean something."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(stem(word) for word in words if word not in _STOP)


def periods(text: str) -> frozenset[str]:
    """Return the periods that a text names: ``month`` for ``monthly`` and ``a month``."""
    words = (next(filter(None, match.groups())).casefold() for match in _PERIOD.finditer(text))
    return frozenset(_PERIODS.get(word, word) for word in words)


def superlatives(text: str) -> frozenset[int]:
    """Return the directions in which a text goes to an extreme."""
    words = {word.casefold() for word in _WORD.findall(text)}
    groups = {_GROUP[word] for word in words if word in _GROUP}
    expensive = {"most", "least"} & words if "expensive" in words else set()
    if expensive:
        groups = (groups - {0, 1}) | {1 if "most" in expensive else 0}
    return frozenset(groups)


def opposite(groups: frozenset[int]) -> frozenset[int]:
    """Return the other ends."""
    return frozenset(_OPPOSITE[group] for group in groups)


def identifiers(text: str) -> frozenset[tuple[str, str]]:
    """Return words with a number (``lynx-04``, ``clause 7``) as pairs of both."""
    groups = (match.groups() for match in _IDENTIFIER.finditer(text))
    pairs = ((a, b) if a else (c, d) for a, b, c, d in groups)
    return frozenset((word.casefold(), digits) for word, digits in pairs)


def quoted(text: str) -> frozenset[str]:
    """Return what stands in quotes."""
    return frozenset(name.casefold() for name in _QUOTED.findall(text))


@dataclass(frozen=True)
class Question:
    """A goal, read once."""

    text: str

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its words."""
        return stems(self.text)

    @cached_property
    def periods(self) -> frozenset[str]:
        """The periods that figures are asked for or given for, as in ``per month``."""
        return periods(self.text)

    @cached_property
    def superlatives(self) -> frozenset[int]:
        """The extremes that it asks for."""
        return superlatives(self.text)

    @cached_property
    def identifiers(self) -> frozenset[tuple[str, str]]:
        """Its words with a number."""
        return identifiers(self.text)

    @cached_property
    def quoted(self) -> frozenset[str]:
        """What it names in quotes."""
        return quoted(self.text)

    @cached_property
    def counted_unit(self) -> str:
        """The unit of measurement that is counted, as in ``how many pounds``."""
        counted = _HOW_MANY.search(self.text)
        words = (*(counted.groups("") if counted else ()), *_IN_UNITS.findall(self.text))
        return next(filter(None, map(unit, words)), "")

    @cached_property
    def predicates(self) -> frozenset[str]:
        """The stems of its longer words that are no names."""
        names = {word.casefold() for name in self.names for word in name.split()}
        words = [word for word in _WORD.findall(self.text) if len(word) > 3 and word.islower()]
        return stems(" ".join(word for word in words if word not in names))

    @cached_property
    def counts(self) -> bool:
        """Whether it asks how many there are of something."""
        return bool(re.search(r"\b(?:how many|number of|count)\b", self.text, re.IGNORECASE))

    @cached_property
    def asks_year(self) -> bool:
        """Whether it asks for a year."""
        return bool(re.search(r"\byear\b", self.text, re.IGNORECASE))

    @cached_property
    def names(self) -> frozenset[str]:
        """The proper names in it."""
        return proper_names(self.text)

    @cached_property
    def subjects(self) -> frozenset[str]:
        """The proper names in the part that asks."""
        parts = re.split(r"(?<=[.:?!;])\s", self.text)
        return frozenset().union(*(proper_names(part) for part in parts if _ASKS.search(part)))

    @cached_property
    def takes_upper(self) -> bool:
        """Tell whether an upper bound answers it: ``how many may a headline have at most``."""
        return bool(_UPPER.search(self.text))

    @cached_property
    def takes_until(self) -> bool:
        """Whether it asks for the end of a time."""
        return bool(_UNTIL.search(self.text))

    @cached_property
    def takes_from(self) -> bool:
        """Whether it asks for the beginning of a time."""
        return bool(_BEGIN.search(self.text)) and not self.takes_until

    @cached_property
    def key(self) -> str:
        """The stem of the noun that is asked for: ``deputy`` of ``who is the deputy of the head``,
        "" where there is none such."""
        match = _KEY.search(self.text)
        relation = match and (self.asks_who or match[1].casefold() in _RELATIONS)
        return stem(match[1]) if match and relation else ""

    @cached_property
    def asks_who(self) -> bool:
        """Whether it asks for a person."""
        return bool(re.search(r"\bwho\b", self.text, re.IGNORECASE))

    @cached_property
    def takes_lower(self) -> bool:
        """Tell whether a lower bound answers it."""
        return bool(_LOWER.search(self.text))


@lru_cache(maxsize=256)
def question(goal: str) -> Question:
    """Return the goal, read once for all messages."""
    return Question(goal)
