"""The request desk: what its operations do and refuse, and that its staff is coherent."""

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

APP = load_app("helpdesk")


@pytest.fixture
def world() -> Iterator[World]:
    world = open_world(APP, Config(app=APP.id, scenario="", profile=6))
    yield world
    world.close()


def send(world: World, operation: str, **form: str) -> Landing | Refused | Page:
    return Site(APP, world, ui(APP, 0, 0)).post(operation, {CONFIRMED: "yes", **form})


def test_granting_leave_uses_up_the_allowance_once(world: World) -> None:
    leave = world.one("SELECT * FROM leave WHERE status = 'pending' ORDER BY id")
    assert leave is not None
    left = world.row("person", leave["person"])["allowance"]
    assert isinstance(send(world, "decide-leave", leave=leave["id"], verdict="maybe"), Refused)
    assert isinstance(send(world, "decide-leave", leave=leave["id"], verdict="approve"), Landing)
    assert world.row("person", leave["person"])["allowance"] == left - leave["days"]
    assert isinstance(send(world, "decide-leave", leave=leave["id"], verdict="approve"), Refused)


def test_leave_beyond_the_allowance_is_refused_whole(world: World) -> None:
    leave = world.value("SELECT id FROM leave WHERE status = 'pending' ORDER BY id")
    world.change("leave", leave, days=99)
    assert isinstance(send(world, "decide-leave", leave=leave, verdict="approve"), Refused)
    assert world.row("leave", leave)["status"] == "pending"
    assert isinstance(send(world, "decide-leave", leave=leave, verdict="decline"), Landing)


def test_a_room_is_booked_by_one_party_at_a_time(world: World) -> None:
    room = world.value("SELECT id FROM room ORDER BY id")
    world.db.execute("DELETE FROM booking")
    form = {"room": room, "day": "2026-03-04", "hour": "11:00", "purpose": "Jury"}
    assert isinstance(send(world, "book", **{**form, "day": "2026-03-07"}), Refused)
    assert isinstance(send(world, "book", **form), Landing)
    assert isinstance(send(world, "book", **form), Refused)
    assert isinstance(send(world, "book", **{**form, "hour": "14:00"}), Landing)


def test_a_ticket_that_is_closed_stays_closed(world: World) -> None:
    ticket = world.value("SELECT id FROM ticket WHERE status = 'open' ORDER BY id")
    person = world.value("SELECT id FROM person ORDER BY id")
    form = {"ticket": ticket, "resolution": "fixed", "note": "Done"}
    assert isinstance(send(world, "close-ticket", **form, **{CONFIRMED: ""}), Page)
    assert isinstance(send(world, "close-ticket", **{**form, "note": ""}), Refused)
    assert isinstance(send(world, "close-ticket", **form), Landing)
    update = {"ticket": ticket, "assignee": person, "priority": "low"}
    assert isinstance(send(world, "update-ticket", **update), Refused)


@pytest.mark.parametrize("due", ["", "2026-02-30", "20260309", "2026-W10-1", "tomorrow"])
def test_a_ticket_is_due_on_a_day_of_the_calendar(world: World, due: str) -> None:
    person = world.value("SELECT id FROM person ORDER BY id")
    form = {"subject": "Gate", "assignee": person, "priority": "low"}
    assert isinstance(send(world, "file-ticket", **form, due=due), Refused)
    assert isinstance(send(world, "file-ticket", **form, due="2026-03-09"), Landing)


@pytest.mark.parametrize("number", range(PROFILES))
def test_everybody_but_the_director_reports_within_the_team_or_to_the_director(
    number: int,
) -> None:
    world = open_world(APP, Config(app=APP.id, scenario="", profile=number))
    assert world.value("SELECT count(*) FROM person WHERE manager = ''") == 1
    crossed = world.value(
        "SELECT count(*) FROM person p JOIN person m ON m.id = p.manager "
        "WHERE p.team <> m.team AND m.title <> 'Director'"
    )
    assert crossed == 0
    assert world.value("SELECT count(*) FROM team t JOIN person p ON p.id = t.lead "
                       "WHERE p.team <> t.id") == 0  # fmt: skip
    world.close()
