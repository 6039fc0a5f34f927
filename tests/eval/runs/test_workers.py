from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from trajudge.eval.runs.jobs import (
    COLLECT_EVERY,
    Interrupted,
    JudgmentJob,
    StopSignal,
    graceful_interrupt,
    judge_all,
    rare_collections,
    workers_for,
)
from trajudge.judges.engine.budget import BudgetSpent
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError

pytestmark = pytest.mark.anyio


def jobs(count: int, drawn: list[int] | None = None) -> Iterator[JudgmentJob]:
    for number in range(count):
        if drawn is not None:
            drawn.append(number)
        key = TrajectoryKey(benchmark="b", agent="a", task_id=str(number))
        yield JudgmentJob(key, Trajectory(key=key, raw_task_id=str(number), goal="g"), 0)


def judged(job: JudgmentJob) -> Judgment:
    return Judgment(key=job.key, judge="j", status=Status.OK)


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


@pytest.mark.slow
async def test_collections_are_rare_while_judging_and_as_before_afterwards() -> None:
    usual, during = gc.get_threshold(), set[int]()

    async def judge(job: JudgmentJob) -> Judgment:
        during.add(gc.get_threshold()[0])
        assert gc.get_freeze_count()
        with rare_collections():  # of another run in the same process
            pass
        assert gc.get_freeze_count()
        return judged(job)

    await judge_all(jobs(9), judge, width=3, record=lambda j: None, stop=StopSignal())
    assert during == {COLLECT_EVERY}
    assert gc.get_threshold() == usual
    assert not gc.get_freeze_count()


async def test_trajectories_are_drawn_as_they_are_needed() -> None:
    drawn: list[int] = []
    stop = StopSignal()

    async def judge(job: JudgmentJob) -> Judgment:
        raise BudgetSpent("spent")

    await judge_all(jobs(1000, drawn), judge, width=4, record=lambda j: None, stop=stop)
    assert isinstance(stop.reason, BudgetSpent)
    assert len(drawn) <= 8


@pytest.mark.slow
async def test_the_first_is_not_kept_waiting_for_large_files_behind_it() -> None:
    drawn, begun = list[int](), list[int]()

    def slow() -> Iterator[JudgmentJob]:
        for job in jobs(20, drawn):
            threading.Event().wait(0.02)
            yield job

    async def judge(job: JudgmentJob) -> Judgment:
        begun.append(len(drawn))
        await asyncio.sleep(1)
        return judged(job)

    await judge_all(slow(), judge, width=20, record=lambda j: None, stop=StopSignal())
    assert all(read <= place + 2 for place, read in enumerate(begun, start=1))


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
