"""Reading locators in stored html with a real browser: no script of the page, no network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trajudge.rules.locators import main
from trajudge.rules.verdict import Outcome
from trajudge.rules.webarena import Run, StoredPage, Task, Trace, WebArenaEvaluator, load_runs

pytestmark = pytest.mark.browser

URL = "http://shop.test/cart"
HTML = """<title>Cart</title><div class=row>Green <b>tea</b></div>
<input name=count value=3><select><option>a<option selected>b</select>
<script>document.title = 'changed'</script><img src="http://shop.test/logo.png">"""


def task(locator: str, **contents: Any) -> dict[str, Any]:
    entry = {"url": "last", "locator": locator, "required_contents": contents}
    spec = {"eval_types": ["program_html"], "program_html": [entry]}
    return {"task_id": 1, "intent": "?", "eval": spec}


def judged(tmp_path: Path, record: dict[str, Any], page: StoredPage) -> tuple[Outcome, Run]:
    run = Run(task_id=1, trace=Trace(url=URL, pages=(page,)))
    tasks, runs, out = tmp_path / "tasks.json", tmp_path / "runs.jsonl", tmp_path / "out.jsonl"
    tasks.write_text(json.dumps([record]))
    runs.write_bytes(msgspec.json.encode(run))
    assert main(["--tasks", str(tasks), "--runs", str(runs), "--out", str(out)]) == 0
    (read,) = load_runs(out)
    spec = msgspec.convert(record, Task)
    return WebArenaEvaluator().evaluate(spec, None, read.trace).outcome, read


@pytest.mark.parametrize(
    ("locator", "value"),
    [
        ("document.querySelector('.row').outerText", "Green tea"),
        ("document.querySelector('[name=\"count\"').value", "3"),
        ("document.querySelector('select').selectedIndex", "1"),
        ("[...document.querySelectorAll('b')].map(e => e.outerText)[0]", "tea"),
        ("document.querySelector('.none').outerText", ""),
        ("document.querySelector('.none')", "None"),
        ("document.title", "Cart"),
        ("document.querySelector((() => { for (;;) {} })())", ""),
        ("document.(", ""),
    ],
)
def test_a_locator_is_read_as_the_harness_reads_it(
    chromium: Path, tmp_path: Path, locator: str, value: str
) -> None:
    outcome, _ = judged(tmp_path, task(locator, exact_match=value), StoredPage(url=URL, html=HTML))
    assert outcome is Outcome.PASS


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
    assert main(["--tasks", str(tasks), "--runs", str(runs), "--out", str(tmp_path / "o")]) == 2
    assert "task id 2 is in no task file" in capsys.readouterr().err
