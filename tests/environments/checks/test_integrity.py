"""Every broken promise of a configuration is a reject with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.environments.cases import half_done
from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import Reject, check
from trajudge.environments.model import page as parts
from trajudge.environments.model.axes import open_state
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.plan import follow, press
from trajudge.environments.model.schema import table
from trajudge.environments.model.spec import (
    AnswerSpec,
    App,
    ChoiceSlot,
    Derive,
    Expect,
    FormSubmission,
    Number,
    Operation,
    PageContext,
    Pick,
    Rejected,
    Scenario,
    Success,
)
from trajudge.environments.model.state import Rows, digest, token

SHOP = load_app("shop")
MUGS = ("Oak", "Slate", "Wool", "Cork", "Glass", "Linen")
ANY = Pick("SELECT * FROM mug ORDER BY id")


def _profile(_: np.random.Generator, index: int) -> Rows:
    rows = [(token("mug", name), name, 500 + 137 * n, "red") for n, name in enumerate(MUGS)]
    return {"mug": rows[: 0 if index == 11 else 1 if index == 10 else 6], "log": []}


def _home(view: PageContext) -> Page:
    rows = view.state.rows("SELECT * FROM mug ORDER BY name")
    links = tuple(parts.ListRow(parts.Link(row["name"], "mug", {"id": row["id"]})) for row in rows)
    return Page("Home", (parts.ItemList(("Mug",), links),))


def _mug(view: PageContext) -> Page:
    mug = view.state.row("mug", view.args["id"])
    price = f"${mug['price'] / 100:.2f}"
    take = parts.Form(Word("take"), operation="take", hidden={"mug": mug["id"]})
    logged = view.state.rows("SELECT * FROM log")
    codes = tuple(parts.Paragraph(view.code("log", row["id"])) for row in logged)
    return Page(
        mug["name"],
        (parts.DefinitionList((("Price", price), ("Colour", mug["colour"]))), take, *codes),
    )


def _take(call: FormSubmission) -> Success | Rejected:
    call.state.add("log", id=call.state.token("log"), mug=call.form["mug"])
    return Success("mug", {"id": call.form["mug"]})


PRICE = Scenario(
    "price",
    ("What does the {mug[name]} mug cost?",),
    {"mug": ANY},
    lambda b: [follow(b["mug"]["name"], "open it")],
    ("{answer}",),
    (AnswerSpec("money", "SELECT price FROM mug WHERE id = :mug"),),
)
TAKE = Scenario(
    "take",
    ("Take the {mug[name]} mug.",),
    {"mug": ANY},
    lambda b: [follow(b["mug"]["name"], "open it"), press(Word("take"), "take it")],
    ("{code}",),
    (AnswerSpec("code", "log"),),
    (Expect("added", "log", {"mug": "{mug}"}),),
)


def checked(scenario: Scenario, config: Config | None = None, **changes: object) -> Case | Reject:
    app = App(
        id="shelf",
        domain="tool-use",
        title="Shelf",
        tables=(
            table("mug", id="token", name="text", price="money", colour="text"),
            table("log", id="token", mug="ref"),
        ),
        profile=_profile,
        pages={"home": _home, "mug": _mug},
        operations={"take": Operation(_take)},
        navigation=(parts.Link(Word("home"), "home"),),
        scenarios=(scenario,),
        words={"take": ("Take", "Grab")},
    )
    return check(
        replace(app, **changes),  # type: ignore[arg-type]
        config or Config(app="shelf", scenario=scenario.id),
    )


def test_a_fair_task_is_a_case() -> None:
    case = checked(PRICE)
    assert isinstance(case, Case)
    assert case.goal.startswith("What does the ")
    assert (case.domain, case.shortest, case.level) == ("tool-use", 2, 1)
    assert isinstance(checked(TAKE), Case)


COLOURS = "SELECT colour FROM mug"
RED = Derive("SELECT * FROM mug WHERE colour = 'red'")
COLOUR = replace(
    PRICE,
    goals=("What colour is the {mug[name]} mug?",),
    answers=(
        AnswerSpec(
            "text", "SELECT colour FROM mug WHERE id = :mug", among="SELECT colour FROM mug"
        ),
    ),
)


def _asks(sql: str, kind: str = "money", **changes: object) -> Scenario:
    return replace(PRICE, answers=(AnswerSpec(kind, sql),), **changes)  # type: ignore[arg-type]


FAULTS: tuple[tuple[str, str, Scenario], ...] = (
    ("feasible", "has no answer", _asks("SELECT price FROM mug WHERE id = 'x' AND :mug")),
    ("feasible", "has no answer", _asks("SELECT sum(price) FROM mug WHERE id = 'x' AND :mug")),
    ("feasible", "lost", replace(PRICE, plan=lambda _: [follow("Nowhere", "go")])),
    ("feasible", "more than 50", replace(PRICE, plan=lambda _: [follow(Word("home"), "go")] * 51)),
    ("feasible", "does not do: added log: mug = {mug}", replace(TAKE, plan=PRICE.plan)),
    ("feasible", "side effect on table log", replace(PRICE, plan=TAKE.plan)),
    ("coherent", "asks for nothing", replace(PRICE, answers=())),
    ("coherent", "which is no slot", replace(PRICE, goals=("What is {this}?",))),
    ("coherent", "not filled", replace(PRICE, goals=("What is {}?",))),
    ("coherent", "a reply names", replace(PRICE, replies=("{that}",))),
    ("coherent", "no wording", replace(PRICE, plan=lambda _: [follow(Word("unheard"), "go")])),
    ("coherent", "the charts", replace(PRICE, charts=1)),
    ("unique", "6 answers", _asks("SELECT price FROM mug WHERE :mug <> ''")),
    ("unique", "a tie", replace(PRICE, slots={"mug": ANY, "red": RED})),
    ("distinct", "slot size", replace(PRICE, slots={"mug": ANY, "size": Number(1, 3)})),
    ("distinct", "slot mug", COLOUR),
    ("leak-free", "the goal", replace(PRICE, goals=("Is {mug[price]:money} its price?",))),
)  # fmt: skip


@pytest.mark.parametrize(("reason", "detail", "scenario"), FAULTS, ids=lambda part: str(part)[:40])
def test_every_fault_has_its_reason(reason: str, detail: str, scenario: Scenario) -> None:
    found = checked(scenario)
    assert isinstance(found, Reject)
    assert found.reason == reason
    assert detail in found.detail


def test_nothing_may_be_the_answer() -> None:
    some = replace(
        _asks("SELECT CASE :size WHEN 'small' THEN 0 ELSE 7 END", "number"),
        slots={"size": ChoiceSlot(("small", "large"))},
        goals=("How many {size} mugs were broken?",),
        plan=lambda _: [follow("Oak", "open it")],
    )
    configs = [Config(app="shelf", scenario="price", instance=n) for n in range(20)]
    found = [checked(some, config) for config in configs]
    details = {one.detail if isinstance(one, Reject) else "fair" for one in found}
    assert details == {"fair", "the answer is '0' for everybody"}


def test_a_slot_needs_two_candidates() -> None:
    for profile, detail in ((10, "slot mug: a single candidate"), (11, "slot mug: no candidate")):
        config = Config(app="shelf", scenario="price", profile=profile)
        assert checked(PRICE, config) == Reject(reason="feasible", detail=detail)


def test_an_answer_that_most_rows_share_is_for_everybody() -> None:
    def mostly_red(rng: np.random.Generator, index: int) -> Rows:
        rows = [
            (*row[:3], "blue" if n < 2 else "red")
            for n, row in enumerate(_profile(rng, index)["mug"])
        ]
        return {"mug": rows}

    configs = [Config(app="shelf", scenario="price", instance=n) for n in range(20)]
    found = [checked(COLOUR, config, profile=mostly_red) for config in configs]
    assert {one.reason if isinstance(one, Reject) else "fair" for one in found} == {
        "non-trivial",
        "fair",
    }


def test_a_refused_plan_is_not_feasible_and_leaves_nothing_behind() -> None:
    found = checked(TAKE, operations={"take": Operation(half_done(_take))})
    assert isinstance(found, Reject)
    assert (found.reason, "refused" in found.detail) == ("feasible", True)


def test_a_start_page_that_says_the_answer_alone_leaks_it() -> None:
    def open_home(view: PageContext) -> Page:
        page = _home(view)
        (mug,) = view.state.rows("SELECT price FROM mug ORDER BY id LIMIT 1")
        return page._replace(blocks=(parts.Paragraph(f"From ${mug[0] / 100:.2f}"), *page.blocks))

    configs = [Config(app="shelf", scenario="price", instance=n) for n in range(20)]
    found = [checked(PRICE, config, pages={"home": open_home, "mug": _mug}) for config in configs]
    reasons = [one.detail for one in found if isinstance(one, Reject)]
    assert reasons
    assert all(reason.startswith("the start page") for reason in reasons)


def test_an_address_that_says_the_answer_leaks_it() -> None:
    def home(view: PageContext) -> Page:
        rows = view.state.rows("SELECT * FROM mug ORDER BY name")
        links = tuple(
            parts.ListRow(
                parts.Link(
                    row["name"], "mug", {"id": row["id"], "price": f"${row['price'] / 100:.2f}"}
                )
            )
            for row in rows
        )
        return Page("Home", (parts.ItemList(("Mug",), links),))

    found = checked(PRICE, pages={"home": home, "mug": _mug})
    assert found == Reject(reason="leak-free", detail="an address says the answer")


def test_keys_that_sort_by_a_value_leak_it() -> None:
    def sorted_keys(_: np.random.Generator, __: int) -> Rows:
        return {"mug": [(f"m{n}", f"{n} Mug", 500 + n, "red") for n in range(8)]}

    found = checked(PRICE, profile=sorted_keys)
    assert found == Reject(reason="leak-free", detail="the keys of mug sort by price")


def test_a_page_that_says_it_went_wrong_stops_the_plan() -> None:
    def sorry(view: PageContext) -> Page:
        page = _mug(view)
        return page._replace(blocks=(parts.Notice("Out of order.", error=True), *page.blocks))

    found = checked(PRICE, pages={"home": _home, "mug": sorry})
    assert isinstance(found, Reject)
    assert found.reason == "feasible"


@pytest.fixture
def configs() -> Iterator[list[Config]]:
    yield [
        Config(app="shop", scenario=scenario.id, instance=n, profile=n % 12, ui=n % 12)
        for scenario in SHOP.scenarios
        for n in range(4)
    ]


def test_checks_neither_disturb_each_other_nor_the_profile(configs: list[Config]) -> None:
    before = digest(open_state(SHOP, configs[0]).dump())
    first = [check(SHOP, config) for config in configs]
    again = [check(SHOP, config) for config in reversed(configs)]
    assert first == again[::-1]
    assert digest(open_state(SHOP, configs[0]).dump()) == before


def test_the_shop_s_scenarios_all_give_cases(configs: list[Config]) -> None:
    found = [check(SHOP, config) for config in configs]
    fair = {case.config.scenario for case in found if isinstance(case, Case)}
    assert fair == {scenario.id for scenario in SHOP.scenarios}
