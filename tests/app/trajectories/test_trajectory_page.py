"""The page of a trajectory in a real browser: what it shows, without scripts, by keys, hostile."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import orjson
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.browsing import complaints, launched
from tests.app.made_runs import png
from tests.app.payloads import payloads
from tests.app.serving import Served, served
from trajudge.app.images import ImageShelf
from trajudge.app.serving import Room
from trajudge.app.trajectory_page import (
    TABS,
    StepRequest,
    TrajectoryAccess,
    routes,
    step_linker,
    step_request,
)
from trajudge.app.web import trajectory_link
from trajudge.app.workspace import Workspace
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey
from trajudge.util.files import without_surrogates

KEY = TrajectoryKey(benchmark="shop", agent="a/b c", task_id="..", attempt=2)
TREES = [
    "RootWebArea 'Shop'\n\t[12] link 'Mug', box=\"(40,60,140,100)\"\n\t[13] text 'old'",
    "RootWebArea 'Mug'\n\t[20] link 'Mug', box=\"(40,60,140,100)\"\n\t[21] text 'new'",
    "RootWebArea 'Mug'\n\t[20] link 'Mug'",
]
ACTIONS = ["click('12')", "mouse_click(300, 200)", "click('99')", None]


def step(place: int) -> Step:
    shots = [ImageRef(data=png(shade=40 * place)), ImageRef(data=png()), ImageRef(problem="gone")]
    seen = Observation(
        url=f"http://shop.test/{min(place, 1)}",
        axtree=TREES[place] if place < 3 else None,
        screenshot=shots[place] if place < 3 else None,
        page_error="it failed" if place == 2 else None,
    )
    return Step(index=place, observation=seen, action=ACTIONS[place], reasoning=f"thought {place}")


def hostile(name: str) -> Trajectory:
    """A run that holds every payload in every field."""
    text = "\n".join(payloads())
    lines = [str(without_surrogates(each)).replace("\n", " ") for each in payloads()]
    tree = "\n".join(f"\t[{at}] link '{line}', {line}" for at, line in enumerate(lines))
    seen = Observation(url=text, axtree=f"{tree}\n{text}", page_error=text)
    steps = [
        Step(index=at, observation=seen if at < 2 else Observation(url=line), action=action)
        for at, line in enumerate(lines)
        for action in [line if at % 2 else f"fill('{at}', {line!r})"]
    ]
    steps[0] = steps[0].model_copy(update={"reasoning": text})
    return Trajectory(
        key=KEY.model_copy(update={"task_id": name}), raw_task_id=text, goal=text, answer=text,
        steps=tuple(steps), metadata={"warnings": lines, text: text, "more": {text: [text]}},
    )  # fmt: skip


NAMES = [str(without_surrogates(text))[:60] for text in payloads() if "pwned" in text][::12]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("shop")
    run = Trajectory(
        key=KEY, raw_task_id="..", goal="Buy a mug", answer="Bought.",
        steps=tuple(map(step, range(4))), official_reward=1, metadata={"model": "m"},
        goal_images=(ImageRef(data=png(shade=200)), ImageRef(problem="gone")),
    )  # fmt: skip
    store.write(folder, [run, *map(hostile, NAMES)])
    facts = {
        "key": vars(KEY),
        "predicates": [{"name": "sent", "holds": True, "found": 1, "wanted": 1}],
    }
    (folder / "facts.jsonl").write_bytes(orjson.dumps(facts) + b"\n")
    (folder / "traces").mkdir()
    access = TrajectoryAccess(ImageShelf(folder / "small"))
    with served(Workspace({}, (f"trajudge:{folder}",)), [Room(routes(access))]) as server:
        yield server


@pytest.fixture(scope="module")
def browser(chromium: Path, shop: Served) -> Iterator[Browser]:
    with launched(chromium) as browser:
        yield browser


def opened(
    browser: Browser, shop: Served, query: str = "", key: TrajectoryKey = KEY, **context: object
) -> tuple[Page, list[str]]:
    """The page, and what left the server's origin or was complained of."""
    page = browser.new_context(**context).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(30_000)
    events = complaints(page, shop.address)
    page.goto(shop.address + trajectory_link(key) + query)
    return page, events


def shown_step(page: Page) -> str:
    return page.locator(".steps [aria-current] .number").inner_text()


def test_an_address_says_what_a_page_shows() -> None:
    plain = StepRequest(1, "action", False, False, "", None, "", False, False)
    assert step_request({}) == plain
    every = {"step": "12", "tab": "tree", "view": "after", "diff": "1", "q": "mug", "zoom": "1"}
    asked = step_request({**every, "unseen": "2-4", "run": "mine"})
    assert asked == StepRequest(12, "tree", True, True, "mug", (2, 4), "mine", False, True)
    wrong = {"step": "1234567", "tab": "x", "diff": "2", "zoom": "0", "unseen": "2", "view": ""}
    assert step_request(wrong) == plain
    assert step_request({"view": "pixels"}) == plain._replace(pixels=True)
    link = step_linker(("t", 1), asked)
    more = "unseen=2-4&run=mine"
    assert link() == f"/t/1?step=12&tab=tree&view=after&zoom=1&diff=1&q=mug&{more}"
    assert link(diff=False, pixels=True) == f"/t/1?step=12&tab=tree&view=pixels&zoom=1&q=mug&{more}"
    assert link(tab="action", step=3) == f"/t/1?step=3&view=after&zoom=1&{more}"
    assert step_linker(("t", 1), plain)(diff=True) == "/t/1?step=1"


@pytest.mark.browser
def test_it_is_whole_without_scripts(browser: Browser, shop: Served) -> None:
    page, events = opened(browser, shop, java_script_enabled=False)
    assert page.locator(".steps li").count() == 4
    badges = [text.strip() for text in page.locator(".badge").all_inner_texts()]
    assert badges == ["→ other address", "⚠ error of the action before"]
    page.get_by_role("link", name="Next step").click()
    page.wait_for_url("**step=2*")
    assert shown_step(page) == "2"
    page.get_by_role("link", name="Accessibility tree").click()
    with page.expect_navigation():
        page.get_by_role("link", name="Difference to the step before").click()
    difference = page.get_by_role("region", name="Difference").inner_text()
    assert "text 'new'" in difference
    assert (
        page.locator("[role=status]").first.inner_text()
        == "1 added, 1 removed, 1 changed, 1 as before"
    )
    page.get_by_role("link", name="Next step").click()
    page.wait_for_url("**diff=1*")
    page.get_by_role("link", name="Whole tree").click()
    page.get_by_label("Find in the tree").fill("MUG")
    page.get_by_role("button", name="Find").click()
    main = page.locator("main")
    expect(main).to_contain_text("2 lines hold MUG", use_inner_text=True)
    page.get_by_role("link", name="State").click()
    expect(main).to_contain_text("sent: 1 found, 1 wanted", use_inner_text=True)
    assert events == []


@pytest.mark.browser
def test_the_pictures_of_the_goal_stand_below_it(browser: Browser, shop: Served) -> None:
    page, events = opened(browser, shop, viewport={"width": 390, "height": 800})
    pictures = page.get_by_role("list", name="Pictures of the goal")
    picture = pictures.get_by_role("img", name="Picture 1 of the goal")
    assert picture.evaluate("(image) => [image.complete, image.naturalWidth]") == [True, 400]
    assert "Picture 2 of the goal cannot be shown: it was lost" in pictures.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    digest = sha256(png(shade=200)).hexdigest()
    path = trajectory_link(KEY)
    assert orjson.loads(shop.ask(path, Accept="application/json").text)["goal_images"] == [
        digest, None
    ]  # fmt: skip
    assert events == []


@pytest.mark.browser
def test_the_mark_lies_over_the_element(browser: Browser, shop: Served) -> None:
    page, _ = opened(browser, shop)
    whole, mark = (
        page.locator(".shot img").bounding_box(),
        page.locator("#marks .mark").bounding_box(),
    )
    assert whole is not None
    assert mark is not None
    scale = whole["width"] / 400
    assert mark["x"] - whole["x"] == pytest.approx(40 * scale, abs=4 * scale)
    assert mark["width"] == pytest.approx(100 * scale, abs=8 * scale)
    page.keyboard.press("o")
    assert not page.locator("#marks").is_visible()
    page.keyboard.press("b")
    page.wait_for_url("**view=after*")
    assert "After the action (step 2)" in page.locator(".screen").inner_text()


@pytest.mark.browser
def test_what_differs_is_drawn_and_the_picture_is_shown_in_its_own_size(
    browser: Browser, shop: Served
) -> None:
    page, events = opened(browser, shop, viewport={"width": 900, "height": 700})
    page.keyboard.press("d")
    page.wait_for_url("**view=pixels*")
    assert "100.0 % of the pixels differ" in page.locator(".screen").inner_text()
    drawn = page.locator(".shot img")
    assert "/changes/" in (drawn.get_attribute("src") or "")
    assert drawn.evaluate("image => image.naturalWidth") == 400
    assert page.locator("#marks").is_visible()  # what was acted on, over what it changed
    page.keyboard.press("z")
    page.wait_for_url("**zoom=1*")
    zoomed = page.locator(".zoom .shot img").bounding_box()
    assert zoomed is not None
    assert (zoomed["width"], zoomed["height"]) == (400, 300)
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**step=2*")
    assert "view=pixels" in page.url and "zoom=1" in page.url
    assert "one of them is not there" in page.locator(".screen").inner_text()
    page.keyboard.press("d")
    page.wait_for_url(lambda url: "view" not in url)
    page.keyboard.press("z")
    page.wait_for_url(lambda url: "zoom" not in url)
    page.goto(shop.address + trajectory_link(KEY, step=1, tab="tree"))
    page.keyboard.press("d")  # of the tree, whose tab is open
    page.wait_for_url("**diff=1*")
    page.keyboard.press("D")
    page.wait_for_url("**view=pixels*")
    assert events == []


@pytest.mark.browser
def test_keys_walk_through_it(browser: Browser, shop: Served) -> None:
    page, events = opened(browser, shop, "?step=1&tab=answer")
    for key, step_now in (
        ("ArrowRight", 2), ("End", 4), ("ArrowLeft", 3), ("Home", 1), ("Shift+ArrowRight", 4)
    ):  # fmt: skip
        page.keyboard.press(key)
        page.wait_for_url(f"**step={step_now}&tab=answer")
    page.keyboard.press("2")
    page.wait_for_url("**tab=tree")
    page.keyboard.press("Home")
    page.wait_for_url("**step=1*")
    page.keyboard.press("t")
    page.keyboard.type("Mug4ob")
    assert page.get_by_label("Find in the tree").input_value() == "Mug4ob"
    page.keyboard.press("Escape")
    slider = page.get_by_role("slider")
    slider.evaluate("s => { s.value = 3; s.dispatchEvent(new Event('change')); }")
    page.wait_for_url("**step=3*")
    assert slider.get_attribute("aria-valuetext") == "step 3 of 4"
    assert events == []


@pytest.mark.browser
def test_what_is_missing_is_said(browser: Browser, shop: Served) -> None:
    page, _ = opened(browser, shop, "?step=3")
    text = page.locator("main").inner_text()
    assert "The screenshot cannot be shown" in text
    assert "Element 99 is not in the recorded tree of this step." in text
    page.get_by_role("link", name="Network").click()
    assert "No network trace belongs to this trajectory." in page.locator("main").inner_text()
    page.goto(shop.address + trajectory_link(KEY, step=4, tab="tree"))
    text = page.locator("main").inner_text()
    assert "No screenshot of this step was recorded." in text
    assert "No accessibility tree of this step was recorded." in text


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, shop: Served, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, _ = opened(browser, shop, color_scheme=scheme, bypass_csp=True)
    queries = ["", "?step=2&tab=tree", "?step=2&tab=tree&diff=1&unseen=1-2", "?tab=state"]
    for query in (*queries, "?view=pixels&zoom=1"):
        page.goto(shop.address + trajectory_link(KEY) + query)
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 1280])
def test_no_width_makes_it_scroll_sideways(browser: Browser, shop: Served, width: int) -> None:
    page, _ = opened(browser, shop, viewport={"width": width, "height": 800})
    queries = ["", "?step=2&tab=tree", "?step=2&tab=tree&diff=1", "?tab=metadata"]
    for query in (*queries, "?zoom=1", "?view=pixels&tab=tree"):
        page.goto(shop.address + trajectory_link(KEY) + query)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_hostile_text_stays_text(browser: Browser, shop: Served) -> None:
    assert len([*payloads()]) >= 200
    page, events = opened(browser, shop)
    asked: list[dict[str, str | int | None]] = [{"tab": tab, "step": 1} for tab in TABS]
    asked += [{"tab": "tree", "step": 2, "diff": "1"}, {"tab": "tree", "q": "<script>"}]
    for at, name in enumerate(NAMES):
        query = asked[at % len(asked)]
        key = KEY.model_copy(update={"task_id": name})
        page.goto(shop.address + trajectory_link(key, **query), wait_until="domcontentloaded")
        assert page.locator(".steps li").count() >= 200, name
        assert page.evaluate("window.pwned") is None, query
        assert page.locator("main iframe, main script, main [onload], main object").count() == 0
    assert len(NAMES) >= len(asked)
    assert events == []


def test_addresses_that_lead_nowhere_are_one_sentence(shop: Served) -> None:
    for path, sentence in (
        ("/t/a/b/c/0", "is not in the data"),
        ("/t/a/b/c", "/t/BENCHMARK/AGENT/TASK/ATTEMPT"),
        ("/t/a/b/c/x", "/t/BENCHMARK/AGENT/TASK/ATTEMPT"),
        ("/t/a/b/c/-1", "/t/BENCHMARK/AGENT/TASK/ATTEMPT"),
        (trajectory_link(KEY, tab="secrets"), "There is no tab"),
        ("/image/x/changes/y", "Pictures are compared at"),
        (f"/image/{'0' * 64}/changes/{'1' * 64}", "No page that was opened shows these images"),
    ):
        answer = shop.ask(path)
        assert (answer.status, sentence in answer.text) == (404, True), path


def test_a_program_gets_the_same(shop: Served) -> None:
    answer = orjson.loads(shop.ask(trajectory_link(KEY, step=2), Accept="application/json").text)
    assert (answer["step"], answer["action"]) == (2, ACTIONS[1])
    assert answer["marks"] == [{"x": 300, "y": 200, "width": 0, "height": 0, "label": ""}]
    for step_asked in ("0", "99", "x", "9" * 400):
        assert shop.ask(trajectory_link(KEY, step=step_asked)).status == 200
