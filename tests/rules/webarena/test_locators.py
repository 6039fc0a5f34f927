"""Reading locators in stored html with a real browser: no script of the page, no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.commands import rules_locators as main
from trajudge.rules.verdict import Outcome
from trajudge.rules.webarena import Run, StoredPage, Task, Trace, WebArenaEvaluator, load_runs

pytestmark = pytest.mark.browser

URL = "http://shop.test/cart"
HTML = """<title>Cart</title><div class=row>Green <b>tea</b></div>
<input name=count value=3><select><option>a<option selected>b</select>
<script>document.title = 'changed'</script><img src="http://shop.test/logo.png">"""


def task(locator: str, task_id: int = 1, **contents: Any) -> dict[str, Any]:
    entry = {"url": "last", "locator": locator, "required_contents": contents}
    spec = {"eval_types": ["program_html"], "program_html": [entry]}
    return {"task_id": task_id, "intent": "?", "eval": spec}


def all_judged(
    folder: Path, records: Sequence[dict[str, Any]], page: StoredPage
) -> list[tuple[Outcome, Run]]:
    """Read the locators of a task each in runs that ended on the page, by one command."""
    trace = Trace(url=URL, pages=(page,))
    made = [Run(task_id=record["task_id"], trace=trace) for record in records]
    tasks, runs, out = folder / "tasks.json", folder / "runs.jsonl", folder / "out.jsonl"
    tasks.write_text(json.dumps(records))
    runs.write_bytes(b"\n".join(map(msgspec.json.encode, made)))
    assert main(["--tasks", str(tasks), "--runs", str(runs), "--save", str(out)]) == 0
    evaluate = WebArenaEvaluator().evaluate
    return [
        (evaluate(msgspec.convert(record, Task), None, read.trace).outcome, read)
        for record, read in zip(records, load_runs(out), strict=True)
    ]


def judged(tmp_path: Path, record: dict[str, Any], page: StoredPage) -> tuple[Outcome, Run]:
    (only,) = all_judged(tmp_path, [record], page)
    return only


LOCATORS = [
    ("document.querySelector('.row').outerText", "Green tea"),
    ("document.querySelector('[name=\"count\"').value", "3"),
    ("document.querySelector('select').selectedIndex", "1"),
    ("[...document.querySelectorAll('b')].map(e => e.outerText)[0]", "tea"),
    ("document.querySelector('.none').outerText", ""),
    ("document.querySelector('.none')", "None"),
    ("document.title", "Cart"),
    ("document.querySelector((() => { for (;;) {} })())", ""),
    ("document.(", ""),
]


@pytest.fixture(scope="module")
def outcomes(chromium: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """Of all locators in one browser, which one of them hangs."""
    records = [
        task(locator, number, exact_match=value)
        for number, (locator, value) in enumerate(LOCATORS, 1)
    ]
    read = all_judged(tmp_path_factory.mktemp("locators"), records, StoredPage(url=URL, html=HTML))
    return [outcome for outcome, _ in read]


@pytest.mark.parametrize("number", range(len(LOCATORS)), ids=[text for text, _ in LOCATORS])
def test_a_locator_is_read_as_the_harness_reads_it(outcomes: list[Outcome], number: int) -> None:
    assert outcomes[number] is Outcome.PASS


def test_what_the_run_recorded_itself_is_kept(chromium: Path, tmp_path: Path) -> None:
    page = StoredPage(url=URL, html=HTML, values={"document.title": "Recorded"})
    outcome, _ = judged(tmp_path, task("document.title", exact_match="recorded"), page)
    assert outcome is Outcome.PASS


def test_without_html_the_value_stays_unknown(chromium: Path, tmp_path: Path) -> None:
    outcome, read = judged(tmp_path, task("document.title", exact_match=""), StoredPage(url=URL))
    assert outcome is Outcome.UNKNOWN
    assert read.trace is not None
    assert read.trace.pages == (StoredPage(url=URL),)


def test_a_run_of_no_task_is_a_mistake(
    chromium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, runs = tmp_path / "tasks.json", tmp_path / "runs.jsonl"
    tasks.write_text(json.dumps([task("document.title", exact_match="")]))
    runs.write_text('{"task_id": 2}')
    assert main(["--tasks", str(tasks), "--runs", str(runs), "--save", str(tmp_path / "o")]) == 2
    assert "task id 2 is in no task file" in capsys.readouterr().err
