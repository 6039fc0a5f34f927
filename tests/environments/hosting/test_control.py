"""Served runs over real HTTP: what each token reads, limits, ends, and what is kept."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from tests.environments.cases import sound
from tests.environments.hosting.served import FORM, TOKEN, Served, serving
from trajudge.annotations import store as annotation_store
from trajudge.environments.analysis.outcomes import read_outcomes
from trajudge.environments.checks.draws import NoSuchTask, held_out, templates
from trajudge.environments.hosting import runs
from trajudge.environments.hosting.listeners import new_token
from trajudge.environments.hosting.runs import HostLimits, RunHost, TaskRequest, TooMany
from trajudge.environments.hosting.tasks import Tasks
from trajudge.environments.kit.html import NONCE
from trajudge.environments.model.case import write_cases
from trajudge.environments.model.config import split_of
from trajudge.environments.recheck import rechecked
from trajudge.environments.verify import expected
from trajudge.eval.judge import main as judge
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.util.commands import OK
from trajudge.util.errors import UserError

CASES = [sound("price"), sound("wish")]
PRICE, WISH = (case.id for case in CASES)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(CASES) as running:
        yield running


def answer_of(served: Served, opened: dict[str, Any]) -> str:
    (right,) = expected(served.run(opened).run.evidence())
    return right


def form_of(page: str, operation: str) -> dict[str, str]:
    form = next(f for f in re.findall(r"<form.*?</form>", page, re.DOTALL) if operation in f)
    return dict(re.findall(r'type="?hidden"? name="?(\w+)"? value="?([^">]*)"?', form))


def wished(served: Served, opened: dict[str, Any]) -> dict[str, str]:
    """What the form sends that puts the right product on the list."""
    run = served.run(opened).run
    product = next(row["id"] for row in run.bound.values() if "id" in row)
    page = served.page(opened, f"/product?id={product}").text
    return form_of(page, "/do/wish")


def test_a_run_is_opened_played_finished_and_judged(served: Served) -> None:
    opened = served.open(task=PRICE, agent="mine", answer="action")
    assert opened.keys() == {
        *("id", "goal", "start_url", "answer_url", "run_token", "ends_at"),
    }
    assert "The value is the amount in dollars" in opened["goal"]
    assert served.page(opened, "/home").status == 200
    status = served.ask("GET", f"/v1/runs/{opened['id']}", token=opened["run_token"]).json
    assert (status["status"], status["pages"]) == ("open", 1)
    assert served.ask("GET", f"/v1/runs/{opened['id']}/verdict").status == 409
    right = answer_of(served, opened)
    first = served.finish(opened, answer=right)
    again = served.finish(opened, answer="another")
    assert (first.status, again.status, first.body) == (202, 202, again.body)
    verdict = served.verdict(opened)
    assert verdict["labels"]["success"] is True
    assert json.loads(verdict["answer"]) == {"answer": right}
    assert [event["kind"] for event in verdict["events"]] == ["document"]
    assert [e["request"]["url"] for e in verdict["har"]["log"]["entries"]] == [
        opened["start_url"].rpartition("/")[0] + "/home"
    ]


def test_nothing_changes_after_the_end_and_what_was_tried_is_noted(served: Served) -> None:
    opened = served.open(task=WISH)
    form = wished(served, opened)
    served.finish(opened, message="Done.")
    assert served.page(opened, "/do/wish", form).status == 410
    verdict = served.verdict(opened)
    assert verdict["labels"]["success"] is False
    assert verdict["late"] == ["POST /do/wish"]


def test_an_answer_on_the_page_ends_the_run(served: Served) -> None:
    opened = served.open(task=PRICE)
    asks = f"Submit the answer on the page {opened['answer_url']}, which asks for"
    assert opened["goal"].endswith(f"{asks} the amount in dollars.")
    right = answer_of(served, opened)
    form = form_of(served.page(opened, "/_answer").text, "/do/_answer")
    assert served.page(opened, "/do/_answer", {**form, "value0": right}).status == 200
    assert served.page(opened, "/home").status == 410
    verdict = served.verdict(opened)
    assert verdict["status"] == "finished" and verdict["labels"]["success"] is True


def test_no_response_to_a_run_token_says_what_is_true(served: Served) -> None:
    """Verdict, seed, level and predicates are for the harness; an answer that no page showed."""
    opened = served.open(task=PRICE)
    right, run = answer_of(served, opened), served.run(opened).run
    token, path = opened["run_token"], f"/v1/runs/{opened['id']}"
    private = [("GET", f"{path}/verdict"), ("DELETE", path), ("GET", "/v1/tasks")]
    private += [("POST", "/v1/runs"), ("POST", "/v1/batches")]
    replies = [served.ask(method, each, {}, token) for method, each in private]
    assert {reply.status for reply in replies} == {401}
    steps = {"steps": [{"action": "click('1')", "reasoning": "r"}]}
    replies += [
        served.ask("GET", path, token=token),
        served.ask("POST", f"{path}/steps", steps, token),
        served.ask("POST", f"{path}/steps", {"steps": []}, token),
        served.page(opened, "/home"),
        served.page(opened, "/answers.json"),
        served.page(opened, "/do/wish", {}),
        served.finish(opened, answer=right),
        served.ask("GET", path, token=token),
    ]
    words = ("success", "side_effect", "verdict", "seed", "level", "predicate", "instance",
             "vector", "shortest", "price.i")  # fmt: skip
    for reply in replies:
        shown = f"{reply.headers} {reply.text}"
        assert right not in shown
        assert run.key.hex() not in shown
        assert [word for word in words if word in shown] == []
    assert served.verdict(opened)["labels"]["success"] is True


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], f"{TOKEN} "[1:], "ü"])
def test_a_wrong_token_reads_nothing(served: Served, token: str | None) -> None:
    opened = served.open(task=WISH)
    path = f"/v1/runs/{opened['id']}"
    other = served.open(task=WISH)["run_token"]
    sent = None if token is None else token.encode().decode("latin-1")
    for each in (sent, other):
        assert served.ask("GET", path, token=each).status == 401
        assert served.ask("POST", f"{path}/finish", {}, token=each).status == 401
    for place in (f"{path}?token={opened['run_token']}", f"{path}?access_token={TOKEN}"):
        assert served.ask("GET", place, token=None).status == 401
    assert served.ask("GET", "/v1/runs/r000000000000", token=sent).status == 401


def test_twenty_threads_on_one_nonce_change_the_state_once(served: Served) -> None:
    opened = served.open(task=WISH)
    form = wished(served, opened)
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda _: served.page(opened, "/do/wish", form), range(20)))
    assert sorted(reply.status for reply in replies) == [303] + [403] * 19
    served.finish(opened, message="It is on the list.")
    verdict = served.verdict(opened)
    assert verdict["labels"]["success"] is True
    assert len(verdict["facts"]["tampering"]) == 19


@pytest.mark.parametrize(
    "headers",
    [
        {name: value for name, value in FORM.items() if not name.startswith("Sec-Fetch")},
        {**FORM, "Sec-Fetch-Site": "cross-site", "Origin": "http://elsewhere.example"},
        {**FORM, "Sec-Fetch-Mode": "cors"},
    ],
    ids=["no Sec-Fetch", "foreign origin", "script"],
)
def test_a_form_that_no_page_of_the_run_sent_is_refused(
    served: Served, headers: dict[str, str]
) -> None:
    opened = served.open(task=WISH)
    form = wished(served, opened)
    assert served.page(opened, "/do/wish", form, headers).status == 403
    assert served.page(opened, "/do/wish", {**form, NONCE: "0" * 20}).status == 403
    run = served.run(opened).run
    assert run.state.dump() == run.before


@pytest.mark.parametrize("host", ["RUN.elsewhere.example", "RUN.localhost", "127.0.0.1", ""])
def test_a_run_is_at_its_own_origin_alone(served: Served, host: str) -> None:
    opened = served.open(task=WISH)
    headers = {"Host": host.replace("RUN", opened["id"])}
    assert served.page(opened, "/home", headers=headers).status == 404


def test_names_of_runs_cannot_be_told_from_their_tasks(served: Served) -> None:
    one, two = served.open(task=WISH), served.open(task=WISH)
    assert one["id"] != two["id"] and one["run_token"] != two["run_token"]
    assert len(one["run_token"]) == 43  # 256 bits


def test_the_same_key_opens_the_same_run(served: Served) -> None:
    def ask(key: str, **wish: Any) -> Any:
        return served.ask("POST", "/v1/runs", wish, headers={"Idempotency-Key": key})

    first, again = ask("k1", task=WISH), ask("k1", task=WISH)
    assert (first.status, again.status, first.body) == (201, 201, again.body)
    assert ask("k1", task=PRICE).status == 409
    assert ask("k2", task=WISH).json["id"] != first.json["id"]
    long = "k" * 300
    assert ask(long, task=WISH).body == ask(long, task=WISH).body
    assert ask(f"{long}2", task=PRICE).status == 201


def test_requests_with_one_key_at_the_same_time_open_one_batch(served: Served) -> None:
    before, together = len(served.host.runs), Barrier(8)

    def ask(_: int) -> Any:
        together.wait()
        batch = {"runs": [{"task": WISH}] * 3}
        return served.ask("POST", "/v1/batches", batch, headers={"Idempotency-Key": "together"})

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(ask, range(8)))
    assert {reply.status for reply in replies} == {201}
    assert len({reply.body for reply in replies}) == 1
    assert len(served.host.runs) == before + 3


def test_a_key_whose_request_was_refused_is_free(served: Served) -> None:
    key = {"Idempotency-Key": "refused"}
    assert served.ask("POST", "/v1/runs", {"task": "no.such"}, headers=key).status == 404
    assert served.ask("POST", "/v1/runs", {"task": WISH}, headers=key).status == 201


@pytest.mark.parametrize(
    ("wish", "status", "sentence"),
    [
        ({"task": "no.such"}, 404, "no task is called 'no.such'"),
        ({"level": 4}, 400, "level is 4"),
        ({"tusk": PRICE}, 400, "tusk"),
        ({"agent": "a\nb"}, 400, "agent is"),
        ([], 400, "the request"),
    ],
)
def test_what_cannot_be_opened_is_said_in_a_sentence(
    served: Served, wish: object, status: int, sentence: str
) -> None:
    reply = served.ask("POST", "/v1/runs", wish)
    assert reply.status == status
    assert sentence in reply.json["error"]


def test_tasks_are_listed_by_split_and_level(served: Served) -> None:
    both = served.ask("GET", "/v1/tasks?split=train").json["tasks"]
    assert [one["task"] for one in both] == [PRICE, WISH]
    assert served.ask("GET", "/v1/tasks?split=validation&level=1").json["tasks"] == []
    assert served.ask("GET", "/v1/tasks?split=training").status == 400


def test_steps_of_the_agent_are_what_it_did(served: Served) -> None:
    opened = served.open(task=PRICE)
    path = f"/v1/runs/{opened['id']}/steps"
    picture = b64encode(b"\x89PNG\r\n\x1a\n...").decode()
    step = {"url": "http://x/", "axtree": "a tree", "action": "click('7')", "reasoning": "r"}
    sent = {"steps": [{**step, "screenshot": picture}, {"action": "done"}]}
    assert served.ask("POST", path, sent, opened["run_token"]).json == {"steps": 2}
    for bad in (
        {"screenshot": b64encode(b"text").decode()},
        {"observation": {"screenshot": {"path": "/etc/passwd"}}},
        {"index": 3},
    ):
        assert served.ask("POST", path, {"steps": [bad]}, opened["run_token"]).status == 400
    for further, status in ((199, 400), (198, 202), (1, 400)):  # 200 in all
        more = {"steps": [{"action": "noop()"}] * further}
        assert served.ask("POST", path, more, opened["run_token"]).status == status
    served.finish(opened, answer=3)
    assert served.verdict(opened)["facts"]["steps_from"] == "agent"
    recorded = served.run(opened).recorded
    assert recorded is not None
    steps = recorded.trajectory.steps
    assert [step.action for step in steps] == ["click('7')", "done", *["noop()"] * 198, None]
    assert steps[0].observation.axtree == "a tree" and steps[0].reasoning == "r"


def test_limits_say_when_to_come_again() -> None:
    assert HostLimits() == HostLimits(64, 1_000, 32 * 2**20, 60, 1_000)
    limits = HostLimits(runs=1, requests=3, minutes=0.5)
    with serving(CASES, limits) as served:
        opened = served.open(task=WISH, minutes=600)
        full = served.ask("POST", "/v1/runs", {"task": WISH})
        assert full.status == 429 and 1 <= int(full.headers["Retry-After"]) <= 30
        assert [served.page(opened, "/home").status for _ in range(4)] == [200, 200, 200, 429]
        assert 1 <= int(served.page(opened, "/home").headers["Retry-After"]) <= 30
        served.finish(opened)
        assert served.verdict(opened)["labels"]["success"] is False
        served.open(task=WISH)
    with serving(CASES, HostLimits(bytes=2_000)) as served:
        opened = served.open(task=WISH)
        # A form of one byte too many, and one that just fits and is refused for what it is.
        sent = [served.page(opened, "/do/wish", {"a": "x" * size}) for size in (1_999, 1_998)]
        assert [reply.status for reply in sent] == [429, 403]
        opened = served.open(task=WISH)
        assert [served.page(opened, "/home").status for _ in range(2)] == [200, 429]


def test_a_run_ends_with_its_time_and_its_steps(served: Served) -> None:
    late = served.open(task=WISH, minutes=1e-6)
    assert served.page(late, "/home").status == 410
    assert served.verdict(late)["status"] == "expired"
    short = served.open(task=WISH, max_steps=1)
    assert [served.page(short, "/home").status for _ in range(3)] == [200, 200, 410]
    assert served.verdict(short)["facts"]["steps"] == 1
    led = served.open(task=WISH, max_steps=1)
    assert served.page(led, "/do/wish", wished(served, led)).status == 303  # shows no page itself
    status = served.ask("GET", f"/v1/runs/{led['id']}", token=led["run_token"]).json
    assert (status["status"], status["pages"]) == ("open", 1)


def test_a_run_that_is_deleted_is_forgotten(served: Served) -> None:
    opened = served.open(task=WISH)
    assert served.ask("DELETE", f"/v1/runs/{opened['id']}").status == 204
    assert served.page(opened, "/home").status == 404
    assert served.ask("GET", f"/v1/runs/{opened['id']}").status == 404


def test_what_runs_come_to_is_read_by_judge_results_and_verify(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, cases = tmp_path / "served", tmp_path / "cases.jsonl"
    write_cases(cases, CASES)
    with serving(CASES, folder=out) as served:
        wish = {"task": PRICE, "agent": "mine"}
        batch = served.ask("POST", "/v1/batches", {"runs": [wish, {**wish, "task": WISH}]}).json
        price, other = batch["runs"]
        lines = f"/v1/batches/{batch['id']}.jsonl"
        assert served.ask("GET", lines).status == 409
        served.page(price, "/home")
        served.finish(price, answer=answer_of(served, price))
        assert served.page(other, "/do/wish", wished(served, other)).status == 303
        served.finish(other, message="It is on the list.")
        (tmp_path / "batch.jsonl").write_bytes(served.ask("GET", lines).body)
        served.open(task=WISH)  # nobody comes
    runs, lines_read = store.read(out), store.read(tmp_path / "batch.jsonl")
    by_task = {run.key.task_id: run for run in runs if isinstance(run, Trajectory)}
    assert {run.key.agent for run in by_task.values()} == {"mine"} and len(by_task) == 2
    assert by_task == {run.key.task_id: run for run in lines_read if isinstance(run, Trajectory)}
    labels = [label.success for label in annotation_store.load(out / "labels.jsonl")]
    assert labels == [True, True]
    assert [run.success for run in read_outcomes([out], cases)] == [True, True]
    assert [run.differences for run in rechecked(out)] == [[], []]
    words = ["--judge", "heuristic", "--data", f"trajudge:{out}", "--out", str(tmp_path / "run")]
    assert judge(words) == OK
    with pytest.raises(UserError, match="holds a recording that was closed"), serving(folder=out):
        pass
    with serving(CASES, folder=tmp_path / "stopped") as served:
        served.page(served.open(task=WISH), "/home")  # somebody came, and did not finish
    [unfinished] = annotation_store.load(tmp_path / "stopped" / "labels.jsonl")
    assert unfinished.success is False
    logged = capfd.readouterr()
    for token in (TOKEN, price["run_token"], other["run_token"]):
        assert token not in logged.out + logged.err
        assert not [f for f in out.rglob("*") if f.is_file() and token.encode() in f.read_bytes()]


def test_runs_end_at_their_time_and_the_oldest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(runs, "monotonic", lambda: now)
    host = RunHost(Tasks(CASES), HostLimits(runs=2, minutes=1, kept=1))
    short, other = (host.open(TaskRequest(task=WISH, minutes=minutes)) for minutes in (0.5, None))
    assert (short.until, other.until) == (130, 160)
    assert datetime.now(UTC) < short.ends_at < other.ends_at
    with pytest.raises(TooMany, match="2 runs are open") as full:
        host.open(TaskRequest(task=WISH))
    assert full.value.seconds == 30
    for now, status in ((129.9, "open"), (130.0, "expired")):  # noqa: B007 - the clock reads it
        host.sweep()
        assert (short.status, other.status) == (status, "open")
    assert short.recorded is not None and other.recorded is None
    assert [*host.runs.values()] == [short, other]
    other.end("finished")
    host.sweep()
    assert [*host.runs.values()] == [other]


def test_a_run_is_written_once_and_one_that_is_dropped_while_it_is_open_is_not(
    tmp_path: Path,
) -> None:
    host = RunHost(Tasks(CASES), HostLimits(), tmp_path / "none")
    host.open(TaskRequest(task=WISH))
    host.close()  # nobody came: the folder may be used again
    host = RunHost(Tasks(CASES), HostLimits(), tmp_path / "none")
    ended, dropped, open_ = (host.open(TaskRequest(task=WISH)) for _ in range(3))
    for hosted in (ended, dropped):
        hosted.end("finished")
    host.settle(ended)
    host.settle(ended)
    host.drop(dropped)
    host.drop(open_)
    assert (tmp_path / "none" / "runs.jsonl").read_bytes().count(b"\n") == 3  # its head and two
    host.close()
    written = [each for each in store.read(tmp_path / "none") if isinstance(each, Trajectory)]
    assert sorted(each.key.attempt for each in written) == [0, 1]


def test_tasks_are_drawn_in_a_split_and_at_a_level() -> None:
    of_cases = Tasks(CASES)
    assert of_cases.listed("validation", CASES[0].level) == []
    with pytest.raises(NoSuchTask, match="no task is of level"):
        of_cases.find(None, CASES[0].level, 0, "validation")
    drawn = Tasks(split="validation", with_test=True)
    assert len(drawn.listed()) == len(templates("all", "validation", pictures=True)[0])
    assert drawn.find(None, 2, 0).level == 2
    buys = drawn.find("shop.buy", None, 0)
    assert (buys.config.scenario, split_of(buys.config.seed)) == ("buy", "validation")
    alone = next(
        each["task"] for each in drawn.listed("test") if held_out(*each["task"].split("."))
    )
    assert split_of(drawn.find(alone, None, 0).config.seed) == "test"


def test_a_token_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "harness-token").mkdir()
    sentence = re.escape(f"{tmp_path / 'harness-token'}: cannot be written (Is a directory)")
    with pytest.raises(UserError, match=f"^{sentence}$"):
        new_token(tmp_path)
