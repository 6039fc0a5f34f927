"""PRISM grades follow from the answers, by the rubric of Statistical Precipice, appendix 20."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands import command
from tests.environments.prism.specification import EVERY, WHOLE
from trajudge.environments.prism.report import PATTERNS, Report, grade, read_reports, satisfied
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError

main = command("env prism")


def grades(**changes: Any) -> list[str]:
    return [entry.grade for entry in grade(Report.model_validate({**WHOLE, **changes}))]


def test_a_benchmark_that_shows_everything_satisfies_all_five() -> None:
    graded = grade(Report.model_validate(WHOLE))
    assert satisfied(graded)
    assert [entry.principle[0] for entry in graded] == ["p", "r", "i", "s", "m"]


@pytest.mark.parametrize(
    ("place", "changes", "expected"),
    [
        (0, {"privileged": {"tasks": 10, "by_state": 9, "by_model": 1}}, "partial"),
        (0, {"privileged": {"tasks": 10, "by_state": 0, "by_model": 10}}, "none"),
        (0, {"privileged": None}, "not shown"),
        (1, {"realistic": {"applications": "toy"}}, "none"),
        (1, {"realistic": {"applications": "written for it"}}, "partial"),
        (1, {"realistic": {"applications": "written for it", "patterns": PATTERNS}}, "full"),
        (1, {"realistic": {"applications": "written for it", "patterns": PATTERNS[1:]}}, "partial"),
        (2, {"integrity": {"feasible": EVERY, "coherent": "none", "nontrivial": EVERY}}, "partial"),
        (2, {"integrity": dict.fromkeys(("feasible", "coherent", "nontrivial"), "none")}, "none"),
        (3, {"sandboxed": {"deterministic_reset": False}}, "none"),
        (
            3,
            {"sandboxed": {"deterministic_reset": True, "external_dependencies": ("maps",)}},
            "partial",
        ),
        (4, {"multifactorial": {"axes": {"instance": 9}, "independent": True}}, "partial"),
        (4, {"multifactorial": {"axes": {"a": 2, "b": 2}, "independent": False}}, "partial"),
        (4, {"multifactorial": {"axes": {"instance": 1}, "independent": True}}, "none"),
    ],
)
def test_each_principle_falls_short_alone(
    place: int, changes: dict[str, Any], expected: str
) -> None:
    graded = grades(**changes)
    assert graded[place] == expected
    assert set(graded[:place] + graded[place + 1 :]) == {"full"}


def test_a_report_that_cannot_be_read_names_file_and_field(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    wrong = '{"name": "x", "privileged": {"tasks": 0, "by_state": 0}}'
    saved = f'[{{"report": {wrong}, "grades": {{}}}}]'
    for content, field in ((wrong, "privileged"), (saved, "0.report.privileged")):
        path.write_text(content)
        with pytest.raises(UserError, match=rf"report\.json: {re.escape(field)}\.tasks"):
            read_reports(path)


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"runs": 3}'])
def test_a_file_that_is_no_report_is_told_what_is_one(text: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    for file in (path, tmp_path / "none.json"):
        with pytest.raises(UserError, match=rf"{file.name}: .*: name a benchmark's answers to the"):
            read_reports(file)


@pytest.mark.slow
def test_the_own_applications_satisfy_all_five(tmp_path: Path) -> None:
    assert main(["--save", str(tmp_path / "own.json"), "--checked", "10"]) == OK


def test_a_benchmark_that_falls_short_is_told_by_the_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text('{"name": "x"}')
    assert main([str(path), "--save", str(tmp_path / "prism.json")]) == FAILURES


def test_what_was_saved_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, first, second = (tmp_path / name for name in ("bench.json", "1.json", "2.json"))
    report.write_text(json.dumps(WHOLE))
    assert main([str(report), str(report), "--save", str(first)]) == OK
    shown = capsys.readouterr().out
    assert main([str(first), "--save", str(second)]) == OK
    assert capsys.readouterr().out == shown
    assert second.read_bytes() == first.read_bytes()
    first.write_text(first.read_text(), encoding="utf-8-sig")
    assert len(read_reports(first)) == 2
