"""Keys that a file gives to others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.app.browsing import launched, opened
from tests.app.labelling.sites import Site, queue_site, visited
from tests.app.made_runs import Task, write_run
from tests.app.serving import served
from trajudge.annotations.queue_files import queue_annotations
from trajudge.app.keys import KEYS, read_keys
from trajudge.app.label_forms import form_questions
from trajudge.app.label_pages import label_room
from trajudge.app.workspace import Workspace, open_workspace
from trajudge.util.errors import UserError


def write(folder: Path, *lines: str) -> Path:
    file = folder / "keys.toml"
    file.write_text("\n".join(["[keys]", *lines]), "utf-8")
    return file


def test_a_file_names_other_keys(tmp_path: Path) -> None:
    file = write(
        tmp_path, 'j = "ArrowDown"', 'n = "p"', 'p = "n"', '"g i" = "h"', 's = "ß"', 'q = "q"'
    )
    assert read_keys(file) == {"j": "ArrowDown", "n": "p", "p": "n", "g i": "h", "s": "ß"}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('v = "a"', "no page has the key 'v'"),
        ('j = "k"', "k would be next row"),
        ('j = "a"\nk = "a"', "a would be next row (j) and previous row"),
        ('j = "g"', "g is next row and begins g"),
        ('"g i" = "j x"', "j is next row and begins j x"),
        ('j = "ab"', "give one character"),
        ('j = "Escape"', "give one character"),
        ('j = "Tab"', "give one character"),
        ('j = ""', "give one character"),
        ('j = " "', "give one character"),
        ('j = "a b"', "give one character"),
        ("j = 1", "has no table [keys]"),
        ("j = ", "cannot be read as TOML"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        read_keys(write(tmp_path, line))


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.toml"
    empty.write_text("")
    for file, sentence in ((empty, "has no table"), (tmp_path / "absent", "cannot be read")):
        with pytest.raises(UserError, match=sentence):
            read_keys(file)


def test_every_key_of_the_pages_can_be_moved() -> None:
    """What templates and scripts name is what the table names, so that no collision is missed."""
    room = files("trajudge.app")
    folder = Path(str(room)) / "templates"
    texts = "\n".join(file.read_text("utf-8") for file in folder.rglob("*.html"))
    named = {*re.findall(r'data-key="([^"{]+)"', texts)} - {"Escape"}
    named |= {*re.findall(r'NavLink\("[^"]+", "[^"]+", "([^"]+)"', _python(Path(str(room))))}
    named |= {*re.findall(r'"(?:rule_wrong|rule_right|task_broken)": "(.)"', texts)}
    options = form_questions(("success", "side_effect", "repetition", "optimality"))
    named |= {option.key for question in options for option in question.options}
    named |= {"j", "k", "x", "?", "D", "m", *"123456"}  # in scripts, and computed in templates
    assert named == {*KEYS}


def _python(folder: Path) -> str:
    return "\n".join(file.read_text("utf-8") for file in folder.rglob("*.py"))


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    with launched(chromium) as browser:
        yield browser


@pytest.mark.browser
def test_pages_of_runs_are_walked_with_other_keys(browser: Browser, tmp_path: Path) -> None:
    run = write_run(tmp_path, [Task(str(n), True, True) for n in range(60)])
    keys = {"j": "ArrowDown", "k": "j", "x": "F2", "g i": "h", "?": "!"}
    with served(open_workspace([run]), keys=keys) as site:
        page, events = opened(browser, site.address + "/run/judge/judgments")
        for key in ("ArrowDown", "ArrowDown", "j", "F2"):
            page.keyboard.press(key)
        assert page.locator("tr.here input:checked").get_attribute("value") == "0"
        for key in ("k", "x", "?", "g", "i"):  # they do nothing now
            page.keyboard.press(key)
        assert page.locator("input:checked").count() == 1
        assert not page.locator("#help").is_visible()
        assert page.locator("#help-button kbd").inner_text() == "!"
        page.keyboard.press("!")
        shown = page.locator("#help-list kbd").all_inner_texts()
        assert {"ArrowDown", "j", "F2", "h", "]"} <= {*shown}
        assert not {"k", "x", "g i"} & {*shown}
        page.keyboard.press("Escape")
        page.keyboard.press("h")
        page.wait_for_url(f"{site.address}/")
        assert events == []
        page.context.close()


@pytest.mark.browser
def test_an_item_is_labelled_with_other_keys(browser: Browser, tmp_path: Path) -> None:
    keys = {"s": "1", "1": "s", "n": "d", "d": "n", "o": "v", "4": "9"}
    tasks = [Task("0", True, True)]
    with queue_site(tmp_path, tasks) as made:
        workspace = Workspace({}, made.store.settings.data)
        with served(workspace, [label_room(made.store)], keys=keys) as server:
            site = Site(server, made.store)
            site.store.add_person("Ann")
            page, events = visited(browser, site, "Ann")
            page.goto(server.address + "/queue/next")
            page.wait_for_load_state()
            assert page.locator("fieldset kbd").first.inner_text() == "1"
            for key in ("1", "d", "d", "v", "9"):
                page.keyboard.press(key)
            with page.expect_navigation():
                page.keyboard.press("Control+Enter")
            (label,) = queue_annotations(site.store)
            assert (label.success, label.side_effect, label.optimality) == (True, False, 4)
            assert events == []
            page.context.close()


@pytest.mark.browser
def test_the_keys_of_a_telephone_open_at_their_beginning(browser: Browser, tmp_path: Path) -> None:
    """They are longer than its screen, and the buttons below them are not what is to be seen."""
    telephone = {"width": 390, "height": 844}
    with queue_site(tmp_path, [Task("0", True, True)]) as site:
        site.store.add_person("Ann")
        page, events = visited(browser, site, "Ann", viewport=telephone)
        page.goto(site.served.address + "/queue/next")
        dialog = page.locator("#help")
        for _ in range(2):
            page.keyboard.press("?")
            assert dialog.evaluate("one => one.scrollHeight > one.clientHeight")
            assert dialog.evaluate("one => one.scrollTop") == 0
            assert "" not in page.locator("#help-list dd").all_inner_texts()
            title, frame = page.locator("#help-title").bounding_box(), dialog.bounding_box()
            assert title and frame and title["y"] >= frame["y"] >= 0
            page.keyboard.press("Tab")  # the buttons are reached as before
            assert page.evaluate("document.activeElement.id") == "keys-switch"
            page.keyboard.press("Escape")
        assert events == []
        page.context.close()
