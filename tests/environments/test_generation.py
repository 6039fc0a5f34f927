"""Plan, generate, refine: seeded, checked, and never a model's word for the truth."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from functools import cache

import pytest

from tests.environments.cases import sound
from tests.samples import repeats
from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import Reject, check
from trajudge.environments.generation import (
    Produced,
    Tally,
    TriedConfiguration,
    nearest,
    produce,
    refine,
)
from trajudge.environments.model.axes import generator
from trajudge.environments.model.case import Case, Vector
from trajudge.environments.model.config import Config
from trajudge.environments.planning import GenerationPlan, SuiteSpecification, plan
from trajudge.environments.serving.noise import noise
from trajudge.judges.adapters.errors import Refused
from trajudge.judges.model import Model, Reply
from trajudge.util.errors import UserError

SHOP = load_app("shop")
WANTED = SuiteSpecification(apps=("shop",), count=24)
FURTHER = "Please look up what the {product[name]} costs."


def planned(specification: SuiteSpecification, ask: Model | None = None) -> GenerationPlan:
    return asyncio.run(plan(specification, generator("plan", specification.seed), ask))


@cache
def two_of_each_scenario() -> Produced:
    specification = WANTED.model_copy(update={"count": 2 * len(SHOP.scenarios)})
    return produce(specification, planned(specification))


def saying(text: str) -> Model:
    async def ask(*_: object, **__: object) -> Reply:
        return Reply(text=text)

    return ask


def proposing(*scenarios: tuple[str, list[str]]) -> Model:
    return saying(json.dumps({"scenarios": [{"id": s, "goals": goals} for s, goals in scenarios]}))


def test_without_a_model_every_scenario_is_planned_in_a_drawn_order() -> None:
    found = planned(WANTED)
    assert sorted(found.templates) == sorted(("shop", s.id) for s in SHOP.scenarios)
    assert found == planned(WANTED)
    assert found.templates != planned(WANTED.model_copy(update={"seed": 1})).templates
    assert not found.wordings


def test_a_scenario_that_nobody_has_is_a_mistake_that_names_those_there_are() -> None:
    with pytest.raises(UserError, match=r"'haggle'.*cheapest"):
        planned(WANTED.model_copy(update={"scenario": "haggle"}))


def test_a_model_chooses_scenarios_and_words_goals() -> None:
    found = planned(WANTED, proposing(("price", [FURTHER]), ("buy", [])))
    assert sorted(found.templates) == [("shop", "buy"), ("shop", "price")]
    assert found.wordings == {("shop", "price"): (FURTHER,)}
    assert found.dropped == ()


def test_what_a_model_gets_wrong_is_dropped_with_a_reason() -> None:
    reply = proposing(
        ("haggle", ["How much?"]),
        ("price", [FURTHER, FURTHER, "How much is it in all?", SHOP.scenario("price").goals[0]]),
    )
    found = planned(WANTED, reply)
    assert found.wordings == {("shop", "price"): (FURTHER,)}
    assert [(drop.scenario, drop.reason) for drop in found.dropped] == [
        ("haggle", "no such scenario"),
        ("price", "said already"),
        ("price", "other placeholders than the scenario's goal"),
        ("price", "said already"),
    ]


def test_four_wordings_of_a_scenario_are_kept() -> None:
    texts = [f"Please {verb} what the {{product[name]}} costs." for verb in "abcde"]
    found = planned(WANTED, proposing(("price", texts)))
    assert found.wordings == {("shop", "price"): tuple(texts[:4])}
    assert [drop.reason for drop in found.dropped] == ["more than 4"]


def test_tries_of_another_difficulty_count_double_up_to_three() -> None:
    tries = [TriedConfiguration(None, others).weight for others in range(6)]
    assert tries == [n / 12 for n in (1, 1, 2, 4, 4, 4)]
    assert TriedConfiguration(sound("buy"), 0).weight == 1


def test_a_further_wording_is_drawn_as_often_as_one_of_the_scenario_s_own() -> None:
    case, rng = sound("price"), generator("x")
    own = len(SHOP.scenario("price").goals)
    drawn = [refine(case, [FURTHER], rng, noise=number % 2 > 0) for number in range(60)]
    cases = [one for one in drawn if isinstance(one, Case)]
    assert len(cases) == 60
    worded = sum(one.goal.startswith("Please look up") for one in cases)
    assert worded / 60 == pytest.approx(1 / (own + 1), abs=0.12)
    noises = [one.config.noise for one in cases]
    assert not any(noises[::2])
    assert all(1 <= noise < 100 for noise in noises[1::2])


def test_a_level_and_a_vector_are_wanted_together() -> None:
    case = sound("buy")
    other = (case.vector[0] % 3 + 1, *case.vector[1:])
    for level, vector, wanted in (
        (None, None, True),
        (case.level, case.vector, True),
        (case.level % 3 + 1, case.vector, False),
        (case.level, other, False),
    ):
        asked = WANTED.model_copy(update={"level": level, "vector": vector})
        assert asked.wants(case) is wanted


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I would rather not.", "not JSON"),
        ('{"scenarios": "all"}', "not the JSON that was asked for (scenarios)"),
        ('{"scenarios": [{"id": 7}]}', "not the JSON that was asked for (scenarios.0.id)"),
        ('{"a":' * 100_000, "not JSON"),
    ],
)
def test_an_unreadable_reply_leaves_the_templates(text: str, reason: str) -> None:
    found = planned(WANTED, saying(text))
    assert sorted(found.templates) == sorted(planned(WANTED).templates)
    assert [drop.reason for drop in found.dropped] == [reason]


@pytest.mark.parametrize(("finish", "reason"), [("refused", "refused"), ("length", "cut off")])
def test_a_refusal_is_no_reply_that_could_not_be_read(finish: str, reason: str) -> None:
    async def ask(*_: object, **__: object) -> Reply:
        return Reply.model_validate({"text": "{", "finish": finish})

    (dropped,) = planned(WANTED, ask).dropped
    assert dropped.reason.endswith(reason)


def test_a_failed_call_leaves_the_templates_and_says_so() -> None:
    async def ask(*_: object, **__: object) -> Reply:
        raise Refused("not today")

    found = planned(WANTED, ask)
    assert len(found.templates) == len(SHOP.scenarios)
    assert found.dropped[0].reason.startswith("no reply: ")


@pytest.mark.slow
def test_cases_are_spread_over_the_scenarios_and_each_is_checked() -> None:
    cases, tally = two_of_each_scenario()
    assert set(Counter(case.config.scenario for case in cases).values()) == {2}
    bare = [case.model_copy(update={"fewest": None}) for case in cases]
    assert all(check(SHOP, case.config) == case for case in bare)
    assert any(case.fewest and case.fewest < case.shortest for case in cases)
    assert len({case.id for case in cases}) == len(cases)
    assert tally.tried.total() == len(cases) + tally.rejects.total()


def test_one_scenario_s_cases_do_not_depend_on_the_others() -> None:
    alone = WANTED.model_copy(update={"scenario": "price", "count": 2})
    of_all = [c for c in two_of_each_scenario().cases if c.config.scenario == "price"]
    assert list(produce(alone, planned(alone)).cases) == of_all


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("level", [1, 2, 3])
def test_only_cases_of_the_wanted_level_are_produced(level: int) -> None:
    count = repeats(8, 24)
    specification = WANTED.model_copy(update={"level": level, "count": count})
    cases, _ = produce(specification, planned(specification), search=False)
    assert {case.level for case in cases} == {level}
    assert len(cases) == count


def test_a_scenario_of_another_level_is_not_tried() -> None:
    specification = WANTED.model_copy(update={"level": 1, "count": 8})
    steps = planned(specification)
    assert {load_app(app).scenario(name).demand for app, name in steps.templates} == {1}
    assert not produce(specification, steps, search=False).tally.other
    with pytest.raises(UserError, match="no such scenario has this level"):
        planned(specification.model_copy(update={"scenario": "buy"}))


@pytest.mark.slow
def test_a_wording_of_the_model_is_used_and_checked_like_every_other() -> None:
    specification = WANTED.model_copy(update={"scenario": "price"})
    found = GenerationPlan((("shop", "price"),), {("shop", "price"): (FURTHER,)})
    cases, _ = produce(specification, found)
    worded = [case.goal for case in cases if case.goal.startswith("Please look up what the ")]
    assert 0 < len(worded) < len(cases)
    assert all("{" not in case.goal for case in cases)
    leaking = "Is it {product[price]:money} that the {product[name]} costs?"
    case = next(case for case in cases)
    found_leaks = [
        refined
        for n in range(20)
        if isinstance(refined := refine(case, (leaking,), generator("x", n), noise=False), Reject)
    ]
    assert {reject.detail for reject in found_leaks} == {"the goal says the answer"}


def test_noise_is_added_where_it_is_wanted_and_changes_nothing_else() -> None:
    case = check(SHOP, Config(app="shop", scenario="price"))
    assert isinstance(case, Case)
    quiet = refine(case, (), generator("x"), noise=False)
    loud = refine(case, (), generator("x"), noise=True)
    assert quiet == case
    assert isinstance(loud, Case)
    assert noise(loud.config)
    silenced = loud.config.model_copy(update={"noise": 0})
    assert loud.model_copy(update={"config": silenced}) == case


def test_the_five_nearest_vectors_are_named() -> None:
    specification = WANTED.model_copy(update={"vector": (2,) * 7})
    have: list[Vector] = [(2, 2, 2, 2, 2, 2, 1), (2, 2, 2, 2, 2, 2, 3), (3, 3, 1, 2, 2, 2, 2)]
    have += [(1, 1, 1, 1, 2, 2, 2), (1, 1, 1, 1, 1, 2, 2), (1, 1, 1, 1, 1, 1, 2)]
    vectors = Counter({(vector, "shop", f"s{sum(vector)}"): 1 for vector in have})
    produced = Produced((), Tally(Counter(), Counter(), Counter(), vectors))
    assert nearest(specification, produced) == [
        (1, have[0], "shop s13"),
        (1, have[1], "shop s15"),
        (3, have[2], "shop s15"),
        (4, have[3], "shop s10"),
        (5, have[4], "shop s9"),
    ]
