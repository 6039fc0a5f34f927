"""The text form of the accessibility tree, from nodes as the browser's protocol gives them."""

from __future__ import annotations

import ast
import re
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from trajudge.environments.chromium.axtree import AxNode, Element, Mark, TreeWriter, Within, read


def ax_nodes(nodes: Any) -> list[AxNode]:
    """As they come over the wire."""
    return msgspec.json.decode(msgspec.json.encode(nodes), type=list[AxNode])


def axtree_text(nodes: Any, marks: Any, *, pruned: bool = False) -> str:
    tree = read(ax_nodes(nodes), marks)
    return tree.pruned if pruned else tree.full


def node(number: int, role: str, name: str = "", below: tuple[int, ...] = (), **more: Any) -> Any:
    properties = [
        {"name": key, "value": {"value": value}}
        for key, value in more.pop("properties", {}).items()
    ]
    return {
        "nodeId": str(number),
        "backendDOMNodeId": number,
        "ignored": more.pop("ignored", False),
        "role": {"value": role},
        "name": {"value": name},
        "childIds": [str(child) for child in below],
        "properties": properties,
        **{key: {"value": value} for key, value in more.items()},
    }


PAGE = [
    node(1, "RootWebArea", "Cart", (2, 3), properties={"focused": True, "url": "http://x/"}),
    node(2, "heading", "Your cart", (4,)),
    node(3, "generic", "", (5, 7)),
    node(4, "StaticText", "Your cart"),
    node(5, "LabelText", "", (6,)),
    node(6, "spinbutton", "Qty", value=2, properties={"required": True, "valuemax": 9}),
    node(7, "button", "Pay", (8,), properties={"disabled": True, "focusable": False}),
    node(8, "StaticText", "Pay", (9,)),
    node(9, "InlineTextBox", "Pay"),
]
MARKS = {
    2: Mark("0", visible=True),
    5: Mark("2"),
    6: Mark("3", visible=True, clickable=True),
    7: Mark("4", clickable=True),
}


def test_one_line_a_node_and_a_tab_a_level() -> None:
    assert axtree_text(PAGE, MARKS).splitlines() == [
        "RootWebArea 'Cart', focused",
        "\t[0] heading 'Your cart', visible",
        "\t\tStaticText 'Your cart'",
        "\t[2] LabelText ''",
        "\t\t[3] spinbutton 'Qty' value=2, clickable, visible, required, valuemax=9",
        "\t[4] button 'Pay', clickable, disabled=True",
        "\t\tStaticText 'Pay'",
    ]


def test_pruned_drops_nameless_containers_and_repeated_text() -> None:
    assert axtree_text(PAGE, MARKS, pruned=True).splitlines() == [
        "RootWebArea 'Cart', focused",
        "\t[0] heading 'Your cart', visible",
        "\t[3] spinbutton 'Qty' value=2, clickable, visible, required, valuemax=9",
        "\t[4] button 'Pay', clickable, disabled=True",
    ]


def test_an_ignored_node_lends_its_place_to_its_children() -> None:
    page = [
        node(1, "RootWebArea", "", (2,)),
        node(2, "none", "", (3,), ignored=True),
        node(3, "link", "Go"),
    ]
    assert axtree_text(page, {}).splitlines() == ["RootWebArea ''", "\tlink 'Go'"]


def test_elements_are_what_an_agent_can_act_on() -> None:
    assert read(ax_nodes(PAGE), MARKS).elements == [
        Element("3", "spinbutton", "Qty", value="2"),
        Element("4", "button", "Pay"),
    ]


def test_no_nodes_give_no_text() -> None:
    assert axtree_text([], {}) == ""


ROLES = st.sampled_from(["generic", "none", "link", "button", "StaticText", "list", "heading"])


@st.composite
def trees(draw: st.DrawFn) -> list[Any]:
    """Nodes with any names, whose children may be missing, shared or their own ancestors."""
    size = draw(st.integers(1, 12))
    below = st.lists(st.integers(1, size + 2), max_size=4).map(tuple)
    first = node(1, "RootWebArea", draw(st.text(max_size=8)), draw(below))
    rest = [
        node(
            number, draw(ROLES), draw(st.text(max_size=8)), draw(below), ignored=draw(st.booleans())
        )
        for number in range(2, size + 1)
    ]
    return [first, *rest]


LINE = re.compile(r"\t*(?:\[\w+\] )?\w+ (?P<name>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")


@given(trees(), st.booleans())
def test_every_tree_gives_lines_that_can_be_read_back(nodes: list[Any], pruned: bool) -> None:
    marks = {entry["backendDOMNodeId"]: Mark(f"b{entry['nodeId']}") for entry in nodes}
    lines = axtree_text(nodes, marks, pruned=pruned).split("\n")
    assert len(lines) <= len(nodes)
    names = [entry["name"]["value"].strip() for entry in nodes]
    depth = -1
    for line in lines:
        found = LINE.fullmatch(line)
        assert found, line
        assert ast.literal_eval(found["name"]) in names
        now = len(line) - len(line.lstrip("\t"))
        assert now <= depth + 1
        depth = now


@given(trees())
def test_pruning_only_takes_lines_away(nodes: list[Any]) -> None:
    full = [line.strip() for line in axtree_text(nodes, {}).split("\n")]
    for line in axtree_text(nodes, {}, pruned=True).split("\n"):
        full.remove(line.strip())


def test_what_is_written_stands_where_its_parent_says() -> None:
    writer = TreeWriter()
    root = writer.add(Within(), "RootWebArea", "")
    group = writer.add(writer.add(root, "dialog", "Pay", bid="1"), "group", "Card", bid="2")
    inside = writer.add(group, "generic", "", bid="3")
    writer.add(inside, "button", "", ", visible", bid="4", state="true", focused=True)
    writer.add(inside, "StaticText", "Card")
    writer.add(inside, "StaticText", "Bank")
    for bid, role, name, text in (
        ("5", "paragraph", "", "new"),
        ("6", "paragraph", "", "Card"),
        ("7", "link", "Go now", "Go"),
        ("8", "link", "", "words"),
        ("9", "heading", "Title", "Other"),
    ):
        writer.worded(inside, role, name, text, more="", bid=bid)
    writer.text(inside, "Card")
    writer.text(inside, "end")
    writer.add(root, "link", "Home", bid="10")
    assert writer.tree() == (
        """\
RootWebArea ''
\t[1] dialog 'Pay'
\t\t[2] group 'Card'
\t\t\t[3] generic ''
\t\t\t\t[4] button '', visible
\t\t\t\tStaticText 'Card'
\t\t\t\tStaticText 'Bank'
\t\t\t\t[5] paragraph ''
\t\t\t\t\tStaticText 'new'
\t\t\t\t[6] paragraph ''
\t\t\t\t\tStaticText 'Card'
\t\t\t\t[7] link 'Go now'
\t\t\t\t\tStaticText 'Go'
\t\t\t\t[8] link ''
\t\t\t\t\tStaticText 'words'
\t\t\t\t[9] heading 'Title'
\t\t\t\t\tStaticText 'Other'
\t\t\t\tStaticText 'Card'
\t\t\t\tStaticText 'end'
\t[10] link 'Home'""",
        """\
RootWebArea ''
\t[1] dialog 'Pay'
\t\t[2] group 'Card'
\t\t\t[4] button '', visible
\t\t\tStaticText 'Bank'
\t\t\tStaticText 'new'
\t\t\t[7] link 'Go now'
\t\t\t[8] link ''
\t\t\t\tStaticText 'words'
\t\t\t[9] heading 'Title'
\t\t\t\tStaticText 'Other'
\t\t\tStaticText 'end'
\t[10] link 'Home'""",
        [
            Element("4", "button", "", "true", in_dialog=True, group="Card"),
            Element("7", "link", "Go now", "", in_dialog=True, group="Card"),
            Element("8", "link", "", "", in_dialog=True, group="Card"),
            Element("10", "link", "Home"),
        ],
        "4",
    )
    assert Element("10", "link", "Home")[3:] == ("", False, "")
    assert Mark("1")[1:] == (False, False)
