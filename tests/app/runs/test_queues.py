"""From ticked rows of the table to a queue that annotators label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.app.browsing import check_accessible, launched, opened
from tests.app.labelling.sites import FORM
from tests.app.made_runs import Task, write_run
from tests.app.serving import Served, served
from trajudge.annotations.queue import LabelQueue
from trajudge.app.workspace import open_workspace
from trajudge.eval.labelling.frame import open_frame

TASKS = [Task(f"{n:03}", n % 3 == 0, n % 2 == 0) for n in range(70)]
TABLE = "/run/judge/judgments"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("queues")


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Served]:
    run = write_run(folder, TASKS)
    with served(open_workspace([run], queues=folder / "queues")) as running:
        yield running


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    with launched(chromium) as browser:
        yield browser


def tasks_of(queue: Path) -> set[int]:
    store = LabelQueue(queue)
    items = [item for _, item in store.items()]
    store.close()
    assert {item.inclusion_probability for item in items} == {1.0}
    assert {item.reason for item in items} == {"picked by hand"}
    return {int(item.key.task_id.rpartition(".")[2]) for item in items}


@pytest.mark.browser
def test_rows_that_are_ticked_with_keys_become_a_queue(
    browser: Browser, site: Served, folder: Path
) -> None:
    page, events = opened(browser, f"{site.address}{TABLE}?sort=-task")
    for key in "jxjjxq":  # the first and the third row
        page.keyboard.press(key)
    page.get_by_text("2 trajectories: those of the rows that you ticked").wait_for()
    page.get_by_label("Name").fill("../elsewhere")
    page.get_by_role("button", name="Make the queue").click()
    page.get_by_text("Give the queue a name of letters").wait_for()
    page.get_by_label("Name").fill("two-rows")
    page.get_by_label("Questions").select_option("success")
    page.get_by_label("two people label each").check()
    page.get_by_role("button", name="Make the queue").click()
    page.get_by_text("trajudge label").wait_for()
    made = folder / "queues" / "two-rows"
    assert tasks_of(made) == {69, 67}
    store = LabelQueue(made)
    assert store.settings.questions == ("success",)
    assert store.settings.data == (f"trajudge:{folder / 'data'}",)
    assert [item.wanted for _, item in store.items()] == [2, 2]
    store.close()
    verdicts = open_frame(made)
    assert verdicts.verdicts[:, 0].tolist() == [0.0, 0.0]
    page.goto(site.address)
    row = page.locator("tr", has_text="two-rows")
    assert row.locator("td").all_inner_texts()[:3] == ["2", "0 of 4", "0"]
    assert [event for event in events if "422" not in event] == []
    page.context.close()


@pytest.mark.browser
def test_without_a_tick_it_is_all_that_the_filter_keeps_and_needs_no_scripts(
    browser: Browser, site: Served, folder: Path
) -> None:
    page, events = opened(browser, f"{site.address}{TABLE}?f=wrong:fp", java_script_enabled=False)
    page.get_by_role("button", name="Queue to label").click()
    page.get_by_label("Name").fill("false-positives")
    page.get_by_role("button", name="Make the queue").click()
    assert "The queue is there" in page.inner_text("main")
    wrong = {n for n in range(70) if n % 2 == 0 and n % 3}
    assert tasks_of(folder / "queues" / "false-positives") == wrong
    store = LabelQueue(folder / "queues" / "false-positives")
    assert store.settings.frame is not None and store.settings.frame.filter == "wrong:fp"
    store.add_person("Ann")
    store.close()
    assert events == []
    page.context.close()


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 320), ("dark", 1280)])
def test_axe_finds_nothing(browser: Browser, site: Served, scheme: str, width: int) -> None:
    check_accessible(browser, f"{site.address}/run/judge/queue?place=1&place=4", scheme, width)


def test_a_queue_is_made_by_a_form_of_this_application_alone(site: Served, folder: Path) -> None:
    body = "places=1&name=forged&questions=all"
    sent = site.ask("/run/judge/queue", "POST", body, Content_Type=FORM, Origin=site.address)
    assert sent.status == 403
    assert not (folder / "queues" / "forged").exists()
    for query, sentence in (
        ("f=wrong:all", "use one of fp, fn, any"),
        ("f=task:nothing", "There is no trajectory to label"),
        ("place=99999", "There is no trajectory to label"),
    ):
        answer = site.ask(f"/run/judge/queue?{query}", Accept="text/html")
        assert answer.status == 422
        assert sentence in answer.text
