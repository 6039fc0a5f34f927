"""A trimmed trace is evaluated as the whole one is: in both modes, passing or failing."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_words import instead
from tests.commands import rules_trim as main
from tests.rules.verified.tasks import answer, mutation, page, request
from trajudge.rules.audit.verified import SyntheticRun, synthesise
from trajudge.rules.har import Kept, read_raw, trimmed, write_har
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified import runs as trimming
from trajudge.rules.verified.dataset import Task, load_tasks, task_record
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import load_trace
from trajudge.rules.verified.runs import kept_for
from trajudge.util.commands import FAILURES, OK, USAGE_ERROR

SECRET = "run=secret"
NOISE = [
    request("/a.css", content={"size": 4, "mimeType": "text/css", "text": "p {}"}),
    request("/logo.png?x=1", content={"text": "aaaa", "encoding": "base64"}),
]


def _noisy(entries: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """Put among the entries what browsers record besides."""
    noisy = list(NOISE)
    for entry in entries:
        made = json.loads(json.dumps(entry))
        made["_monotonicTime"], made["pageref"] = 12.5, "page@1"
        made["request"]["headers"].append({"name": "Authorization", "value": SECRET})
        response = {"content": {"mimeType": "text/html", "text": "<p>" * 999}, "headers": []}
        made["response"] = {**response, **made["response"]}
        made["response"]["headers"] = [
            *made["response"]["headers"],
            {"name": "X-Powered-By", "value": "tea"},
        ]
        noisy += [made, *NOISE]
    return noisy


def _variants(run: SyntheticRun) -> Iterator[tuple[dict[str, Any], ...]]:
    """Yield the run as it passes, and runs that fail: its last request wrong, or not sent."""
    yield run.entries
    wrong = json.loads(json.dumps(run.entries[-1]))
    wrong["request"]["url"] += "x"
    wrong["response"]["status"] = 500
    yield (*run.entries[:-1], wrong)
    if run.entries[:-1]:
        yield run.entries[:-1]


def _asks_for_more(task: Task) -> bool:
    kept = kept_for(task)
    return kept.contents or kept.cookies or bool(kept.headers)


@pytest.mark.real_data
@pytest.mark.slow
def test_every_kind_of_published_task_is_evaluated_as_before(
    real_data: Path, tmp_path: Path
) -> None:
    tasks = load_tasks(real_data / "webarena" / "webarena-verified.json")
    chosen = [task for n, task in enumerate(tasks) if n % 15 == 0 or _asks_for_more(task)]
    whole, small = tmp_path / "whole.har", tmp_path / "small.har"
    outcomes = set()
    for task in chosen:
        run = synthesise(task).run
        if run is None:
            continue
        for entries in _variants(run):
            write_har(whole, {"log": {"entries": _noisy(entries)}})
            write_har(small, trimmed(read_raw(whole), kept_for(task)))
            assert SECRET not in small.read_text()
            for mode in Mode:
                evaluator = VerifiedEvaluator(mode, run.hosts)
                verdicts = [
                    evaluator.evaluate(task, run.answer, load_trace(path))
                    for path in (whole, small)
                ]
                assert verdicts[0] == verdicts[1], task.task_id
                outcomes.add((mode, verdicts[0].outcome))
    assert {(mode, held) for mode in Mode for held in (Outcome.PASS, Outcome.FAIL)} <= outcomes


@pytest.mark.real_data
def test_the_published_demo_is_a_tenth_of_its_size(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = real_data / "webarena" / "webarena-verified.json"
    words = ["--tasks", str(tasks), "--runs", str(real_data / "webarena/demo")]
    assert main([*words, "--out", str(tmp_path / "small")]) == OK
    assert "359 entries are 50" in capsys.readouterr().out
    own = tmp_path / "small" / "108"
    assert (own / "network.har").stat().st_size < 804_617 / 10
    assert (own / "agent_response.json").exists()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs of tasks that look at a form, one with its trace and bodies in an archive."""
    form = {"url": "__SHOPPING__/p", "http_method": "POST", "post_data": {"a": "x"}}
    tasks = [task_record(mutation({"expected": form}, task_id=n)) for n in (1, 2)]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    for number in "12":
        own = tmp_path / "runs" / number
        own.mkdir(parents=True)
        (own / "agent_response.json").write_text(json.dumps(answer(task_type="mutate")))
    sent = request("/p", "POST")
    sent["request"]["postData"] = {"mimeType": "application/json", "text": "", "_file": "b.json"}
    with zipfile.ZipFile(tmp_path / "runs/1/network.har.zip", "w") as archive:
        archive.writestr("har.har", json.dumps({"log": {"entries": [page("/"), sent]}}))
        archive.writestr("b.json", '{"a": "x"}')
    (tmp_path / "runs/2/network.har").write_text("{")
    return tmp_path


def _words(folder: Path, *more: str) -> list[str]:
    words = ["--tasks", str(folder / "tasks.json"), "--runs", str(folder / "runs")]
    return instead([*words, "--out", str(folder / "out")], more)


def test_bodies_apart_are_put_in_their_place(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_words(runs)) == FAILURES
    assert "2/network.har: cut off" in capsys.readouterr().err
    entry = json.loads((runs / "out/1/network.har").read_text())["log"]["entries"][1]
    assert entry["request"]["postData"] == {"mimeType": "application/json", "text": '{"a": "x"}'}
    assert not (runs / "out/2/network.har").exists()
    shutil.rmtree(runs / "out")
    assert main(_words(runs, "--task", "1")) == OK


def test_a_trace_that_would_be_evaluated_otherwise_is_not_written(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lossy(recording: Any, kept: Kept) -> dict[str, Any]:
        document = trimmed(recording, kept)
        del document["log"]["entries"][1]
        return document

    monkeypatch.setattr(trimming, "trimmed", lossy)
    assert main(_words(runs, "--task", "1")) == FAILURES
    assert "would be fail instead of pass" in capsys.readouterr().err
    assert not (runs / "out/1/network.har").exists()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [(["--task", "3"], "holds no run of task 3"), (["--out", "{0}/runs/out"], "lies in --runs")],
)
def test_a_mistake_in_the_call_is_one_sentence(
    runs: Path, more: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_words(runs, *(word.format(runs) for word in more))) == USAGE_ERROR
    assert sentence in capsys.readouterr().err


def test_what_is_no_har_entry_upsets_nothing(tmp_path: Path) -> None:
    odd = [{"request": 3}, {"request": {"url": 3, "headers": {"a": 1}}, "response": []}, {}, 3]
    (tmp_path / "odd.har").write_text(json.dumps({"log": {"entries": odd}}))
    document = trimmed(read_raw(tmp_path / "odd.har"), Kept())
    assert len(document["log"]["entries"]) == 4


def test_a_submission_is_trimmed_as_its_folder(runs: Path) -> None:
    packed = shutil.make_archive(str(runs / "packed"), "gztar", runs / "runs")
    assert main(_words(runs, "--task", "1")) == OK
    words = ["--tasks", str(runs / "tasks.json"), "--runs", packed, "--task", "1"]
    assert main([*words, "--out", str(runs / "again")]) == OK
    made = [runs / folder / "1/network.har" for folder in ("out", "again")]
    assert made[0].read_bytes() == made[1].read_bytes()


def test_what_only_python_writes_is_trimmed_too(runs: Path) -> None:
    """Half an emoji at the end of a page's text, and a time that is no number."""
    entries = [page("/"), request("/p", "POST", form="a=x")]
    entries[0]["response"]["content"] = {"text": "tea \ud83d"}
    entries[0]["time"] = float("nan")
    har = json.dumps({"log": {"entries": entries}})
    (runs / "runs/2/network.har").write_text(har)
    assert main(_words(runs)) == OK
    assert len(load_trace(runs / "out/2/network.har").events) == 2
