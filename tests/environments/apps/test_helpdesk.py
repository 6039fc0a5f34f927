"""The request desk: what its operations do and refuse, and that its staff is coherent."""

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

APP = load_app("helpdesk")
state = state_fixture(APP, profile=6)
send = partial(sent, APP)


def test_granting_leave_uses_up_the_allowance_once(state: AppState) -> None:
    leave = state.one("SELECT * FROM leave WHERE status = 'pending' ORDER BY id")
    assert leave is not None
    left = state.row("person", leave["person"])["allowance"]
    assert isinstance(send(state, "decide-leave", leave=leave["id"], verdict="maybe"), Rejected)
    assert isinstance(send(state, "decide-leave", leave=leave["id"], verdict="approve"), Redirect)
    assert state.row("person", leave["person"])["allowance"] == left - leave["days"]
    assert isinstance(send(state, "decide-leave", leave=leave["id"], verdict="approve"), Rejected)


def test_leave_beyond_the_allowance_is_refused_whole(state: AppState) -> None:
    leave = state.value("SELECT id FROM leave WHERE status = 'pending' ORDER BY id")
    state.change("leave", leave, days=99)
    assert isinstance(send(state, "decide-leave", leave=leave, verdict="approve"), Rejected)
    assert state.row("leave", leave)["status"] == "pending"
    assert isinstance(send(state, "decide-leave", leave=leave, verdict="decline"), Redirect)


def test_a_room_is_booked_by_one_party_at_a_time(state: AppState) -> None:
    room = state.value("SELECT id FROM room ORDER BY id")
    state.db.execute("DELETE FROM booking")
    form = {"room": room, "day": "2026-03-04", "hour": "11:00", "purpose": "Jury"}
    assert isinstance(send(state, "book", **{**form, "day": "2026-03-07"}), Rejected)
    assert isinstance(send(state, "book", **form), Redirect)
    assert isinstance(send(state, "book", **form), Rejected)
    assert isinstance(send(state, "book", **{**form, "hour": "14:00"}), Redirect)


def test_a_ticket_that_is_closed_stays_closed(state: AppState) -> None:
    ticket = state.value("SELECT id FROM ticket WHERE status = 'open' ORDER BY id")
    person = state.value("SELECT id FROM person ORDER BY id")
    form = {"ticket": ticket, "resolution": "fixed", "note": "Done"}
    assert isinstance(send(state, "close-ticket", **form, **{CONFIRMED: ""}), Page)
    assert isinstance(send(state, "close-ticket", **{**form, "note": ""}), Rejected)
    assert isinstance(send(state, "close-ticket", **form), Redirect)
    update = {"ticket": ticket, "assignee": person, "priority": "low"}
    assert isinstance(send(state, "update-ticket", **update), Rejected)


@pytest.mark.parametrize("due", ["", "2026-02-30", "20260309", "2026-W10-1", "tomorrow"])
def test_a_ticket_is_due_on_a_day_of_the_calendar(state: AppState, due: str) -> None:
    person = state.value("SELECT id FROM person ORDER BY id")
    form = {"subject": "Gate", "assignee": person, "priority": "low"}
    assert isinstance(send(state, "file-ticket", **form, due=due), Rejected)
    assert isinstance(send(state, "file-ticket", **form, due="2026-03-09"), Redirect)


@pytest.mark.parametrize("number", range(PROFILES))
def test_everybody_but_the_director_reports_within_the_team_or_to_the_director(
    number: int,
) -> None:
    state = open_state(APP, Config(app=APP.id, scenario="", profile=number))
    assert state.value("SELECT count(*) FROM person WHERE manager = ''") == 1
    crossed = state.value(
        "SELECT count(*) FROM person p JOIN person m ON m.id = p.manager "
        "WHERE p.team <> m.team AND m.title <> 'Director'"
    )
    assert crossed == 0
    assert state.value("SELECT count(*) FROM team t JOIN person p ON p.id = t.lead "
                       "WHERE p.team <> t.id") == 0  # fmt: skip
    state.close()
