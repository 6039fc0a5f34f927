"""What a run paid, in one sentence."""

from __future__ import annotations

from tests.eval.cases import call, failed, said
from trajudge.eval.reporting.sentences import cost_sentence
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import UnattributedCost
from trajudge.judges.model import Call, Judgment, Status

NOTHING = UnattributedCost()


def sentence(*judgments: Judgment, unattributed: UnattributedCost = NOTHING) -> str:
    scores = score(judgments, {}, rewards={}).model_copy(update={"unattributed_cost": unattributed})
    return cost_sentence(scores)


def judged(task: int, *calls: Call) -> Judgment:
    return said(task, True, calls=calls)


def test_a_request_of_several_judgments_counts_once() -> None:
    shared = call(0.5, request="a" * 64)
    mine, yours = judged(1, shared, call(0.25)), judged(2, shared, call(0.25))
    assert sentence(mine, yours).startswith("Cost: $1.0000, 3 calls, 360 input and 30 output")


def test_calls_whose_request_is_not_known_all_count() -> None:
    """Published judgments do not tell their requests."""
    told = sentence(*(judged(task, call(0.5, request="")) for task in (1, 2, 3)))
    assert told.startswith("Cost: $1.5000, 3 calls, 360 input and 30 output")


def test_what_the_cache_answered_was_not_paid() -> None:
    told = sentence(judged(1, call(0.5, cached=True), call(0.25)))
    assert told.startswith("Cost: $0.2500, 2 calls (1 from the cache, worth $0.5000), ")
    whole = sentence(judged(1, call(0.5, cached=True)))
    assert whole.startswith("Cost: $0.0000, 1 call (1 from the cache, worth $0.5000), ")


def test_a_request_is_paid_if_one_of_its_calls_was() -> None:
    """Its first judgment paid, the second had the reply from the cache."""
    shared = call(0.5, request="a" * 64)
    later = shared.model_copy(update={"cached": True})
    assert sentence(judged(1, later), judged(2, shared)).startswith("Cost: $0.5000, 1 call, ")


def test_calls_of_unknown_price_from_the_cache_have_no_worth() -> None:
    told = sentence(judged(1, call(None, cached=True)))
    assert told.startswith("Cost: $0.0000, 1 call (1 from the cache, of unknown cost), ")
    mixed = judged(1, call(None, cached=True), call(0.5, cached=True), call(0.25), call(None))
    assert sentence(mixed).startswith(
        "Cost: $0.2500 and 1 call of unknown cost, "
        "4 calls (2 from the cache, worth $0.5000, 1 of unknown cost), "
    )
    assert sentence(judged(1, call(None), call(0.5, cached=True))).startswith("Cost: unknown, 2 ")


def test_published_verdicts_do_not_tell_what_they_cost() -> None:
    theirs = said(1, True, judge="verifier@published")
    assert sentence(theirs) == "Cost: unknown (published verdicts do not tell their calls)"
    told = sentence(theirs, judged(1, call(0.5)))
    assert told.startswith("Cost: $0.5000, 1 call, ")
    assert told.endswith(" output tokens; unknown for 1 published judge")


def test_a_model_that_answered_nothing_was_called_all_the_same() -> None:
    assert sentence(failed(1, Status.PROVIDER_ERROR)) == "Cost: $0 (no call was answered)"
    assert sentence(said(1, True)) == "Cost: $0 (no model was called)"


def test_what_no_judgment_holds_comes_on_top() -> None:
    told = sentence(judged(1, call(0.5)), unattributed=UnattributedCost(dollars=0.25))
    assert told.endswith(
        "; $0.2500 more for failed attempts, repeated requests and replies that no judgment holds"
    )


def test_what_nobody_knows_is_told_as_unknown() -> None:
    judgment = judged(1, call(0.5))
    told = sentence(judgment, unattributed=UnattributedCost(dollars=0.25, unpriced=2))
    assert "; $0.2500 and 2 calls of unknown cost more for failed attempts" in told
    told = sentence(judgment, unattributed=UnattributedCost(unpriced=1))
    assert "; 1 call of unknown cost more for failed attempts" in told


def test_calls_that_were_cheaper_in_batches_cost_what_was_paid() -> None:
    told = sentence(judged(1, call(0.5)), unattributed=UnattributedCost(rebate=0.25))
    assert told.startswith("Cost: $0.2500, 1 call, ")
