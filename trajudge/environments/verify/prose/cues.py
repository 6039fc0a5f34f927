"""The words by which a reader tells what a value in a sentence is there for.

Patterns that end in ``$`` are searched in the text before a value, those that begin with ``^`` in
the text after it.
"""

from __future__ import annotations

import re

from trajudge.environments.verify.prose.question import stems


def _cue(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


_SMALL = (
    r"(?:on|at|in|for|the|an?|exactly|just|quite|even|include[sd]?|including|be|been|yet|equal"
    r"|take|cost|only)"
)
_LINK = rf"(?:\W*\b{_SMALL}\b)*\W*$"

# --- denied --------------------------------------------------------------------------------------

DENIED = _cue(
    r"(?:\bnot|n't|\bnever|\bno longer|\brather than|\binstead of|\bexcept(?: for)?|\bother than",
    r"|(?:\bnot|\bno longer) \w+ (?:on|at|in|by|until)",
    r"|\bexcluding|\bexcluded|\bneither|\bnor|\bwithout|\b(?:anything|everything|day|all) but|≠)",
    _LINK,
)
DENIED_AFTER = _cue(
    r"^[\s\"']*(?:\([^()]*\))?\s*,?\s*(?:is|are|was|were|does|do|did|has|have)",
    r"(?:n't| not\b| no longer\b)",
    r"|^[^|]*(?:\|[^|]*)*\|\s*(?:no\b|✗|❌|✘)",  # a row of a table that answers "no"
)
LEFT_OUT = _cue(
    r"\b(?:over|above|more than|too|exceeds?|excluded?|not qualify|not included|not meet",
    r"|not counted|n't qualify|n't meet|out of stock|left out|another|ahead)\b",
)
NEGATED = _cue(r"\b(?:not|never|no longer)\b|n't\b")
NEGATION = _cue(r"\bnot?\b|n't\b")

# --- bounds and ranges ---------------------------------------------------------------------------

STRICT = _cue(
    r"\b(?:(?:more|less|fewer|greater|higher|lower|later|earlier|over|longer|shorter|cheaper) than",
    r"|(?<!left )over|under|above|below|beyond|exceed(?:s|ing)?|not before|nearly|almost)",
    r"(?: (?:the|an?|your))?\W*$|(?<![-=])[<>]\s*$|\d ?(?:-|to) ?$",
)
UP_TO = _cue(
    r"(?:\b(?:at most|up to and including|(?<!add )(?<!adds )(?<!sum )(?<!sums )(?<!ing )up to",
    r"|no (?:more|later|longer|higher) than|max(?:imum)?(?: of| is)?)|≤)\W*$",
)
AT_LEAST = _cue(r"(?:\b(?:at least|no (?:less|fewer|earlier) than|min(?:imum)?(?: of)?)|≥)\W*$")
AT_MOST_AFTER = _cue(r"^\s*(?:\w+ ){0,2}(?:at most|maximum)\b")
BOUND_AFTER = _cue(r"^\s*(?:(?:\w+ )?(?:or|and) (?:more|less|fewer|above|over|earlier|later)\b|\+)")
DAY_BOUND = _cue(r"\b(?:before|after)\W*$")
DAY_UNTIL = _cue(r"\b(?:until|till|by|up to|through)(?: (?:and including|the end of|the))*\W*$")
NAME_BOUND = _cue(r"\b(?:from|until|since|before|after)\W*$")
OPENS_RANGE = _cue(r"\b(?:between|from)\b[^,;]*$")
RANGE = _cue(r"^\s*(?:-|to|and)\s*(?:\$|usd)?\s*$")
OR = _cue(r"^[^.;:|\d]{0,12}(?:\bor\b|/)\W*(?:the|maybe|perhaps|possibly)?\W*$")

# --- beside the answer ---------------------------------------------------------------------------

EARLIER = _cue(
    r"\b(?:first (?:counted|thought|saw|found)|at first|initially|originally|previously|formerly",
    r"|until|used to)\b[^,;]*$",
)
EARLIER_AFTER = _cue(
    r"^(?:(?!\band\b)[^,;:=])*\b(?:until(?! now| today| then)|looked|used to|before that|at first",
    r"|previously)\b",
)
BESIDE = _cue(
    r"\b(?:than|followed by|then|including|includes?|incl|ahead of|behind|next(?: one)?(?: up)?",
    r"(?: is)?|second(?: place)?(?: is| was)?|compared (?:to|with)|unlike|vs|versus|except|besides",
    r"|of which|from a total of|together with|while)\b(?: an? \w+ of)?",
    r"(?:\W*\b(?:the|an?|is|was|at|on|in)\b)*\W*$",
)
EQUALS = _cue(r"[=→]\s*$")
BESIDE_AFTER = _cue(
    r"^[^.;,]{0,40}\b(?:is|are|was|were|comes?) (?:the )?(?:second|next|third|not|also)\b",
    r"|^\W*second\b",
)
MONEY_OUT_OF = _cue(r"(?:\bout of|^of|\bleft of|\bremaining of)(?: the| these| all| my)?\W*$")
OUT_OF = _cue(
    r"(?:\bout of|\bone of|^of|\d (?:\w+ ){0,3}of|\bleft of|\bremaining of)(?: a total of)?",
    r"(?: the| these| those| all| my| your)?\W*$",
)
DAYS_FROM = _cue(r"\b\d+ (?:days?|weeks?|months?) (?:after|before)(?: the)?\W*$")
EXCEPTED = _cue(
    r"\b(?:all|every\w*|each|nobody|no one|none)\b[^.;]*",
    r"\b(?:except(?: for)?|but|other than|apart from)\b",
)
JUST_THERE_AFTER = _cue(
    r"^[^.;,#]*\b(?:at|in|for|on|with|to) [^.;,#]{1,40} only\b",
    r"|^[^.;,#\d]{0,20},? (?:but )?only (?:at|in|for|if|when|with|on)\b",
)
EACH_AFTER = _cue(
    r"^\W*(?:each|apiece)\b|^\W*per (\w+)|^ ?/ ?([^\W\d_]{2,})",
    r"|^\W*an? (?=coat|seat|piece|unit|person|head)(\w+)",
)
BRACKETED_AFTER = _cue(r"^\W{0,2}\(([^()]*)\)")
EACH_BEFORE = _cue(r"\b(?:each|per) \w+(?: (?:needs|takes|costs|is))?:? *$")
RELATIVE = _cue(r",\s*(?:who|whose)\b[^,]*$")
OWNER = _cue(r"^'s (?:\w+ )?(\w+)")
OWNED = _cue(r"(\w+) of (?:the )?$")

_MOVES = (
    r"(?:moved|changed|postponed|rescheduled|shifted|extended|prolonged|renewed|raised|lowered|reduced"
    r"|increased|switched|swapped|replaced|corrected|updated|revised|amended|brought forward"
    r"|put back|delayed|transferred|relocated|renamed|upgraded)"
)
SUPERSEDED_AFTER = _cue(  # "was planned, but she swapped with ..."
    rf"^[^.;]*(?:,|\b(?:but|and|then)\b)[^.;#]*\b(?:{_MOVES}"
    r"|(?:has|have) (?:since |now |meanwhile )?been|is now|are now|now has)\b"
)
WAS = _cue(r"\b(?:was|were|had been|had|used to be|took|lasted|cost|stood)\b[^,;]{0,30}$")
WAS_AFTER = _cue(r"^[^,;.]{0,15}\b(?:was|were|had been)\b")
MOVED_FROM = _cue(rf"\b{_MOVES}\b[^.;#]{{0,40}}\bfrom(?: the)? $|\binstead of(?: the)? $")
MOVED_TO = _cue(
    rf"\b{_MOVES}\b[^.;]{{0,60}}\b(?:to|with|by|until|till|now)(?: the)? $"
    r"|\bnow (?:it |he |she |they )?(?:is|has|have|are|until|on|at|in)?"
    r"(?: until| the| on| at| in)* ?$"
)

# --- said with doubt, said as the outcome, not finished ------------------------------------------

HEDGE = _cue(
    r"(?:\b(?:about|around|approx(?:imately)?|roughly|circa|ca|close to|maybe|perhaps|possibly",
    r"|probably|(?:might|could|may|must) (?:have been|be)|i (?:think|guess|believe)",
    r"|seems?(?: to be)?|presumably|likely|a bit over|bit under)|[~≈])",
    r"(?:\W*\b(?:it is|it's|it|is|that|the|an?|around|it was|on|in)\b)*\W*$",
)
NEGATED_NEARBY = _cue(r"(?:\bnot|n't|\bnever) (?:[^\W\d_]+ ){1,4}$")
HEDGE_AFTER = _cue(r"^\W*(?:i think|i guess|or so|perhaps|maybe|,? if)\b")
CONCLUDES = _cue(
    r"(?:=|→|->|=>|\b(?:total(?:s|ling|ing)?|sum|altogether|in all|overall|answer|result|so",
    r"|therefore|thus|hence|i\.?e|that is|gives|gave|makes|makes it|comes? to|came to",
    r"|adds? up to|difference|leaves|leaving|correct(?: \w+)?|final(?:ly)?",
    r"|remaining|left(?: over)?|rounds to|rounding|get|now)\b)",
    r"[^\d=]{0,40}$",
    r"|\b(?:but|yet|however|instead|actually)\b[^.;,]*\bit(?:'s| is| was)(?: the| on| at| in)* $",
)
OF_THEM = _cue(r"^ of (?:them|these|those|which)\b")
CONCLUDES_AFTER = _cue(
    r"^\W{0,2}(?:\w+\W{1,2}){0,3}?(?:in total|in all|altogether|overall|combined|in sum|together",
    r"|left|remaining|for both|all in all)\b",
)
GAVE_UP = _cue(
    r"\b(?:(?:could|can?|was|am|were|did|do|does|is)(?:n't|not| not) (?:yet |be |been |still )?",
    r"(?:able|find|found|determine|access|open|load|loading|locate|tell|give|given|get|complete",
    r"|know|displayed|shown|show|clear|look|available)|(?:could|can?)(?: ?not|n't) see|unable",
    r"|cannot|failed|please (?:open|check|count|provide|navigate|wait)|not available",
    r"|let me (?:check|try|look|search|see)|hard to tell|still could",
    r"|none of (?:the|my|these))\b",
)

NOT_DONE = _cue(
    r"\b(?:could|can?|was|am|were|did|have|has|is|are)(?:n't|not| not) (?:yet |been |be |able to |",
    r"actually |possible to |manage to )*(?:able|possible|do|done|complete|completed|finish",
    r"|finished|place|placed|order|ordered|buy|add|added|cancel|cancelled|change|changed|save|saved",
    r"|submit|submitted|send|sent|close|closed|remove|removed|carry|carried|perform|execute|book",
    r"|booked|publish|published|assign|assigned|delete|deleted|update|updated|create|created|go",
    r"|succeed|proceed|work|worked)\b|\bunable to\b|\bcannot\b|\bfailed\b|\bfailure\b|\bgave up\b",
    r"|\bgiving up\b|\bnot possible\b|\bimpossible\b|\binfeasible\b|\bwithout success\b",
)

# --- a value that stands in passing: cautions, which leave a message open ------------------------

CONDITIONAL = _cue(
    r"\b(?:if|unless|would have|would\b[^.;]*\bwithout|provided|assuming|supposing|depending|hadn't"
    r"|had (?:i|it|we|they|you)|was to be|were to be|supposed to|meant to|intended to"
    r"|planned to|should have)\b"
)
TAKEN_BACK = _cue(  # said after a value, and no right value after it
    r"\b(?:look(?:ed|ing)? again|second look|recount\w*|re-?check\w*|closer look|took over|mistake"
    r"|mistaken|misread|miscounted|wrong|incorrect|correction|had missed|missed|overlooked"
    r"|i meant|scratch that|wait)\b|\bthen i (?:saw|found|noticed)\b"
)
SOMETHING_ELSE = _cue(
    r"\b(?:another(?! \W?\d)|a different|(?:a |an? other )?similar)\b(?! (?:\$|€))"
)
OUTERMOST = _cue(r"^[^.;]*\bat the (?:latest|earliest|most|least|outside|very (?:most|least))\b")
DISTINCT = _cue(r"^\s*(?:different|distinct|separate)\b")
CURRENCY_BEFORE = _cue(r"(?:[$€£]|\b(?:usd|eur|gbp))\s*$")
DONE_BY = _cue(r"^\W*(?:is|are|was|were|gets?|got) (?:\w+ ){0,2}\w+ed by\b")
OF_WHICH = _cue(r"\bof (?:which|whom|these|them|those)\b[^.;]*")
EXCEEDS = _cue(
    r"\b([\w-]+) (?:\w+ )?(?:exceed|outnumber|surpass|overt[ao]k|manage|supervise|beat|outsell)\w*"
    r" (?:the )?(?:number of )?([\w-]+)"
)
THAN_NAME = _cue(r"\b(?:more|fewer|less|higher|lower|busier)\b[^.?;]*\bthan (?:the |in )?([\w-]+)")

# --- where words belong together -----------------------------------------------------------------

CLAUSE = _cue(r"[,;|]|\bbut\b|\band\b|\bwhile\b|\bwhereas\b|[–—]| - ")
CONTRAST = _cue(r"\bbut\b|\bwhile\b|\bwhereas\b|\bthat is\b|;|\|")
REFERRED = _cue(r"\b(?:these|those|all|both|past|last|next|first|top|the)\W*$")
CONTRASTED = _cue(r"\bbut\b")
SUBJECT = _cue(  # the noun before the verb, without what hangs on it by a preposition
    r"^\W*(?:the|your|its|his|her|their|my|our|[\w .]{1,30}'s) ((?:[\w-]+ ){1,3}?)",
    r"(?:(?:of|for|in|from|at|on|with|by|between) [^,;:#]*?)?",
    r"(?:is|are|was|were|comes? to|came to|would be|will be|can \w+|could \w+|costs?|begins?",
    r"|ends?|starts?|has|have|had|takes?|took|expires?|opens?|closes?|runs? out)\b[^,;:#]{0,25}#",
)
SHORTFALL = _cue(r"\b(?:overspent|overdrawn|short|shortfall|deficit|owed?|owes|missing)\b")
NAME_WITH_FIGURE = _cue(r"[^\W\d_]\W{0,9}\d")  # a list of names, each with its count
DASHED = _cue(r"\s[–—-]\s")
ANY_YEAR = _cue(r"1\d{3}|20\d\d")
YEAR = _cue(r"(?:19|20)\d\d")
PER_CENT = _cue(r" ?(?:%|per ?cent)")
MODEL_NAME = re.compile(r"\w\W+[A-Z][a-z]+ $")  # "the Xbox 360"
COUNTED = _cue(r" ?-?((?:[^\W\d_]+[ -]?(?:\d+ )?){1,3})")
_LITTLE = """
    of in on at for are is were was be been and or but not per so which that who with to from by a
    an the have has had if as than it he she they we you i there here out now still will would can
    could concern concerns match matches remain remains total altogether vs x points
    more fewer less
"""
_NEUTRAL = """
    page list table screen display invoice bill receipt statement document calendar site website
    form field entry record app person text dashboard report email mail system box article label
    whole entire exact full new actual current real stated shown given listed figures count
    total answer result sum amount number value count price cost fee limit date day name code
    maximum minimum highest lowest final correct right rate figure duration length time last
    latest earliest first cheapest overall difference saving balance
"""
_COUNTABLE = """
    result row entry record hit match item line element thing case instance piece unit occurrence
    one different such distinct separate
"""
COUNTABLE_STEMS = stems(_COUNTABLE)
NEUTRAL_STEMS = stems(_NEUTRAL)
FUNCTION_WORDS = frozenset(_LITTLE.split())
