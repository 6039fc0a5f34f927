"""``trajudge check`` on tables as people have them, against counts over the raw files."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from trajudge.eval.check import TableCheck, check

TABLES = Path(__file__).parent / "check_tables"
GERMAN = {"columns": "judge=Urteil,label=Mensch,task=Aufgabe"}
YES = {"yes", "pass", "1", "success", "correct", "successful", "true", "ja"}
NO = {"no", "fail", "0", "failure", "incorrect", "unsuccessful", "false", "nein"}


def file_of(number: str) -> Path:
    [file] = TABLES.glob(f"{number}-*")
    return file


def raw(number: str) -> list[dict[str, str]]:
    """The rows as the csv module reads them."""
    text = file_of(number).read_text(encoding="utf-8-sig")
    return list(csv.DictReader(io.StringIO(text), delimiter=";" if number == "05" else ","))


def counts(result: TableCheck, at: int = 0) -> tuple[int, ...]:
    judge = result.judges[at]
    rates = judge.precision, judge.recall, judge.agreement
    return tuple(n for rate in rates for n in (rate.hits, rate.trials))


def counted(pairs: Sequence[tuple[bool, bool]]) -> tuple[int, ...]:
    """The same numbers from pairs of verdict and label."""
    cells = Counter(pairs)
    accepted, right = sum(v for v, _ in pairs), sum(r for _, r in pairs)
    both = cells[True, True]
    return both, accepted, both, right, both + cells[False, False], len(pairs)


@pytest.mark.parametrize(
    ("number", "verdict", "label", "options"),
    [
        ("02", "judge", "human", {}),
        ("03", "prediction", "gold", {}),
        ("04", "verdict", "label", {}),
        ("05", "Urteil", "Mensch", GERMAN),
        ("05", "Urteil", "Mensch", {**GERMAN, "words": "ja=yes,nein=no"}),
        ("06", "verdict", "label", {}),
        ("09", "verdict", "label", {}),
    ],
)
def test_every_count_is_that_of_the_raw_file(
    number: str, verdict: str, label: str, options: dict[str, Any]
) -> None:
    cells = [(row[verdict].lower(), row[label].lower()) for row in raw(number)]
    read = [(v in YES, r in YES) for v, r in cells if v in YES | NO and r in YES | NO]
    assert counts(check(file_of(number), **options)) == counted(read)


def test_nested_records_are_read_by_their_dotted_names() -> None:
    records = [json.loads(line) for line in file_of("10").read_text("utf-8").splitlines()]
    read = [(r["judge"]["verdict"] == "Successful", r["human"]["success"]) for r in records]
    result = check(file_of("10"))
    assert counts(result) == counted(read)
    assert result.tasks == len({r["example"]["task"] for r in records})


def test_scores_of_two_judges_are_counted_from_the_threshold_on() -> None:
    result = check(file_of("07"), threshold=0.5)
    for at, name in enumerate(("score_a", "score_b")):
        read = [(float(row[name]) >= 0.5, row["human_label"] == "True") for row in raw("07")]
        assert counts(result, at) == counted(read)


@pytest.mark.parametrize("policy", ["majority", "any"])
def test_three_annotators_count_as_is_said(policy: str) -> None:
    def label(row: dict[str, str]) -> bool | None:
        answers = [row[name] == "yes" for name in ("ann1", "ann2", "ann3") if row[name]]
        if policy == "any":
            return any(answers)
        return None if 2 * sum(answers) == len(answers) else 2 * sum(answers) > len(answers)

    read = [(row["judge"] == "yes", label(row)) for row in raw("08")]
    known = [(verdict, right) for verdict, right in read if right is not None]
    assert counts(check(file_of("08"), labels_by=policy)) == counted(known)
