"""Pages of any text at all, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from trajudge.environments.kit.words import WORDS as KIT
from trajudge.environments.model import page as parts
from trajudge.environments.model.page import Page, Word

KEYS = ("alpha", "beta", "gamma")
WORDS = {
    **{key: words[0] for key, words in KIT.items()},
    **{key: f"The {key} <&>" for key in KEYS},
    "choose": "Please choose",
    "actions": "Actions",
    "nothing_here": "Nothing",
    "dismiss": "Close",
    "accept_cookies": "Accept",
}
HOSTILE = (
    "<script>alert(1)</script>",
    "</textarea></select></style><b onclick=x>",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='x",
    "&lt;b&gt; &amp;amp; &#x3c;",
    "<!-- --> ]]> <?php ?>",
    "</title><svg/onload=x>",
    "javascript:alert(1)",
    "\x00\x0c\r\n\x1b\x85\ufffe\ud800",
    "\u202eright to left\u2066",
    "  many   spaces\t\n",
    "Ünïcödé 日本語 🎈",
)
TEXT = st.sampled_from(HOSTILE) | st.text(max_size=30) | st.text("<>&\"'/=! -ab\n\r", max_size=20)
LABEL = TEXT | st.builds(Word, st.sampled_from(KEYS), st.just("") | TEXT)
PLAIN = st.text("abcdef-", min_size=1, max_size=8)
ARGS = st.dictionaries(TEXT, TEXT, max_size=3)
LINK = st.builds(parts.Link, LABEL, TEXT.filter(bool), ARGS)
OPTIONS = st.lists(st.builds(parts.Option, TEXT, LABEL), max_size=4, unique_by=lambda o: o.value)
INPUTS: tuple[parts.Input, ...] = (
    "text", "search", "number", "date", "long", "choice", "tick", "file",
)  # fmt: skip

DRAWN: dict[parts.Input, tuple[parts.Drawn, ...]] = {
    "choice": ("combobox", "listbox", "rating"), "tick": ("switch",), "long": ("rich",),
    "number": ("slider",),
}  # fmt: skip


@st.composite
def fields(draw: st.DrawFn) -> parts.Field:
    kind = draw(st.sampled_from(INPUTS))
    options = tuple(draw(OPTIONS)) if kind == "choice" else ()
    value = draw(st.sampled_from(("", "on"))) if kind == "tick" else draw(TEXT)
    drawn = draw(st.sampled_from(("", *DRAWN.get(kind, ()))))
    hint = draw(st.sampled_from(("", HOSTILE[0])))
    limits = (0, 50) if drawn == "slider" else None
    needed = draw(st.booleans())
    return parts.Field("", draw(LABEL), kind, value, options, needed, drawn, hint, limits)


@st.composite
def forms(draw: st.DrawFn) -> parts.Form:
    found = draw(st.lists(fields(), max_size=4))
    named = tuple(entry._replace(name=f"f{place}") for place, entry in enumerate(found))
    where = {draw(st.sampled_from(("operation", "page"))): draw(PLAIN)}
    hidden = draw(st.dictionaries(PLAIN, TEXT, max_size=3))
    return parts.Form(draw(LABEL), named, hidden=hidden, **where)


@st.composite
def items(draw: st.DrawFn) -> parts.ItemList:
    width = draw(st.integers(0, 3))
    cells = st.lists(TEXT | LINK, min_size=width, max_size=width).map(tuple)
    row = st.builds(parts.ListRow, LINK | TEXT, cells, st.lists(forms(), max_size=2).map(tuple))
    columns = tuple(draw(LABEL) for _ in range(width + 1))
    rows = tuple(draw(st.lists(row, max_size=3)))
    return parts.ItemList(columns, rows)


CHART = st.builds(
    parts.Chart,
    TEXT,
    st.sampled_from(("bars", "line", "pie")),
    st.just(("a", "b")),
    st.just((1.0, 2.0)),
)
FACTS = st.builds(parts.DefinitionList, st.lists(st.tuples(LABEL, TEXT), max_size=3).map(tuple))
BARE = st.builds(lambda label, operation: parts.Form(label, operation=operation), LABEL, PLAIN)
NODES = st.recursive(
    st.builds(parts.TreeViewItem, LINK | TEXT, st.just(())),
    lambda inner: st.builds(
        parts.TreeViewItem, LINK | TEXT, st.lists(inner, max_size=2).map(tuple)
    ),
    max_leaves=4,
)
CARD = st.builds(parts.BoardCard, LINK, TEXT, st.dictionaries(TEXT, BARE, max_size=2))
COLUMN = st.builds(parts.BoardColumn, TEXT, st.lists(CARD, max_size=2).map(tuple))
LEAF = (
    st.builds(parts.Paragraph, LABEL)
    | st.builds(parts.Notice, LABEL, st.booleans())
    | FACTS
    | items()
    | CHART
    | forms()
    | LINK
    | st.builds(parts.LinkList, LABEL, st.lists(LINK, max_size=3).map(tuple), st.booleans())
    | st.builds(parts.Menu, LABEL, st.lists(LINK | BARE, max_size=3).map(tuple))
    | st.builds(parts.TreeView, LABEL, st.lists(NODES, max_size=2).map(tuple))
    | st.builds(parts.Board, st.lists(COLUMN, max_size=2).map(tuple))
)


def _around(inner: st.SearchStrategy[parts.Block]) -> st.SearchStrategy[parts.Block]:
    """What holds other blocks."""
    some = st.lists(inner, max_size=3).map(tuple)
    sections = st.builds(parts.Section, LABEL, some)
    tabs = st.builds(parts.Tabs, LABEL, st.lists(sections, min_size=1, max_size=3).map(tuple))
    drawn = st.sampled_from(("", "edit", "dialog"))
    return sections | tabs | st.builds(parts.Disclosure, LABEL, some, st.booleans(), drawn)


BLOCKS = st.recursive(LEAF, _around)
TRAIL = st.lists(LINK, max_size=2).map(tuple)
PAGES = st.builds(Page, LABEL, st.lists(BLOCKS, max_size=5).map(tuple), TRAIL, st.none())
