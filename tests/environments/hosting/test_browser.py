"""Real browsers at served runs: one that Playwright drives, and ours, which tells what was done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.environments.cases import sound
from tests.environments.hosting.served import serving
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.chromium import launch, open_session
from trajudge.environments.chromium.action_syntax import spoken
from trajudge.environments.serving.run import ORIGIN

pytestmark = pytest.mark.browser


def unfocused(tree: str) -> str:
    return tree.replace(", focused", "")


def with_effect(done: list[tuple[str, str]]) -> list[tuple[str, str]]:
    later = [tree for _, tree in done[1:]] + [""]
    return [
        (action, tree)
        for (action, tree), after in zip(done, later, strict=True)
        if not action.startswith("fill(") or tree != after
    ]


def test_playwright_solves_a_task_over_serve(chromium: Path) -> None:
    api = pytest.importorskip("playwright.sync_api")
    case = sound("wish")
    with serving([case]) as served, api.sync_playwright() as playwright:
        opened = served.open(task=case.id)
        run = served.run(opened).run
        product = next(row["name"] for row in run.bound.values() if "name" in row)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(opened["start_url"])
        page.locator("input[type=search], input[type=text]").first.fill(product)
        page.locator("form[method=get] button, form:not([method]) button").first.click()
        page.get_by_role("link", name=re.compile(re.escape(product))).first.click()
        page.locator('form[action="/do/wish"] button').click()
        page.goto(opened["answer_url"])
        page.get_by_role("textbox").fill("It is on the list.")
        page.get_by_role("button", name="Submit answer").click()
        assert "received" in page.content()
        elsewhere = page.goto(opened["start_url"])
        assert elsewhere is not None and elsewhere.status == 410
        browser.close()
        verdict = served.verdict(opened)
        assert verdict["labels"]["success"] is True and verdict["labels"]["side_effect"] is False
        assert verdict["facts"]["tampering"] == []
        recorded = served.run(opened).recorded
        assert recorded is not None
        kinds = [str(step.action).partition("(")[0] for step in recorded.trajectory.steps]
        assert kinds == ["fill", "click", "click", "click", "goto", "fill", "click", "None"]


def test_the_steps_that_the_server_sees_are_those_that_a_browser_took(chromium: Path) -> None:
    """Action by action and tree by tree, by an agent in our own Chromium. What it filled in that
    stood there already no server sees."""
    cases = [sound("wish"), sound("buy"), sound("count-orders"), sound("file-ticket", "helpdesk")]
    with serving(cases) as served, launch(served.site) as browser:
        served.host.origin = ORIGIN
        for case in cases:
            opened = served.open(task=case.id, answer="none")
            hosted = served.run(opened)
            agent = Scripted(hosted.run, ORACLE, 0, 0)
            done: list[tuple[str, str]] = []
            with open_session(
                browser, hosted.run.start_url, visible="rendered", pictures=False
            ) as session:
                while hosted.status == "open":
                    view = session.observe()
                    action, _ = agent.act(view)
                    done.append((action, unfocused(view.observation.axtree or "")))
                    if spoken(action) is None:
                        assert session.act(action) is None
                    else:
                        hosted.end("finished", action)
            verdict = served.verdict(opened)
            assert verdict["labels"]["success"] is True
            assert hosted.recorded is not None
            steps = hosted.recorded.trajectory.steps[:-1]
            seen = [(s.action or "", unfocused(s.observation.axtree or "")) for s in steps]
            assert seen == with_effect(done)
