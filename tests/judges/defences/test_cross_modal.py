"""A record that contradicts itself is found before anybody is asked; a record that a browser left
never is."""

from __future__ import annotations

import asyncio
from collections import Counter
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from tests.judges.runs import GOOD, ScriptedAsk, mug_run
from tests.robustness.samples import sample
from trajudge.judges.defences import contradictions
from trajudge.judges.judging import NoModel, judge_trajectory
from trajudge.judges.model import Judgment, Status
from trajudge.judges.registry import make_judge, needs_of
from trajudge.robustness.apply import apply
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.model import NotApplicable
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory
from trajudge.trajectories.needs import ALL, last
from trajudge.util.errors import UserError

SHOP = "http://shop.test/cart"
TREE = "RootWebArea 'Cart', focused\n\t[3] StaticText 'Red mug'\n\t[7] textbox 'Quantity' value='1'"
SAID = "send_msg_to_user('Done.')"


def picture(level: int = 255, *, size: tuple[int, int] = (64, 48), spot: int = 0) -> ImageRef:
    """A grey page, with a black square of ``spot`` pixels a side."""
    image = Image.new("L", size, level)
    image.paste(0, (0, 0, spot, spot))
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return ImageRef(data=buffer.getvalue())


def page(**changes: Any) -> Observation:
    return Observation(**{"url": SHOP, "axtree": TREE, "screenshot": picture(), **changes})


def record(action: str | None, after: Observation, before: Observation | None = None) -> Trajectory:
    steps = (
        Step(index=0, observation=before or page(), action=action),
        Step(index=1, observation=after),
    )
    return mug_run(steps=steps)


def found(run: Trajectory) -> list[str]:
    return [one.check for one in contradictions(run)]


OTHER_TREE = TREE.replace("Red", "Blue")
FILL = "fill('7', '2')"
FILLED = TREE.replace("value='1'", "value='2'")


@pytest.mark.parametrize(
    ("action", "after", "expected"),
    [
        (SAID, page(), []),
        (SAID, page(url=f"{SHOP}#top"), []),
        (SAID, page(url="http://shop.test/order"), ["moved"]),
        (SAID, page(axtree=TREE.replace("Cart", "Order")), ["title", "page"]),
        (SAID, page(axtree=OTHER_TREE), ["page"]),
        (SAID, page(axtree=TREE.replace("\n\t", "\r\n  ")), []),
        (SAID, page(axtree=OTHER_TREE, screenshot=picture(spot=20)), []),
        (SAID, page(screenshot=picture(spot=20)), ["picture"]),
        (SAID, page(screenshot=picture(spot=3)), []),
        (SAID, page(screenshot=picture(spot=20, size=(60, 45))), []),
        (SAID, page(screenshot=ImageRef(data=b"\x89PNG\r\n\x1a\nbroken")), []),
        (SAID, page(screenshot=ImageRef(problem="was not fetched"), axtree=OTHER_TREE), []),
        (SAID, page(screenshot=None, axtree=OTHER_TREE), []),
        ("report_infeasible('No.')", page(url="http://shop.test/order"), ["moved"]),
        ("click('3')\nsend_msg_to_user('Done.')", page(url="http://shop.test/order"), []),
        ("noop()", page(url="http://shop.test/order", axtree=OTHER_TREE), []),
        ("scroll(0, 300)", page(axtree=OTHER_TREE), []),
        (SAID, page(axtree=None), []),
        (None, page(url="http://shop.test/order"), []),
        (FILL, page(axtree=FILLED), []),
        (FILL, page(), ["typed"]),
        (FILL, page(page_error="TimeoutError"), []),
        (FILL, page(url="http://shop.test/order"), []),
        (FILL, page(axtree=FILLED.replace("'Quantity'", "'Notes'")), []),
        ("fill('7', '2.00')", page(axtree=TREE.replace("'1'", "'$2.00'")), []),
        ("fill('7', '')", page(), []),
        ("fill(bid, '2')", page(), []),
        ("fill('7', '2') or __import__('os').abort()", page(), []),
        ("select_option('7', 'Blue')", page(axtree=TREE.replace("'1'", "'Red'")), ["typed"]),
        ("click('99')", page(), []),
        ("click('99')", page(url="http://shop.test/order"), ["absent"]),
        ("click('3')", page(url="http://shop.test/order"), []),
        ("goto('http://shop.test/order')", page(url="http://shop.test/login"), []),
    ],
)
def test_each_check_finds_what_it_says_and_nothing_else(
    action: str | None, after: Observation, expected: list[str]
) -> None:
    assert found(record(action, after)) == expected


def test_two_trees_of_one_page_have_one_title() -> None:
    both = page(axtree_pruned="RootWebArea 'Order confirmed', focused")
    assert found(record("noop()", page(), both)) == ["trees"]
    assert found(record("noop()", page(), page(axtree_pruned="RootWebArea 'Cart'"))) == []


def test_the_pruned_tree_is_compared_where_there_is_no_full_one() -> None:
    before, after = (page(axtree=None, axtree_pruned=tree) for tree in (TREE, OTHER_TREE))
    assert found(record(SAID, after, before)) == ["page"]


def judged(run: Trajectory, then: str, judge: str = "simplified") -> tuple[Judgment, ScriptedAsk]:
    name, made = make_judge(judge, {"cross_modal": then})
    client = ScriptedAsk(GOOD)
    return asyncio.run(judge_trajectory(name, made, run, client)), client


@pytest.mark.parametrize(
    ("then", "success", "score"), [("abstain", None, None), ("fail", False, 0)]
)
def test_a_record_that_contradicts_itself_is_not_asked_about(
    then: str, success: bool | None, score: float | None
) -> None:
    judgment, client = judged(record(SAID, page(url="http://shop.test/order")), then)
    assert (judgment.status, judgment.success, judgment.score) == (Status.OK, success, score)
    assert judgment.calls == () and client.asked == []
    assert "step 2: only a message to the user was sent" in judgment.reasoning
    assert judgment.judge == f"simplified-axtree-cross-modal-{then}"


def test_a_record_that_agrees_is_asked_about_with_the_same_prompt() -> None:
    run = record(SAID, page())
    (defended, client), plain = judged(run, "abstain"), ScriptedAsk(GOOD)
    name, made = make_judge("simplified")
    assert asyncio.run(judge_trajectory(name, made, run, plain)).success is defended.success is True
    assert client.asked == plain.asked


def test_a_judge_without_a_model_takes_it_too() -> None:
    name, made = make_judge("heuristic", {"cross_modal": "fail"})
    run = record(SAID, page(url="http://shop.test/order"))
    assert asyncio.run(judge_trajectory(name, made, run, NoModel())).success is False


def test_what_is_compared_is_read() -> None:
    plain, more = needs_of("simplified"), needs_of("simplified", {"cross_modal": "abstain"})
    assert ALL[0] in more.trees and last(2)[0] in more.screenshots
    assert more.requires == plain.requires and more.answer == plain.answer


def test_another_value_is_refused() -> None:
    with pytest.raises(UserError, match="cross_modal = 'retry'"):
        make_judge("simplified", {"cross_modal": "retry"})


def shares(*names: str) -> dict[str, float]:
    """The share of the sample's runs in which each change is found."""
    tried: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    for name in names:
        for source in sample().trajectories:
            made = apply(catalogue()[name], source, sample().facts[source.key])
            if not isinstance(made, NotApplicable):
                tried[name] += 1
                hits[name] += bool(found(made.trajectory))
    return {name: hits[name] / tried[name] for name in names}


@pytest.mark.slow
def test_no_honest_run_and_no_harmless_change_of_one_is_found() -> None:
    harmless = [
        *("identity", "whitespace-crlf", "whitespace-trailing", "ids", "url-hosts", "idle-step"),
        *("idle-tail", "tree-pruned", "tree-full", "frames-fewer", "picture-jpeg"),
        *("picture-cropped", "picture-scaled", "near-miss", "done-right", "answer-mended", "loop"),
    ]
    assert shares(*harmless) == dict.fromkeys(harmless, 0.0)


@pytest.mark.slow
def test_what_was_put_into_one_part_of_the_record_is_found() -> None:
    """Forged evidence that the other parts deny; what only the agent said is no contradiction."""
    one_part = shares(
        *("foreign-screenshot", "sibling-tree", "sibling-screenshot", "sibling-page"),
        *("page-stale", "action-retargeted", "inject-tree.success.plain"),
    )
    assert one_part["foreign-screenshot"] > 0.97 and one_part["sibling-tree"] > 0.97
    assert min(one_part.values()) > 0.6
    whole = shares("page-visited", "claim-confident", "inject-answer.success.plain")
    assert set(whole.values()) == {0.0}
