"""Task files of every dialect, and what each dialect's harness reads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.rules.verdict import Outcome
from trajudge.rules.webarena import (
    AnswerQuestion,
    Run,
    StoredPage,
    Task,
    Trace,
    WebArenaEvaluator,
    load_runs,
    load_tasks,
)
from trajudge.rules.webarena.tasks import unread_keys
from trajudge.util.errors import UserError

TASK: dict[str, Any] = {
    "task_id": 1,
    "intent": "How many?",
    "eval": {"eval_types": ["string_match"], "reference_answers": {"exact_match": "3"}},
}


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_pipes_links_out_and_endless_files_are_no_task_files(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    os.mkfifo(folder / "pipe.json")
    (folder / "sparse.json").touch()
    os.truncate(folder / "sparse.json", 10 * 2**30)
    for name, said in (("pipe.json", "is not a file"), ("sparse.json", "larger than 512 MiB")):
        for load in (load_tasks, load_runs):
            with pytest.raises(UserError, match=said):
                load(folder / name)
    outside = write(tmp_path / "outside.json", TASK)
    (folder / "a.json").symlink_to(outside)
    assert [task.task_id for task in load_tasks(folder / "a.json")] == [1]
    with pytest.raises(UserError, match=r"a\.json: leads out"):
        load_tasks(folder)


def test_what_pythons_json_writes_of_an_agents_answer_is_read(tmp_path: Path) -> None:
    """Half a character as an escape; but no number is no rule, where null would be another one."""
    (run,) = load_runs(write(tmp_path / "runs.json", [{"task_id": 1, "answer": "\ud83d 3"}]))
    assert run.answer == "\ufffd 3"
    with pytest.raises(UserError):
        load_tasks(write(tmp_path / "tasks.json", {**TASK, "intent_template_id": float("nan")}))


def test_a_file_may_hold_a_list_or_one_task_and_a_folder_such_files(tmp_path: Path) -> None:
    one = write(tmp_path / "0.json", TASK)
    several = write(tmp_path / "1.json", [{**TASK, "task_id": "b", "note": "others may add keys"}])
    assert [task.task_id for task in load_tasks(one)] == [1]
    assert [task.task_id for task in load_tasks(several)] == ["b"]
    assert [task.task_id for task in load_tasks(tmp_path)] == [1, "b"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "truncated"),
        ("[]", "holds no task"),
        ("[" * 100_000, "tasks.json"),
        ("\udcff", "tasks.json"),
        ([{**TASK, "eval": {"eval_types": ["guess"]}}], "guess"),
        ([{**TASK, "eval": {"eval_types": [], "refrence_url": ""}}], "write reference_url"),
        ([{**TASK, "eval": {"eval_types": [], "or": []}}], "name --dialect webchorearena"),
        ([{"task_id": 1, "eval": TASK["eval"]}], "intent"),
        ([TASK, {**TASK, "task_id": "1"}], "occurs twice"),
    ],
)
def test_a_mistake_in_a_task_file_is_one_sentence(
    tmp_path: Path, content: object, said: str
) -> None:
    path = tmp_path / "tasks.json"
    if isinstance(content, str):
        path.write_bytes(content.encode(errors="surrogateescape"))
    else:
        write(path, content)
    with pytest.raises(UserError, match=said) as mistake:
        load_tasks(path, "webarena")
    assert "\n" not in str(mistake.value)
    assert str(path) in str(mistake.value)


def test_a_file_that_is_not_there_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="name a readable file"):
        load_tasks(tmp_path / "none.json")


def test_keys_of_other_benchmarks_are_kept_and_named_once(tmp_path: Path) -> None:
    spec = {**TASK["eval"], "price_calculation": "1 + 2"}
    listed = [{**TASK, "task_id": n, "eval": spec if n else TASK["eval"]} for n in range(3)]
    tasks = load_tasks(write(tmp_path / "tasks.json", listed))
    assert [task.eval.unread for task in tasks] == [(), *[("price_calculation",)] * 2]
    assert tasks[1].eval.others == {"price_calculation": "1 + 2"}
    (note,) = unread_keys(tasks)
    assert "eval.price_calculation (2 of 3 tasks)" in note


def test_an_empty_text_for_references_is_none_and_compares_nothing(tmp_path: Path) -> None:
    """WebChoreArena writes one where only the address counts; its evaluator reads none of it."""
    for types, outcome in ((["url_match"], "pass"), (["string_match", "url_match"], "unknown")):
        spec = {"eval_types": types, "reference_answers": "", "reference_url": "http://a.test/b"}
        (task,) = load_tasks(write(tmp_path / "tasks.json", {**TASK, "eval": spec}))
        verdict = WebArenaEvaluator().evaluate(task, "3", Trace(url="http://a.test/b"))
        assert verdict.outcome.value == outcome


@pytest.mark.parametrize(
    "content",
    [
        '[{"task_id": 1, "answer": "3"}, {"task_id": "b"}]',
        '{"task_id": 1, "answer": "3"}\n\n{"task_id": "b", "answer": null}\n',
        '\ufeff{"task_id": 1, "answer": "3"}\n{"task_id": "b"}',
    ],
)
def test_runs_come_as_a_list_or_as_lines(tmp_path: Path, content: str) -> None:
    runs = load_runs(write(tmp_path / "runs.json", content))
    assert runs == (Run(task_id=1, answer="3"), Run(task_id="b"))


def test_answers_alone_are_runs_too(tmp_path: Path) -> None:
    runs = load_runs(write(tmp_path / "answers.json", {"1": "3", "2": None}))
    assert runs == (Run(task_id="1", answer="3"), Run(task_id="2"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "holds no run"),
        ("[]", "holds no run"),
        ('{"task_id": 1}\n{"task_id": 2, "anser": "3"}', "runs.json:2: .*anser"),
        ('{"1": 3}', "str"),
        ("yes", "runs.json:1"),
    ],
)
def test_a_mistake_in_a_run_file_names_its_place(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_runs(write(tmp_path / "runs.json", content))


BAD: dict[str, dict[str, Any]] = {
    "eval.reference_answers.must_include": {"reference_answers": {"must_include": "tea"}},
    "eval.reference_answers.one_of": {"reference_answers": {"one_of": ["tea"]}},
    "eval.reference_answers.must_inclde": {"reference_answers": {"must_inclde": ["tea"]}},
    "eval.eval_types": {"eval_types": ["page_image_query"]},
    "eval.reference_ur": {"reference_ur": "x"},
    "eval.or": {"or": [{"reference_url": "x"}]},
}


@pytest.mark.parametrize("field", BAD)
def test_a_bad_field_is_the_flaw_of_its_task_alone(tmp_path: Path, field: str) -> None:
    bad = {**TASK, "task_id": "bad", "eval": {**TASK["eval"], **BAD[field]}}
    path = write(tmp_path / "tasks.json", [TASK, bad, {**TASK, "task_id": 3}])
    tasks = load_tasks(path, "webarena", keep_flawed=True)
    assert [task.task_id for task in tasks if task.flaw] == ["bad"]
    (flaw,) = (task.flaw for task in tasks if task.flaw)
    assert flaw.field == field
    rules = WebArenaEvaluator()
    assert [rules.evaluate(task, "3", None).outcome.value for task in tasks] == [
        *("pass", "unknown", "pass")
    ]
    with pytest.raises(UserError, match=f"task 'bad': {field}: "):
        load_tasks(path, "webarena")


def test_what_is_no_task_at_all_has_its_position_for_a_name(tmp_path: Path) -> None:
    listed = [3, {"eval": TASK["eval"]}, TASK, {**TASK, "task_id": "1"}]
    tasks = load_tasks(write(tmp_path / "tasks.json", listed), "webarena", keep_flawed=True)
    assert [(task.task_id, str(task.flaw)) for task in tasks] == [
        ("number 1", "is 3, not an object"),
        ("number 2", "task_id: object missing required field `task_id`"),
        (1, "task_id: occurs twice: give each task its own"),
        ("1", "task_id: occurs twice: give each task its own"),
    ]


def test_a_folder_with_a_task_in_two_files_is_refused(tmp_path: Path) -> None:
    for name in ("new.json", "old.json"):
        write(tmp_path / name, [TASK])
    with pytest.raises(UserError, match=r"task 1 stands in new\.json and in old\.json: name one"):
        load_tasks(tmp_path, "webarena", keep_flawed=True)
    with pytest.raises(UserError, match="is a folder, and no study of BrowserGym: name a file of "):
        load_runs(tmp_path)


@given(st.binary())
def test_nothing_but_a_user_error_comes_out_of_any_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "file.json"
    path.write_bytes(data)
    for load in (load_tasks, load_runs):
        with pytest.raises(UserError):
            load(path)


@pytest.mark.real_data
def test_the_published_tasks_load_without_loss(real_data: Path) -> None:
    path = real_data / "webarena" / "test.raw.json"
    tasks = load_tasks(path)
    assert len(tasks) == 812
    written = json.loads(msgspec.json.encode(tasks))
    ours = [(task.pop("dialect"), task.pop("flaw")) for task in written]
    assert set(ours) == {("webarena", None)}
    assert written == json.loads(path.read_text())


PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN
URL = "http://shop.test/cart"
RULES = WebArenaEvaluator()


def task(dialect: str, *checks: str, **spec: Any) -> Task:
    record = {"task_id": 7, "intent": "How many?", "eval": {"eval_types": checks, **spec}}
    return msgspec.structs.replace(msgspec.convert(record, Task), dialect=dialect)


def page(
    dialect: str, contents: Mapping[str, Any], locator: str = "", *others: dict[str, Any]
) -> Task:
    check: dict[str, Any] = {"url": "last", "locator": locator, "required_contents": contents}
    if others:
        check["or"] = others
    return task(dialect, "program_html", program_html=[check])


@pytest.mark.parametrize(
    ("references", "answer", "score"),
    [
        ({"must_include": ["12 |or| twelve"]}, "Twelve", 1.0),
        ({"must_include": ["12 |OR| twelve"]}, "twelve", 1.0),
        ({"must_include": ["12|or|twelve"]}, "twelve", 0.0),
        ({"must_include": ["12 |or| twelve"]}, "13", 0.0),
        ({"must_include": ["tea", "milk", "rum"]}, "tea and rum", 2 / 3),
        ({"must_include": ["tea", "milk"], "exact_match": "tea"}, "tea", 0.5),
        ({"must_include": ["tea", "milk"], "exact_match": "rum"}, "tea", 0.0),
        ({"must_include": ["2"]}, "12", 0.0),
        # An alternative of one character is looked for in itself there: every answer passes.
        ({"must_include": ["2 |or| two"]}, "none", 1.0),
        ({"must_include": ["2 |or| two", "x"]}, "none", 0.0),
        ({"exact_match": "N/A"}, "n/a", 1.0),
    ],
)
def test_webchorearena_reads_alternatives_and_gives_a_share(
    references: Mapping[str, Any], answer: str, score: float
) -> None:
    made = RULES.evaluate(
        task("webchorearena", "string_match", reference_answers=references), answer, None
    )
    assert made.score == pytest.approx(score)
    assert made.outcome is (PASS if score == 1 else FAIL)


def test_webchorearena_knows_other_addresses_and_other_pages() -> None:
    spec = task(
        "webchorearena",
        "url_match",
        reference_url="http://Shop.test/other",
        **{"or": [{"reference_url": "http://SHOP.test/Cart"}]},
    )
    assert RULES.evaluate(spec, "", Trace(url=URL)).outcome is PASS
    assert RULES.evaluate(spec, "", Trace(url="http://shop.test/x")).outcome is FAIL
    other = {"url": "last", "locator": "", "required_contents": {"must_include": ["tea", "milk"]}}
    checks = page("webchorearena", {"must_include": ["rum", "gin", "tea"]}, "", other)
    for html, score in (("tea, milk", 1.0), ("tea", 0.5), ("gin, rum", 2 / 3), ("", 0.0)):
        trace = Trace(url=URL, pages=(StoredPage(url=URL, html=html),))
        made = RULES.evaluate(checks, None, trace)
        assert made.score == pytest.approx(score)
    assert RULES.evaluate(checks, None, Trace(url=URL)).score is None


def test_what_is_unknown_leaves_no_share() -> None:
    references = {"must_include": ["tea"], "fuzzy_match": "a cup of tea"}
    spec = task("webchorearena", "string_match", reference_answers=references)
    assert RULES.evaluate(spec, "tea", None).score is None
    assert RULES.evaluate(spec, "milk", None).score == 0.0
    assert RULES.evaluate(task("webarena", "string_match"), "milk", None).score is None


ANSWERS: list[tuple[dict[str, Any], str, Outcome]] = [
    ({"must_include": ["1 |OR| one"]}, "One of them", PASS),
    ({"must_include": ["tea"]}, "teapots", FAIL),
    ({"must_include": ["green tea"]}, "green teapots", PASS),
    ({"must_include": ["$12"]}, "it is $12.99", PASS),
    ({"must_exclude": ["tea"]}, "teapots", PASS),
    ({"must_exclude": ["tea"]}, "a tea", FAIL),
    ({"one_of": ["rum", "tea"]}, "teapots", PASS),
    ({"one_of": ["rum", "tea"]}, "gin", FAIL),
    ({"required_values": [">= 12", "< 700"]}, "1,2", PASS),
    ({"required_values": [">= 12"]}, "11", FAIL),
    ({"required_values": ["== 3 |OR| == 4"]}, "4", PASS),
    ({"required_values": [">= 12"]}, "12.5", FAIL),
    ({"exact_match": "tea"}, "tea ", FAIL),
    ({"fuzzy_match": "N/A"}, "N/A", PASS),
    ({"fuzzy_match": "N/A"}, "There is none", UNKNOWN),
]


@pytest.mark.parametrize("dialect", ["visualwebarena", "webarena-lite"])
@pytest.mark.parametrize(("references", "answer", "outcome"), ANSWERS)
def test_visualwebarena_compares_words_values_and_lists(
    dialect: str, references: Mapping[str, Any], answer: str, outcome: Outcome
) -> None:
    spec = task(dialect, "string_match", reference_answers=references)
    assert RULES.evaluate(spec, answer, None).outcome is outcome


@pytest.mark.parametrize(
    ("contents", "locator", "outcome"),
    [
        ({"must_include": ["tea |OR| rum"]}, "", PASS),
        ({"must_include": ["te"]}, "", FAIL),
        # No entity is resolved.
        ({"must_include": ["tea & milk"]}, "", FAIL),
        ({"must_exclude": ["rum"]}, "", PASS),
        ({"must_exclude": ["tea"]}, "", FAIL),
        ({"must_include": ["tea"], "must_exclude": ["tea"]}, "", PASS),
        ({"required_values": ["<= 12.5"]}, "func:price(__page__)", PASS),
        ({"required_values": ["> 13"]}, "func:price(__page__)", FAIL),
        ({"required_values": ["> 1"]}, "document.count", FAIL),
        ({"exact_match": "x"}, "func:gone(__page__)", FAIL),
        ({"must_exclude": ["x"]}, "lambda:(() => null)", FAIL),
        ({"fuzzy_match": "tea"}, "", UNKNOWN),
        ({"must_include": ["x"]}, "func:never(__page__)", UNKNOWN),
    ],
)
def test_visualwebarena_reads_pages_its_own_way(
    contents: Mapping[str, Any], locator: str, outcome: Outcome
) -> None:
    values = {"document.count": "1.5", "lambda:(() => null)": None}
    stored = StoredPage(url=URL, html="<p>tea &amp; milk</p>", values=values)
    results = {"price(__page__)": "12.5", "gone(__page__)": None}
    trace = Trace(url=URL, pages=(stored,), results=results)
    spec = page("visualwebarena", contents, locator)
    assert RULES.evaluate(spec, None, trace).outcome is outcome


def test_what_needs_a_picture_is_unknown_and_never_failed() -> None:
    query = {"eval_image_class": ".x", "eval_image_url": "last", "eval_vqa": []}
    spec = task("visualwebarena", "page_image_query", page_image_query=[query, query])
    made = RULES.evaluate(spec, None, Trace(url=URL))
    assert (made.outcome, len(made.assertions)) == (UNKNOWN, 2)
    assert "pictures of the page decide this" in made.reasons[0]


@pytest.mark.parametrize(
    ("dialect", "asked"),
    [
        ("webarena", ["an hour", "by car"]),
        ("visualwebarena", ["an hour", "by car"]),
        ("webchorearena", ["an hour; by car"]),
        ("webarena-lite", ["an hour, by car"]),
    ],
)
def test_a_judge_model_is_asked_as_there(dialect: str, asked: list[str]) -> None:
    questions: list[AnswerQuestion] = []

    def judge(question: AnswerQuestion) -> bool:
        questions.append(question)
        return True

    spec = task(dialect, "string_match", reference_answers={"fuzzy_match": ["an hour", "by car"]})
    assert WebArenaEvaluator(judge=judge).evaluate(spec, "60 min", None).outcome is PASS
    assert [question.reference for question in questions] == asked
