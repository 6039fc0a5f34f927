"""The linter's command: a table, files for programs, and the user's mistakes."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import rules_lint as main
from tests.rules.files import tasks_file
from tests.samples import narrow
from tests.tables import one_sentence
from trajudge.rules.audit.suites import open_tasks

ORDER = ["error", "warning", "note", "z"]

RECORDS = [
    {
        "task_id": "a",
        "intent": "Is tea green?",
        "eval": {
            "eval_types": ["string_match"],
            "reference_answers": {"must_include": ["Yes |OR| green"]},
        },
    },
    {
        "task_id": "b",
        "intent": "Which?",
        "eval": {"eval_types": ["string_match"], "reference_answers": {"exact_match": "tea"}},
    },
]


def run(tmp_path: Path, *words: str, content: Any = RECORDS) -> int:
    return main([*tasks_file(tmp_path, content), *words])


def test_findings_are_shown_counted_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--out", str(tmp_path / "out")) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("1 of 2 tasks of tasks.json (webarena) cannot be trusted: ")
    assert "dead_marker" in shown
    written = json.loads((tmp_path / "out" / "lint.json").read_text())
    assert written["dialect"] == "webarena"
    count = next(one for one in written["counts"] if one["category"] == "dead_marker")
    assert (count["tasks"], count["findings"]) == (["a"], 1)
    rows = list(csv.DictReader((tmp_path / "out" / "lint.csv").open()))
    assert [row["category"] for row in rows] == ["response_substring", "dead_marker"]
    assert [row["severity"] for row in rows] == ["warning", "error"]
    assert [one["severity"] for one in written["findings"]] == ["warning", "error"]
    assert {row["task_id"] for row in rows} == {"a"}
    assert all(row["mend"] for row in rows)


def test_one_category_or_a_union_can_be_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(tmp_path, "--category", "permissive", "--out", str(out)) == 0
    counted = json.loads((out / "lint.json").read_text())["counts"]
    assert [(count["category"], len(count["tasks"])) for count in counted] == [
        ("page_substring", 0),
        ("response_substring", 1),
        ("permissive", 1),
    ]


def test_the_most_severe_findings_stand_first_and_may_be_asked_for_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 0
    screen = capsys.readouterr().out
    rest = " ".join(screen.split("\n\n")[-1].split())
    assert rest.startswith("2 findings in all: --out DIR writes them")
    lines = screen.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith(("error", "warning"))]
    assert listed == ["error", "warning", "error:", "warning:"]
    assert run(tmp_path, "--min-severity", "error", "--fail-on-findings") == 1
    shown = capsys.readouterr().out
    assert "dead_marker" in shown
    assert "response_substring" not in shown
    loose = {"eval_types": ["string_match"], "reference_answers": {"must_include": ["tea"]}}
    weak = [{"task_id": "a", "intent": "Which?", "eval": loose}]
    assert run(tmp_path, "--fail-on-findings", content=weak) == 1
    assert run(tmp_path, "--min-severity", "error", "--fail-on-findings", content=weak) == 0


def test_strict_makes_findings_an_exit_code(tmp_path: Path) -> None:
    assert run(tmp_path, "--fail-on-findings") == 1
    assert run(tmp_path, "--fail-on-findings", content=RECORDS[1:]) == 0


def test_a_tasks_text_does_not_move_the_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = json.loads(json.dumps(RECORDS[:1]))
    hostile[0]["eval"]["reference_answers"]["must_include"] = ["\x1b[2J[red]|OR|"]
    assert run(tmp_path, content=hostile) == 0
    captured = capsys.readouterr()
    assert "\x1b[2J" not in captured.out + captured.err


@pytest.mark.parametrize(
    ("words", "content", "said"),
    [
        (["--category", "typo"], RECORDS, "--category typo: webarena tasks have page_content"),
        ([], [{"task_id": 1, "eval": [{"evaluator": "X"}]}], "name it by --dialect"),
        ([], [], "holds no task"),
        ([], [3], "name it by --dialect"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    content: Any,
    said: str,
) -> None:
    assert run(tmp_path, *words, content=content) == 2
    one_sentence(capsys, said)


@pytest.mark.real_data
def test_the_published_tasks_are_linted(real_data: Path, tmp_path: Path) -> None:
    tasks = real_data / "webarena" / "test.raw.json"
    assert main(["--tasks", str(tasks), "--show", "0", "--out", str(tmp_path)]) == 0
    counted = json.loads((tmp_path / "lint.json").read_text())["counts"]
    permissive = next(count for count in counted if count["category"] == "permissive")
    assert len(permissive["tasks"]) == 506


@pytest.mark.slow
@pytest.mark.real_data
@narrow
@pytest.mark.parametrize("name", ["test.raw.json", "webarena-verified.json"])
def test_the_findings_on_a_published_file_take_one_screen(
    name: str, real_data: Path, screen_lines: Callable[[], list[str]]
) -> None:
    assert main(["--tasks", str(real_data / "webarena" / name)]) == 0
    lines = screen_lines()
    assert f" of 812 tasks of {name} (" in " ".join(lines[:2])
    head = next(n for n, line in enumerate(lines) if line.startswith("severity "))
    assert [bool(line) for line in lines[head + 1 : head + 12]] == [True] * 11
    assert lines[head + 11].endswith(" more: --full")


NUMBERS = re.compile(r"[\d,]+(?= (?:of|more|have))|(?<=of )[\d,]+")


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["webarena/test.raw.json", "real_bench/v1"])
@pytest.mark.parametrize("least", ["error", "warning", "note"])
def test_the_first_sentences_are_true_to_the_files(
    name: str, least: str, real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each task counts once, by the worst of its findings in the written table."""
    words = ["--tasks", str(real_data / name), "--out", str(tmp_path), "--min-severity", least]
    assert main(words) == 0
    shown = " ".join(capsys.readouterr().out.partition("\n\n")[0].split())
    worst: dict[str, str] = {}
    for row in csv.DictReader((tmp_path / "lint.csv").open()):
        worst[row["task_id"]] = min(
            worst.get(row["task_id"], "z"), row["severity"], key=ORDER.index
        )
    errors, warnings, notes = (list(worst.values()).count(one) for one in ORDER[:3])
    tasks = len(open_tasks(real_data / name).tasks)
    wanted = [errors, tasks] if errors else [tasks]
    wanted += [warnings, notes] if warnings or notes else []
    assert [int(found.replace(",", "")) for found in NUMBERS.findall(shown)] == wanted


def test_everything_is_shown_with_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--full") == 0
    shown = capsys.readouterr().out
    assert "without findings: page_content, page_substring, " in shown
    assert "Ask for a structured answer and compare typed values." in " ".join(shown.split())


@pytest.mark.real_data
def test_the_documentation_shows_the_screen(
    real_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["--tasks", str(real_data / "webarena" / "test.raw.json")]) == 0
    text = (Path(__file__).parents[3] / "docs" / "rules.md").read_text(encoding="utf-8")
    assert f"```\n{capsys.readouterr().out}```\n" in text
