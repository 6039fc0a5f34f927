"""The publishing desk: what its operations do and refuse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from environments.apps import load_app
from environments.model.axes import open_world, ui
from environments.model.config import Config
from environments.model.page import Page
from environments.model.site import CONFIRMED, Landing, Site
from environments.model.spec import TODAY, Refused
from environments.model.state import World

APP = load_app("press")


@pytest.fixture
def world() -> Iterator[World]:
    world = open_world(APP, Config(app=APP.id, scenario="", profile=4))
    yield world
    world.close()


def send(world: World, operation: str, **form: str) -> Landing | Refused | Page:
    return Site(APP, world, ui(APP, 0, 0)).post(operation, {CONFIRMED: "yes", **form})


def article(world: World, state: str) -> str:
    return str(world.value("SELECT id FROM article WHERE state = :state ORDER BY id", state=state))


def test_only_what_is_in_review_is_published(world: World) -> None:
    image = world.value("SELECT id FROM image ORDER BY id")
    form = {"image": image, "placement": "not on the front page", "teaser": "A second look"}
    key = article(world, "in review")
    assert isinstance(send(world, "publish", article=key, **form), Landing)
    published = world.row("article", key)
    assert (published["state"], published["image"]) == ("published", image)
    for state in ("draft", "published"):
        refused = send(world, "publish", article=article(world, state), **form)
        assert isinstance(refused, Refused)


def test_a_review_bears_the_name_of_who_wrote_it(world: World) -> None:
    key = article(world, "draft")
    form = {"verdict": "revise", "grade": "10", "remark": "Shorten it"}
    assert isinstance(send(world, "review", article=key, **form), Landing)
    me = world.row("account", "me")["name"]
    assert world.value("SELECT reviewer FROM review WHERE remark = 'Shorten it'") == me
    for wrong in ({"grade": "11"}, {"remark": "  "}, {"verdict": "perhaps"}):
        assert isinstance(send(world, "review", article=key, **{**form, **wrong}), Refused)


def test_a_published_article_stays_as_it_is(world: World) -> None:
    form = {"weekday": "Friday", "tag": "opinion", "due": "2026-06-05"}
    refused = send(world, "edit", article=article(world, "published"), **form)
    assert isinstance(refused, Refused)
    assert isinstance(send(world, "edit", article=article(world, "draft"), **form), Landing)


def test_a_newsletter_is_sent_once(world: World) -> None:
    key = world.value("SELECT id FROM newsletter WHERE status = 'planned' ORDER BY id")
    assert isinstance(send(world, "send", newsletter=key, sender="the editors"), Landing)
    assert isinstance(send(world, "send", newsletter=key, sender="the publisher"), Refused)
    assert world.row("newsletter", key)["sender"] == "the editors"


@pytest.mark.parametrize("sends", ["", TODAY, "2026-02-30", "tomorrow"])
def test_a_newsletter_is_planned_for_a_day_to_come(world: World, sends: str) -> None:
    form = {"subject": "Hello", "audience": "teachers", "lead": article(world, "draft")}
    assert isinstance(send(world, "compose", sends=sends, **form), Refused)
    landing = send(world, "compose", sends="2026-06-05", **form)
    assert isinstance(landing, Landing)
    assert world.row("newsletter", landing.args["id"])["status"] == "planned"


def test_a_deleted_comment_is_gone(world: World) -> None:
    key = world.value("SELECT id FROM comment ORDER BY id")
    assert isinstance(send(world, "delete", comment=key), Landing)
    assert world.get("comment", key) is None
    assert isinstance(send(world, "delete", comment=key), Refused)
