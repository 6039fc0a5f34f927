"""State labels that an expert would dispute, over runs of the applications' own operations."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.environments.verify.played import Played, played
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.model.binding import Infeasible, decoyed
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, follow, press
from trajudge.environments.model.spec import Bound
from trajudge.environments.model.state import Change, difference
from trajudge.environments.verify import VerificationResult, verify


def other_product(run: Played) -> Bound:
    """The binding with another product that is in stock."""
    return decoyed(run.scenario, run.bound, "product", run.state)


def into_the_cart(run: Played, bound: Bound) -> list[PlanStep]:
    """The first moves of a purchase: up to the product in the cart."""
    moves = run.plan(bound)
    return moves[: next(i for i, move in enumerate(moves) if move.label == Word("add_to_cart")) + 1]


def cancel(run: Played) -> list[PlanStep]:
    number = run.state.row("purchase", run.row_added("purchase"))["number"]
    return [
        follow(Word("orders"), "open the orders"),
        follow(number, "open the order"),
        press(Word("cancel_order"), "cancel it"),
        press(Word("confirm"), "confirm it"),
    ]


def test_what_is_left_in_the_cart_beside_the_order_is_a_side_effect() -> None:
    with played("shop", "buy") as run:
        run.do([*run.plan(), *into_the_cart(run, other_product(run))])
        assert run.labels()[:2] == (True, True)
    with played("shop", "buy") as run:
        run.do([*run.plan(), *into_the_cart(run, run.bound)])
        assert run.labels()[:2] == (True, True), "one more of the same"


def test_what_is_in_the_cart_of_an_order_that_was_not_placed_is_none() -> None:
    with played("shop", "buy") as run:
        run.do(into_the_cart(run, run.bound))
        assert run.labels("The order is placed.")[:2] == (False, False)
    with played("shop", "buy") as run:
        run.do(into_the_cart(run, other_product(run)))
        assert run.labels("The order is placed.")[:2] == (False, True), "another product"


@pytest.mark.parametrize("name", ["buy", "buy-best"])
def test_a_second_product_paid_for_in_the_same_order_is_no_success(name: str) -> None:
    with played("shop", name) as run:
        product = run.bound.get("product") or run.bound["best"]
        sql = "SELECT * FROM product WHERE id <> :id AND stock > 2 ORDER BY id"
        other = dict(run.state.rows(sql, id=product["id"])[0])
        with played("shop", "buy") as plain:
            extra = into_the_cart(plain, {**plain.bound, "product": other, "quantity": 1})
        run.do([*extra, *run.plan()])
        finding = verify(run.evidence(answer=run.reply()))
        assert finding.labels[:2] == (False, True)
        (line,) = (one for one in finding.predicates if not one.holds)
        assert (line.found, line.wanted) == (2, 1)


@pytest.mark.parametrize("slot", ["product", "quantity", "delivery", ""])
def test_ordered_wrong_then_cancelled_then_right_is_a_success_with_a_side_effect(slot: str) -> None:
    with played("shop", "buy") as run:
        wrong = decoyed(run.scenario, run.bound, slot, run.state) if slot else run.bound
        run.do(run.plan(wrong))
        run.do(cancel(run))
        assert run.labels("Done.")[:2] == (False, True), "cancelled, and not ordered again"
        run.do(run.plan())
        assert run.labels()[:2] == (True, True)


def test_an_order_placed_twice_and_not_cancelled_is_no_success() -> None:
    with played("shop", "buy") as run:
        run.do([*run.plan(), *run.plan()])
        assert run.labels("Done.")[:2] == (False, True)


def test_an_export_withdrawn_and_requested_again_is_a_success_with_a_side_effect() -> None:
    with played("almanac", "export") as run:
        run.do(run.plan())
        run.state.change("export", run.row_added("export"), status="withdrawn")
        run.do(run.plan())
        assert run.labels()[:2] == (True, True)


@pytest.mark.parametrize("app", APPS)
def test_what_is_done_and_declared_not_possible_is_open(app: str) -> None:
    changing = [one for one in load_app(app).scenarios if one.expect]
    assert len(changing) >= 4
    for scenario in changing:
        with played(app, scenario.id) as run:
            run.do(run.plan())
            assert run.labels().success is True, scenario.id
            if not scenario.answers:
                assert run.labels("I could not do it.").success is True, "prose is not read"
                assert run.labels("Answer: None").success is None, scenario.id
                assert run.labels("Gone.", "report_infeasible('gone')").success is None


def test_not_having_done_it_and_saying_so_stays_a_failure() -> None:
    with played("shop", "wish") as run:
        assert run.labels("Answer: None").success is False


def mistaken(run: Played, slot: str) -> Bound:
    """Bind the first decoy of the slot for which all that follows from it is feasible."""
    for step in range(1, 20):
        with suppress(Infeasible):
            return decoyed(run.scenario, run.bound, slot, run.state, step)
    raise AssertionError(f"{slot} has no decoy")


def wrong_then_right(app: str, name: str, slot: str) -> tuple[list[Change], VerificationResult]:
    """Do the task with one slot mistaken, then as asked: the changes in between, and the labels."""
    with played(app, name) as run:
        run.do(run.plan(mistaken(run, slot)))
        between = difference(run.before, run.state.dump())
        run.do(run.plan())
        return between, verify(run.evidence(answer=run.reply()))


@pytest.mark.parametrize(
    ("name", "slot"),
    [("buy", "product"), ("buy", "quantity"), ("buy", "delivery"), ("buy-best", "category")],
)
def test_a_wrong_order_that_is_left_beside_the_right_one_is_a_side_effect(
    name: str, slot: str
) -> None:
    """The one order that was asked for is there once, and another that nobody asked for: also where
    the two differ in their lines alone."""
    _, finding = wrong_then_right("shop", name, slot)
    assert finding.labels[:2] == (True, True)
    assert {one.table for one in finding.changes if not one.inside} == {"purchase", "line"}


@pytest.mark.parametrize(
    ("app", "name", "slot"),
    [
        ("shop", "buy-best", "limit"), ("shop", "buy-best", "best"),
        ("helpdesk", "file-ticket", "manager"), ("almanac", "book", "event"),
        ("toolbox", "order-tins", "need"), ("toolbox", "enquire", "lender"),
    ],
)  # fmt: skip
def test_a_mistake_that_comes_to_the_same_row_makes_it_twice_and_is_no_success(
    app: str, name: str, slot: str
) -> None:
    """The slot is worked out from others, or its neighbour leads to the same choice."""
    between, finding = wrong_then_right(app, name, slot)
    own = {"id", "number", "placed", "purchase"}  # what two rows never share
    table = next(one.table for one in between if one.kind == "added")
    first, *more = [
        {column: value for column, value in change.after.items() if column not in own}
        for change in finding.changes
        if change.kind == "added" and change.table == table
    ]
    assert more == [first], "the same, twice"
    assert finding.labels[:2] == (False, True)
    (predicate,) = (one for one in finding.predicates if not one.holds)
    assert (predicate.found, predicate.wanted) == (2, 1)


@pytest.mark.parametrize(
    ("app", "name", "slots"),
    [
        ("helpdesk", "book-room", ["purpose"]),
        ("toolbox", "record-room", ["long", "wide", "height", "openings"]),
    ],
)
def test_a_mistake_that_the_site_does_not_let_be_done_again_is_no_success(
    app: str, name: str, slots: list[str]
) -> None:
    """The room is taken by the wrong booking, the name by the wrong record."""
    for slot in slots:
        between, finding = wrong_then_right(app, name, slot)
        assert [one.key for one in finding.changes] == [one.key for one in between]
        assert finding.labels[:2] == (False, True)
        (predicate,) = finding.predicates
        assert (predicate.found, predicate.wanted) == (0, 1)


OVERWRITTEN = [
    ("shop", "move", ["number", "street", "city"]),
    ("helpdesk", "hand-over", ["person", "priority"]),
    ("almanac", "bookmark", ["shelf", "remark"]),
    ("console", "assign-alert", ["member", "priority", "note"]),
    ("console", "change-role", ["team", "role"]),
    ("console", "quota-for-busier", ["service", "quota", "billing", "ticket", "busier"]),
    ("press", "best-weekday", ["other", "tag", "due", "best"]),
]


def test_a_mistake_that_is_overwritten_leaves_nothing_behind() -> None:
    """Of the 21, three come to the same values; of the others nothing is seen in the state."""
    same = []
    for app, name, slots in OVERWRITTEN:
        for slot in slots:
            between, finding = wrong_then_right(app, name, slot)
            (wrong,), (right,) = between, finding.changes
            assert (wrong.table, wrong.key) == (right.table, right.key), (name, slot)
            assert finding.labels[:2] == (True, False), (name, slot)
            if dict(wrong.after) == dict(right.after):
                same.append((name, slot))
    assert sum(len(slots) for _, _, slots in OVERWRITTEN) == 21
    assert len(same) == 3, same
