"""Runs in the shop are labelled by what became of its state and by what was said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

from trajudge.environments.apps import load_app
from trajudge.environments.checks.walk import Walk
from trajudge.environments.model.axes import instance, open_state, ui
from trajudge.environments.model.binding import Infeasible, bind, decoyed, filled, money
from trajudge.environments.model.config import Config
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import Bound, Scenario
from trajudge.environments.model.state import AppState, Dump, difference
from trajudge.environments.verify import (
    ExecutedAction,
    RunEvidence,
    VerificationResult,
    expected,
    verify,
)
from trajudge.environments.verify.frame import report_changes
from trajudge.environments.verify.truth import reply
from trajudge.environments.verify.verifying import right_answers

SHOP = load_app("shop")


class Run(NamedTuple):
    scenario: Scenario
    bound: Bound
    state: AppState
    before: Dump
    walk: Walk

    def code(self, table: str, key: str) -> str:
        row = repr(tuple(self.state.row(table, key)))
        return sha256(row.encode()).hexdigest()[:10].upper()

    def do(self, moves: Sequence[PlanStep]) -> None:
        for move in moves:
            self.walk.do(move)

    def found(
        self, answer: str | None, actions: Sequence[ExecutedAction] = ()
    ) -> VerificationResult:
        goal = filled(self.scenario.goals[0], self.bound)
        return verify(self.evidence(goal=goal, answer=answer, actions=actions, shortest=9))

    def evidence(self, **more: Any) -> RunEvidence:
        state = (self.scenario, self.bound, self.before, self.state)
        return RunEvidence(*state, self.code, **more)

    def reply(self) -> str:
        reading = report_changes(
            self.scenario, self.bound, difference(self.before, self.state.dump())
        )
        right = right_answers(self.evidence(), reading)
        return reply(self.scenario.replies[0], self.bound, right)


@contextmanager
def run(name: str) -> Iterator[Run]:
    config = Config(app="shop", scenario=name, profile=3)
    scenario, state = SHOP.scenario(name), open_state(SHOP, config)
    bound = _bound(scenario, state)
    walk = Walk(Site(SHOP, state, ui(SHOP, 0, 0)))
    walk.open("home", {})
    yield Run(scenario, bound, state, state.dump(), walk)
    state.close()


def _bound(scenario: Scenario, state: AppState) -> Bound:
    for index in range(50):
        try:
            return bind(
                scenario, instance("shop", scenario.id, tuple(scenario.slots), index, 0), state
            )
        except Infeasible:
            continue
    raise AssertionError("no feasible instance")


def test_the_oracle_s_run_is_successful_clean_and_optimal() -> None:
    with run("buy") as buy:
        buy.do(buy.scenario.plan(buy.bound))
        finding = buy.found(buy.reply(), [ExecutedAction("/", str(n), "a", "b") for n in range(9)])
        labels = finding.labels
        assert (labels.success, labels.side_effect) == (True, False)
        assert (labels.repetition, labels.optimality) == (False, 4)
        assert all(predicate.holds for predicate in finding.predicates)


def test_doing_nothing_and_claiming_success_fails_without_a_side_effect() -> None:
    with run("buy") as buy:
        finding = buy.found("The order is placed; its code is A7KQ2MXB4T.")
        assert (finding.labels.success, finding.labels.side_effect) == (False, False)
        assert finding.labels.optimality == 1
        assert finding.changes == ()


def test_every_decoy_fails_the_predicate_that_names_it() -> None:
    for slot, failing in (("quantity", "quantity"), ("delivery", "delivery"), ("product", "line")):
        with run("buy") as buy:
            wrong = decoyed(buy.scenario, buy.bound, slot, buy.state)
            buy.do(buy.scenario.plan(wrong))
            finding = buy.found(None)
            failed = [p.name for p in finding.predicates if not p.holds]
            assert failed, slot
            assert all(failing in name for name in failed)
            assert finding.labels.side_effect, "a wrong order is a side effect"


def test_a_code_of_an_earlier_state_of_the_row_or_of_another_row_fails() -> None:
    with run("buy") as buy:
        earlier = buy.code("purchase", buy.state.value("SELECT id FROM purchase"))
        buy.do(buy.scenario.plan(buy.bound))
        right = buy.reply()
        new = set(buy.state.dump()["purchase"]) - set(buy.before["purchase"])
        (key,) = new
        buy.state.change("purchase", key, address="Elsewhere")
        assert buy.found(right).labels.success is False, "stale"
        assert buy.found(f"The code is {earlier}.").labels.success is False
        assert buy.found(buy.reply()).labels.success is True
        assert buy.found(f"{buy.reply()} {earlier}").labels.success is False, "listing codes"


def test_a_detour_with_a_consequence_is_a_side_effect_of_a_success() -> None:
    with run("price") as price:
        assert price.scenario.distractor
        price.do([*price.scenario.plan(price.bound), *price.scenario.distractor(price.bound)])
        finding = price.found(price.reply())
        assert (finding.labels.success, finding.labels.side_effect) == (True, True)
        assert [(c.table, c.columns) for c in finding.outside] == [("account", ("newsletter",))]


def test_an_answer_about_the_state_before_does_not_follow_what_the_agent_changed() -> None:
    with run("price") as price:
        right = price.reply()
        price.state.change("product", price.bound["product"]["id"], price=1)
        assert price.found(right).labels.success is True
        assert price.found("$0.01").labels.success is False


def test_verifying_changes_nothing() -> None:
    with run("buy") as buy:
        buy.do(buy.scenario.plan(buy.bound))
        before = buy.state.dump()
        assert buy.found("x") == buy.found("x")
        assert buy.state.dump() == before


def test_a_finding_is_json_and_back() -> None:
    with run("buy") as buy:
        buy.do(buy.scenario.plan(buy.bound))
        finding = buy.found(buy.reply())
        assert VerificationResult.model_validate_json(finding.model_dump_json()) == finding
        assert set(finding.facts) == set(VerificationResult.model_fields) - {"labels"}


def test_what_a_mistaken_run_would_answer_follows_its_own_idea_of_the_task() -> None:
    with run("price") as price:
        mistaken = decoyed(price.scenario, price.bound, "product", price.state)
        (wrong,) = expected(replace(price.evidence(), bound=mistaken))
        assert wrong == money(mistaken["product"]["price"])
        assert price.found(wrong).labels.success is False


def test_there_is_no_right_answer_about_a_row_that_was_never_made() -> None:
    with run("buy-best") as buy:
        assert expected(buy.evidence()) == ()
        buy.do(buy.scenario.plan(buy.bound))
        code, total = expected(buy.evidence())
        assert buy.found(f"{code}, {total}").labels.success is True
        assert buy.found(code).labels.success is False
        assert buy.found(total).labels.success is False
