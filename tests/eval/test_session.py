"""A session of a run as a whole: its workers, its samples, its end before the end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.commands import score as score_main
from tests.eval.cases import failed, key, label, said
from tests.eval.judge_command import SAMPLE, model, run, statuses
from tests.eval.till import PRICES, Till
from tests.judges.runs import png
from tests.llm_server import LlmServer, always
from tests.screens import on_one_line
from trajudge.eval.cli import main
from trajudge.eval.reporting.sentences import finding, notes
from trajudge.eval.reporting.summary import summary
from trajudge.eval.runs.jobs import (
    Interrupted,
    JudgmentJob,
    StopSignal,
    first_samples_ahead,
    graceful_interrupt,
    jobs_done,
    judge_all,
    with_unreached,
    without_unreached,
    workers_for,
)
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import UnfinishedRun
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    read_judgments,
    read_manifest,
    read_rewards,
    write_manifest,
)
from trajudge.eval.store.table import JudgmentTable, KeyColumns
from trajudge.judges.engine.budget import BudgetSpent
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.sample import sample_path
from trajudge.util.errors import UserError


@pytest.mark.usefixtures("own_folder")
def test_what_a_run_has_come_to_is_not_printed_behind_the_scenes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed: list[str] = []

    def told(key: TrajectoryKey) -> str:
        printed.append(key.task_id)
        return key.task_id

    monkeypatch.setattr(TrajectoryKey, "__repr__", told)
    assert run("--judge", "rule-based") == 0
    assert not printed, "asyncio prints a task's result when it compares signal handlers"


@pytest.mark.usefixtures("own_folder")
def test_a_run_that_ends_early_counts_what_it_has_not_come_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By hand: the rest of the data is not judged, whoever scores it; resumed, nothing is missing
    and the files are those of a run that was never stopped."""
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 2.5\noutput = 10.0\n')
    words = ["--prices", "prices.toml", "--concurrency", "2"]
    with LlmServer() as server:
        assert model(server, *words, "--max-cost", "0.05") == 1
        some = len(statuses())
        assert 0 < some < SAMPLE
        spent = sum(call.cost or 0 for j in read_judgments(Path("run")) for call in j.calls)
        assert 0 < spent <= 0.05
        said = f"Coverage: {some} of {SAMPLE} judged"
        assert said in capsys.readouterr().out
        assert score_main(["run"]) == 0
        assert said in capsys.readouterr().out
        assert len(read_rewards(Path("run"))) == SAMPLE
        assert model(server, *words, "--max-cost", "5") == 0
        assert f"Coverage: {SAMPLE} of {SAMPLE} judged" in capsys.readouterr().out
        assert model(server, *words, "--out", "whole", "--max-cost", "5") == 0
    assert Path("run/rewards.jsonl").read_bytes() == Path("whole/rewards.jsonl").read_bytes()


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize(
    ("refusing", "advice"),
    [
        (0, "the data lacks what the judge needs: mend it, then start again with --retry-failed"),
        (1, "--retry-failed asks for 1 of them again; 2 were skipped, the data lacks what"),
    ],
)
def test_what_was_skipped_is_not_asked_again(
    refusing: int, advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Observation(url="http://shop/", screenshot=png())
    runs = [
        Trajectory(
            key=key(n), raw_task_id=str(n), goal="Buy tea.",
            steps=(Step(index=0, observation=seen if n < refusing else Observation(url="x")),),
        )
        for n in range(2 + refusing)
    ]  # fmt: skip
    store.write(tmp_path / "data", runs)
    with LlmServer(script=always("refusal")) as server:
        words = ["--representation", "screenshot", "--model", "gpt-4o"]
        address = ["--base-url", f"{server.url}/v1"]
        assert run(*words, *address, data=f"trajudge:{tmp_path / 'data'}") == 1
    told = on_one_line(capsys.readouterr().err)
    assert f"judgments failed, more than --max-failures 0: {advice}" in told


@pytest.mark.usefixtures("own_folder")
def test_replies_that_were_cut_off_are_not_to_be_asked_for_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer(script=always("length")) as server:
        assert model(server) == 1
    told = on_one_line(capsys.readouterr().err)
    assert "the replies were cut off: allow longer ones with --max-tokens N" in told


@pytest.mark.usefixtures("own_folder")
def test_what_cannot_be_read_has_no_reward_after_a_stop_either(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The last trajectory of the data is damaged; the first session stops before it."""
    runs = [run for run in store.read(sample_path()) if isinstance(run, Trajectory)]
    store.write(Path("data"), runs)
    path = Path("data/trajectories.jsonl")
    *others, last = path.read_bytes().splitlines(keepends=True)
    damaged = json.loads(last) | {"steps": "none"}
    path.write_bytes(b"".join(others) + json.dumps(damaged).encode() + b"\n")
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 2.5\noutput = 10.0\n')
    words = ["--prices", "prices.toml", "--concurrency", "2", "--max-failures", "1"]
    with LlmServer() as server:
        assert model(server, *words, "--max-cost", "0.05", "--data", "trajudge:data") == 1
        assert model(server, *words, "--max-cost", "5", "--data", "trajudge:data") == 0
    assert statuses().count("skipped") == 1
    assert len(read_rewards(Path("run"))) == SAMPLE - 1
    capsys.readouterr()
    score_main(["run", "--checks"])
    shown = on_one_line(capsys.readouterr().out)
    assert "1 of 130 judgments skipped" in shown
    assert "missing" not in shown


WORDS = ("--limit", "20", "--prices", "prices.toml", "--max-tokens", "8000", "--concurrency", "4")


@pytest.fixture
def server() -> Iterator[LlmServer]:
    Path("prices.toml").write_text(PRICES)
    with LlmServer(text=Till()) as running:
        yield running


def first_sentence(shown: str) -> str:
    return re.split(r" (?:Of the runs|Of \d+ runs|First of \d) ", on_one_line(shown))[0]


@pytest.mark.usefixtures("own_folder")
def test_a_spent_budget_is_in_the_first_sentence_until_the_run_goes_on(
    server: LlmServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert model(server, *WORDS, "--max-cost", "0.6") == 1
    screen = capsys.readouterr()
    told = first_sentence(screen.out)
    made = len(Path("run", JUDGMENTS).read_bytes().splitlines())
    assert 0 < made < 20
    sentence = (
        f"simplified-axtree:gpt-4o on {made} trajectories of shop; the run is not finished: "
        f"{made} of 20 judgments"
    )
    assert told == sentence
    assert on_one_line(screen.out + screen.err).count(f"{made} of 20 judg") == 2
    assert main(["score", "run"]) == 0
    assert first_sentence(capsys.readouterr().out) == sentence
    assert main(["report", "run", "--out", "page.html"]) == 0
    assert first_sentence(capsys.readouterr().out) == sentence
    assert f"{made} of 20 judgments" in on_one_line(Path("page.html").read_text())
    assert main(["score", "run", "--full"]) == 0
    assert f"warning: not finished: simplified-axtree:gpt-4o ({made} of 20 judgments)" in (
        on_one_line(capsys.readouterr().out)
    )
    main(["select", "run", "--target-precision", "0.5"])
    cut_run = f"not finished: simplified-axtree:gpt-4o ({made} of 20 judgments)"
    assert f"note: {cut_run}: the decision is on these\n" in capsys.readouterr().err
    assert main(["audit", "run", "--out", "audit"]) == 0
    told = on_one_line(capsys.readouterr().out)
    assert told.startswith("The official reward passes ")
    assert f"; {cut_run} It denies " in told
    assert main(["audit", "run", "--out", "audit", "--full"]) == 0
    assert f"warning: {cut_run}" in on_one_line(capsys.readouterr().out)
    accept = ["accept", "--run", "run", "--judge", "simplified-axtree:gpt-4o", "--threshold", "1"]
    main([*accept, "--out", "accepted"])
    accepted = capsys.readouterr()
    assert f" select was applied; {cut_run} rejected because " in on_one_line(accepted.out)
    assert "not finished" not in accepted.err
    cut = [{"judge": "simplified-axtree:gpt-4o", "judged": made, "due": 20}]
    assert json.loads(Path("run/results.json").read_text())["unfinished"] == cut
    assert model(server, *WORDS, "--max-cost", "100") == 0
    shown = on_one_line(capsys.readouterr().out)
    assert first_sentence(shown) == "simplified-axtree:gpt-4o on 20 trajectories of shop"
    # The cost beside it is that of both sessions.
    assert "20 calls" in shown and "; wall time of this session: " in shown
    assert "unfinished" not in json.loads(Path("run/results.json").read_text())


@pytest.mark.usefixtures("own_folder")
def test_samples_that_are_missing_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Every trajectory has a verdict, so that coverage says nothing of it."""
    assert run("--judge", "heuristic", "--limit", "10", "--samples", "2") == 0
    whole = Path("run", JUDGMENTS)
    whole.write_bytes(b"".join(whole.read_bytes().splitlines(keepends=True)[:-3]))
    capsys.readouterr()
    assert main(["score", "run"]) == 0
    told = first_sentence(capsys.readouterr().out)
    assert told.endswith("; the run is not finished: 17 of 20 judgments")


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("damaged", [{"samples": None}, {"selection": "all"}, {"selection": [1]}])
def test_settings_that_tell_no_number_are_no_reason_to_stop(
    damaged: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--judge", "heuristic", "--limit", "10") == 0
    write_manifest(Path("run"), read_manifest(Path("run")) | damaged)
    capsys.readouterr()
    assert main(["score", "run"]) == 0
    assert first_sentence(capsys.readouterr().out) == "heuristic on 10 trajectories of shop"
    assert main(["score", "run", "--checks"]) in (0, 1)


@pytest.mark.usefixtures("own_folder")
def test_of_several_judges_those_that_are_not_finished_are_named(
    server: LlmServer, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--judge", "simplified", "--judge", "insta", "--max-cost", "0.6")
    assert model(server, *WORDS, *words) == 1
    shown = capsys.readouterr().out
    told = first_sentence(shown)
    # The second run read ahead of what it judged; of what it did not, it knows no reward.
    table = shown.partition("Success  ")[2]
    judge, rule = (re.search(rf"^.*{name} .* (\d+)$", table, re.M) for name in ("gpt-4o", "based"))
    assert judge and rule and judge[1] == rule[1]
    assert "; not finished: simplified-axtree:gpt-4o (" in told
    assert told.endswith("insta:gpt-4o (0 of 20 judgments)")
    scored = score([said(1, True)], {key(1): label(1, True)}, rewards={})
    cut = [UnfinishedRun(judge=f"judge-{n}", judged=n, due=9) for n in range(9)]
    scored = scored.model_copy(update={"unfinished": tuple(cut)})
    assert "(0 of 9 judgments), judge-1" in on_one_line(summary(scored, width=60))
    assert notes(scored)[0].startswith("warning: not finished: judge-0 (0 of 9 judgments), ")


@pytest.mark.usefixtures("own_folder")
def test_a_whole_run_beside_one_that_was_not_begun_is_not_called_unfinished() -> None:
    scored = score([said(1, True)], {key(1): label(1, True)}, rewards={})
    cut = UnfinishedRun(judge="other", judged=0, due=9)
    told = finding(scored.model_copy(update={"unfinished": (cut,)}), "success")[0]
    assert told.endswith("; not finished: other (0 of 9 judgments)")


def asked(server: LlmServer, *words: str) -> list[dict[str, Any]]:
    model = ["--model", "claude-sonnet-4-5", "--base-url", server.url, "--concurrency", "4"]
    assert run(*model, *words) == 0
    return [incoming.payload for incoming in server.seen]


@pytest.mark.usefixtures("own_folder")
def test_a_prompt_is_answered_before_it_is_asked_again_and_marked_to_be_kept() -> None:
    with LlmServer(latency=0.01) as server:
        bodies = asked(server, "--limit", "12", "--samples", "3")
        assert server.stats.duplicates == 24
        assert server.stats.answered_again == 24, "none of them beside the first"
    assert all(b["messages"][-1]["content"][-1]["cache_control"] for b in bodies)


@pytest.mark.usefixtures("own_folder")
def test_what_is_asked_once_is_not_marked() -> None:
    with LlmServer() as server:
        (body,) = asked(server, "--limit", "1")
    assert "cache_control" not in body["messages"][-1]["content"][-1]


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize(("samples", "ahead"), [(1, 4), (3, 4), (5, 40)])
def test_every_job_comes_once(samples: int, ahead: int) -> None:
    tasks = [key(task) for task in range(20)]
    unread = Unreadable(source="x", reason="y")
    jobs = [JudgmentJob(task, unread, sample) for task in tasks for sample in range(samples)]
    ordered = list(first_samples_ahead(iter(jobs), ahead))
    assert sorted(ordered, key=jobs.index) == jobs
    for number, task in enumerate(tasks):
        first, *others = (i for i, job in enumerate(ordered) if job.key == task)
        assert ordered[first].sample == 0
        assert all(other - first > min(ahead, 19 - number) for other in others)


def jobs(count: int, drawn: list[int] | None = None) -> Iterator[JudgmentJob]:
    for number in range(count):
        if drawn is not None:
            drawn.append(number)
        key = TrajectoryKey(benchmark="b", agent="a", task_id=str(number))
        yield JudgmentJob(key, Trajectory(key=key, raw_task_id=str(number), goal="g"), 0)


def judged(job: JudgmentJob) -> Judgment:
    return Judgment(key=job.key, judge="j", status=Status.OK)


@pytest.mark.anyio
async def test_every_job_is_judged_once_and_never_more_than_width_at_a_time() -> None:
    under_way, most, recorded = 0, 0, list[Judgment]()

    async def judge(job: JudgmentJob) -> Judgment:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return judged(job)

    await judge_all(jobs(50), judge, width=7, record=recorded.append, stop=StopSignal())
    assert sorted(int(j.key.task_id) for j in recorded) == list(range(50))
    assert most == 7


@pytest.mark.anyio
async def test_calls_stay_at_their_limit_while_replies_are_handled() -> None:
    limit, in_flight = asyncio.Semaphore(4), 0

    async def judge(job: JudgmentJob) -> Judgment:
        nonlocal in_flight
        async with limit:
            in_flight += 1
            await asyncio.sleep(0.001)
            in_flight -= 1
        if int(job.key.task_id) < 2:  # two replies are being handled: their places are taken
            async with asyncio.timeout(20):
                while in_flight < 4:
                    await asyncio.sleep(0)
        return judged(job)

    recorded: list[Judgment] = []
    width = workers_for(4)
    await judge_all(jobs(500), judge, width=width, record=recorded.append, stop=StopSignal())
    assert len(recorded) == 500


@pytest.mark.anyio
async def test_trajectories_are_drawn_as_they_are_needed() -> None:
    drawn: list[int] = []
    stop = StopSignal()

    async def judge(job: JudgmentJob) -> Judgment:
        raise BudgetSpent("spent")

    await judge_all(jobs(1000, drawn), judge, width=4, record=lambda j: None, stop=stop)
    assert isinstance(stop.reason, BudgetSpent)
    assert len(drawn) <= 8


@pytest.mark.anyio
async def test_files_that_take_long_are_read_beside_the_loop_and_others_on_it() -> None:
    def drawn_on_loop(count: int, seconds: float, on_loop: list[bool]) -> Iterator[JudgmentJob]:
        for job in jobs(count):
            threading.Event().wait(seconds)
            on_loop.append(threading.current_thread() is threading.main_thread())
            yield job

    async def judge(job: JudgmentJob) -> Judgment:
        return judged(job)

    for count, seconds in ((60, 0.005), (500, 0.0)):
        on_loop: list[bool] = []
        source = drawn_on_loop(count, seconds, on_loop)
        await judge_all(source, judge, width=4, record=lambda j: None, stop=StopSignal())
        assert len(on_loop) == count
        assert sum(on_loop) <= 6 if seconds else sum(on_loop) >= 250


@pytest.mark.anyio
async def test_an_error_of_a_job_or_of_the_files_ends_the_run_as_itself() -> None:
    async def judge(job: JudgmentJob) -> Judgment:
        raise UserError("no key")

    with pytest.raises(UserError, match="no key"):
        await judge_all(jobs(9), judge, width=3, record=lambda j: None, stop=StopSignal())

    def broken() -> Iterator[JudgmentJob]:
        yield from jobs(2)
        raise UserError("disk is gone")

    async def fine(job: JudgmentJob) -> Judgment:
        return judged(job)

    recorded: list[Judgment] = []
    with pytest.raises(UserError, match="disk is gone"):
        await judge_all(broken(), fine, width=1, record=recorded.append, stop=StopSignal())
    assert len(recorded) == 2


@pytest.mark.anyio
async def test_ctrl_c_finishes_what_is_under_way_and_begins_nothing() -> None:
    stop, told, recorded = StopSignal(), list[Interrupted](), list[Judgment]()

    async def judge(job: JudgmentJob) -> Judgment:
        if job.key.task_id == "2":
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.05)
        return judged(job)

    with graceful_interrupt(stop), stop.heard_by(told.append):
        await judge_all(jobs(100), judge, width=3, record=recorded.append, stop=stop)
    assert isinstance(stop.reason, Interrupted)
    assert told == [stop.reason]
    assert 3 <= len(recorded) <= 6


@pytest.mark.anyio
async def test_a_call_that_gives_up_for_an_earlier_reason_does_not_hide_ctrl_c() -> None:
    stop, recorded = StopSignal(), list[Judgment]()
    lost = Interrupted("another worker has taken it over")

    async def judge(job: JudgmentJob) -> Judgment:
        stop.interrupt(lost)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.05)
        raise lost

    with graceful_interrupt(stop):
        await judge_all(jobs(9), judge, width=1, record=recorded.append, stop=stop)
    assert str(stop.reason) == "interrupted" and recorded == []


def keys_of(*tasks: int) -> KeyColumns:
    return KeyColumns.of(map(key, tasks))


def test_what_a_run_did_not_come_to_has_an_unknown_reward_until_it_does() -> None:
    rewards = {key(0): 1.0}
    added = with_unreached(rewards, keys_of(0, 1, 2), keys_of(1))
    assert dict(added) == {key(0): 1.0, key(2): None}
    assert dict(without_unreached(added, keys_of(1))) == rewards
    assert dict(without_unreached(added, keys_of(2))) == dict(added)
    assert dict(with_unreached(rewards, keys_of(0, 1), keys_of(1))) == rewards


@pytest.mark.parametrize(
    ("retry_failed", "strict", "done"),
    [
        (False, False, [[True, False], [True, True]]),
        (True, False, [[True, False], [False, False]]),
        (False, True, [[True, False], [True, False]]),
    ],
)
def test_samples_that_the_journal_holds_are_not_judged_again(
    retry_failed: bool, strict: bool, done: list[list[bool]]
) -> None:
    """But where it is asked for: those that failed, or the trajectories that were not readable."""
    journal = [
        said(0, True),
        failed(1, Status.REFUSED),
        failed(1, Status.SKIPPED, sample=1),
        said(1, True, sample=2),
        said(9, True, sample=1),
    ]
    plan = SimpleNamespace(
        keys=keys_of(0, 1),
        run=SimpleNamespace(samples=2, retry_failed=retry_failed),
        data=SimpleNamespace(strict=strict),
    )
    assert jobs_done(plan, JudgmentTable.of(journal)).tolist() == done  # type: ignore[arg-type]
