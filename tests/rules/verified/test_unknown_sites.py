"""Where a site is that nobody named: told by its own port alone, else unknown."""

from __future__ import annotations

import pytest

from tests.rules.verified.tasks import answer, navigation, page, task, trace
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator

CART = navigation({"expected": {"url": "__SHOPPING__/cart"}})
NAVIGATED = answer(task_type="navigate")


@pytest.mark.parametrize(
    ("base", "outcome"),
    [
        ("http://anywhere.example:7770", Outcome.PASS),
        ("http://foreign.example", Outcome.UNKNOWN),
        ("http://foreign.example:7780", Outcome.UNKNOWN),
        ("__SHOPPING__", Outcome.PASS),
    ],
)
def test_a_site_is_not_the_first_that_the_trace_holds(base: str, outcome: Outcome) -> None:
    found = VerifiedEvaluator().evaluate(CART, NAVIGATED, trace(page("/cart", base=base)))
    assert found.outcome is outcome
    if outcome is Outcome.UNKNOWN:
        assert "give --site shopping=URL" in found.reasons[0]
    assert bool(found.notes) is base.endswith(":7770")


def test_two_hosts_on_a_sites_port_are_no_evidence_of_it() -> None:
    both = trace(*(page("/cart", base=f"http://{name}.example:7770") for name in ("a", "b")))
    assert VerifiedEvaluator().evaluate(CART, NAVIGATED, both).outcome is Outcome.UNKNOWN
    given = VerifiedEvaluator(hosts={"__SHOPPING__": ("http://a.example:7770",)})
    assert given.evaluate(CART, NAVIGATED, both).outcome is Outcome.FAIL


def test_an_address_in_an_answer_is_unknown_with_its_site_and_the_rest_decides() -> None:
    what = task(
        ["__SHOPPING__/tea"], {"type": "array", "items": {"type": "string", "format": "url"}}
    )
    there = trace(page("/", base="http://foreign.example"))
    said = answer(["http://foreign.example/tea"])
    assert VerifiedEvaluator().evaluate(what, said, there).outcome is Outcome.UNKNOWN
    assert VerifiedEvaluator().evaluate(what, said, None).outcome is Outcome.UNKNOWN
    wrong = answer(["http://foreign.example/tea"], status="NOT_FOUND_ERROR")
    assert VerifiedEvaluator().evaluate(what, wrong, there).outcome is Outcome.FAIL
    known = VerifiedEvaluator(hosts={"__SHOPPING__": ("http://foreign.example",)})
    assert known.evaluate(what, said, None).outcome is Outcome.PASS


def test_activity_on_a_site_that_nobody_told_is_unknown() -> None:
    there = trace(page("/", base="http://foreign.example"))
    verdict = VerifiedEvaluator(activity=True).evaluate(task(["a"]), answer(["a"]), there)
    assert verdict.outcome is Outcome.UNKNOWN
