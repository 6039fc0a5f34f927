"""A static copy: pages that links reach, nothing to send, nothing that tells the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.commands import command
from tests.http_thread import serving
from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.checks.profiles import replayable_state
from trajudge.environments.kit.theme import name_of, theme, wordings
from trajudge.environments.model.case import Case, write_cases
from trajudge.environments.model.config import Config
from trajudge.environments.serving.run import open_run
from trajudge.environments.serving.static_copy import BEYOND, NOTE, START, NotStatic, bundle
from trajudge.environments.serving.static_export import export
from trajudge.environments.verify import expected
from trajudge.util.errors import UserError

main = command("env export")

_HREF = re.compile(r'(?:href|src)="([^"]*)"')


def case(scenario: str, app: str = "shop", **axes: int) -> Case:
    """The scenario's first configuration that is sound."""
    for number in range(20):
        found = check(load_app(app), Config(app=app, scenario=scenario, instance=number, **axes))
        if isinstance(found, Case):
            return found
    raise AssertionError(f"no sound configuration of {scenario}")


@pytest.fixture(scope="module")
def spent() -> Case:
    return case("spent", profile=3, ui=4, theme=2)


@pytest.fixture(scope="module")
def copied(spent: Case) -> dict[str, bytes]:
    return bundle(spent)


def documents(files: dict[str, bytes]) -> dict[str, str]:
    return {name: data.decode() for name, data in files.items() if name.endswith(".html")}


def test_every_link_and_picture_is_a_file_of_the_copy(copied: dict[str, bytes]) -> None:
    for document in documents(copied).values():
        for address in _HREF.findall(document):
            assert address.startswith("data:") or address in copied


def test_every_page_says_that_it_is_a_copy(copied: dict[str, bytes]) -> None:
    assert all(NOTE in document for document in documents(copied).values())


def test_forms_have_nowhere_to_go_and_nothing_to_send(copied: dict[str, bytes]) -> None:
    written = "".join(documents(copied).values())
    assert "<form" in written
    assert not re.search(r"<form[^>]* (?:action|method)=", written)
    assert 'type="hidden"' not in written
    assert not re.search(r"<(?:button|input|select|textarea)(?! [^>]*\bdisabled\b)", written)


def test_no_document_has_a_script(copied: dict[str, bytes]) -> None:
    for document in documents(copied).values():
        assert "<script" not in document
        assert "default-src 'none'" in document


def test_the_manifest_has_the_hash_of_every_other_file(copied: dict[str, bytes]) -> None:
    files = json.loads(copied["manifest.json"])["files"]
    others = {name: data for name, data in copied.items() if name != "manifest.json"}
    assert files == {name: sha256(data).hexdigest() for name, data in others.items()}


def test_neither_answer_nor_axes_are_beside_the_pages(
    spent: Case, copied: dict[str, bytes]
) -> None:
    run = open_run(spent.config, b"secret")
    (answer,) = expected(run.evidence())
    run.state.close()
    beside = b"".join(data for name, data in copied.items() if not name.endswith(("html", "png")))
    assert answer.encode() not in beside
    assert spent.id.encode() not in b"".join(copied.values())
    assert (
        not {"config", "seed", "profile", "scenario"} & json.loads(copied["manifest.json"]).keys()
    )


def test_no_page_shows_an_operation_code(spent: Case, copied: dict[str, bytes]) -> None:
    """Codes are ten capitals and digits; a served page of an order has one."""
    assert not re.search(r">[A-Z2-7]{10}<", "".join(documents(copied).values()))


def test_the_same_case_gives_the_same_bytes(spent: Case, copied: dict[str, bytes]) -> None:
    replayable_state.cache_clear()
    assert bundle(spent) == copied


@pytest.mark.parametrize(
    ("scenario", "reason"), [("buy", "it changes the state"), ("price", "it needs a form")]
)
def test_what_links_alone_cannot_do_is_refused(scenario: str, reason: str) -> None:
    with pytest.raises(NotStatic, match=reason):
        bundle(case(scenario))


def test_pages_are_bounded_and_what_lies_beyond_says_so() -> None:
    large = case("penalty", "moderation", profile=11, ui=7)
    few = bundle(large, most=300)
    assert json.loads(few["manifest.json"])["pages"] == 300
    assert any(f'href="{BEYOND}"' in document for document in documents(few).values())
    with pytest.raises(NotStatic, match="beyond the first 1 pages"):
        bundle(large, most=1)


def test_a_goal_with_words_of_a_user_stays_text(spent: Case) -> None:
    loud = spent.model_copy(update={"goal": "<script>alert(1)</script>"})
    files = bundle(loud)
    assert all("alert(1)" not in document for document in documents(files).values())


# --- the command ---------------------------------------------------------------------------------


def test_bundles_and_their_keys_are_apart(tmp_path: Path, spent: Case) -> None:
    cases = [case("buy"), spent]
    write_cases(tmp_path / "cases.jsonl", cases)
    out = tmp_path / "out"
    assert main(["--cases", str(tmp_path / "cases.jsonl"), "--out", str(out)]) == 0
    (key,) = map(json.loads, (out / "keys.jsonl").read_text().splitlines())
    assert key["bundle"] == "0001"
    assert Case.model_validate(key["case"]) == spent
    folder = out / "bundles" / "0001"
    assert (folder / "goal.txt").read_text() == f"{spent.goal}\n"
    assert "does not promise" in (folder / "README.txt").read_text()
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == set(
        bundle(spent)
    )


def test_an_earlier_export_is_not_mixed_with_another(tmp_path: Path, spent: Case) -> None:
    assert export([spent], tmp_path / "out") == {}
    with pytest.raises(UserError, match="holds an export already"):
        export([spent], tmp_path / "out")


def test_nothing_to_export_is_a_failure_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cases(tmp_path / "cases.jsonl", [case("buy")])
    out = tmp_path / "out"
    assert main(["--cases", str(tmp_path / "cases.jsonl"), "--out", str(out)]) == 1
    assert "changes the state" in " ".join(capsys.readouterr().out.split())


def test_an_unknown_scenario_is_named(spent: Case) -> None:
    other = spent.model_copy(update={"config": Config(app="shop", scenario="fly")})
    with pytest.raises(UserError, match="'fly'"):
        bundle(other)


# --- in Chromium ---------------------------------------------------------------------------------


@contextmanager
def served(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    handler = partial(Quiet, directory=folder)
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as address:
        yield address


@pytest.fixture(scope="module")
def page(chromium: Path) -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


@pytest.mark.browser
@pytest.mark.parametrize("opened", ["file", "server"])
def test_the_oracle_finds_the_answer_in_the_copy(page: Any, tmp_path: Path, opened: str) -> None:
    """By the names of links alone; pictures are there, no button can be pressed."""
    asked = case("event-day", "almanac", profile=2, ui=3, theme=1)
    export([asked], tmp_path)
    folder = tmp_path / "bundles" / "0001"
    complaints: list[str] = []
    page.on("console", lambda line: complaints.append(line.text))
    with served(folder) if opened == "server" else nullcontext(folder.as_uri()) as root:
        page.goto(f"{root}/{START}")
        answer, text = followed(page, asked)
        assert answer in text
        charted = next(path for path in folder.glob("*.html") if "<img" in path.read_text())
        page.goto(f"{root}/{charted.name}")
        assert all(page.evaluate("[...document.images].map((image) => image.naturalWidth > 0)"))
    assert all(page.evaluate("[...document.querySelectorAll('button')].map((it) => it.disabled)"))
    assert complaints == []


def followed(page: Any, done: Case) -> tuple[str, str]:
    """The answer, and what the page says that the plan's links lead to."""
    run = open_run(done.config, b"secret")
    (answer,) = expected(run.evidence())
    words = wordings(run.app, theme(done.config.theme, done.config.seed))
    for move in run.scenario.plan(run.bound):
        name = name_of(move.label, words)
        for _ in range(20):
            link = page.get_by_role("link", name=name, exact=True).first
            if link.count():
                break
            menu = page.locator("summary", has_text=words["menu"])
            turned = page.get_by_role("link", name=words["next_page"], exact=True).first
            (menu if menu.count() and not turned.count() else turned).click()
        link.click()
    run.state.close()
    return answer, page.inner_text("body")
