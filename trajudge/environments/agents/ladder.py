"""A ladder of scripted agents of graded skill: none has the oracle's plan.

All of them play through the actions of any agent and know the goal's words and the tree of the page
that is open, nothing of the case. R uses controls at random; G follows the link whose words are
most like the goal's; S searches, takes the first hit and reads; L also turns pages and filters; M
keeps notes across pages; P checks what it is about to do, and finds a way round a refusal. What
they are good at are switches (``Skills``), so that a skill can be taken away alone.
"""

from __future__ import annotations

import math
import re
from ast import literal_eval
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trajudge.environments.chromium.action_syntax import write

if TYPE_CHECKING:
    from trajudge.environments.chromium import AgentObservation


class Skills(NamedTuple):
    """What an agent can do beyond following links and filling in forms."""

    search: bool = False
    paging: bool = False
    filter: bool = False
    notes: bool = False
    verify: bool = False
    recover: bool = False


RUNGS: Mapping[str, Skills | None] = {
    "R": None,
    "G": Skills(),
    "S": Skills(search=True),
    "L": Skills(search=True, paging=True, filter=True),
    "M": Skills(search=True, paging=True, filter=True, notes=True),
    "P": Skills(*[True] * len(Skills._fields)),
}
"""The rungs below the oracle, from the least skilled on."""

PATIENCE = 45  # actions after which an agent says what it has
MORE = 3  # sections that are looked at when something was found, but not all
TURNS = 9  # pages of one list
ENDS = 0.08  # how often R ends its run instead of using a control
SHORT = 7  # words of a quotation that may be a name
LIKE = 0.5  # the least likeness of a control that is used to change something

# --- the page ------------------------------------------------------------------------------------

_LINE = re.compile(
    r"(\t*)(?:\[(\w+)\] )?(\w+) ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(.*)", re.DOTALL
)
_TYPED = ("textbox", "searchbox", "spinbutton", "Date")
_FIELDS = (*_TYPED, "combobox", "listbox", "radio")
_NEXT = re.compile(r"^(?:next|more|older|further)\b", re.IGNORECASE)
_ASK = re.compile(r"search|find|look|show|display|filter|calculate|work out|compute", re.IGNORECASE)
_ASIDE = re.compile(r"^(?:sort|order|arrange) by |cookie", re.IGNORECASE)


@dataclass
class _Node:
    role: str
    name: str
    bid: str = ""
    more: str = ""
    inside: list[_Node] = field(default_factory=list)

    def every(self, *roles: str) -> Iterator[_Node]:
        """Yield what is inside, of these roles, in document order."""
        for node in self.inside:
            if not roles or node.role in roles:
                yield node
            yield from node.every(*roles)

    @property
    def text(self) -> str:
        return " ".join(node.name for node in self.every("StaticText")).replace(" :", "").strip()


class _Fact(NamedTuple):
    """What a page says of something, and the link that it says it with."""

    label: str
    value: str
    link: str = ""


@dataclass
class _Record:
    """Something that a page shows: its name, the link to it, and what is said of it."""

    name: str
    link: str = ""
    facts: list[_Fact] = field(default_factory=list)


class _Entry(NamedTuple):
    """A field of a form; radio buttons of a group are one. ``options`` are its choices by name."""

    bid: str
    role: str
    label: str
    options: Mapping[str, str]
    value: str = ""


class _PageForm(NamedTuple):
    entries: list[_Entry]
    buttons: list[_Node]

    @property
    def asks(self) -> bool:
        """Tell whether it asks for a page, by its looks."""
        search = any(entry.role == "searchbox" for entry in self.entries)
        return search or any(_ASK.search(button.name) for button in self.buttons)


class _Page:
    """A page as the agent reads it off the tree."""

    def __init__(self, tree: str) -> None:
        root = _tree(tree)
        main = next(root.every("main"), root)
        inner = {id(node) for node in main.every()}
        self.title = next((node.name for node in main.every("heading")), "")
        self.text = main.text
        self.records = [*_records(main)]
        own = _Record(self.title, "", [*_facts(main)])
        self.own = own
        listed = {record.link for record in self.records}
        links = [*main.every("link")]
        self.onward = next((node.bid for node in links if _NEXT.match(node.name)), "")
        self.links = {
            node.name: node.bid
            for node in reversed(links)
            if node.bid not in listed and not _ASIDE.match(node.name) and not _NEXT.match(node.name)
        }
        self.sections = {
            node.name: node.bid
            for area in root.every("navigation", "banner")
            if id(area) not in inner
            for node in area.every("link", "menuitem")
        } or {
            node.name: node.bid for area in root.every("contentinfo") for node in area.every("link")
        }
        self.forms = [*_forms(main)]
        self.folds = [
            node
            for node in main.every("DisclosureTriangle", "DisclosureTriangleGrouped", "tab")
            if "expanded=True" not in node.more and "selected=True" not in node.more
        ]
        self.alert = " ".join(node.text for node in root.every("alert"))
        self.menu = next(
            (
                n.bid
                for n in root.every("DisclosureTriangle")
                if id(n) not in inner and "=True" not in n.more
            ),
            "",
        )
        cover = next(root.every("dialog"), None)
        self.cover = [*cover.every("button")] if cover else []


def _tree(text: str) -> _Node:
    root = _Node("root", "")
    path = [root]
    for line in text.split("\n"):
        if (match := _LINE.fullmatch(line)) is None:
            continue
        tabs, bid, role, name, more = match.groups()
        node = _Node(role, str(literal_eval(name)), bid or "", more)
        del path[len(tabs) + 1 :]
        path[-1].inside.append(node)
        path.append(node)
    return root


def _records(main: _Node) -> Iterator[_Record]:
    """Yield the rows of tables and the items of lists that say something of a thing each."""
    for table in main.every("table", "grid"):
        heads = [node.text or node.name for node in table.every("columnheader")]
        for row in table.every("row"):
            cells = [node for node in row.inside if node.role in ("cell", "gridcell", "rowheader")]
            if cells and len(cells) <= len(heads):
                facts = [_fact(head, cell) for head, cell in zip(heads, cells, strict=False)]
                yield _Record(facts[0].value, facts[0].link, facts)
    for item in main.every("listitem"):
        pairs = [*_pairs(item)]
        if pairs:
            name = next(
                (n for n in item.inside if n.role in ("paragraph", "link", "heading")), item
            )
            link = next(item.every("link"), None)
            yield _Record(name.text, link.bid if link else "", [_Fact("", name.text), *pairs])


def _facts(main: _Node) -> Iterator[_Fact]:
    """Yield what the page says of its own thing: descriptions outside of lists."""
    for node in main.inside:
        if node.role == "DescriptionList":
            yield from _pairs(_Node("", "", inside=[node]))
        elif node.role == "row" and [n.role for n in node.inside] == ["rowheader", "cell"]:
            yield _fact(node.inside[0].text, node.inside[1])
        elif node.role != "listitem":
            yield from _facts(node)


def _pairs(item: _Node) -> Iterator[_Fact]:
    label = ""
    for node in item.every("term", "definition"):
        if node.role == "term":
            label = node.text
        else:
            yield _fact(label, node)


def _fact(label: str, node: _Node) -> _Fact:
    link = next(node.every("link"), None)
    return _Fact(label, node.text, link.bid if link else "")


def _forms(main: _Node) -> Iterator[_PageForm]:
    for form in main.every("form"):
        entries: list[_Entry] = []
        for node in form.every(*_FIELDS, "group", "radiogroup"):
            if node.role in ("group", "radiogroup"):
                radios = {one.name: one.bid for one in node.every("radio")}
                if radios and radios not in [entry.options for entry in entries]:
                    entries.append(_Entry("", "radio", node.name, radios))
            elif node.role != "radio" and node.bid:
                options = {one.name: one.bid for one in node.every("option")}
                value = re.search(r"value='((?:[^'\\]|\\.)*)'", node.more)
                role = "typed" if "autocomplete=" in node.more else node.role
                entries.append(
                    _Entry(node.bid, role, node.name, options, value[1] if value else "")
                )
        yield _PageForm(entries, [*form.every("button")])


# --- the goal ------------------------------------------------------------------------------------

_ALIKE = (
    "price cost costs much expensive cheap cheapest dearest unit",
    "total sum paid pay altogether amount",
    "fee fees charge price paid brought",
    "order orders purchase purchases bought buy parcel",
    "cart basket bag",
    "wish wishes save saved favourites later remembered list",
    "product products article articles item catalogue range thing",
    "report reports flag flags complaint complaints",
    "post posts contribution contributions wrote",
    "member members account accounts people person staff colleague who user",
    "author wrote writer",
    "owner responsible charge answers",
    "manager reports boss",
    "assignee assigned given hands works",
    "ticket tickets request requests case cases",
    "status state stage condition",
    "priority urgency pressing urgent",
    "due deadline settled until",
    "date day when since joined registered filed",
    "category kind subject topic department section type",
    "clause rule rules policy policies limit ceiling",
    "appeal appeals objection objections review",
    "log record journal audit",
    "leave absence absences vacation",
    "room rooms booking bookings reserve book taken",
    "team teams unit units department",
    "alert alerts alarm alarms",
    "key keys holder holds",
    "invoice invoices bill billed bills billing",
    "event events calendar tour lecture reading workshop seats",
    "district districts locality localities area place",
    "figure figures statistics indicator value measure",
    "loan loans lender lenders borrowing lends interest credit",
    "convert converter units unit",
    "paint paints tin tins estimator",
    "trip trips packing journey bag",
    "job jobs saved",
    "result results history saved",
    "remove delete erase take",
    "cancel off",
    "add put place into",
    "stop retire decommission",
    "revoke invalidate",
    "approve accept grant allow",
    "decline reject turn",
    "comment comments reader discussion",
    "newsletter newsletters mailing mailings mail",
    "image images picture pictures photo",
    "quantity units many pieces",
    "stock left available remain",
    "rating rated stars review",
    "first earliest oldest",
    "note notes remark text",
)
_KIND = {
    "the amount in dollars": "money",
    "the name as the pages write it": "text",
    "the date as year-month-day": "date",
    "the duration with its units": "duration",
    "the list of all names": "texts",
    "the operation code": "code",
    '"done"': "done",
}
_SHAPES = {
    "money": re.compile(r"-?\$[\d,]+(?:\.\d+)?"),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "duration": re.compile(r"\d+ ?(?:h|min|hours?|minutes?|days?)\b.*"),
    "code": re.compile(r"(?=.*[A-Z])[A-Z0-9]{8,}$"),
    "number": re.compile(r"(?:[a-z]+\. )?-?[\d,]+(?:\.\d+)?(?: ?%| of \d+| [a-z²]+)?$"),
}
_FORM = re.compile(
    r" (?:End with|Submit the answer).* (?:The value is|asks for) (.+?)(?: \(in a|; it|\.$)",
    re.DOTALL,
)
_QUOTED = re.compile(r'"([^"]+)"')
_NUMBERED = re.compile(r"\b[A-Za-z]+[-_]\w*\d\w*\b|\b[a-z]+_[a-z]+\b")
_CAPITALS = re.compile(r"[A-Z][\w']+(?:(?: (?:and|in|of|on|to|for|by|after))? [A-Z][\w']+)+")
_CLAUSE = re.compile(r"(?<![$\d.])\d\.\d(?![\d.])")
_HYPHENS = re.compile(r"\b[a-z]+-[a-z]+\b")
_CAPITAL = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+\b")
_LEADING = re.compile(
    r"^(?:From|The|In|If|For|Which|What|Who|When|How|Buy|Is|Order|Please|Put|Rate|Does|At|On|My|Of|"
    r"Add|Remove|Book|Add|Send|Let|Suspend|Warn|Assign|Delete|Reserve|Publish|Our|With|To|See|Until|And|"
    r"Hand|Ticket|Report|Name) "
)
_COUNT = re.compile(r"how many|how often|number of|the number|count\b|number\?")
_SUM = re.compile(r"\bsum|total|in all\b|together|come to|comes to|add(?:ed)? up|altogether")
_LOW = re.compile(
    r"cheap|lowest|least|smallest|fewest|earli|oldest|older|nearest|lower|fewer|first|next|less|"
    r"smaller|shorter"
)
_HIGH = re.compile(
    r"dear|highest|most\b|latest|newest|largest|higher|more expensive|longer|last\b|best|more |"
    r"expensive|later|recent|bigger"
)
_BOTH = re.compile(r"\bboth\b|\band also\b|\bas well as\b|\beach\b")
_IF = re.compile(r"\b(?:if|unless|only when|as long as|so long as|then|otherwise|else)\b")
_BELOW = re.compile(r"(?:less than|below|under|no more than|at most|cheaper than)\W+\$?([\d.]+)")
_ABOVE = re.compile(r"(?:at least|above|more than|over)\W+\$?([\d.]+)|([\d.]+) or more")
_BEFORE = re.compile(r"(?:before|earlier than|prior to)\W+(?:\w+ ){0,2}?(\d{4}-\d\d-\d\d)")
_AFTER = re.compile(r"(?:after)\W+(?:\w+ ){0,2}?(\d{4}-\d\d-\d\d)")
_SINCE = re.compile(r"(?:since|from)\W+(\d{4}-\d\d-\d\d)|(\d{4}-\d\d-\d\d) or later")


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    words = re.findall(r"[a-z]+", text.lower())
    return frozenset(re.sub(r"(?:ed|ing|es|s|e)$", "", word) for word in words if len(word) > 2)


_GROUPS = tuple(_stems(line) for line in _ALIKE)


@lru_cache(maxsize=16384)
def _likeness(label: str, goal: str) -> float:
    """Return how much a label's words are like a text's: 1 for all the same, less for words that
    mean the like."""
    words, wanted = _stems(label), _stems(goal)
    if not words:
        return 0.0
    near = {word for group in _GROUPS if group & wanted for word in group}
    likeness = sum(1.0 if w in wanted else 0.6 if w in near else 0.0 for w in words)
    return likeness / math.pow(len(words), 0.7)


class _Goal:
    """What is asked, as far as its words tell somebody who has not seen a page."""

    def __init__(self, text: str) -> None:
        form = _FORM.search(text)
        wanted = form[1].removeprefix("a list: ") if form else '"done"'
        self.kinds = [_KIND.get(part, "number") for part in wanted.split(", then ")]
        self.text = text[: form.start()] if form else text
        self.lower = self.text.lower()
        self.quoted = [one.strip() for one in _QUOTED.findall(self.text)]
        short = [
            one for one in self.quoted if len(one.split()) < SHORT and not _NUMBERED.search(one)
        ]
        capitals = [
            _LEADING.sub("", name)
            for one in _CAPITALS.findall(self.text)
            for name in (one.split(" and ") if one.count(" and ") == 1 else [one])
        ]
        named = [
            *_NUMBERED.findall(self.text),
            *_CLAUSE.findall(self.text),
            *(c for c in capitals if " " in c),
            *short,
        ]
        weak = [*_HYPHENS.findall(self.text), *_CAPITAL.findall(self.text), *capitals]
        inside = {word for name in named for word in name.split()}
        self.names = [n for n in dict.fromkeys([*named, *weak]) if n in named or n not in inside]
        self.dates = _SHAPES["date"].findall(self.text)
        bare = _SHAPES["date"].sub(" ", _NUMBERED.sub(" ", self.text))
        self.numbers = re.findall(r"(?<![\w.$])\d+(?:\.\d+)?(?![\w%])", bare)
        self.changes = "done" in self.kinds or "code" in self.kinds
        numbered = [name for name in named if re.search(r"\w\d|_", name)]
        longer = [name for name in named if " " in name]
        self.things = numbered if self.changes and numbered else [*numbered, *longer]
        if self.changes and all(name in short for name in self.things):
            blocking = []
        else:
            blocking = self.things
        ops = (_COUNT, _SUM, _LOW, _HIGH)
        self.listing = "texts" in self.kinds or (
            not blocking and any(op.search(self.lower) for op in ops)
        )

    def has(self, text: str) -> bool:
        """Tell whether the goal says a text, as words of its own."""
        text = text.strip().lower()
        return len(text) > 1 and bool(
            re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", self.lower)
        )


def _amount(text: str) -> float | None:
    match = re.search(r"-?[\d,]*\.?\d+", text.replace("$", ""))
    return float(match[0].replace(",", "")) if match else None


def _shape(value: str) -> str:
    """Return the kind of answer that a value looks like."""
    for kind in ("money", "date", "duration", "code", "number"):
        if _SHAPES[kind].match(value):
            return kind
    return "text"


# --- the agent -----------------------------------------------------------------------------------

_Moves = Generator[str, "AgentObservation", Any]


class LadderAgent:
    """An agent of the ladder for one goal. ``skills`` are those of its rung, None for R, which
    draws from ``rng``."""

    telemetry: Mapping[str, float] = {}

    def __init__(self, goal: str, skills: Skills | None, rng: np.random.Generator) -> None:
        self._goal, self._skills, self._rng = _Goal(goal), skills or Skills(), rng
        self._page = _Page("")
        self._view: AgentObservation | None = None
        self._notes: list[_Record] = []
        self._seen: set[str] = set()
        self._missed: set[str] = set()
        self._pressed: set[str] = set()
        self._used: set[str] = set()
        self._told = ""
        self._steps = 0
        self._moves = self._random() if skills is None else self._play()
        self._begun = False

    def act(self, view: AgentObservation) -> tuple[str, str]:
        """Return the next action; its reasoning says nothing."""
        self._view, self._page = view, _Page(view.observation.axtree or "")
        self._steps += 1
        if self._begun and self._steps > PATIENCE:
            return self._answer(), ""
        try:
            action = self._moves.send(view) if self._begun else next(self._moves)
        except StopIteration:
            action = self._answer()
        self._begun = True
        return action, ""

    # --- moves ---

    def _do(self, action: str) -> _Moves:
        yield action
        if self._page.cover:  # something lies over the page
            yield write("click", self._page.cover[0].bid)

    def _random(self) -> _Moves:
        """Use controls at random, until it ends with something that the page says."""
        while self._rng.random() > ENDS:
            view = self._view
            offered = [*view.elements] if view else []
            if not offered:
                break
            element = offered[int(self._rng.integers(len(offered)))]
            words = [*self._goal.names, *self._goal.text.split()]
            word = words[int(self._rng.integers(len(words)))]
            if element.role in _TYPED:
                yield write("fill", element.bid, word)
            elif element.role == "option":
                lists = [one.bid for one in offered if one.role in ("combobox", "listbox")]
                yield write("select_option", lists[0] if lists else element.bid, element.name)
            else:
                yield write("click", element.bid)
        facts = [fact for one in [*self._page.records, self._page.own] for fact in one.facts]
        self._notes = [_Record("", "", [facts[i] for i in self._rng.permutation(len(facts))])]

    def _play(self) -> _Moves:
        yield from self._sign_in()
        goal = self._goal
        if not any(self._skills):
            yield from self._wander()
        elif goal.listing:
            yield from self._list()
        else:
            yield from self._find()
        if goal.changes or (_IF.search(goal.lower) and self._skills.verify):
            yield from self._change()

    def _sign_in(self) -> _Moves:
        for form in self._page.forms:
            if any("password" in entry.label.lower() for entry in form.entries):
                yield from self._send(form, form.buttons[0])

    def _sections(self) -> Generator[str, AgentObservation, list[str]]:
        """Return the site's sections, those whose words are most like the goal first."""
        if self._page.menu:
            yield from self._do(write("click", self._page.menu))
        return sorted(self._page.sections, key=lambda name: -_likeness(name, self._goal.lower))

    def _open(self, section: str) -> _Moves:
        if section not in self._page.sections and self._page.menu:
            yield from self._do(write("click", self._page.menu))
        bid = self._page.sections.get(section) or self._page.links.get(section)
        if bid:
            yield from self._do(write("click", bid))

    def _wander(self) -> _Moves:
        """Follow the link whose words are most like the goal, and on from there."""
        seen = set[str]()
        for _ in range(6):
            page = self._page
            links = {**page.sections, **page.links}
            links |= {one.name: one.link for one in page.records if one.link}
            fresh = [name for name in links if name not in seen]
            best = max(fresh, key=lambda name: _likeness(name, self._goal.lower), default="")
            if _likeness(best, self._goal.lower) < LIKE:
                break
            seen.add(best)
            yield from self._do(write("click", links[best]))
        self._note(self._page.own, *self._page.records)

    def _note(self, *records: _Record) -> None:
        """Remember records; without notes only those of one page."""
        self._notes = [*self._notes, *records] if self._skills.notes else [*records]

    # --- to find things by name ---

    def _hits(self) -> list[_Record]:
        """Return what the page shows that the goal names, the longest names first."""
        named = {one.name: one for one in reversed(self._page.records) if self._meant(one.name)}
        for name, bid in self._page.links.items():
            if self._meant(name) and name not in named:
                named[name] = _Record(name, bid)
        fresh = [one for one in named.values() if one.link and one.name not in self._seen]
        return sorted(fresh, key=lambda one: (-len(one.name.split()), -len(one.name)))

    def _meant(self, name: str) -> bool:
        number = name.partition(" ")[0]
        return self._goal.has(name) or (number[:1].isdecimal() and number in self._goal.names)

    def _find(self) -> _Moves:
        """Look for the things that the goal names, and at the page of each."""
        yield from self._look()
        if self._enough():
            return
        more = MORE
        for section in (yield from self._sections()):
            yield from self._open(section)
            yield from self._look()
            more -= bool(self._notes)
            if self._enough() or not more or self._names_button():
                break

    def _names_button(self) -> bool:
        """Tell whether a button of the page says what the goal wants changed."""
        best = self._best() if self._goal.changes else None
        return best is not None and any(name in best[1].name for name in self._goal.things)

    def _enough(self) -> bool:
        """Tell whether what was noted says something of each kind that is asked for."""
        if not self._notes:
            return False
        done = " ".join(self._seen | self._missed)
        if self._skills.notes and any(name not in done for name in self._goal.things):
            return False
        return all(
            k in ("done", "code") or self._cell(self._notes[-1], k) for k in self._goal.kinds
        )

    def _look(self) -> _Moves:
        """Look on a page of a list, and through its search, for what the goal names."""
        url = self._url
        yield from self._visit(self._hits())
        for term in self._goal.names[: 4 if self._skills.notes else 2]:
            if self._notes and not self._skills.notes:
                return
            if term in self._seen | self._missed or (self._notes and term not in self._goal.things):
                continue
            if self._url != url and self._notes:
                yield from self._do(write("goto", url))
            if (form := next((one for one in self._page.forms if one.asks), None)) is None:
                break
            box = next((one for one in form.entries if one.role == "searchbox"), None)
            if box is None:
                break
            yield from self._do(write("fill", box.bid, term))
            yield from self._do(write("click", form.buttons[0].bid))
            yield from self._visit(self._hits() or self._page.records[: not self._notes])
            if term not in self._seen and (self._notes or term in self._goal.quoted):
                self._missed.add(term)
        if self._skills.paging and not self._notes:
            for _ in range(3):
                if not self._page.onward or self._notes:
                    break
                yield from self._do(write("click", self._page.onward))
                yield from self._visit(self._hits())

    def _visit(self, hits: Sequence[_Record]) -> _Moves:
        """Open the pages of things and note what they say, one step on where that is asked for."""
        url = self._url
        for hit in hits[: 4 if self._skills.notes else 1]:
            if not hit.link:
                continue
            if self._url != url:
                yield from self._do(write("goto", url))
            self._seen.add(hit.name)
            yield from self._do(write("click", hit.link))
            facts = [*self._page.own.facts, *hit.facts]
            record = _Record(hit.name, self._url, facts)
            self._note(record)
            if self._skills.notes:
                yield from self._on_from(record)

    def _on_from(self, record: _Record) -> _Moves:
        """Follow what a page says of others, where an answer is not on it."""
        for _ in range(2):
            lacking = [k for k in self._goal.kinds if k in _ASKED and not self._cell(record, k)]
            facts = [one for one in self._page.own.facts if one.link]
            facts = [one for one in facts if _likeness(one.label, self._goal.lower) >= LIKE]
            if not lacking or not facts:
                return
            best = max(facts, key=lambda one: _likeness(one.label, self._goal.lower))
            yield from self._do(write("click", best.link))
            record.facts += self._page.own.facts

    @property
    def _url(self) -> str:
        return (self._view.observation.url if self._view else "") or ""

    # --- to look through lists ---

    def _list(self) -> _Moves:
        """Look for the list that the goal is about, and read it."""
        best, section = self._fitting(), ""
        for name in (yield from self._sections())[:5]:
            yield from self._open(name)
            if (fits := self._fitting()) > best:
                best, section = fits, name
        yield from self._open(section) if section else ()
        if self._skills.filter:
            yield from self._narrow()
        records = [*self._page.records]
        for _ in range(TURNS if self._skills.paging else 0):
            if not self._page.onward:
                break
            yield from self._do(write("click", self._page.onward))
            records += self._page.records
        self._notes = self._kept(records) if self._skills.filter else records[:1]
        chosen = self._picked(self._notes)
        if chosen and chosen.link and len(self._notes) > 1 and self._goal.changes:
            self._notes = [chosen]
            yield from self._reach(chosen)

    def _reach(self, record: _Record) -> _Moves:
        """Open the page of a record, which may be on an earlier page of the list."""
        here = next((one for one in self._page.records if one.name == record.name), None)
        for _ in range(3):
            if here is not None:
                yield from self._do(write("click", here.link))
                record.link = self._url
                record.facts += self._page.own.facts
                return
            yield from self._do(write("go_back"))
            here = next((one for one in self._page.records if one.name == record.name), None)

    def _fitting(self) -> float:
        """Return how well a page's list fits the goal: what it is called, its columns, choices."""
        page = self._page
        if not page.records:
            return 0.0
        labels = {fact.label for fact in page.records[0].facts}
        options = {name for form in page.forms for e in form.entries for name in e.options}
        values = options | {fact.value for one in page.records for fact in one.facts}
        shapes = {_shape(fact.value) for fact in page.records[0].facts}
        score = 3 * _likeness(page.title, self._goal.lower)
        score += sum(_likeness(label, self._goal.lower) for label in labels) / 2
        score += sum(kind in shapes for kind in self._goal.kinds if kind in _SHAPES)
        wanted = sum(self._goal.has(v) for v in values if _shape(v) == "text")
        return score + min(wanted, 3)

    def _narrow(self) -> _Moves:
        """Choose what the goal names in the filters of a list."""
        for form in self._page.forms:
            chosen = [(e, value) for e in form.entries if (value := self._option(e)) is not None]
            if form.asks and chosen:
                for entry, value in chosen:
                    yield from self._choose(entry, value)
                yield from self._do(write("click", form.buttons[0].bid))
                return

    def _kept(self, records: Sequence[_Record]) -> list[_Record]:
        """Return the records that are as the goal says: cells with its words, amounts and dates
        within its bounds."""
        kept = [*records]
        labels = dict.fromkeys(fact.label for one in records for fact in one.facts if fact.label)
        for label in labels:
            cells = {fact.value for one in records for fact in one.facts if fact.label == label}
            wanted = {cell for cell in cells if _shape(cell) == "text" and self._goal.has(cell)}
            few = len(cells) <= max(12, len(records) // 2)
            if wanted and few:
                kept = [one for one in kept if _value(one, label) in wanted]
        return [one for one in kept if self._in_bounds(one)]

    def _in_bounds(self, record: _Record) -> bool:
        """Tell whether amounts and dates are within the bounds that the goal names."""
        limits = ((bound.search(self._goal.lower), s, holds) for bound, s, holds in _BOUNDS)
        return all(
            self._within(record, shape, next(filter(None, limit.groups())), holds)
            for limit, shape, holds in limits
            if limit is not None
        )

    def _within(
        self, record: _Record, shape: str, limit: str, holds: Callable[[Any, Any], bool]
    ) -> bool:
        shapes = [shape] if shape == "date" else ["money", "number"]
        cell = next((c for s in shapes if (c := self._cell(record, s, any_label=True))), None)
        if cell is None:
            return False
        if shape == "date":
            return holds(cell.value, limit)
        return holds(_amount(cell.value), float(limit))

    def _picked(self, records: Sequence[_Record]) -> _Record | None:
        """Return the record that has the least or the most, the first where nothing is compared."""
        low, high = _LOW.search(self._goal.lower), _HIGH.search(self._goal.lower)
        most = low or high
        if len(records) < 2 or most is None:
            return records[0] if records else None
        word = most[0]
        shapes: tuple[str, ...] = ("money", "number", "date")
        if re.search(r"earl|old|late|new|recent|next|first|last", word):
            shapes = ("date",)
        elif re.search(r"cheap|dear|expensive", word):
            shapes = ("money",)
        label, best = "", -1.0
        for fact in records[0].facts:
            likely = _likeness(fact.label, self._goal.lower) + (_shape(fact.value) == shapes[0]) / 4
            if _shape(fact.value) in shapes and likely > best:
                label, best = fact.label, likely
        ranked = [(rank, n) for n, one in enumerate(records) if (rank := _rank(_value(one, label)))]
        if not ranked:
            return records[0]
        return records[
            (min(ranked) if low and not (high and high.start() < low.start()) else max(ranked))[1]
        ]

    # --- to change things ---

    def _change(self) -> _Moves:
        goal, notes = self._goal, self._notes
        if not notes:
            yield from self._to_form()
            yield from self._operate()
            return
        targets = notes if _BOTH.search(goal.lower) and self._skills.notes else notes[-1:]
        if self._skills.verify and len(notes) > 1 and not _BOTH.search(goal.lower):
            targets = [one for one in [self._picked(notes)] if one]
        if self._skills.verify and _IF.search(goal.lower) and not self._holds(targets[0]):
            return
        for target in targets:
            if target.link.startswith("http") and target.link != self._url:
                yield from self._do(write("goto", target.link))
            yield from self._operate()

    def _holds(self, record: _Record) -> bool:
        """Tell whether the condition of the goal holds for a record, as far as it can be told: a
        state that the goal names is the record's, an amount is within a bound."""
        states = [
            f.value
            for f in record.facts
            if _stems(f.label) & _stems("status state stage condition")
        ]
        if states and not any(self._goal.has(state) for state in states):
            return False
        return self._in_bounds(record)

    def _to_form(self) -> _Moves:
        """Look for a page with a form for what the goal says."""
        if self._best() is not None:
            return
        for section in (yield from self._sections()):
            yield from self._open(section)
            if self._best() is not None:
                return
            for name, bid in self._page.links.items():
                if _likeness(name, self._goal.lower) >= 1.0 and not self._goal.has(name):
                    yield from self._do(write("click", bid))
                    if self._best() is not None:
                        return
                    break

    def _best(self) -> tuple[_PageForm, _Node] | None:
        """Return the form and the button that are most like the goal, None for none that is."""
        offered = [
            (_likeness(button.name, self._goal.lower) + fitting / 2, fitting, n, form, button)
            for n, form in enumerate(self._page.forms)
            if not form.asks
            for fitting in [self._fits(form)]
            for button in form.buttons
            if button.name not in self._pressed
        ]
        best = max(offered, key=lambda one: one[:2], default=None)
        enough = best is not None and (best[0] >= LIKE or len(offered) == 1)
        if best is None or not enough or (self._pressed and not best[1] and not self._lacks_code()):
            return None
        return best[3], best[4]

    def _fits(self, form: _PageForm) -> int:
        """Return how many fields of a form the goal has something for."""
        used: dict[str, int] = {}
        return sum(self._wanted(entry, used) is not None for entry in form.entries)

    def _lacks_code(self) -> bool:
        return "code" in self._goal.kinds and not self._code()

    def _operate(self) -> _Moves:
        """Fill in what the page has for the goal and send it, and what it leads to."""
        self._pressed = set()
        for _ in range(4):
            for fold in self._page.folds[:4]:
                best = self._best()
                if self._page.alert or (best and self._fits(best[0])):
                    break
                yield from self._do(write("click", fold.bid))
            links = [one.link for one in self._page.own.facts if one.link][
                : 2 if not self._pressed else 0
            ]
            for link in links if self._best() is None else ():
                url = self._url
                yield from self._do(write("click", link))
                if self._best() is not None:
                    break
                yield from self._do(write("goto", url))
            if (best := self._best()) is None:
                break
            self._pressed.add(best[1].name)
            yield from self._send(*best)
            for turn in range(2 if self._skills.recover else 0):
                if not self._page.alert:
                    break
                yield from self._try_again(best[1].name, turn)
            yield from self._confirm()
            if "code" in self._goal.kinds and self._code():
                self._told = self._code()
            if len(self._goal.numbers) == 0 and not self._page.forms:
                break
        if "code" in self._goal.kinds and not self._told:
            hits = self._hits_again()
            if hits:
                yield from self._do(write("click", hits[0].link))
                self._told = self._code()

    def _hits_again(self) -> list[_Record]:
        own = [one for one in self._page.records if one.link and self._goal.has(one.name)]
        return own or [one for one in self._page.records if one.link][:1]

    def _confirm(self) -> _Moves:
        for form in self._page.forms:
            sure = [
                b
                for b in form.buttons
                if re.match(r"confirm|yes|proceed|go ahead|ok", b.name, re.I)
            ]
            if sure and not form.entries:
                yield from self._do(write("click", sure[0].bid))
                return

    def _try_again(self, button: str, turn: int) -> _Moves:
        """Take from a refusal what it allows, or the goal's next best, and send the form again."""
        form = next((f for f in self._page.forms if any(b.name == button for b in f.buttons)), None)
        if form is None:
            return
        allowed = re.findall(r"\d+", self._page.alert)
        for entry in form.entries:
            if entry.role == "spinbutton" and allowed:
                yield from self._do(write("fill", entry.bid, allowed[-1]))
            elif entry.role == "Date" and len(self._goal.dates) > turn + 1:
                yield from self._do(write("fill", entry.bid, self._goal.dates[turn + 1]))
        bid = next(b.bid for b in form.buttons if b.name == button)
        yield from self._do(write("click", bid))

    def _send(self, form: _PageForm, button: _Node) -> _Moves:
        """Fill in a form and press its button."""
        used: dict[str, int] = {}
        for entry in form.entries:
            value = self._wanted(entry, used)
            if value is None or value == entry.value:
                continue
            yield from self._choose(entry, value)
        yield from self._do(write("click", button.bid))

    def _choose(self, entry: _Entry, value: str) -> _Moves:
        if entry.role == "radio":
            yield from self._do(write("click", entry.options[value]))
        elif entry.role in ("combobox", "listbox"):
            yield from self._do(write("select_option", entry.bid, value))
        else:
            yield from self._do(write("fill", entry.bid, value))

    def _option(self, entry: _Entry) -> str | None:
        """Return the choice that the goal names."""
        named = [name for name in entry.options if self._goal.has(re.sub(r" ?\(.*", "", name))]
        return max(named, key=len, default=None)

    def _wanted(self, entry: _Entry, used: dict[str, int]) -> str | None:
        """Return what the goal has for a field that was not ``used`` for another."""
        goal, at = self._goal, used.get(entry.role, 0)
        if entry.options and entry.role != "typed":
            like = max(entry.options, key=lambda name: _likeness(name, goal.lower))
            return self._option(entry) or (like if _likeness(like, goal.lower) >= LIKE else None)
        if entry.role == "Date":
            values = goal.dates
        elif entry.role == "spinbutton":
            values = goal.numbers
        elif entry.role == "typed":
            values = [name for name in goal.names if name not in self._seen]
        elif re.search(r"password", entry.label, re.IGNORECASE):
            values, at = re.findall(r"\b[a-z]+-\d+\b", goal.text), 0
        elif re.search(r"log.?in|user|account", entry.label, re.IGNORECASE):
            values, at = re.findall(r"\b[a-z]\.[a-z]+\d*\b", goal.text), 0
        else:
            values = [text for text in goal.quoted if text not in self._seen]
        if at >= len(values):
            return None
        used[entry.role] = at + 1
        return str(values[at])

    # --- to answer ---

    def _code(self) -> str:
        facts = [*self._page.own.facts, *(f for one in self._page.records for f in one.facts)]
        codes = [fact.value for fact in facts if _SHAPES["code"].fullmatch(fact.value)]
        return codes[0] if codes else ""

    def _cell(self, record: _Record, kind: str, *, any_label: bool = False) -> _Fact | None:
        """Return what a record says of a kind that is asked for, of what was not used yet."""
        shape = "text" if kind == "texts" else kind
        facts = [one for one in record.facts if _shape(one.value) == shape and one.value.strip("-")]
        facts = [one for one in facts if one.label not in self._used or any_label]
        if not any_label:  # what the goal says itself is no answer to it
            facts = [one for one in facts if not self._goal.has(one.value)]

        def likely(fact: _Fact) -> float:
            return _likeness(fact.label, self._goal.lower)

        best = max(facts, key=likely, default=None)
        if best is None or (shape == "text" and likely(best) < LIKE and not any_label):
            return None
        return best

    def _answer(self) -> str:
        """Return the action that ends the run."""
        self._used = set()
        if "done" in self._goal.kinds:
            return write("answer", "done")
        values = [value for kind in self._goal.kinds for value in self._values(kind)]
        if not all(values) or not values:
            return write("answer", None)
        single = len(values) == 1 and self._goal.kinds[0] != "texts"
        return write("answer", values[0] if single else values)

    def _values(self, kind: str) -> list[str]:
        """Return the answer of a kind; only a list of names has several values."""
        if kind == "texts":
            cells = [(self._cell(one, kind), one.name) for one in self._notes]
            return [*dict.fromkeys(cell.value if cell else name for cell, name in cells)]
        return [self._told or self._code()] if kind == "code" else self._one_value(kind)

    def _one_value(self, kind: str) -> list[str]:
        notes, lower = self._notes, self._goal.lower
        if kind == "number" and self._goal.listing and _COUNT.search(lower):
            return [str(len(notes))]
        if kind in ("money", "number") and len(notes) > 1 and _SUM.search(lower):
            cells = [cell for one in notes if (cell := self._cell(one, kind))]
            total = sum(_amount(cell.value) or 0.0 for cell in cells)
            return [f"${total:.2f}" if kind == "money" else f"{total:g}"]
        record = self._picked(notes)
        if record is None:
            return [""]
        cell = self._cell(record, kind)
        if cell is None:
            return [record.name if kind == "text" else ""]
        self._used.add(cell.label)
        return [cell.value]


_ASKED = ("money", "number", "text", "date", "duration")
_BOUNDS: tuple[tuple[re.Pattern[str], str, Callable[[Any, Any], bool]], ...] = (
    (_BELOW, "amount", lambda value, limit: value is not None and value <= limit),
    (_ABOVE, "amount", lambda value, limit: value is not None and value >= limit),
    (_BEFORE, "date", lambda value, limit: value < limit),
    (_AFTER, "date", lambda value, limit: value > limit),
    (_SINCE, "date", lambda value, limit: value >= limit),
)


def _value(record: _Record, label: str) -> str:
    return next((fact.value for fact in record.facts if fact.label == label), "")


def _rank(value: str) -> tuple[float, str] | None:
    """Return how a value sorts among those of its kind; None for none."""
    if _shape(value) == "date":
        return 0.0, value
    amount = _amount(value)
    return None if amount is None else (amount, "")
