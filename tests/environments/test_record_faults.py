"""``env record --faults``: a clean arm and one for each fault, paired, with the proxy's events."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.commands import command as command_of
from tests.environments.agents.solver import solving
from tests.environments.cases import job, sound
from tests.http_thread import serving
from tests.llm_replies import Incoming, answer
from tests.llm_server import LlmServer
from tests.proxy.program import mitmproxy
from trajudge.annotations import store as annotation_store
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.model.case import write_cases
from trajudge.environments.recording.campaign import arms_of
from trajudge.environments.recording.fault_proxy import (
    FaultArm,
    FaultProxy,
    check_plan,
    horizon_of,
)
from trajudge.eval.cli import main as command
from trajudge.util.commands import FAILURES, MOST_PAGE_LOADS, OK, USAGE_ERROR
from trajudge.util.errors import UserError

__all__ = ["mitmproxy"]
pytestmark = pytest.mark.usefixtures("mitmproxy")
main = command_of("env record")

BUSY = {"id": "busy", "kind": "status", "status": 503, "policy": "random(1)"}
CASE = sound("unwish")


def plan_file(folder: Path, *faults: object) -> Path:
    path = folder / "plan.json"
    path.write_text(json.dumps({"seed": 0, "faults": faults}))
    return path


@pytest.mark.slow
def test_a_recording_with_a_fault(
    chromium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases, out = tmp_path / "cases.jsonl", tmp_path / "out"
    write_cases(cases, [CASE])
    words = ["--cases", str(cases), "--faults", str(plan_file(tmp_path, BUSY)), "--text-only"]
    agents = ["--agent", "resilient-reload", "resilient-none", "--seed", "2"]
    assert main([*words, *agents, "--out", str(out)]) == OK
    assert "trajudge proxy results" in capsys.readouterr().out
    found = {}
    for arm in ("clean", "busy"):
        labels = annotation_store.load(out / arm / "labels.jsonl")
        found[arm] = {label.key.agent: label.success for label in labels}
    assert found["clean"] == {"scripted-t": True, "scripted-r": True}
    assert found["busy"] == {"scripted-t": True, "scripted-r": False}
    facts = [json.loads(line) for line in (out / "busy/facts.jsonl").read_text().splitlines()]
    for fact in facts:
        (exposure,) = fact["injected"]["exposure"]
        assert exposure["fired"] == exposure["planned"]
        assert 1 <= exposure["planned"][0] <= horizon_of(CASE.config)
        assert fact["injected"]["plan"]["faults"] == [BUSY]
    planned = {json.dumps(fact["injected"]["exposure"][0]["planned"]) for fact in facts}
    assert len(planned) == 1, "one seed gives every agent the same faults"
    for trace in sorted((out / "busy/traces").iterdir()):
        entries = json.loads(trace.read_text())["log"]["entries"]
        assert 503 in [entry["response"]["status"] for entry in entries]
    for log in sorted((out / "busy/events").iterdir()):
        events = [json.loads(line) for line in log.read_text().splitlines()]
        assert [events[0]["type"], events[-1]["type"]] == ["task", "task_end"]
        assert len({event["task"] for event in events}) == 1
    script = tmp_path / "replies.jsonl"
    script.write_text(json.dumps({"text": "<success>Successful</success>"}) + "\n")
    asked = ["--model", "m", "--adapter", "scripted", "--script", str(script), "--yes"]
    runs = [str(tmp_path / "judged" / arm) for arm in ("clean", "busy")]
    for arm, run in zip(("clean", "busy"), runs, strict=True):
        data = ["--data", f"trajudge:{out / arm}", "--out", run]
        assert command(["judge", *asked, *data]) == OK
    results = ["proxy", "results", str(out), "--judge", "heuristic", "--out", str(tmp_path / "r")]
    assert command([*results, "--judged", *runs]) == OK
    content = json.loads((tmp_path / "r/results.json").read_text())
    rows = {row["agent"]: row for row in content["measures"]}
    assert rows["scripted-t"]["retention"]["estimate"] == 1
    assert rows["scripted-r"]["retention"]["estimate"] == 0
    assert rows["scripted-t"]["recovery"]["estimate"] == 1
    assert rows["scripted-t"]["extra"]["steps"]["estimate"] >= 1
    assert [(row["judge"], row["arm"]) for row in content["judged"]] == [
        ("heuristic", "clean"),
        ("heuristic", "busy"),
        ("simplified-axtree:m", "clean"),
        ("simplified-axtree:m", "busy"),
    ]
    precise = {row["arm"]: row["precision"]["estimate"] for row in content["judged"][2:]}
    assert precise == {"clean": 1.0, "busy": 0.5}, "it accepts the run that did not recover"
    assert sorted(json.loads((out / "resilience.json").read_text())["arms"]) == ["busy", "clean"]


@pytest.mark.slow
def test_a_model_under_a_fault(
    chromium: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is asked over HTTP; what it was asked, and what that costs, stands in the table. One
    budget holds for all arms."""
    cases, prices = tmp_path / "cases.jsonl", tmp_path / "prices.toml"
    plan = plan_file(tmp_path, {**BUSY, "policy": "at(2)"})
    write_cases(cases, [CASE])
    prices.write_text('date = "2026-01-01"\n[models.tiny]\ninput = 2\noutput = 8\n')
    words = ["--cases", str(cases), "--faults", str(plan), "--text-only"]
    words += ["--model", "tiny", "--adapter", "http", "--max-tokens", "100"]
    with LlmServer(text=solving(CASE, "Done.", reloads=True)) as server:
        words += ["--base-url", f"{server.url}/v1", "--prices", str(prices)]

        def recorded(name: str, *more: str) -> int:
            where = ["--out", str(tmp_path / name), "--cache", str(tmp_path / f"{name}.sqlite")]
            return command(["env", "record", *words, *where, *more])

        assert recorded("out") == OK
        usages = [_usage_of(server, asked) for asked in server.seen]
        content = _results(tmp_path, "out", "--prices", str(prices), "--full")
        clean = content["costs"][0]["dollars"]["estimate"]
        capsys.readouterr()
        assert recorded("poor", "--max-cost", f"{1.5 * clean:.6f}") == FAILURES
        assert "stopped: " in capsys.readouterr().err
    (row,) = content["measures"]
    figures = [row[name]["estimate"] for name in ("retention", "recovery")]
    assert (row["agent"], row["arm"], figures) == ("tiny", "busy", [1, 1])
    cost = {row["arm"]: row for row in content["costs"]}
    calls = {arm: one["model_calls"]["estimate"] for arm, one in cost.items()}
    assert calls == {"clean": CASE.shortest, "busy": CASE.shortest + 1}, "once more, to load again"
    # The prompt on the first page is the same in both: its reply is kept, and counts again.
    clean_calls, busy_calls = usages[: CASE.shortest], usages[:1] + usages[CASE.shortest :]
    for arm, told in zip(cost, (clean_calls, busy_calls), strict=True):
        prompts, replies = (sum(counts) for counts in zip(*told, strict=True))
        assert cost[arm]["tokens"]["estimate"] == prompts + replies
        assert cost[arm]["dollars"]["estimate"] == pytest.approx((2 * prompts + 8 * replies) / 1e6)
    assert row["extra"]["model_calls"]["estimate"] == 1
    assert (tmp_path / "poor/clean/labels.jsonl").exists()
    assert not (tmp_path / "poor/busy/labels.jsonl").exists()


def _usage_of(server: LlmServer, asked: Incoming) -> tuple[int, int]:
    """Tokens of the prompt and of the reply, as the server stated them."""
    assert callable(server.text)
    usage = json.loads(answer(asked, str(server.text(asked))).body)["usage"]
    return usage["prompt_tokens"], usage["completion_tokens"]


def _results(folder: Path, recorded: str, *more: str) -> dict[str, Any]:
    words = ["proxy", "results", str(folder / recorded), "--out", str(folder / "results")]
    assert command([*words, *more]) == OK
    content: dict[str, Any] = json.loads((folder / "results/results.json").read_text())
    return content


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "no JSON"),
        ("[]", "names no faults"),
        ('{"faults": []}', "names no faults"),
        ('{"faults": [{"kind": "reset"}]}', "needs an id"),
        ('{"faults": [{"id": "clean"}]}', "other than 'clean'"),
        ('{"faults": [{"id": "a"}, {"id": "a"}]}', "two faults have one id"),
    ],
)
def test_what_is_no_plan_is_refused(content: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(UserError, match=sentence):
        arms_of(path, pictures=True)


def test_a_plan_that_the_proxy_refuses_is_refused_in_its_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cases(tmp_path / "cases.jsonl", [CASE])
    plan = plan_file(tmp_path, {**BUSY, "status": 404})
    words = ["--cases", str(tmp_path / "cases.jsonl"), "--faults", str(plan)]
    assert main([*words, "--out", str(tmp_path / "out")]) == USAGE_ERROR
    assert "status is 404" in capsys.readouterr().err


def test_a_plan_is_checked_with_as_many_page_loads_as_the_proxy_takes(tmp_path: Path) -> None:
    check_plan(plan_file(tmp_path, {**BUSY, "policy": f"random({MOST_PAGE_LOADS})"}))
    with pytest.raises(UserError, match=f"less than or equal to {MOST_PAGE_LOADS}"):
        check_plan(plan_file(tmp_path, {**BUSY, "policy": f"random({MOST_PAGE_LOADS + 1})"}))


def test_each_fault_is_an_arm_of_its_own(tmp_path: Path) -> None:
    late = {"id": "late", "kind": "reset", "policy": "at(9)"}
    arms = arms_of(plan_file(tmp_path, BUSY, late), pictures=False)
    assert [arm.name for arm in arms] == ["clean", "busy", "late"]
    assert [len(arm.plan["faults"]) for arm in arms] == [0, 1, 1]
    assert not any(arm.pictures for arm in arms)
    assert arms[1].record == {"arm": "busy", "plan": {"seed": 0, "faults": [BUSY]}}


def test_each_run_is_a_task_of_the_proxy(tmp_path: Path) -> None:
    """An attempt has a seed of its own; events of other tasks and of earlier runs are not its."""
    asked: list[tuple[str, object]] = []
    log = tmp_path / "events.jsonl"
    log.write_text('{"task": "mine", "t": 0}\n')

    class Control(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, json.loads(body or b"null")))
            reply = json.dumps({"task": "mine", "exposure": [{"fault": "busy"}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *args: object) -> None:
            pass

    arm = FaultArm("busy", {"faults": [BUSY]}, pictures=False)
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Control)) as control:
        proxy = FaultProxy(arm, {"proxy": "", "control": control}, log, seed=5)
        proxy.begin(job(CASE, ORACLE, attempt=2))
        with log.open("a") as file:
            file.write('{"task": "mine", "t": 1}\n{"t": 2}\n{"task": "other", "t": 3}\n')
        ended = proxy.end()
    horizon = horizon_of(CASE.config)
    begun = {"id": CASE.config.id, "seed": 7, "horizon": horizon}
    assert asked == [("/task", begun), ("/end", None)]
    assert ended == ([{"task": "mine", "t": 1}], [{"fault": "busy"}])
