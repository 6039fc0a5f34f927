"""The linter: its categories, their counts on the published tasks, and its command."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import rules_lint as main
from tests.rules.files import tasks_file
from tests.tables import one_sentence
from trajudge.rules.audit.lint import (
    CATEGORIES,
    PITFALLS,
    UNIONS,
    Reference,
    Where,
    counts,
    weaknesses,
)
from trajudge.rules.audit.suites import open_tasks
from trajudge.rules.webarena import Task, load_tasks

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
    assert [row["value"] for row in rows] == ['["Yes |OR| green"]', "Yes |OR| green"]
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


@pytest.mark.parametrize(("words", "count"), [([], 3), (["--show", "4"], 4), (["--show", "0"], 0)])
def test_three_findings_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], count: int
) -> None:
    assert run(tmp_path, *words, content=[{**RECORDS[0], "task_id": name} for name in "ab"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(("error: ", "warning: ")) for line in lines) == count


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


NUMBERS = re.compile(r"[\d,]+(?= (?:of|more|have))|(?<=of )[\d,]+")


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("real_bench/v1", "error"),
        ("webarena/test.raw.json", "warning"),
        ("real_bench/v1", "note"),
    ],
)
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


def task(*checks: str, intent: str = "?", **spec: Any) -> Task:
    record = {"task_id": 1, "intent": intent, "eval": {"eval_types": checks, **spec}}
    return msgspec.convert(record, Task)


def said(intent: str = "?", **references: Any) -> Task:
    return task("string_match", intent=intent, reference_answers=references)


def ends_at(url: str) -> Task:
    return task("url_match", reference_url=url)


def page(locator: str = "document.x.value", **contents: Any) -> Task:
    entry = {"url": "last", "locator": locator, "required_contents": contents}
    return task("program_html", program_html=[entry])


def pitfalls(spec: Task) -> list[tuple[str, str]]:
    found = [(finding.category, finding.field) for finding in weaknesses([spec])]
    return [(category, field) for category, field in found if category in PITFALLS]


UNREAD_URL = task("string_match", reference_answers={"exact_match": "tea"}, reference_url="x")
ANSWER = "eval.reference_answers"
PAGE = "eval.program_html[0].required_contents"


@pytest.mark.parametrize(
    ("spec", "category", "field"),
    [
        (said(exact_match="tea |OR| milk"), "dead_marker", f"{ANSWER}.exact_match"),
        (said(must_include=["milk", "a |OR| b"]), "dead_marker", f"{ANSWER}.must_include[1]"),
        (said(fuzzy_match=["tea |OR| milk"]), "dead_marker", f"{ANSWER}.fuzzy_match[0]"),
        (page(exact_match="tea |OR| milk"), "dead_marker", f"{PAGE}.exact_match"),
        (page(must_include=["tea |or| milk"]), "dead_marker", f"{PAGE}.must_include[0]"),
        (ends_at("__A__/tea|OR|__A__/milk"), "dead_marker", "eval.reference_url"),
        (UNREAD_URL, "dead_field", "eval.reference_url"),
        (page(exact_match="tea", must_include=["milk"]), "dead_field", f"{PAGE}.must_include"),
        (task(), "vacuous", "eval.eval_types"),
        (task("url_match"), "vacuous", "eval.reference_url"),
        (task("string_match", reference_answers={}), "vacuous", ANSWER),
        (said(must_include=[]), "vacuous", ANSWER),
        (said(must_include=["''", "tea"]), "vacuous", f"{ANSWER}.must_include[0]"),
        (page(exact_match=""), "vacuous", f"{PAGE}.exact_match"),
        (page(), "vacuous", "eval.program_html"),
        (said(exact_match="^tea.*$"), "literal_pattern", f"{ANSWER}.exact_match"),
        (ends_at(r"__A__/tea/\d+"), "literal_pattern", "eval.reference_url"),
        (said(must_include=["12"]), "number_run_on", f"{ANSWER}.must_include[0]"),
        (page(must_include=["$12"]), "number_run_on", f"{PAGE}.must_include[0]"),
        (said(must_include=["Yes"]), "polarity", f"{ANSWER}.must_include[0]"),
        (said(must_include=["tea", "green tea"]), "redundant", f"{ANSWER}.must_include[0]"),
        (said("On 3/2?", must_include=["2"]), "given_away", f"{ANSWER}.must_include"),
        (said("Is tea green?", must_include=["Tea"]), "given_away", f"{ANSWER}.must_include"),
        (ends_at("__A__/tea/1"), "url_run_on", "eval.reference_url"),
        (ends_at("__A__/a?x=tea |OR| __A__/b"), "pooled_queries", "eval.reference_url"),
        (page(must_include=["x"]), "one_character", f"{PAGE}.must_include[0]"),
    ],
)
def test_a_trap_is_found_where_it_stands(spec: Task, category: str, field: str) -> None:
    assert (category, field) in pitfalls(spec)


@pytest.mark.parametrize(
    "spec",
    [
        said(exact_match="tea"),
        said("How many?", must_include=["2"]),
        said(must_include=["tea", "milk"]),
        said(fuzzy_match="N/A"),
        page(must_include=["tea |OR| milk"]),
        page(exact_match="tea [2 cups] (of 3.5 dl)?"),
        ends_at("__A__/tea |OR| __A__/milk"),
        ends_at("__A__/find?q=12"),
        task("url_match", reference_url="__A__/tea", reference_answers={}),
    ],
)
def test_honest_specifications_have_no_traps(spec: Task) -> None:
    assert pitfalls(spec) == []


@given(st.lists(st.text(), min_size=1), st.text(), st.text())
def test_no_text_in_a_task_upsets_the_detectors(texts: list[str], url: str, intent: str) -> None:
    page_check = {"url": url, "locator": url, "required_contents": {"must_include": texts}}
    spec = task(
        "string_match",
        "url_match",
        intent=intent,
        reference_answers={"must_include": texts, "fuzzy_match": texts},
        reference_url=url,
        program_html=[page_check],
    )
    list(weaknesses([spec]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["|" * 10**6, "[" * 10**6, "[a]" * 10**6, "\\" * 10**6, "1" * 10**6]
)
def test_long_text_takes_no_longer_than_it_should(text: str) -> None:
    list(weaknesses([said(exact_match=text, must_include=[text]), ends_at(text)]))


@pytest.mark.parametrize(
    ("dialect", "where", "text", "options"),
    [
        ("webarena", "answer", "a |OR| b", ["a |OR| b"]),
        ("webarena", "page", "a |OR| b", ["a", "b"]),
        ("webarena", "page", "a |or| b", ["a |or| b"]),
        ("webchorearena", "answer", "A |or| b", ["a", "b"]),
        ("webchorearena", "page", "A |or| b", ["a", "b"]),
        ("visualwebarena", "answer", "A |OR| b", ["A", "b"]),
    ],
)
def test_the_alternatives_that_a_harness_reads(
    dialect: str, where: Where, text: str, options: list[str]
) -> None:
    spec = msgspec.structs.replace(said(must_include=[text]), dialect=dialect)
    assert Reference(spec, "f", where, "must_include", text, (text,)).options == options


@pytest.mark.parametrize(
    ("dialect", "word", "phrase", "letter"),
    [("webarena", False, False, True), ("visualwebarena", True, False, True)],
)
def test_an_option_that_has_to_be_a_word(
    dialect: str, word: bool, phrase: bool, letter: bool
) -> None:
    spec = msgspec.structs.replace(said(must_include=["x"]), dialect=dialect)
    one = Reference(spec, "f", "answer", "must_include", "x", ("x",))
    assert [one.is_word(text) for text in ("tea", "green tea", "x")] == [word, phrase, letter]


def categories(spec: Task) -> set[str]:
    return {finding.category for finding in weaknesses([spec])} - {"vacuous", "dead_field"}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (page("", exact_match="tea"), {"page_content"}),
        (page("  ", must_include=["tea"]), {"page_content", "page_substring"}),
        (page("document.x.value", must_include=["tea"]), {"page_substring"}),
        (page("document.x.value", exact_match="tea"), set()),
        (
            page("[...document.x].map(e => e.outerText)[0]", must_include=["tea"]),
            {"page_substring", "locator_substring"},
        ),
        (page("document.x.outerText", exact_match="tea"), set()),
        (task(reference_answers={"must_include": ["tea"]}), {"response_substring"}),
        (task(reference_answers={"exact_match": "tea"}), set()),
        (task(reference_answers={"fuzzy_match": ["tea"]}), {"llm_evaluation"}),
        (task(reference_answers={"fuzzy_match": "N/A"}), {"llm_evaluation", "unachievable"}),
    ],
)
def test_each_category_finds_its_own(spec: Task, found: set[str]) -> None:
    assert categories(spec) == found


def test_a_finding_names_task_field_value_and_mend() -> None:
    (finding,) = [
        one
        for one in weaknesses([page("document.a.outerText", must_include=["tea"])])
        if one.category == "locator_substring"
    ]
    assert (finding.task_id, finding.field) == (1, "eval.program_html[0].locator")
    assert finding.value == "document.a.outerText"
    assert finding.problem.endswith(".")
    assert finding.mend.endswith(".")


@pytest.mark.real_data
def test_the_papers_counts_are_those_of_the_published_tasks(real_data: Path) -> None:
    tasks = load_tasks(real_data / "webarena" / "test.raw.json")
    counted = counts(weaknesses(tasks), CATEGORIES, UNIONS)
    assert {count.category: len(count.tasks) for count in counted} == {
        "page_content": 92,
        "page_substring": 330,
        "locator_substring": 164,
        "response_substring": 176,
        "unachievable": 36,
        "llm_evaluation": 118,
        "pictures": 0,
        "unreadable": 0,
        "any_substring": 340,
        "permissive": 506,
        "dead_marker": 1,
        "dead_field": 1,
        "vacuous": 0,
        "literal_pattern": 0,
        "number_run_on": 122,
        "polarity": 5,
        "redundant": 6,
        "given_away": 4,
        "url_run_on": 14,
        "pooled_queries": 0,
        "one_character": 0,
    }
    which = {count.category: count.tasks for count in counted}
    assert which["dead_marker"] == (386,)
    assert which["dead_field"] == (247,)
    assert which["given_away"] == (133, 135, 206, 207)
