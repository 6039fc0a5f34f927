"""What actions do without a browser: forms, links, history, keys, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.environments.cases import agent, job, sound
from tests.environments.text.lockstep import configs
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.chromium.action_syntax import write as write_action
from trajudge.environments.chromium.axtree import Element
from trajudge.environments.kit import html
from trajudge.environments.recording.recorder import recorded_offline
from trajudge.environments.serving.run import ServedRun, open_run
from trajudge.environments.text import TextSession
from trajudge.environments.text.document import PageDocument
from trajudge.environments.text.tree import (
    ATTRIBUTES,
    EXPLICIT,
    ROLES,
    TRANSPARENT,
    write,
    write_details,
)

LINKS = ("link", "menuitem")
FOLDED = re.compile(r"DisclosureTriangle.*expanded=(\w+)")
OPENED = re.compile(r"combobox .*expanded=True")


@pytest.fixture
def run() -> Iterator[ServedRun]:
    opened = open_run(sound("buy").config, b"k")
    yield opened
    opened.state.close()


def bid(session: TextSession, role: str, name: str = "") -> str:
    return next(
        e.bid for e in session.observe().elements if e.role == role and (not name or e.name == name)
    )


def test_what_cannot_be_done_is_an_error_and_changes_nothing(run: ServedRun) -> None:
    session = TextSession(run)
    expected = {
        "click('4999')": "Error: no element with bid '4999'",
        "burn('1')": "BadAction: no action is called 'burn'",
        "goto('file:///etc/hostname')": f"Error: 'file:///etc/hostname' is outside of {run.origin}",
        "go_back()": "Error: there is no page to go back to",
        "go_forward()": "Error: there is no page to go forward to",
    }
    assert {action: session.act(action) for action in expected} == expected
    assert session.observe().observation.url == run.start_url
    assert run.state.dump() == run.before


def test_a_form_is_sent_as_a_browser_spells_it(run: ServedRun) -> None:
    session = TextSession(run)
    session.act(f"fill({bid(session, 'searchbox')!r}, 'a b~*\"é')")
    session.act(f"press({bid(session, 'searchbox')!r}, 'Enter')")
    # The URL Standard's application/x-www-form-urlencoded serializer.
    assert session.url == f"{run.origin}/products?words=a+b%7E*%22%C3%A9&category="
    assert session.act("go_back()") is None
    assert session.url == run.start_url
    assert session.act("go_forward()") is None
    assert session.url.endswith("&category=")


def test_the_page_that_is_open_is_loaded_in_its_place(run: ServedRun) -> None:
    session = TextSession(run)
    assert session.act(f"goto({session.url!r})") is None
    assert session.act("go_back()") == "Error: there is no page to go back to"
    assert len(run.events) == 2


def test_eight_tabs_can_be_open(run: ServedRun) -> None:
    session = TextSession(run)
    assert [session.act("new_tab()") for _ in range(8)] == [
        *[None] * 7, "Error: no more than 8 tabs can be open",
    ]  # fmt: skip
    seen = session.observe()
    assert (len(seen.open_pages), seen.active_page) == (8, 7)


def test_the_trace_holds_every_request_in_order() -> None:
    recorded = recorded_offline(job(sound("buy"), agent(Behaviour.ORACLE)), 0)
    assert recorded.finding.labels.success is True
    assert all(step.observation.screenshot is None for step in recorded.trajectory.steps)
    entries = recorded.har["log"]["entries"]
    asked = [(entry["request"]["method"], entry["response"]["status"]) for entry in entries]
    assert asked[0] == ("GET", 200)
    place = asked.index(("POST", 303))
    assert asked[place + 1] == ("GET", 200)
    posted = entries[place]["request"]["postData"]
    assert posted["mimeType"] == "application/x-www-form-urlencoded"
    assert "_nonce=" in posted["text"]


def test_a_tag_or_role_without_a_rule_is_an_error() -> None:
    """A new widget must not be shown wrongly in silence."""
    for page in ("<marquee>x</marquee>", '<p role="slider">x</p>', '<input type="range">'):
        with pytest.raises(ValueError, match="has no rule in the text engine"):
            write(PageDocument(f"<body>{page}</body>"))


def test_templates_write_nothing_that_the_tree_does_not_know() -> None:
    """A tag, an attribute or a role that a template has, and what a style sheet does to names."""
    folder = Path(html.__file__).parent
    for template in folder.glob("templates/*.html"):
        body = re.sub(r"{#.*?#}", "", template.read_text(), flags=re.DOTALL)
        body = body.partition("<body")[2] or body  # of the frame what is after its head
        plain = re.sub(r"{{.*?}}|{%.*?%}", " ", body, flags=re.DOTALL)
        tags = re.findall(r"<([a-z]\w*)([^<>]*)", plain)
        known = ROLES.keys() | TRANSPARENT
        assert {name for name, _ in tags} - {"h", "legend"} <= known, template
        bare = " ".join(re.sub(r'"[^"]*"', "", rest) for _, rest in tags)
        attributes = {a for a in re.findall(r"[a-z][a-z-]*", bare) if not a.startswith("data-")}
        assert attributes <= ATTRIBUTES, template
        assert set(re.findall(r'role="([a-z]+)"', body)) <= EXPLICIT, template
    sheet = (folder / "style.css").read_text()
    assert set(re.findall(r"(?<![\w-])content: ([^;]+);", sheet)) <= {'""', '":"'}
    assert "text-transform" not in sheet


def test_what_was_shown_before_changes_nothing_of_what_is_shown() -> None:
    """Acts that change controls of drawn pages: who looks after each sees at last what one sees
    who looks only then."""
    changed = folded = opened = 0
    for config in configs(28, seed=9):
        runs = [open_run(config, b"k", "twice") for _ in range(2)]
        watched, other = (TextSession(run) for run in runs)
        rng = np.random.default_rng(config.instance)
        for _ in range(16):
            seen = before = watched.observe()
            for _ in range(int(rng.integers(1, 4))):
                act = changing(seen.elements, rng)
                assert other.act(act) == watched.act(act)
                seen = watched.observe()
            assert seen == other.observe()
            was, now = before.observation.axtree or "", seen.observation.axtree or ""
            changed += was != now
            folded += before.title == seen.title and FOLDED.findall(was) != FOLDED.findall(now)
            opened += OPENED.search(now) is not None
        for run in runs:
            run.state.close()
    assert changed > 100
    assert folded
    assert opened


def changing(elements: Sequence[Element], rng: np.random.Generator) -> str:
    """Return an act that changes a control, its focus, or what is folded away."""
    control = next(
        (one for one in rng.permutation(len(elements)) if elements[one].role not in LINKS), 0
    )
    element = elements[control]
    keys = ("a", "Enter", "Space", "ArrowDown", "Escape", "Tab")
    key, chance = keys[int(rng.integers(len(keys)))], rng.random()
    if chance < 0.3:
        return write_action("press", element.bid, key)
    if chance < 0.6:  # where the focus is
        return write_action("keyboard_press", key)
    match element.role:
        case "textbox" | "searchbox":
            return write_action("fill", element.bid, f"tea {int(rng.integers(9))}")
        case "spinbutton":
            return write_action("fill", element.bid, str(int(rng.integers(9))))
        case "Date":
            return write_action("fill", element.bid, "2026-03-04")
        case "option":
            lists = [one.bid for one in elements if one.role in ("combobox", "listbox")]
            return write_action("select_option", lists[0], element.name)
    return write_action("focus" if element.role == "button" else "click", element.bid)


def test_text_is_no_markup() -> None:
    document = PageDocument("<title>a &amp; b</title><body><p>&lt;b&gt; 'x'\n  y</p></body>")
    assert write(document).full.splitlines() == [
        "RootWebArea 'a & b', focused",
        "\t[0] paragraph '', visible",
        "\t\tStaticText \"<b> 'x' y\"",
    ]


CONTROLS = (
    "<details><summary>0</summary><summary>none</summary><button>a</button></details>"
    '<details name="g" open><summary>1</summary><p>a<button>2</button>b</p></details>'
    '<details name="g"><summary>3</summary><details><summary>b</summary></details></details>'
    "<details open><summary hidden>none</summary></details><summary>none</summary>"
    '<form><input type="radio" name="r"><input type="radio" name="r" checked>'
    '<input type="radio" name="s"><input type="radio" name="s"><input type="hidden" name="r">'
    '</form><form><input type="radio" name="r"><a>none</a><a href="/">c</a></form>'
    "<main inert><p><button>none</button></p></main><button disabled>none</button>"
    '<select><option label="One" value="1">1st</option><option>2\tnd</option></select><p></p>'
)


def test_controls_are_what_the_standard_says() -> None:
    """The focus, groups and ``details`` of the HTML standard (6.6, 4.10.5.1.17, 4.11.1)."""
    page = PageDocument(f"<body>{CONTROLS}</body>")
    elements = [*page.elements()]
    shown = [
        "".join(
            mark
            for mark, holds in zip(
                "fdi.",
                (one.focusable, one.folded, one.inert, not page.is_filled(one.number)),
                strict=True,
            )
            if holds
        )
        for one in elements
    ]
    assert " ".join(one or "-" for one in shown) == (
        "- f d fd - f - f - f d fd - - - - f. f. f. f. . - f. - f i i fi - f - - ."
    )
    assert [one.text() for one in elements[:8]] == [
        "0nonea", "0", "none", "a", "1a2b", "1", "a2b", "2"
    ]  # fmt: skip
    assert [one.bid for one in elements[4].elements()] == ["5", "6", "7"]
    assert [page.element(bid) for bid in ("0", "32", "33", "-1", "01", "x", "1" * 10)] == [
        elements[0], elements[32], *[None] * 5
    ]  # fmt: skip
    for group in ((16, 17), (18, 19), (22,)):
        for number in group:
            assert page.radios(elements[number]) == [elements[each] for each in group]
    choices = elements[29]
    assert [(one.label, one.sent) for one in choices.options] == [("One", "1"), ("2 nd", "2\tnd")]
    assert choices.chosen == elements[30]
    choices.choose(elements[31])
    assert choices.chosen == elements[31]


def test_the_tabulator_key_goes_through_all_that_takes_the_focus() -> None:
    page = PageDocument(f"<body>{CONTROLS}</body>")

    def stops(by: int) -> list[str]:
        found: list[str] = []
        while True:
            page.move_focus(by)
            if page.focus_at is None:
                assert page.left
                return found
            assert not page.left
            found.append(page.focus_at.bid)

    there = ["1", "5", "7", "9", "17", "18", "22", "24", "29"]
    assert stops(1) == there
    # Of a group without a chosen button the first is reached from before, the last from behind.
    assert stops(-1) == [*reversed(there[6:]), "19", *reversed(there[:5])]


def test_a_list_is_open_while_it_has_the_focus_and_one_details_of_a_name() -> None:
    page = PageDocument(f"<body>{CONTROLS}</body>")
    choices, other = page.element("29"), page.element("22")
    assert choices is not None
    page.focus(choices)
    opened = []
    for focused in (choices, other):
        page.toggle(choices)
        opened.append(page.opened)
        page.focus(focused)
        opened.append(page.opened)
    assert opened == [29, 29, None, None]
    page.toggle(choices)
    assert page.opened == 29
    elements = [*page.elements()]
    unfolded = []
    for number in (0, 8, 8, 0):
        page.unfold(elements[number])
        unfolded.append({*page.unfolded})
    assert unfolded == [{0, 4, 12}, {0, 8, 12}, {0, 12}, {12}]


def test_the_details_of_a_page_are_those_of_its_elements_but_hidden_fields() -> None:
    page = PageDocument(
        '<body>hi<form><input type="hidden" name="n"><input name="a" value="x"><p></p><p>words</p>'
        "<button hidden><b>B</b></button></form>end</body>"
    )
    dom, elements = write_details(page)
    nodes, strings = dom["documents"][0]["nodes"], dom["strings"]
    assert [strings[name] for name in nodes["nodeName"]] == [
        *("#document", "HTML", "BODY", "#text", "FORM", "INPUT", "P", "P", "#text"),
        *("BUTTON", "B", "#text", "#text"),
    ]
    assert nodes["parentIndex"] == [-1, 0, 1, 2, 2, 4, 4, 4, 7, 4, 9, 10, 2]
    texts = [strings[text] for text in nodes["nodeValue"] if text >= 0]
    assert texts == ["hi", "words", "B", "end"]
    stated = [[strings[part] for part in pairs] for pairs in nodes["attributes"]]
    assert stated[5] == ["name", "a", "value", "x", "bid", "2"]
    shown = {"0": 1, "2": 1, "3": 0, "4": 1, "5": 0, "6": 0}  # an empty paragraph has no height
    assert {bid: one["visibility"] for bid, one in elements.items()} == shown
    assert [bid for bid, one in elements.items() if one["clickable"]] == ["2", "5"]
    _, unseen = write_details(page, visible=False)
    assert [one["visibility"] for one in unseen.values()] == [0] * 6
    assert write(page).full == write(page, visible=True).full != write(page, visible=False).full
