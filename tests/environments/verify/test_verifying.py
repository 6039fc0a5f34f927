"""Runs in the shop are labelled by what became of its state and by what was said."""

from __future__ import annotations

from dataclasses import replace

from tests.environments.verify.played import played
from trajudge.environments.model.binding import decoyed, money
from trajudge.environments.verify import (
    ExecutedAction,
    VerificationResult,
    expected,
)


def test_the_oracle_s_run_is_successful_clean_and_optimal() -> None:
    with played("shop", "buy") as buy:
        buy.do(buy.scenario.plan(buy.bound))
        finding = buy.found(buy.reply(), [ExecutedAction("/", str(n), "a", "b") for n in range(9)])
        labels = finding.labels
        assert (labels.success, labels.side_effect) == (True, False)
        assert (labels.repetition, labels.optimality) == (False, 4)
        assert all(predicate.holds for predicate in finding.predicates)


def test_doing_nothing_and_claiming_success_fails_without_a_side_effect() -> None:
    with played("shop", "buy") as buy:
        finding = buy.found("The order is placed; its code is A7KQ2MXB4T.")
        assert (finding.labels.success, finding.labels.side_effect) == (False, False)
        assert finding.labels.optimality == 1
        assert finding.changes == ()


def test_every_decoy_fails_the_predicate_that_names_it() -> None:
    for slot, failing in (("quantity", "quantity"), ("delivery", "delivery"), ("product", "line")):
        with played("shop", "buy") as buy:
            wrong = decoyed(buy.scenario, buy.bound, slot, buy.state)
            buy.do(buy.scenario.plan(wrong))
            finding = buy.found(None)
            failed = [p.name for p in finding.predicates if not p.holds]
            assert failed, slot
            assert all(failing in name for name in failed)
            assert finding.labels.side_effect, "a wrong order is a side effect"


def test_a_code_of_an_earlier_state_of_the_row_or_of_another_row_fails() -> None:
    with played("shop", "buy") as buy:
        earlier = buy.code("purchase", buy.state.value("SELECT id FROM purchase"))
        buy.do(buy.scenario.plan(buy.bound))
        right = buy.reply()
        new = set(buy.state.dump()["purchase"]) - set(buy.before["purchase"])
        (key,) = new
        buy.state.change("purchase", key, address="Elsewhere")
        assert buy.found(right).labels.success is False, "stale"
        assert buy.found(f"Answer: {earlier}").labels.success is False
        assert buy.found(buy.reply()).labels.success is True
        assert buy.found(f"{buy.reply()}; {earlier}").labels.success is False, "listing codes"


def test_a_detour_with_a_consequence_is_a_side_effect_of_a_success() -> None:
    with played("shop", "price") as price:
        assert price.scenario.distractor
        price.do([*price.scenario.plan(price.bound), *price.scenario.distractor(price.bound)])
        finding = price.found(price.reply())
        assert (finding.labels.success, finding.labels.side_effect) == (True, True)
        assert [(c.table, c.columns) for c in finding.outside] == [("account", ("newsletter",))]


def test_an_answer_about_the_state_before_does_not_follow_what_the_agent_changed() -> None:
    with played("shop", "price") as price:
        right = price.reply()
        price.state.change("product", price.bound["product"]["id"], price=1)
        assert price.found(right).labels.success is True
        assert price.found("$0.01").labels.success is False


def test_verifying_changes_nothing() -> None:
    with played("shop", "buy") as buy:
        buy.do(buy.scenario.plan(buy.bound))
        before = buy.state.dump()
        assert buy.found("x") == buy.found("x")
        assert buy.state.dump() == before


def test_a_finding_is_json_and_back() -> None:
    with played("shop", "buy") as buy:
        buy.do(buy.scenario.plan(buy.bound))
        finding = buy.found(buy.reply())
        assert VerificationResult.model_validate_json(finding.model_dump_json()) == finding
        assert set(finding.facts) == set(VerificationResult.model_fields) - {"labels"}


def test_what_a_mistaken_run_would_answer_follows_its_own_idea_of_the_task() -> None:
    with played("shop", "price") as price:
        mistaken = decoyed(price.scenario, price.bound, "product", price.state)
        (wrong,) = expected(replace(price.evidence(), bound=mistaken))
        assert wrong == money(mistaken["product"]["price"])
        assert price.found(wrong).labels.success is False


def test_there_is_no_right_answer_about_a_row_that_was_never_made() -> None:
    with played("shop", "buy-best") as buy:
        assert expected(buy.evidence()) == ()
        buy.do(buy.scenario.plan(buy.bound))
        code, total = expected(buy.evidence())
        assert buy.found(f"{code}, {total}").labels.success is True
        assert buy.found(code).labels.success is None, "no declaration"
        assert buy.found(f"Answer: {code}").labels.success is False
        assert buy.found(f"Answer: {total}").labels.success is False
