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
from trajudge.environments.text.tree import ATTRIBUTES, EXPLICIT, ROLES, TRANSPARENT, write

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
