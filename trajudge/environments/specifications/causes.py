"""Why a rule and the state differ on a run, in a few words that stand for many runs."""

from __future__ import annotations

from trajudge.environments.specifications.comparing import KINDS, RunComparison
from trajudge.rules.verdict import Outcome


def cause(one: RunComparison) -> str:
    """Return the cause of a difference; the rule's own reason where none is known."""
    return _accepted(one) if one.outcome is Outcome.PASS else _rejected(one)


def _accepted(one: RunComparison) -> str:
    wrong = [fact for fact in one.run.facts["answers"] if fact["right"] is False]
    broken = [fact for fact in one.run.facts["predicates"] if not fact["holds"]]
    if KINDS[one.kind].beforehand:
        return "a code is known by its shape alone"
    if broken and "network" in one.kind:
        more = any(fact["found"] > fact["wanted"] for fact in broken)
        return "done more often than asked" if more else "undone or overwritten afterwards"
    if wrong:
        return f"within the rule's tolerance ({wrong[0]['kind']})"
    return "unexplained"


def _rejected(one: RunComparison) -> str:
    failed = next((reason.partition(":")[0] for reason in one.reasons), "")
    if failed.startswith("network") and failed.endswith(".url"):
        return "done by other requests"
    if failed.startswith("network"):
        return "the last such request was another"
    if failed.startswith("answer"):
        # The rule knows the oracle's order, not the one that the run placed in its stead.
        own = any(not fact["holds"] for fact in one.run.facts["predicates"])
        return "the answer is about what the run did instead" if own else "read otherwise"
    return f"unexplained: {failed}"
