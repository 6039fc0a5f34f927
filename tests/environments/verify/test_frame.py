"""The difference of two states, read through expectations and frame."""

from __future__ import annotations

from collections.abc import Mapping

from trajudge.environments.model.spec import AllowedChange, Expect, Scenario
from trajudge.environments.model.state import Change, Record
from trajudge.environments.verify.frame import ChangeReport, named, report_changes

BOUND = {"product": {"id": "p1", "name": "Oak Mug"}, "quantity": 2}
BUY = (
    Expect("added", "purchase", {"delivery": "express"}),
    Expect("added", "line", {"purchase": "{new_purchase}", "product": "{product[id]}"}),
    Expect("added", "line", {"quantity": "{quantity}"}),
)


def scenario(*expect: Expect, may: tuple[AllowedChange, ...] = ()) -> Scenario:
    return Scenario("s", ("Do it.",), {}, lambda _: [], ("Done.",), expect=expect, may=may)


def added(table: str, key: str, **row: str | int) -> Change:
    return Change("added", table, key, {}, {"id": key, **row})


def changed(table: str, key: str, before: Record, after: Record) -> Change:
    return Change("changed", table, key, {"id": key, **before}, {"id": key, **after})


def holding(reading: ChangeReport) -> Mapping[str, bool]:
    return {predicate.name: predicate.holds for predicate in reading.predicates}


def outside(reading: ChangeReport) -> list[tuple[str, tuple[str, ...]]]:
    return [(change.key, change.columns) for change in reading.changes if not change.inside]


ORDER = added("purchase", "o1", delivery="express")
LINE = added("line", "l1", purchase="o1", product="p1", quantity=2)


def test_every_expectation_is_told_by_the_name_it_has_in_the_scenario() -> None:
    reading = report_changes(scenario(*BUY), BOUND, [ORDER, LINE])
    assert holding(reading) == {
        "added purchase: delivery = express": True,
        "added line: purchase = {new_purchase}, product = {product[id]}": True,
        "added line: quantity = {quantity}": True,
    }
    assert reading.holds
    assert reading.no_side_effect
    assert reading.rows == {"purchase": "o1", "line": "l1"}


def test_names_tell_key_and_count() -> None:
    assert named(Expect("removed", "post", key="{post}", count=2)) == "removed post {post} x2"


def test_a_wrong_order_fails_its_predicate_alone_and_is_a_side_effect() -> None:
    wrong = added("line", "l1", purchase="o1", product="p1", quantity=3)
    reading = report_changes(
        scenario(BUY[0], Expect("added", "line", {"quantity": 2})), BOUND, [ORDER, wrong]
    )
    assert list(holding(reading).values()) == [True, False]
    assert [key for key, _ in outside(reading)] == ["l1"]


def test_a_line_of_another_order_does_not_count_as_a_line_of_the_right_one() -> None:
    other = added("purchase", "o2", delivery="standard")
    line = added("line", "l1", purchase="o2", product="p1", quantity=2)
    assert not report_changes(scenario(*BUY), BOUND, [ORDER, other, line]).holds


def test_doing_it_twice_fails_and_the_second_time_is_a_side_effect() -> None:
    again = added("purchase", "o2", delivery="express")
    reading = report_changes(scenario(BUY[0]), BOUND, [ORDER, again])
    assert reading.predicates[0].found == 2
    assert not reading.holds
    assert [key for key, _ in outside(reading)] == ["o2"]


def test_half_of_what_was_asked_is_no_side_effect() -> None:
    reading = report_changes(scenario(Expect("added", "purchase", count=2)), BOUND, [ORDER])
    assert not reading.holds
    assert reading.no_side_effect


def test_a_changed_row_must_have_changed_in_an_expected_column() -> None:
    expect = Expect("changed", "order", {"status": "cancelled"}, key="{product[id]}")
    there_before = {"status": "cancelled", "note": ""}, {"status": "cancelled", "note": "x"}
    assert not report_changes(
        scenario(expect), BOUND, [changed("order", "p1", *there_before)]
    ).holds
    cancelled = {"status": "open", "note": ""}, {"status": "cancelled", "note": ""}
    assert report_changes(scenario(expect), BOUND, [changed("order", "p1", *cancelled)]).holds
    assert not report_changes(scenario(expect), BOUND, [changed("order", "p2", *cancelled)]).holds


def test_other_columns_of_an_expected_row_are_side_effects_unless_permitted() -> None:
    expect = Expect("changed", "order", {"status": "cancelled"})
    both = changed(
        "order", "p1", {"status": "a", "n": 1, "t": 1}, {"status": "cancelled", "n": 2, "t": 2}
    )
    reading = report_changes(scenario(expect), BOUND, [both])
    assert reading.holds
    assert outside(reading) == [("p1", ("n", "t"))]
    may = (AllowedChange("changed", "order", ("t",)),)
    assert outside(report_changes(scenario(expect, may=may), BOUND, [both])) == [("p1", ("n",))]
    permitted = (
        AllowedChange("changed", "order", ("t",)),
        AllowedChange("changed", "order", ("n",)),
    )
    assert report_changes(scenario(expect, may=permitted), BOUND, [both]).no_side_effect


def test_what_may_happen_is_bound_to_its_values_and_is_no_success() -> None:
    may = (AllowedChange("added", "cart", values={"product": "{product[id]}"}),)
    reading = report_changes(scenario(*BUY, may=may), BOUND, [added("cart", "c1", product="p1")])
    assert reading.no_side_effect
    assert not reading.holds
    assert not report_changes(
        scenario(may=may), BOUND, [added("cart", "c1", product="p2")]
    ).no_side_effect


def test_of_a_removed_row_the_values_before_are_asked() -> None:
    gone = Change("removed", "wish", "w1", {"id": "w1", "product": "p1"}, {})
    assert report_changes(
        scenario(Expect("removed", "wish", {"product": "{product}"})), BOUND, [gone]
    ).holds
    assert not report_changes(
        scenario(Expect("removed", "wish", {"product": "p9"})), BOUND, [gone]
    ).holds


def test_nothing_expected_holds_when_nothing_happened() -> None:
    assert report_changes(scenario(), BOUND, []).holds
    assert not report_changes(scenario(*BUY), BOUND, []).holds
