"""State labels that an expert would dispute, over runs of the applications' own operations."""

from __future__ import annotations

import pytest

from tests.environments.verify.played import Played, played
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.model.binding import decoyed
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, follow, press
from trajudge.environments.model.spec import Bound
from trajudge.environments.verify import verify


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
        other = run.state.rows(sql, id=product["id"])[0]
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


@pytest.mark.parametrize(
    ("app", "name"),
    [
        ("shop", "wish"), ("shop", "move"), ("almanac", "bookmark"), ("helpdesk", "hand-over"),
        ("moderation", "warn"), ("press", "delete-comment"), ("toolbox", "rename-job"),
        ("console", "revoke-key"),
    ],
)  # fmt: skip
def test_i_could_not_do_it_after_doing_it_is_open(app: str, name: str) -> None:
    with played(app, name) as run:
        run.do(run.plan())
        assert run.labels().success is True
        assert run.labels("Done.").success is True
        assert run.labels("\ud800").success is True
        assert run.labels("I could not do it: the page gave an error.").success is None
        assert run.labels("I was unable to complete the task.").success is None
        assert run.labels("The button is gone.", "report_infeasible('gone')").success is None


@pytest.mark.slow
@pytest.mark.parametrize("app", APPS)
def test_what_is_done_and_disowned_is_open_in_every_scenario(app: str) -> None:
    changing = [one for one in load_app(app).scenarios if one.expect]
    assert len(changing) >= 4
    for scenario in changing:
        with played(app, scenario.id) as run:
            run.do(run.plan())
            own = run.reply() if scenario.answers else ""
            assert run.labels().success is True, scenario.id
            for said in ("I could not do it.", "I can't do it.", "I was unable to finish."):
                assert run.labels(f"{own} {said}".strip()).success is None, (scenario.id, said)


def test_an_order_with_its_code_that_is_disowned_is_open() -> None:
    with played("shop", "buy") as run:
        run.do(run.plan())
        assert run.labels(f"{run.reply()} I could not complete the order.").success is None


def test_not_having_done_it_and_saying_so_stays_a_failure() -> None:
    with played("shop", "wish") as run:
        assert run.labels("I could not do it.").success is False
