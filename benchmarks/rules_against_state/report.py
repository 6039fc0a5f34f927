"""Agreement of rules with the state: rates by kind of check, causes of differences, tables.

Runs of one case share its data and its wording, so intervals are clustered by case, within
applications. Runs with a debatable truth are excluded, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.rules_against_state.comparing import KINDS, MODES, WHOLE, RunComparison
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.stats.intervals import rates_by_cluster
from trajudge.util.tables import Table


def report(comparisons: Iterable[RunComparison]) -> dict[str, Any]:
    """Return rates, causes of differences and every difference, as JSON."""
    kept = list(comparisons)
    apart = [one for one in kept if one.differs]
    return {
        "runs": len({one.run.key for one in kept}),
        "cases": len({one.run.case.id for one in kept}),
        "applications": len({one.run.case.config.app for one in kept}),
        "agreement": [
            _agreement(kind, mode, some)
            for kind in KINDS
            for mode in MODES
            if (some := [one for one in kept if (one.kind, one.mode) == (kind, mode)])
        ],
        "causes": _causes(apart),
        "side_effects": _side_effects(kept),
        "unreported": _unreported(kept),
        "differences": [_difference(one) for one in apart],
    }


def _agreement(kind: str, mode: Mode, some: Sequence[RunComparison]) -> dict[str, Any]:
    """Return the rates of one kind of check in one mode. Of the ``runs`` with a known truth,
    ``unknown`` are those without a decision of the rule."""
    known = [one for one in some if one.truth is not None]
    succeeded = [one for one in known if one.truth]
    return {
        "kind": kind,
        "mode": mode.value,
        "runs": len(known),
        "left_out": len(some) - len(known),
        "unknown": sum(one.outcome is Outcome.UNKNOWN for one in known),
        "false_accepts": _rate([one for one in known if not one.truth], _accepts),
        "false_rejects": _rate(succeeded, lambda one: one.outcome is Outcome.FAIL),
        "precision": _rate([one for one in known if _accepts(one)], lambda one: bool(one.truth)),
        "recall": _rate(succeeded, _accepts),
    }


def _accepts(one: RunComparison) -> bool:
    return one.outcome is Outcome.PASS


def _rate(some: Sequence[RunComparison], test: Callable[[RunComparison], bool]) -> dict[str, Any]:
    """Return the share of comparisons that pass the test with a 95 % interval, clustered by case
    within application; None where there is nothing to count."""
    if not some:
        return {"hits": 0, "trials": 0, "low": None, "high": None, "shown": "-"}
    hits = np.array([test(one) for one in some], dtype=float)
    numbers = {case: at for at, case in enumerate(dict.fromkeys(one.run.case.id for one in some))}
    rates = rates_by_cluster(
        hits[:, None],
        np.ones((len(some), 1)),
        np.array([numbers[one.run.case.id] for one in some]),
        np.array([one.run.case.config.app for one in some]),
    ).interval
    ends = [None if np.isnan(end) else float(end) for end in (rates.low[0], rates.high[0])]
    shown = f"{100 * hits.mean():.2f}"
    if None not in ends:
        shown += f" [{100 * rates.low[0]:.2f}, {100 * rates.high[0]:.2f}]"
    low, high = ends
    counts = {"hits": int(hits.sum()), "trials": len(some)}
    return {**counts, "low": low, "high": high, "shown": shown}


def _causes(apart: Sequence[RunComparison]) -> list[dict[str, Any]]:
    """Count the runs of each cause by kind of check and mode, the most frequent causes first."""
    counted: dict[tuple[str, bool, str], Counter[str]] = {}
    for one in apart:
        row = counted.setdefault((one.kind, _accepts(one), cause(one)), Counter())
        row[one.mode.value] += 1
    ranked = sorted(counted.items(), key=lambda entry: -max(entry[1].values()))
    return [
        {"kind": kind, "accepts": accepts, "because": because, "runs": dict(runs)}
        for (kind, accepts, because), runs in ranked
    ]


def cause(one: RunComparison) -> str:
    """Return the cause of a difference in a few words that stand for many runs; the rule's own
    reason where none is known."""
    return _accepted(one) if _accepts(one) else _rejected(one)


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


def _side_effects(kept: Sequence[RunComparison]) -> list[dict[str, Any]]:
    """Count the runs that did what was asked and something else besides: rules ask for what must
    be there, and pass them."""
    counted: dict[tuple[str, str], Counter[bool]] = {}
    for one in kept:
        if one.run.success and one.run.side_effect:
            row = counted.setdefault((one.kind, one.mode.value), Counter())
            row[_accepts(one)] += 1
    return [
        {"kind": kind, "mode": mode, "runs": row.total(), "accepted": row[True]}
        for (kind, mode), row in counted.items()
    ]


def _unreported(kept: Sequence[RunComparison]) -> dict[str, int]:
    """Count the runs that succeeded without a message, and of these the ones that the whole of the
    sound rules rejects, for want of a response."""
    whole = [one for one in kept if (one.kind, one.mode) == (WHOLE, Mode.SOUND)]
    some = [one for one in whole if one.run.unreported]
    return {"runs": len(some), "rejected": sum(one.outcome is Outcome.FAIL for one in some)}


def _difference(one: RunComparison) -> dict[str, Any]:
    return {
        "key": one.run.key.model_dump(),
        "scenario": f"{one.run.case.config.app}.{one.run.case.config.scenario}",
        "kind": one.kind,
        "mode": one.mode.value,
        "rule": one.outcome.value,
        "state": one.truth,
        "because": cause(one),
        "message": (one.run.message or "")[:300],
        "reasons": list(one.reasons),
        "answers": one.run.facts["answers"],
        "predicates": one.run.facts["predicates"],
    }


def tables(content: dict[str, Any]) -> list[Table]:
    """Return errors, causes of differences, runs with a side effect, as far as there are any."""
    errors = [
        (
            *(row["kind"], row["mode"]),
            *(str(row["false_accepts"]["trials"]), row["false_accepts"]["shown"]),
            *(str(row["false_rejects"]["trials"]), row["false_rejects"]["shown"]),
        )
        for row in content["agreement"]
    ]
    causes = [
        (
            *(row["kind"], "accepts" if row["accepts"] else "rejects", row["because"]),
            *(str(row["runs"].get(mode.value, "")) for mode in MODES),
        )
        for row in content["causes"]
    ]
    beside = [
        (row["kind"], row["mode"], str(row["runs"]), str(row["accepted"]))
        for row in content["side_effects"]
    ]
    of_errors = ("kind of check", "mode", "failed", "accepted [%]", "succeeded", "rejected [%]")
    of_causes = ("kind of check", "the rule", "because", *(mode.value for mode in MODES))
    of_side_effects = ("kind of check", "mode", "runs", "accepted")
    made = [
        Table("Rules against the state", of_errors, errors),
        Table("Where they differ", of_causes, causes, names=3),
        Table("Successful runs with a side effect", of_side_effects, beside),
    ]
    return [table for table in made if table.rows]
