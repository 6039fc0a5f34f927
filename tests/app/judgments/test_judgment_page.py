"""The page of a judgment in a real browser: its links, its table, hostile text in every field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from playwright.sync_api import Browser

from tests.app.browsing import launched, opened
from tests.app.made_runs import Task, png, write_run
from tests.app.payloads import payloads
from tests.app.serving import Served, served
from tests.eval.cases import call
from tests.eval.judge_replies import reply
from tests.llm_server import LlmServer
from tests.tables import table
from trajudge.app.judgment_page import with_steps
from trajudge.app.workspace import open_workspace
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    judgment_line,
    read_judgments,
    read_manifest,
    write_manifest,
    write_record,
)
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Trajectory
from trajudge.util.files import without_surrogates

RUNS = ("simplified-axtree", "rubric-screenshot", "insta")


def judged(folder: Path) -> list[Path]:
    """Runs on the sample, whose model a local server is; the manifest of the last names other
    parameters than those it was asked with."""
    runs = [folder / name for name in RUNS]
    with LlmServer(text=reply, record=0) as server:
        words = [
            *("--data", "sample", "--limit", "3", "--model", "gpt-4o"),
            *("--base-url", f"{server.url}/v1"),
        ]
        for run in runs:
            judge = run.name.partition("-")[0]
            assert main([*words, "--judge", judge, "--out", str(run)]) == 0
    manifest = read_manifest(runs[-1])
    write_manifest(runs[-1], {**manifest, "parameters": {"temperature": 1.0}, "sent": []})
    return runs


def hostile(folder: Path) -> Path:
    """A run whose judgment holds every payload in every field."""
    text = str(without_surrogates("\n".join(payloads())))
    run = write_run(folder, [Task("1", True, True, text, text, text, text, text)], judge="evil")
    (judgment,) = read_judgments(run)
    calls = tuple(
        call().model_copy(update={"stage": text, "rung": text, "finish": text, "text": text})
        for _ in range(2)
    )
    changed = {
        "judge": text, "detail": text, "fallback": text, "calls": calls,
        "scores": {text: 0.5}, "failure_type": text, "failure_step": 0, "record": {text: [text]},
    }  # fmt: skip
    judgment = judgment.model_copy(update=changed)
    (run / JUDGMENTS).write_bytes(judgment_line(judgment))
    write_record(run, judgment)
    write_manifest(run, {**read_manifest(run), "judge": text, "model": text, "options": {text: 1}})
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shop")


@pytest.fixture(scope="module")
def shop(folder: Path) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAJUDGE_CACHE", str(folder / "cache" / "replies.sqlite"))
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("OPENAI_API_KEY", "none")
        with served(open_workspace([*judged(folder), hostile(folder)])) as server:
            yield server


@pytest.fixture(scope="module")
def browser(chromium: Path, shop: Served) -> Iterator[Browser]:
    with launched(chromium) as browser:
        yield browser


@pytest.mark.browser
def test_it_shows_the_prompt_and_leads_on(browser: Browser, shop: Served, folder: Path) -> None:
    page, events = opened(
        browser, f"{shop.address}/run/simplified-axtree/judgment/0", java_script_enabled=False
    )
    text = page.locator("main").inner_text()
    assert "= same: the request has the hash that the run recorded." in text
    assert re.search(r"None of the \d+ recorded screenshots was shown\.", text)
    asked = page.get_by_role("region", name="Message 2 of call 1").inner_text()
    assert page.locator(".goal").inner_text() in asked
    run = folder / "simplified-axtree"
    recorded = json.loads((run / JUDGMENTS).read_text().splitlines()[0])
    assert recorded["calls"][0]["request"] in text
    assert recorded["calls"][0]["text"] in page.locator("article").inner_text()
    cells = page.locator("[aria-label='Table of calls'] tbody td").all_inner_texts()
    ledger = (run / "calls.jsonl").read_text().splitlines()
    seconds = {json.loads(each)["request"]: json.loads(each)["seconds"] for each in ledger}
    assert f"{seconds[recorded['calls'][0]['request']]:.1f}" in cells
    with page.expect_navigation():
        page.get_by_role("link", name="Trajectory", exact=True).click()
    assert page.locator(".strip li").count() >= 5
    page.locator(".strip a", has_text="insta").click()
    page.wait_for_url("**/run/insta/judgment/**")
    assert "differs" in page.locator("#prompt + p").inner_text()
    assert events == []


@pytest.mark.browser
def test_a_reference_to_a_step_leads_there(browser: Browser, shop: Served) -> None:
    page, _ = opened(browser, f"{shop.address}/run/rubric-screenshot/judgment/1")
    assert "all 14 requests have the hash" in page.locator("#prompt + p").inner_text()
    link = page.locator("#verdict ~ p a").first
    number = link.inner_text().split()[-1]
    link.click()
    page.wait_for_url(f"**step={number}*")
    page.go_back()
    page.keyboard.press("n")
    page.wait_for_url("**/judgment/2")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, shop: Served, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    start = f"{shop.address}/run/rubric-screenshot/judgment/0"
    page, _ = opened(browser, start, color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.browser
def test_hostile_text_stays_text(browser: Browser, shop: Served) -> None:
    page, events = opened(
        browser, f"{shop.address}/run/evil/judgment/0", viewport={"width": 320, "height": 800}
    )
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.locator("article").count() == 2
    assert page.evaluate("window.pwned") is None
    assert page.locator("main iframe, main script, main [onload], main object").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.goto(shop.address + "/run/simplified-axtree/judgment/0")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert events == []


def test_the_pictures_of_the_goal_stand_below_its_words(tmp_path: Path) -> None:
    run = write_run(tmp_path, [Task("like-this", True, True)])
    data = tmp_path / "data"
    [made] = [one for one in store.read(data) if isinstance(one, Trajectory)]
    pictures = (ImageRef(data=png(shade=200)), ImageRef(problem="gone"))
    (data / "trajectories.jsonl").unlink()
    store.write(data, [made.model_copy(update={"goal_images": pictures})])
    with served(open_workspace([run])) as server:
        page = server.ask("/run/judge/judgment/0").text
        [source] = re.findall(r'<img src="(/image/[^"]+)"[^>]+alt="Picture 1 of the goal"', page)
        assert server.ask(source).status == 200
    assert "Picture 2 of the goal cannot be shown: <bdi>it was lost before</bdi>" in page


@table(
    "path sentence",
    """
    /run/absent/judgment/0     | no such run
    /run/insta/judgment/999999 | There is no judgment 999,999 in this run
    /run/insta/judgment/-1     | the number of its line
    /run/insta/judgment/x      | the number of its line
    """,
)
def test_an_address_that_leads_nowhere_is_one_sentence(
    shop: Served, path: str, sentence: str
) -> None:
    answer = shop.ask(path)
    assert answer.status == 404
    assert sentence in answer.text


def test_a_program_gets_the_same(shop: Served) -> None:
    answer = orjson.loads(
        shop.ask("/run/rubric-screenshot/judgment/0", Accept="application/json").text
    )
    assert answer["prompt"]["outcome"] == "same"
    assert all(call["recorded"] == call["rebuilt"] for call in answer["calls"])
    assert (
        orjson.loads(shop.ask("/run/evil/judgment/0", Accept="application/json").text)["prompt"][
            "outcome"
        ]
        == "cannot be rebuilt"
    )


def test_hostile_texts_take_no_time() -> None:
    for text in ("steps 1 to " * 40_000, "step " * 100_000, "step 1 " * 50_000):
        assert "".join(part.text for part in with_steps(text, 3)) == text


def test_references_to_steps() -> None:
    parts = with_steps("In step 2 and Steps 3-5, not step 99.", 10)
    assert [(part.text, part.step) for part in parts if part.step] == [
        ("step 2", 2), ("Steps 3", 3), ("5", 5)
    ]  # fmt: skip
    assert "".join(part.text for part in parts) == "In step 2 and Steps 3-5, not step 99."
