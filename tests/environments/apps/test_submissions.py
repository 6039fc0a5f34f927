"""What forms send, and what it does to a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trajudge.environments.apps.details import pick_row
from trajudge.environments.apps.submissions import (
    is_date,
    number_for,
    removal,
    toggle,
    transition,
    whole,
)
from trajudge.environments.model.page import Option
from trajudge.environments.model.schema import table
from trajudge.environments.model.spec import FormSubmission, Rejected, Success
from trajudge.environments.model.state import AppState


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("07", 7), ("99", 99)])
def test_a_whole_number_within_the_bounds_is_read(text: str, number: int) -> None:
    assert whole(text, 1, 99) == number


@pytest.mark.parametrize("text", ["", "0", "100", "-1", "1.5", "²", "९", "1" * 5000])
def test_anything_else_is_no_number(text: str) -> None:
    assert whole(text, 1, 99) is None


def test_a_number_follows_from_its_key() -> None:
    assert number_for("T", "0000beef") == "T-10000"
    assert number_for("T", "1277beef") == "T-14727"
    assert number_for("T", "000fbeef", 5) == "T-20"


def test_a_date_is_written_in_one_way() -> None:
    dates = ("2026-02-28", "2026-02-29", "20260228", "2026-2-28", "")
    assert [is_date(text) for text in dates] == [True, False, False, False, False]


def test_among_many_rows_one_is_suggested() -> None:
    for count, drawn in ((8, ""), (9, "combobox")):
        rows: list[Any] = [{"id": str(n), "name": f"Row {n}"} for n in range(count)]
        field = pick_row("row", rows, "3")
        assert (field.drawn, field.value, field.required) == (drawn, "3", False)
        assert field.options[-1] == Option(str(count - 1), f"Row {count - 1}")


def test_a_row_goes_from_one_status_to_the_next() -> None:
    state = AppState((table("ticket", id="token", status="text", kind="text", flag="int"),))
    state.load({"ticket": [("a", "open", "", 1), ("b", "shut", "", 0)]})
    close = transition("ticket", "open", "shut", "No.", page="home", kind=("fixed", "none"))
    show = transition("ticket", "shut", "open", "No.")

    def sent(run: Callable[[FormSubmission], object], **form: str) -> object:
        return run(FormSubmission(state, form))

    for form in ({"ticket": "b", "kind": "none"}, {"ticket": "c", "kind": "none"}, {"ticket": "a"}):
        assert sent(close, **form) == Rejected("No.")
    assert sent(close, ticket="a", kind="fixed") == Success("home", {"id": "a"})
    assert dict(state.row("ticket", "a")) == {
        "id": "a", "status": "shut", "kind": "fixed", "flag": 1
    }  # fmt: skip
    assert sent(show, ticket="a") == Success("ticket", {"id": "a"})
    flip = toggle("ticket", "flag").run
    assert sent(flip, ticket="a") == Success("ticket", {"id": "a"})
    assert sent(flip, ticket="b") == Success("ticket", {"id": "b"})
    assert [row["flag"] for row in state.rows("SELECT * FROM ticket ORDER BY id")] == [0, 1]
    other = removal("ticket", "home", "old")
    assert (other.irreversible, removal("ticket", "home", irreversible=True).irreversible) == (
        False, True
    )  # fmt: skip
    assert sent(other.run, old="a", ticket="b") == Success("home")
    assert [row["id"] for row in state.rows("SELECT id FROM ticket")] == ["b"]
    state.close()
