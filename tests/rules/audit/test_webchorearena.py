"""WebChoreArena's 532 tasks, in WebArena's form: our figures beside a count of the raw file."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import rules_blind as blind
from tests.commands import rules_lint as lint
from tests.screens import on_one_line
from trajudge.rules.audit.blind import TEXT_AGENTS
from trajudge.rules.webarena import load_tasks

pytestmark = pytest.mark.real_data
_NUMBER = re.compile(r"^\d|\d$")


@pytest.fixture
def tasks_file(real_data: Path) -> Path:
    return real_data / "webchorearena/test_webchore.raw.json"


def _clean(text: str) -> str:
    text = text.strip()
    quoted = text[:1] in ("'", '"') and text[:1] == text[-1:]
    return (text[1:-1] if quoted else text).lower()


def _counted(spec: dict[str, Any]) -> Iterator[str]:
    """Yield the category of each weakness, read off the raw specification."""
    answers = spec["reference_answers"] or {}
    texts = answers.get("must_include", [])
    yield from ["response_substring"] * ("must_include" in answers)
    yield from ["llm_evaluation"] * ("fuzzy_match" in answers)
    listed = [answers[how] for how in ("exact_match", "fuzzy_match") if how in answers]
    read = [part for text in texts for part in text.lower().split(" |or| ")]
    yield from ["dead_marker" for text in [*read, *listed] if "|or|" in text.lower()]
    included = [text for text in texts if len(text.strip()) > 1 or len(texts) > 1]
    for check in spec["program_html"]:
        on_page = check["required_contents"].get("must_include", [])
        included += on_page
        yield from ["page_content"] * (not check["locator"].strip())
        yield from ["page_substring"] * len(on_page)
        yield from ["locator_substring"] * (len(on_page) * ("outerText" in check["locator"]))
    parts = [[part.strip() for part in _clean(text).split(" |or| ")] for text in included]
    short = [[part for part in listed if len(part) <= 12] for listed in parts]
    yield from ["number_run_on" for listed in short if any(map(_NUMBER.search, listed))]
    fields = {"string_match": answers, "url_match": spec["reference_url"]}
    fields["program_html"] = spec["program_html"]
    for name, field in fields.items():
        yield from ["dead_field"] * (bool(field) and name not in spec["eval_types"])


def test_the_linter_finds_what_a_count_of_the_raw_file_finds(
    tasks_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own evaluator reads 49 of the 51 markers that the original harness does not."""
    assert lint(["--tasks", str(tasks_file), "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("note: ") == 1
    assert "eval.price_calculation (9 of 532 tasks)" in on_one_line(shown.err)
    assert max(map(len, shown.err.splitlines())) <= 100
    findings = json.loads((tmp_path / "lint.json").read_text())["findings"]
    assert (len(findings), len(load_tasks(tasks_file))) == (614, 532)
    found = Counter(finding["category"] for finding in findings)
    specs = [task["eval"] for task in json.loads(tasks_file.read_text())]
    assert found - Counter(given_away=1) == Counter(
        name for spec in specs for name in _counted(spec)
    )


def _passes(spec: dict[str, Any], answer: str) -> bool:
    """Judge a task of answers alone as its own harness does, without a model's help."""
    if spec["eval_types"] != ["string_match"]:
        return False
    held = []
    for how, value in spec["reference_answers"].items():
        if how == "exact_match":
            held.append(_clean(value) == _clean(answer))
        elif how == "must_include":
            alone = len(value) == 1 and len(value[0].strip()) == 1
            said = re.findall(r"\w+|\S", answer.lower()) if alone else _clean(answer)
            held.append(
                all(
                    any(part.strip() in said for part in _clean(text).split(" |or| "))
                    for text in value
                )
            )
        else:
            held.append(value == "N/A" and answer == "N/A")
    return all(held)


def test_agents_that_see_no_page_pass_what_another_reader_says(
    tasks_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert blind(["--tasks", str(tasks_file), "--out", str(tmp_path)]) == 0
    agents = json.loads((tmp_path / "naive.json").read_text())["agents"]
    assert agents[-1]["agent"] == "union"
    records = {record["task_id"]: record for record in json.loads(tasks_file.read_text())}
    passed = {
        task.task_id
        for task in load_tasks(tasks_file)
        for agent in TEXT_AGENTS
        if _passes(records[task.task_id]["eval"], str(agent.answer(task)))
    }
    assert set(agents[-1]["passed"]) == passed
    assert len(passed) == 68
