"""The publishing desk: what its operations do and refuse."""

from __future__ import annotations

from functools import partial

import pytest

from tests.environments.apps.desk import sent, state_fixture
from trajudge.environments.apps import load_app
from trajudge.environments.model.site import Redirect
from trajudge.environments.model.spec import TODAY, Rejected
from trajudge.environments.model.state import AppState

APP = load_app("press")
state = state_fixture(APP, profile=4)
send = partial(sent, APP)


def article(state: AppState, stage: str) -> str:
    return str(state.value("SELECT id FROM article WHERE state = :state ORDER BY id", state=stage))


def test_only_what_is_in_review_is_published(state: AppState) -> None:
    image = state.value("SELECT id FROM image ORDER BY id")
    form = {"image": image, "placement": "not on the front page", "teaser": "A second look"}
    key = article(state, "in review")
    assert isinstance(send(state, "publish", article=key, **form), Redirect)
    published = state.row("article", key)
    assert (published["state"], published["image"]) == ("published", image)
    for stage in ("draft", "published"):
        refused = send(state, "publish", article=article(state, stage), **form)
        assert isinstance(refused, Rejected)


def test_a_review_bears_the_name_of_who_wrote_it(state: AppState) -> None:
    key = article(state, "draft")
    form = {"verdict": "revise", "grade": "10", "remark": "Shorten it"}
    assert isinstance(send(state, "review", article=key, **form), Redirect)
    me = state.row("account", "me")["name"]
    assert state.value("SELECT reviewer FROM review WHERE remark = 'Shorten it'") == me
    for wrong in ({"grade": "11"}, {"remark": "  "}, {"verdict": "perhaps"}):
        assert isinstance(send(state, "review", article=key, **{**form, **wrong}), Rejected)


def test_a_published_article_stays_as_it_is(state: AppState) -> None:
    form = {"weekday": "Friday", "tag": "opinion", "due": "2026-06-05"}
    refused = send(state, "edit", article=article(state, "published"), **form)
    assert isinstance(refused, Rejected)
    assert isinstance(send(state, "edit", article=article(state, "draft"), **form), Redirect)


def test_a_newsletter_is_sent_once(state: AppState) -> None:
    key = state.value("SELECT id FROM newsletter WHERE status = 'planned' ORDER BY id")
    assert isinstance(send(state, "send", newsletter=key, sender="the editors"), Redirect)
    assert isinstance(send(state, "send", newsletter=key, sender="the publisher"), Rejected)
    assert state.row("newsletter", key)["sender"] == "the editors"


@pytest.mark.parametrize("sends", ["", TODAY, "2026-02-30", "tomorrow"])
def test_a_newsletter_is_planned_for_a_day_to_come(state: AppState, sends: str) -> None:
    form = {"subject": "Hello", "audience": "teachers", "lead": article(state, "draft")}
    assert isinstance(send(state, "compose", sends=sends, **form), Rejected)
    landing = send(state, "compose", sends="2026-06-05", **form)
    assert isinstance(landing, Redirect)
    assert state.row("newsletter", landing.args["id"])["status"] == "planned"


def test_a_deleted_comment_is_gone(state: AppState) -> None:
    key = state.value("SELECT id FROM comment ORDER BY id")
    assert isinstance(send(state, "delete", comment=key), Redirect)
    assert state.get("comment", key) is None
    assert isinstance(send(state, "delete", comment=key), Rejected)
