"""The moderation desk: what its operations do and refuse, and that its past is coherent."""

from __future__ import annotations

from functools import partial

import pytest

from tests.environments.apps.desk import sent, state_fixture
from trajudge.environments.apps import load_app
from trajudge.environments.model.axes import open_state
from trajudge.environments.model.config import PROFILES, Config
from trajudge.environments.model.page import Page
from trajudge.environments.model.site import CONFIRMED, Redirect
from trajudge.environments.model.spec import Rejected
from trajudge.environments.model.state import AppState

APP = load_app("moderation")
state = state_fixture(APP, profile=4)
send = partial(sent, APP)


def test_removing_a_post_closes_its_reports_and_is_logged(state: AppState) -> None:
    post = state.value("SELECT post FROM report WHERE status = 'open' ORDER BY id")
    clause = state.value("SELECT id FROM clause ORDER BY id")
    lines = state.value("SELECT count(*) FROM entry")
    assert isinstance(send(state, "decide", post=post, kind="remove", clause=clause), Redirect)
    assert state.row("post", post)["status"] == "removed"
    assert not state.rows("SELECT * FROM report WHERE post = :p AND status = 'open'", p=post)
    assert state.value("SELECT count(*) FROM entry") == lines + 1
    assert isinstance(send(state, "decide", post=post, kind="remove", clause=clause), Rejected)


def test_an_approval_names_no_clause_and_a_removal_does(state: AppState) -> None:
    post = state.value("SELECT id FROM post WHERE status = 'visible' ORDER BY id")
    clause = state.value("SELECT id FROM clause ORDER BY id")
    assert isinstance(send(state, "decide", post=post, kind="approve", clause=clause), Rejected)
    assert isinstance(send(state, "decide", post=post, kind="remove"), Rejected)
    assert isinstance(send(state, "decide", post=post, kind="approve"), Redirect)


def test_a_suspension_counts_from_today_and_cannot_be_doubled(state: AppState) -> None:
    member = state.value("SELECT id FROM member WHERE status = 'active' ORDER BY id")
    clause = state.value("SELECT id FROM clause ORDER BY id")
    form = {"member": member, "clause": clause, "days": "10"}
    assert isinstance(send(state, "suspend", **form, **{CONFIRMED: ""}), Page)
    assert isinstance(send(state, "suspend", **{**form, "days": "0"}), Rejected)
    assert isinstance(send(state, "suspend", **form), Redirect)
    assert state.row("member", member)["until"] == "2026-03-12"
    assert isinstance(send(state, "suspend", **form), Rejected)


def test_a_decision_that_is_overturned_brings_the_post_back(state: AppState) -> None:
    appeal = state.one(
        "SELECT a.id, d.post FROM appeal a JOIN decision d ON d.id = a.decision "
        "WHERE a.status = 'pending'"
    )
    assert appeal is not None
    form = {"appeal": appeal["id"], "outcome": "overturned", "reply": "Sorry"}
    assert isinstance(send(state, "settle", **{**form, "reply": " "}), Rejected)
    assert isinstance(send(state, "settle", **form), Redirect)
    assert state.row("post", appeal["post"])["status"] == "visible"
    assert isinstance(send(state, "settle", **form), Rejected)


@pytest.mark.parametrize("number", range(PROFILES))
def test_what_is_gone_was_decided_and_what_is_gone_has_no_open_report(number: int) -> None:
    state = open_state(APP, Config(app=APP.id, scenario="", profile=number))
    removed = {row[0] for row in state.rows("SELECT id FROM post WHERE status = 'removed'")}
    decided = {row[0] for row in state.rows("SELECT post FROM decision WHERE kind = 'remove'")}
    reported = {row[0] for row in state.rows("SELECT post FROM report WHERE status = 'open'")}
    suspended = {row[0] for row in state.rows("SELECT id FROM member WHERE status = 'suspended'")}
    punished = {row[0] for row in state.rows("SELECT member FROM decision WHERE kind = 'suspend'")}
    assert removed == decided
    assert not removed & reported
    assert suspended <= punished
    state.close()
