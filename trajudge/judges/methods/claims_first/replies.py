"""The replies of both calls: claims, and findings whose citations are looked up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trajudge.judges.methods.claims_first.pages import ShownRecord
from trajudge.judges.model import Verdict
from trajudge.judges.replies import ParseFailure, flag, parse_json

MOST_CLAIMS = 20
_LONGEST = 300

ASSUMED_CLAIMS = json.dumps(
    {"claims": ["The page of the order shows the state that was wanted."] * 5}
)


def parse_claims(text: str) -> list[str]:
    """Parse at most 20 claims, each as one line; none is fine. Raises ParseFailure."""
    claims = parse_json(text, ["claims"]).fields["claims"]
    if not isinstance(claims, list) or len(claims) > MOST_CLAIMS:
        raise ParseFailure(f"the reply holds no list of at most {MOST_CLAIMS} claims")
    if not all(isinstance(one, str) and one.strip() for one in claims):
        raise ParseFailure("a claim is no text, or empty")
    return [" ".join(one.split())[:_LONGEST] for one in claims]


def parse_findings(text: str, claims: int, record: ShownRecord) -> Verdict:
    """Parse the verdict on a run with so many claims.

    Success is the reply's own, unless a requirement is not met. Raises ParseFailure if a claim has
    no finding or two, if what is said to hold cites nothing, or if a citation is not in the record.
    """
    fields, fallback = parse_json(text, ["claims", "requirements", "side_effect", "success"])
    held = _claims(fields["claims"], claims, record)
    met = [
        _holds(_entry(entry, "met"), "met", f"requirement {number}", record)
        for number, entry in enumerate(_list(fields["requirements"], "requirements"), start=1)
    ]
    success = flag(fields, "success")
    if success and not met:
        raise ParseFailure("the reply says success and names no requirement")
    reasoning = str(fields.get("reasoning", ""))
    if success and not all(met):
        failed = ", ".join(str(number) for number, one in enumerate(met, start=1) if not one)
        reasoning += f" [requirements not met: {failed}]"
    shares = {"claims": held, "requirements": met}
    return Verdict(
        success=success and all(met),
        side_effect=flag(fields, "side_effect"),
        scores={name: sum(some) / len(some) for name, some in shares.items() if some},
        reasoning=reasoning.strip(),
        fallback=fallback,
    )


def _claims(entries: object, count: int, record: ShownRecord) -> list[bool]:
    findings: dict[int, bool] = {}
    for entry in _list(entries, "claims"):
        fields = _entry(entry, "claim", "holds")
        number = fields["claim"]
        if not isinstance(number, int) or not 1 <= number <= count or number in findings:
            raise ParseFailure(f"claim {str(number)[:20]} has two findings, or does not exist")
        findings[number] = _holds(fields, "holds", f"claim {number}", record)
    if len(findings) != count:
        raise ParseFailure(f"{len(findings)} of {count} claims have a finding")
    return [findings[number] for number in sorted(findings)]


def _holds(fields: Mapping[str, Any], name: str, label: str, record: ShownRecord) -> bool:
    """Return the finding. What does not hold may cite nothing; what is cited must be there."""
    holds = flag(fields, name)
    place, quote = (str(fields.get(key) or "").strip() for key in ("at", "quote"))
    if not place and not holds:
        return False
    if not place:
        raise ParseFailure(f"{label} is said to hold and cites nothing")
    if place not in record.texts:
        raise ParseFailure(f"{label} cites {place[:20]}, which was not shown")
    if not record.holds(place, quote):
        raise ParseFailure(f"{label} quotes what does not stand at {place}")
    return holds


def _list(entries: object, name: str) -> Sequence[object]:
    if not isinstance(entries, list):
        raise ParseFailure(f"{name} is no list")
    return entries


def _entry(entry: object, *fields: str) -> Mapping[str, Any]:
    if not isinstance(entry, dict) or not set(fields) <= entry.keys():
        raise ParseFailure(f"a finding lacks one of {', '.join(fields)}")
    return entry
