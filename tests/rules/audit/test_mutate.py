"""``trajudge rules mutate`` on built and on recorded runs, of both kinds of tasks."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import rules_mutate as main
from tests.rules.verified.tasks import SHOP, answer, mutation, page, request, task
from tests.samples import narrow
from tests.tables import mistakes
from trajudge.rules.verified.tasks import task_record
from trajudge.util.commands import OK, USAGE_ERROR

CART = {"expected": {"url": "__SHOPPING__/cart", "http_method": "POST", "post_data": {"n": "2"}}}
LAX = {"expected": {"url": "^.*/cart.*$", "http_method": "POST"}}
NEVER = {"should_not_exist": True, "expected": {"url": "__SHOPPING__/pay", "http_method": "POST"}}
NUMBERS = {"type": "array", "items": {"type": "number"}}
STRICT = [task([12], NUMBERS, task_id=1), mutation(CART, NEVER, task_id=2)]


def _tasks(folder: Path, *tasks: Any) -> Path:
    path = folder / "tasks.json"
    path.write_text(json.dumps([task_record(one) for one in tasks]))
    return path


def _run(folder: Path, task_id: int, said: Any, *entries: dict[str, Any]) -> None:
    own = folder / str(task_id)
    own.mkdir(parents=True)
    (own / "agent_response.json").write_text(said if isinstance(said, str) else json.dumps(said))
    (own / "network.har").write_text(json.dumps({"log": {"entries": list(entries)}}))


def _report(folder: Path, *words: str) -> dict[str, Any]:
    assert main([*words, "--out", str(folder / "out")]) == OK
    found: dict[str, Any] = json.loads((folder / "out/mutation.json").read_text())["report"]
    return found


def _trials(report: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {rate["mutator"]: (rate["wrong"], rate["trials"]) for rate in report["mutators"]}


def test_a_strict_specification_is_fooled_by_nothing(tmp_path: Path) -> None:
    report = _report(tmp_path, "--tasks", str(_tasks(tmp_path, *STRICT)))
    assert report["false_accepts"]["wrong"] == report["false_rejects"]["wrong"] == 0
    assert report["false_accepts"]["low"] == 0 < report["false_accepts"]["high"]
    assert _trials(report).keys() >= {
        *("sign", "digit", "missing_item", "status", "wrong_host", "dropped_event"),
        *("request: path", "request: post_data", "forbidden_request", "json_after_prose"),
    }


def test_a_lax_specification_is_fooled_and_the_mistakes_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _tasks(tmp_path, mutation(LAX, task_id="lax"))
    report = _report(tmp_path, "--tasks", str(path))
    wrong = {name for name, (count, _) in _trials(report).items() if count}
    assert wrong == {"wrong_host", "request: path"}
    shown = capsys.readouterr().out
    assert "task lax: accepted wrong_host" in shown
    assert "false accepts: " in shown
    rows = list(csv.DictReader((tmp_path / "out/mutation.csv").open()))
    assert {(row["case"], row["change"], row["must"]) for row in rows} == {
        ("lax", name, "fail") for name in wrong
    }


def test_the_release_rejects_what_any_reader_would_accept(tmp_path: Path) -> None:
    words = ("--tasks", str(_tasks(tmp_path, *STRICT)), "--mode", "release-1.2.3")
    assert _trials(_report(tmp_path, *words))["byte_order_mark"] == (2, 2)


def test_recorded_runs_are_changed_where_their_checks_hold(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    _run(runs, 1, f"It is {json.dumps(answer([12]))}", page("/"))
    sent = request("/cart", "POST", form="n=2")
    _run(runs, 2, answer(task_type="mutate"), page("/"), sent, page("/done"))
    words = ("--tasks", str(_tasks(tmp_path, *STRICT)), "--runs", str(runs))
    found = _trials(_report(tmp_path, *words, "--site", f"shopping={SHOP}"))
    assert found["original"] == (0, 2)
    assert found["digit"] == found["dropped_event"] == found["request: post_data"] == (0, 1)
    assert found["forbidden_request"] == (0, 1)


def test_a_request_that_was_sent_twice_is_not_decisive(tmp_path: Path) -> None:
    sent = request("/cart", "POST", form="n=2")
    _run(tmp_path / "runs", 2, answer(task_type="mutate"), page("/"), sent, sent)
    words = ("--tasks", str(_tasks(tmp_path, *STRICT)), "--runs", str(tmp_path / "runs"))
    assert "dropped_event" not in _trials(_report(tmp_path, *words))


def test_a_run_that_the_rule_fails_is_a_false_rejection_unless_left_out(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    _run(runs, 1, answer(["a dozen"]), page("/"))
    _run(runs, 2, answer(task_type="mutate"), page("/"), request("/cart", "POST", form="n=2"))
    words = ("--tasks", str(_tasks(tmp_path, *STRICT)), "--runs", str(runs))
    assert _trials(_report(tmp_path, *words))["original"] == (1, 2)
    assert _trials(_report(tmp_path, *words, "--passing-only"))["original"] == (0, 1)


ORIGINAL = [
    {
        "task_id": 1,
        "intent": "How far?",
        "eval": {"eval_types": ["string_match"], "reference_answers": {"must_include": ["20 km"]}},
    },
    {
        "task_id": 2,
        "intent": "Open the cart.",
        "eval": {
            "eval_types": ["url_match", "program_html"],
            "reference_url": "__SHOPPING__/cart |OR| __SHOPPING__/basket",
            "program_html": [
                {
                    "url": "last",
                    "locator": "document.title",
                    "required_contents": {"must_include": ["tea |OR| coffee"]},
                },
                {
                    "url": "func:latest()",
                    "locator": "",
                    "required_contents": {"exact_match": "__SHOPPING__/x"},
                },
            ],
        },
    },
]


def test_original_tasks_have_built_runs_that_pass(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(ORIGINAL))
    found = _trials(_report(tmp_path, "--tasks", str(path)))
    assert found["original"] == (0, 2)
    assert found["denial"] == found["sign"] == (1, 1)
    assert found["wrong_host"] == found["stale_event"] == found["unchanged_page"] == (0, 1)
    runs = tmp_path / "runs.jsonl"
    runs.write_text('{"task_id": 1, "answer": "It is 20 km"}\n')
    recorded = _trials(_report(tmp_path, "--tasks", str(path), "--runs", str(runs)))
    assert (recorded["original"], recorded["denial"]) == ((0, 1), (1, 1))


@mistakes(
    """
    --mode original => --mode original: verified tasks have sound
    --runs /nonexistent => no such folder
    --site shopping => write SITE=URL
    --site shoping=http://a.test => shoping=http://a.test: no task has such a site: use one of
    """
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--tasks", str(_tasks(tmp_path, *STRICT)), *words]) == USAGE_ERROR
    assert sentence in capsys.readouterr().err


@narrow
@pytest.mark.slow
@pytest.mark.real_data
def test_the_published_tasks(
    tmp_path: Path,
    real_data: Path,
    screen_lines: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is accepted falsely is open in the specifications: the linter names each of them."""
    monkeypatch.chdir(tmp_path)  # a line is as long as the path that it names
    # On a slow machine lines of progress come, which a terminal takes off its screen again.
    monkeypatch.setattr("trajudge.util.terminal.PLAIN_EVERY", 1e6)
    report = _report(Path(), "--tasks", str(real_data / "webarena/webarena-verified.json"))
    assert report["false_rejects"]["wrong"] == 0
    assert {name: count for name, (count, _) in _trials(report).items() if count} == {
        "request: path": 42,
        "wrong_host": 20,
        "request: post_data": 8,
        "request: header": 3,
    }
    assert report["false_accepts"]["trials"] > 14_000
    assert "false accepts: " in screen_lines()[0]


def test_the_finding_and_the_worst_change_stand_first_and_all_changes_behind_full(
    tmp_path: Path, screen_lines: Callable[[], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--tasks", str(_tasks(tmp_path, *STRICT, mutation(LAX, task_id="lax")))]
    assert main(words) == OK
    lines = screen_lines()
    assert lines[0].startswith("tasks.json, sound rules: false accepts: ")
    assert lines[1].startswith("false rejects: 0.0 [")
    head = next(number for number, line in enumerate(lines) if line.startswith("change "))
    assert lines[head + 1].startswith(("request: path ", "wrong_host "))
    assert any(line.startswith("task lax: accepted wrong_host:") for line in lines)
    assert main([*words, "--show", "0"]) == OK
    assert "2 more misjudgments" in capsys.readouterr().out
    assert main([*words, "--full"]) == OK
    shown = capsys.readouterr().out
    assert shown.startswith("false accepts: ")
    assert shown.count("\ntask lax: accepted ") == 2


@narrow
@pytest.mark.real_data
def test_the_report_on_a_published_file_takes_one_screen(
    real_data: Path,
    screen_lines: Callable[[], list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--tasks", str(real_data / "webarena" / "test.raw.json")]
    assert main(words) == 0
    lines = screen_lines()
    assert main([*words, "--full"]) == 0
    full = capsys.readouterr().out
    assert len(full.splitlines()) > len(lines) or " more: --full" not in "".join(lines)
