"""Seven measured dimensions; the level and the load of a case."""

from __future__ import annotations

from typing import Any

import pytest

from trajudge.environments.apps import load_app
from trajudge.environments.checks.difficulty import (
    Measures,
    measure,
    operations,
    vector,
)
from trajudge.environments.checks.integrity import check
from trajudge.environments.checks.walk import Visit, Walk
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import STATES, Config
from trajudge.environments.model.page import ItemList, Link, ListRow, Page, Paragraph
from trajudge.environments.model.spec import AnswerSpec, Expect, Scenario

EASY = Measures(1, 1, 1, 0, 10, 0, ())


@pytest.mark.parametrize(
    ("place", "field", "amounts"),
    [
        (0, "transitions", ((2, 1), (3, 2), (5, 2), (6, 3))),
        (1, "options", ((2, 1), (3, 2), (5, 2), (6, 3))),
        (2, "actions", ((2, 1), (3, 2), (5, 2), (6, 3))),
        (3, "charts", ((0, 1), (1, 2), (2, 3))),
        (5, "operations", ((0, 1), (1, 2), (2, 2), (3, 3))),
        (6, "risks", (((), 1), ((True,), 2), ((True, False), 3))),
    ],
)
def test_each_dimension_follows_from_its_measure_alone(
    place: int, field: str, amounts: tuple[tuple[Any, int], ...]
) -> None:
    for amount, grade in amounts:
        found = vector(EASY._replace(**{field: amount}))
        assert found[place] == grade
        assert sum(found) == 7 + grade - 1


def test_a_walk_is_measured_by_what_was_chosen_from_and_read() -> None:
    rows = tuple(ListRow(Link(f"Mug {n}", "mug"), (f"{n} euros",)) for n in range(7))
    shelf = Page("Shelf", (ItemList(("Mug", "Price"), rows),))
    walk = Walk(None)  # type: ignore[arg-type]
    walk.visits = [
        Visit("home", {}, Page("Home", (Paragraph("Two words"),)), 3, 2),
        Visit("shelf", {}, shelf),
    ]
    walk.risks = [True]
    looks = _scenario(AnswerSpec("money", "SELECT price FROM mug WHERE id = :mug"))
    found = measure(looks, walk)
    assert found == Measures(1, 7, 2, 0, 3 + 2 + 1 + 7 * 4, 0, (True,))
    acts = _scenario(AnswerSpec("code", "mug"))
    assert measure(acts, walk).options == 3, "the last list is not what an action was about"


def _scenario(*answers: AnswerSpec, expect: tuple[Expect, ...] = ()) -> Scenario:
    return Scenario("s", ("?",), {}, lambda _: [], ("{answer}",), answers, expect)


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT price FROM mug WHERE id = :mug", 0),
        ("SELECT count(*) FROM mug WHERE maker = :maker", 1),
        ("SELECT sum(price) FROM mug WHERE maker = :m AND year >= :y HAVING count(*) > 0", 2),
        ("SELECT m.price FROM mug m JOIN sale s ON s.mug = m.id WHERE s.day = :day", 1),
        ("SELECT name FROM mug WHERE maker = :m ORDER BY price LIMIT 1", 1),
        ("SELECT name FROM mug WHERE a = :m AND price = (SELECT min(price) FROM mug)", 2),
    ],
)
def test_reasoning_counts_what_has_to_be_put_together(sql: str, count: int) -> None:
    assert operations(_scenario(AnswerSpec("number", sql))) == count


def test_conditions_on_the_wanted_state_and_further_answers_count_too() -> None:
    two = Expect("added", "line", {"product": "{p}", "quantity": 2})
    assert operations(_scenario(expect=(two,))) == 1
    assert operations(_scenario(AnswerSpec("code", "line"), expect=(two, two))) == 3
    lookup = AnswerSpec("money", "SELECT price FROM mug WHERE id = :mug")
    assert operations(_scenario(lookup, lookup)) == 1


def test_a_level_is_what_a_scenario_demands_and_the_load_what_the_pages_hold() -> None:
    """Short pages of a long list once made one and the same task a level harder."""
    shop = load_app("shop")
    configs = [
        Config(app="shop", scenario="cheapest", instance=1, profile=10, ui=state)
        for state in range(STATES)
    ]
    cases = [case for config in configs if isinstance(case := check(shop, config), Case)]
    assert {case.level for case in cases} == {shop.scenario("cheapest").demand} == {2}
    assert len({case.vector for case in cases}) > 1


@pytest.mark.parametrize(
    ("breadth", "information", "noise", "load"),
    [(1, 1, 0, 1), (1, 1, 4, 2), (2, 1, 0, 2), (1, 3, 0, 3), (3, 3, 9, 3)],
)
def test_load_is_the_worse_of_choices_and_words_and_noise_adds(
    breadth: int, information: int, noise: int, load: int
) -> None:
    case = Case(
        config=Config(app="shop", scenario="price", noise=noise),
        goal="?",
        domain="d",
        vector=(3, breadth, 3, 3, information, 3, 3),
        level=1,
        shortest=2,
    )
    assert case.load == load
