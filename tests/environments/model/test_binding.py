"""Slots take values of the profile, decoys take others, and texts are filled with both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.near_miss import near_miss, outcome
from trajudge.environments.model.axes import instance, open_state
from trajudge.environments.model.binding import (
    Infeasible,
    bind,
    candidates,
    decoyed,
    filled,
    money,
    parameters,
    typed,
)
from trajudge.environments.model.config import Config
from trajudge.environments.model.schema import table
from trajudge.environments.model.spec import ChoiceSlot, Derive, Expect, Number, Pick, Scenario
from trajudge.environments.model.state import AppState

BOUND = {"mug": {"id": "m1", "name": "Oak", "price": 123456}, "count": 2, "way": "express"}


@pytest.fixture
def state() -> Iterator[AppState]:
    made = AppState((table("mug", id="token", name="text", maker="text", price="money"),))
    rows = [("a", "Oak", "Finch", 500), ("b", "Slate", "Finch", 700), ("c", "Wool", "Alder", 500)]
    made.load({"mug": rows})
    yield made
    made.close()


def scenario(**slots: Pick | Number | ChoiceSlot | Derive) -> Scenario:
    return Scenario("s", ("?",), slots, lambda _: [], ("Done.",))


ANY = Pick("SELECT * FROM mug ORDER BY id")
SAME_MAKER = Pick("SELECT * FROM mug WHERE maker = :mug_maker AND id <> :mug ORDER BY id")
CHEAPEST = Derive("SELECT * FROM mug WHERE maker = :mug_maker ORDER BY price LIMIT 1")


def test_a_place_is_a_share_of_the_candidates(state: AppState) -> None:
    one = scenario(mug=ANY, count=Number(1, 4), way=ChoiceSlot(("slow", "fast")))
    bound = bind(one, {"mug": 0.0, "count": 0.99, "way": 0.5}, state)
    assert (bound["mug"]["name"], bound["count"], bound["way"]) == ("Oak", 4, "fast")


def test_later_slots_may_name_earlier_ones(state: AppState) -> None:
    follows = scenario(mug=ANY, best=CHEAPEST)
    bound = bind(follows, {"mug": 0.4, "best": 0.9}, state)
    assert (bound["mug"]["name"], bound["best"]["name"]) == ("Slate", "Oak")
    assert candidates(SAME_MAKER, bound, state) == [dict(state.row("mug", "a"))]


@pytest.mark.parametrize(
    ("slot", "message"),
    [
        (Pick("SELECT * FROM mug WHERE price > 900"), "it: no candidate"),
        (Pick("SELECT * FROM mug WHERE price > 600"), "it: a single candidate"),
        (ChoiceSlot(("one",)), "it: a single candidate"),
        (Derive("SELECT * FROM mug WHERE price > 900"), "it: nothing follows"),
        (Derive("SELECT * FROM mug WHERE price = 500"), "it: a tie"),
    ],
)
def test_what_cannot_be_bound_says_why(state: AppState, slot: Pick, message: str) -> None:
    with pytest.raises(Infeasible, match=message):
        bind(scenario(it=slot), {"it": 0.5}, state)


def test_a_decoy_is_another_candidate_and_the_rest_follows_it(state: AppState) -> None:
    both = scenario(mug=ANY, best=CHEAPEST, count=Number(1, 2))
    bound = bind(both, {"mug": 0.0, "best": 0.0, "count": 0.0}, state)
    assert decoyed(both, bound, "count", state) == {**bound, "count": 2}
    assert [decoyed(both, bound, "mug", state, n)["mug"]["id"] for n in range(4)] == list("abca")
    assert decoyed(both, bound, "mug", state, 2)["best"]["name"] == "Wool"


def test_a_near_miss_asks_for_something_else(state: AppState) -> None:
    expect = (Expect("added", "order", {"mug": "{best[id]}", "of": "{new_box}"}),)
    follows = Scenario(
        "s", ("?",), {"mug": ANY, "best": CHEAPEST}, lambda _: [], ("Done.",), expect=expect
    )
    bound = bind(follows, {"mug": 0.0, "best": 0.0}, state)
    near = near_miss(follows, bound, "mug", state)
    assert near is not None
    assert near["mug"]["id"] == "c", "the next mug has the same maker and so the same best"
    assert outcome(follows, near, state) != outcome(follows, bound, state)
    idle = scenario(mug=ANY, count=Number(1, 3))
    assert near_miss(idle, {**bound, "count": 1}, "count", state) is None


@pytest.mark.parametrize("name", APPS)
def test_decoys_differ_in_every_scenario(name: str) -> None:
    app = load_app(name)
    for one in app.scenarios:
        config = Config(app=name, scenario=one.id, instance=1, profile=1)
        state = open_state(app, config)
        try:
            bound = bind(one, instance(name, one.id, tuple(one.slots), 1, 0), state)
        except Infeasible:
            continue
        for slot in one.mistakable:
            try:
                assert decoyed(one, bound, slot, state)[slot] != bound[slot]
            except Infeasible:
                continue
        state.close()


def test_texts_are_filled_and_values_keep_their_type() -> None:
    assert (
        filled("{count} of the {mug[name]} at {mug[price]:money}", BOUND)
        == "2 of the Oak at $1,234.56"
    )
    assert filled("{mug}", BOUND) == "m1"
    assert typed("{count}", BOUND) == 2
    assert typed("{mug[price]}", BOUND) == 123456
    assert typed("{way} delivery", BOUND) == "express delivery"
    assert typed(7, BOUND) == 7
    assert parameters(BOUND)["mug"] == "m1"
    assert parameters(BOUND)["mug_name"] == "Oak"
    for text in ("{bowl}", "{mug[colour]}"):
        with pytest.raises(KeyError):
            filled(text, BOUND)


@given(st.text(max_size=80))
def test_a_filled_value_is_never_read_as_a_template(text: str) -> None:
    assert filled("<{it}>", {"it": text, "mug": "no"}) == f"<{text}>"


@given(st.integers(-(10**9), 10**9))
def test_money_is_written_to_the_cent(cents: int) -> None:
    text = money(cents)
    assert round(float(text.replace("$", "").replace(",", "")) * 100) == cents
