"""What a comparison of rules with the state found: for a file, and on one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from trajudge.environments.specifications.agreement import Agreement, RateOf, agreements
from trajudge.environments.specifications.causes import cause
from trajudge.environments.specifications.comparing import MODES, RunComparison
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.util.tables import Table, first_screen

_ERRORS = ("kind of check", "mode", "failed", "accepted [95 %]", "succeeded", "rejected [95 %]")
_RATES = ("kind of check", "mode", "precision [95 %]", "recall [95 %]", "unknown", "left out")
_BESIDE = ("kind of check", "mode", "runs", "accepted")
WHOLE = "answer + network + state"
_SHORT = {
    "answer, shape of a code": "code by shape",
    "answer with a code": "answer (code)",
    "network, last only": "last request",
    "answer + network": "answer+network",
    WHOLE: "all three",
    Mode.RELEASE.value: "release",
}


def report(comparisons: Iterable[RunComparison]) -> dict[str, Any]:
    """Return rates, causes of differences and every difference, as JSON."""
    kept = list(comparisons)
    apart = [one for one in kept if one.differs]
    return {
        "runs": len({one.run.key for one in kept}),
        "cases": len({one.run.case.id for one in kept}),
        "applications": len({one.run.case.config.app for one in kept}),
        "agreement": [_record(row) for row in agreements(kept)],
        "causes": _causes(apart),
        "side_effects": _side_effects(kept),
        "unreported": _unreported(kept),
        "differences": [_difference(one) for one in apart],
    }


def _record(row: Agreement) -> dict[str, Any]:
    parts = row._asdict()
    rates = {
        name: {**part._asdict(), "shown": str(part)}
        for name, part in parts.items()
        if isinstance(part, RateOf)
    }
    return {**parts, "mode": row.mode.value, **rates}


def _causes(apart: Sequence[RunComparison]) -> list[dict[str, Any]]:
    """Count the runs of each cause by kind of check and mode, the most frequent causes first."""
    counted: dict[tuple[str, bool, str], Counter[str]] = {}
    for one in apart:
        row = counted.setdefault((one.kind, one.outcome is Outcome.PASS, cause(one)), Counter())
        row[one.mode.value] += 1
    ranked = sorted(counted.items(), key=lambda entry: -max(entry[1].values()))
    return [
        {"kind": kind, "accepts": accepts, "because": because, "runs": dict(runs)}
        for (kind, accepts, because), runs in ranked
    ]


def _side_effects(kept: Sequence[RunComparison]) -> list[dict[str, Any]]:
    """Count the runs that did what was asked and something else besides: rules ask for what must
    be there, and pass them."""
    counted: dict[tuple[str, str], Counter[bool]] = {}
    for one in kept:
        if one.run.success and one.run.side_effect:
            row = counted.setdefault((one.kind, one.mode.value), Counter())
            row[one.outcome is Outcome.PASS] += 1
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
    """Return errors, causes of differences, precision and recall, runs with a side effect, as far
    as there are any."""
    rows = content["agreement"]
    errors = _errors(rows, lambda name: name, lambda rate: str(rate["shown"]))
    rates = [
        (
            *(row["kind"], row["mode"], row["precision"]["shown"], row["recall"]["shown"]),
            *(str(row["unknown"]), str(row["left_out"])),
        )
        for row in rows
    ]
    beside = [
        (row["kind"], row["mode"], str(row["runs"]), str(row["accepted"]))
        for row in content["side_effects"]
    ]
    made = [
        Table("Rules against the state", _ERRORS, errors),
        _table_of_causes(content, lambda name: name),
        Table("Precision and recall", _RATES, rates),
        Table("Successful runs with a side effect", _BESIDE, beside),
    ]
    return [table for table in made if table.rows]


def _errors(
    rows: Sequence[dict[str, Any]],
    name: Callable[[str], str],
    rate: Callable[[dict[str, Any]], str],
) -> list[tuple[str, ...]]:
    return [
        (
            *(name(row["kind"]), name(row["mode"])),
            *(str(row["false_accepts"]["trials"]), rate(row["false_accepts"])),
            *(str(row["false_rejects"]["trials"]), rate(row["false_rejects"])),
        )
        for row in rows
    ]


def _table_of_causes(content: dict[str, Any], name: Callable[[str], str]) -> Table:
    head = ("kind of check", "the rule", "because", *(name(mode.value) for mode in MODES))
    rows = [
        (
            *(name(row["kind"]), "accepts" if row["accepts"] else "rejects", row["because"]),
            *(str(row["runs"].get(mode.value, "")) for mode in MODES),
        )
        for row in content["causes"]
    ]
    return Table("Where they differ", head, rows, names=3)


def _short(name: str) -> str:
    """Return what a kind of check or a mode is called where there are 80 columns."""
    return _SHORT.get(name, name)


def _rounded(rate: dict[str, Any]) -> str:
    """Return a rate as percentage with one decimal; its limits where there are any."""
    if not rate["trials"]:
        return "-"
    share = f"{100 * rate['hits'] / rate['trials']:.1f}"
    if rate["low"] is None or rate["high"] is None:
        return share
    return f"{share} [{100 * rate['low']:.1f}, {100 * rate['high']:.1f}]"


def heading(content: dict[str, Any]) -> list[str]:
    """Return what was compared, in one sentence, and what could not be in another."""
    compared = (
        f"{content['runs']:,} runs of {content['cases']:,} cases (applications: "
        f"{content['applications']}); percentages, 95 % interval clustered by case"
    )
    unreported = content["unreported"]
    if not unreported["runs"]:
        return [compared]
    return [
        compared,
        f"{unreported['runs']} did it and ended without a message: left out where a response is "
        f"asked for (the rules reject {unreported['rejected']} for want of one, the state knows of "
        "none)",
    ]


def screen(content: dict[str, Any], *, rest: str, more: str = "--full") -> str:
    """Lay out the errors and the causes of differences in at most 40 lines of 80 columns."""
    errors = Table(
        "Rules against the state", _ERRORS, _errors(content["agreement"], _short, _rounded)
    )
    causes = _table_of_causes(content, _short)
    if causes.rows:
        return first_screen(heading(content), [errors, causes], rest=rest, more=more)
    return first_screen(heading(content), [errors], ["they differ nowhere"], rest=rest, more=more)
