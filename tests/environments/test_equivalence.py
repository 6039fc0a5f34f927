"""A replay policy that keeps k recordings reaches pass@k where nothing varies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import command
from tests.environments.cases import sound
from trajudge.environments.analysis.pass_at_k import Attempt, summary
from trajudge.environments.model.case import write_cases
from trajudge.util.commands import OK, USAGE_ERROR

main = command("env equivalence")


def test_both_rates_are_the_unbiased_means_over_cases() -> None:
    found = [Attempt("a", True, True), Attempt("a", False, False)]
    found += [Attempt("b", True, False), Attempt("b", True, True)]
    first, second = summary(found, 2)
    # One of two attempts at a, both at b; one replay at b failed.
    assert first["pass_at_k"] == pytest.approx(0.75)
    assert first["replay"] == pytest.approx(0.5)
    assert (second["pass_at_k"], second["replay"]) == (1.0, 1.0)


@pytest.mark.browser
def test_on_real_runs_they_are_equal(chromium: Path, tmp_path: Path) -> None:
    write_cases(tmp_path / "cases.jsonl", [sound("unwish")])
    out = tmp_path / "equivalence.json"
    words = ["--cases", str(tmp_path / "cases.jsonl"), "--save", str(out), "--attempts", "4"]
    assert main(words) == OK
    found = json.loads(out.read_text())
    assert len(found["attempts"]) == 4
    assert 0 < sum(attempt["success"] for attempt in found["attempts"]) < 4
    assert all(attempt["replayed"] == attempt["success"] for attempt in found["attempts"])
    assert all(row["replay"] == row["pass_at_k"] for row in found["rows"])


@pytest.mark.parametrize("attempts", ["0", "1001"])
def test_no_attempt_or_very_many_are_a_mistake(
    attempts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number of twelve digits ran without an end."""
    write_cases(tmp_path / "cases.jsonl", [sound("unwish")])
    assert main(["--cases", str(tmp_path / "cases.jsonl"), "--attempts", attempts]) == USAGE_ERROR
    assert "--attempts" in capsys.readouterr().err
