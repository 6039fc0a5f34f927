"""The moderation desk: what its operations do and refuse, and that its past is coherent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from environments.apps import load_app
from environments.model.axes import open_world, ui
from environments.model.config import PROFILES, Config
from environments.model.page import Page
from environments.model.site import CONFIRMED, Landing, Site
from environments.model.spec import Refused
from environments.model.state import World

APP = load_app("moderation")


@pytest.fixture
def world() -> Iterator[World]:
    world = open_world(APP, Config(app=APP.id, scenario="", profile=4))
    yield world
    world.close()


def send(world: World, operation: str, **form: str) -> Landing | Refused | Page:
    return Site(APP, world, ui(APP, 0, 0)).post(operation, {CONFIRMED: "yes", **form})


def test_removing_a_post_closes_its_reports_and_is_logged(world: World) -> None:
    post = world.value("SELECT post FROM report WHERE status = 'open' ORDER BY id")
    clause = world.value("SELECT id FROM clause ORDER BY id")
    lines = world.value("SELECT count(*) FROM entry")
    assert isinstance(send(world, "decide", post=post, kind="remove", clause=clause), Landing)
    assert world.row("post", post)["status"] == "removed"
    assert not world.rows("SELECT * FROM report WHERE post = :p AND status = 'open'", p=post)
    assert world.value("SELECT count(*) FROM entry") == lines + 1
    assert isinstance(send(world, "decide", post=post, kind="remove", clause=clause), Refused)


def test_an_approval_names_no_clause_and_a_removal_does(world: World) -> None:
    post = world.value("SELECT id FROM post WHERE status = 'visible' ORDER BY id")
    clause = world.value("SELECT id FROM clause ORDER BY id")
    assert isinstance(send(world, "decide", post=post, kind="approve", clause=clause), Refused)
    assert isinstance(send(world, "decide", post=post, kind="remove"), Refused)
    assert isinstance(send(world, "decide", post=post, kind="approve"), Landing)


def test_a_suspension_counts_from_today_and_cannot_be_doubled(world: World) -> None:
    member = world.value("SELECT id FROM member WHERE status = 'active' ORDER BY id")
    clause = world.value("SELECT id FROM clause ORDER BY id")
    form = {"member": member, "clause": clause, "days": "10"}
    assert isinstance(send(world, "suspend", **form, **{CONFIRMED: ""}), Page)
    assert isinstance(send(world, "suspend", **{**form, "days": "0"}), Refused)
    assert isinstance(send(world, "suspend", **form), Landing)
    assert world.row("member", member)["until"] == "2026-03-12"
    assert isinstance(send(world, "suspend", **form), Refused)


def test_a_decision_that_is_overturned_brings_the_post_back(world: World) -> None:
    appeal = world.one(
        "SELECT a.id, d.post FROM appeal a JOIN decision d ON d.id = a.decision "
        "WHERE a.status = 'pending'"
    )
    assert appeal is not None
    form = {"appeal": appeal["id"], "outcome": "overturned", "reply": "Sorry"}
    assert isinstance(send(world, "settle", **{**form, "reply": " "}), Refused)
    assert isinstance(send(world, "settle", **form), Landing)
    assert world.row("post", appeal["post"])["status"] == "visible"
    assert isinstance(send(world, "settle", **form), Refused)


@pytest.mark.parametrize("number", range(PROFILES))
def test_what_is_gone_was_decided_and_what_is_gone_has_no_open_report(number: int) -> None:
    world = open_world(APP, Config(app=APP.id, scenario="", profile=number))
    removed = {row[0] for row in world.rows("SELECT id FROM post WHERE status = 'removed'")}
    decided = {row[0] for row in world.rows("SELECT post FROM decision WHERE kind = 'remove'")}
    reported = {row[0] for row in world.rows("SELECT post FROM report WHERE status = 'open'")}
    suspended = {row[0] for row in world.rows("SELECT id FROM member WHERE status = 'suspended'")}
    punished = {row[0] for row in world.rows("SELECT member FROM decision WHERE kind = 'suspend'")}
    assert removed == decided
    assert not removed & reported
    assert suspended <= punished
    world.close()
