"""``judge`` and ``ajudge``: the command's run from Python, in any loop and any thread."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import trajudge as tj
from tests.llm_server import LlmServer, always
from trajudge.eval.runs.settings import RunRequest
from trajudge.util.commands import OK
from trajudge.util.settings import options_of

MODEL = "gpt-4o-mini"


def url(server: LlmServer) -> str:
    return f"{server.url}/v1"


async def lenient(trajectory: tj.Trajectory, ask: tj.Model) -> tj.Verdict:
    """Believes the agent."""
    return tj.Verdict(success=bool(trajectory.answer))


async def asking(trajectory: tj.Trajectory, ask: tj.Model) -> tj.Verdict:
    """Asks for one word."""
    reply = await ask([tj.Message(role="user", parts=(tj.Text(text=trajectory.goal),))])
    return tj.Verdict(success=len(reply.text) > 3)


def test_a_run_from_python_is_the_commands_run(folder: Path) -> None:
    from trajudge.eval.judge import main

    ours = tj.judge("sample", "heuristic", out="ours", limit=9)
    words = ["--judge", "heuristic", "--data", "sample", "--limit", "9", "--out", "theirs"]
    assert main(words) == OK
    for name in ("judgments.jsonl", "labels.jsonl", "rewards.jsonl", "results.csv"):
        assert Path("ours", name).read_bytes() == Path("theirs", name).read_bytes()
    assert ours.folder == Path("ours")
    assert len(ours) == 9
    assert set(ours.labels) == {judgment.key for judgment in ours}


def test_it_judges_inside_a_running_loop(runs: list[tj.Trajectory], server: LlmServer) -> None:
    async def cell() -> tj.Run:
        return tj.judge(
            runs, "simplified", MODEL, base_url=url(server), prices="prices.toml", max_cost=5
        )

    found = asyncio.run(cell())
    assert [judgment.status for judgment in found] == ["ok"] * len(runs)
    assert server.stats.answered == len({j.calls[0].request for j in found})


def test_the_same_call_asks_nothing_again(runs: list[tj.Trajectory], server: LlmServer) -> None:
    first = tj.judge(
        runs, "simplified", MODEL, base_url=url(server), prices="prices.toml", max_cost=5
    )
    asked = server.stats.requests
    again = tj.judge(
        list(reversed(runs)),
        "simplified",
        MODEL,
        base_url=url(server),
        prices="prices.toml",
        max_cost=5,
    )
    assert again.folder == first.folder
    assert server.stats.requests == asked
    assert {j.key: j.success for j in again} == {j.key: j.success for j in first}


def test_a_folder_of_other_trajectories_is_refused(runs: list[tj.Trajectory]) -> None:
    tj.judge(runs, "heuristic", out="run")
    changed = runs[0].model_copy(update={"answer": "something else"})
    with pytest.raises(tj.UserError, match="holds a run with data"):
        tj.judge([changed, *runs[1:]], "heuristic", out="run")


def test_ajudge_runs_in_the_callers_loop(runs: list[tj.Trajectory], server: LlmServer) -> None:
    async def both() -> list[tj.Run]:
        handlers = signal.getsignal(signal.SIGINT)
        calls = [
            tj.ajudge(
                runs, "simplified", MODEL, base_url=url(server), prices="prices.toml", max_cost=5
            ),
            tj.ajudge(runs, lenient),
        ]
        found = await asyncio.gather(*calls)
        assert signal.getsignal(signal.SIGINT) is handlers
        return list(found)

    ours, mine = asyncio.run(both())
    assert {j.judge for j in [*ours, *mine]} == {f"simplified-axtree:{MODEL}", "lenient"}


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """Python's own handler of Ctrl-C: a process that was started in the background ignores it."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.mark.usefixtures("hears_interrupts")
def test_an_interrupt_keeps_what_was_judged(runs: list[tj.Trajectory]) -> None:
    main, sent = threading.main_thread(), threading.Event()

    async def slow(trajectory: tj.Trajectory, ask: tj.Model) -> tj.Verdict:
        assert threading.current_thread() is not main
        if sent.is_set():  # the main thread has not seen the signal yet: the machine is busy
            await asyncio.sleep(5)
        if trajectory.key == runs[5].key:
            os.kill(os.getpid(), signal.SIGINT)
            sent.set()
            await asyncio.sleep(0.2)
        return tj.Verdict(success=True)

    with pytest.raises(KeyboardInterrupt, match="the same command goes on"):
        tj.judge(runs, slow, out="run", concurrency=1)
    kept = tj.read_run("run")
    assert runs[5].key in {judgment.key for judgment in kept}
    assert 5 < len(kept) < len(runs)


@pytest.mark.usefixtures("hears_interrupts")
def test_an_interrupt_is_heard_while_garbage_is_collected(runs: list[tj.Trajectory]) -> None:
    """An exception in a callback of the collector is printed and forgotten."""

    def interrupt(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and threading.current_thread() is threading.main_thread():
            gc.callbacks.remove(interrupt)
            signal.raise_signal(signal.SIGINT)

    async def slow(trajectory: tj.Trajectory, ask: tj.Model) -> tj.Verdict:
        if trajectory.key == runs[5].key:
            gc.callbacks.append(interrupt)
            os.kill(os.getpid(), signal.SIGUSR1)  # its handler collects, in the main thread
            await asyncio.sleep(0.5)
        return tj.Verdict(success=True)

    earlier = signal.signal(signal.SIGUSR1, lambda *_: gc.collect())
    try:
        with pytest.raises(KeyboardInterrupt, match="the same command goes on"):
            tj.judge(runs, slow, out="run", concurrency=1)
    finally:
        signal.signal(signal.SIGUSR1, earlier)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_task_that_is_cancelled_keeps_what_was_judged(runs: list[tj.Trajectory]) -> None:
    async def slow(trajectory: tj.Trajectory, ask: tj.Model) -> tj.Verdict:
        if trajectory.key == runs[5].key:
            await asyncio.sleep(60)
        return tj.Verdict(success=True)

    async def cell() -> None:
        task = asyncio.create_task(tj.ajudge(runs, slow, out="run", concurrency=1))
        journal = Path("run/judgments.jsonl")
        while not journal.is_file() or journal.read_bytes().count(b"\n") < 5:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cell())
    assert len(tj.read_run("run")) == 5
    assert not Path("run/run.lock").exists()


def test_one_run_at_a_time_has_a_folder(runs: list[tj.Trajectory]) -> None:
    async def slow(trajectory: tj.Trajectory, ask: tj.Model) -> tj.Verdict:
        await asyncio.sleep(0.05)
        return tj.Verdict(success=True)

    async def both() -> list[tj.Run | BaseException]:
        calls = [tj.ajudge(runs, slow, out="run") for _ in range(2)]
        return await asyncio.gather(*calls, return_exceptions=True)

    kinds = {type(found) for found in asyncio.run(both())}
    assert kinds == {tj.Run, tj.UserError}


def test_a_dear_run_needs_a_limit_or_consent(runs: list[tj.Trajectory], server: LlmServer) -> None:
    with pytest.raises(tj.UserError, match=r"predicted to cost .* --max-cost DOLLARS"):
        tj.judge(runs, "simplified", "dear", base_url=url(server), prices="prices.toml")
    assert server.stats.requests == 0


def test_a_spent_budget_is_a_warning_and_a_shorter_result(
    runs: list[tj.Trajectory], server: LlmServer
) -> None:
    with pytest.warns(UserWarning, match="the same command goes on"):
        found = tj.judge(
            runs,
            "simplified",
            MODEL,
            base_url=url(server),
            max_cost=0.002,
            prices="prices.toml",
            concurrency=1,
        )
    assert len(found) < len(runs)


def test_failed_judgments_are_a_warning(runs: list[tj.Trajectory]) -> None:
    with (
        LlmServer(script=always("refusal")) as server,
        pytest.warns(UserWarning, match="judgments failed"),
    ):
        found = tj.judge(
            runs[:2], "simplified", MODEL, base_url=url(server), prices="prices.toml", max_cost=5
        )
    assert all(judgment.status is not tj.Status.OK for judgment in found)


def test_what_a_service_takes_beside_the_prompt_is_a_mapping(
    runs: list[tj.Trajectory], server: LlmServer
) -> None:
    tj.judge(
        runs[:1],
        "simplified",
        "my-model",
        base_url=url(server),
        extra_body={"top_k": 20},
        extra_headers={"x-team": "judges"},
        models={"my-model": {"context": 100_000, "price": {"input": 1.0, "output": 2.0}}},
        max_cost=5,
    )
    sent = server.seen[-1]
    assert (sent.payload["top_k"], sent.headers["x-team"]) == (20, "judges")


def test_a_panel_may_hold_a_function(runs: list[tj.Trajectory], server: LlmServer) -> None:
    jury = tj.panel("heuristic", asking, lenient, rule="majority")
    found = tj.judge(runs, jury, MODEL, base_url=url(server), prices="prices.toml", max_cost=5)
    assert {len(judgment.scores) for judgment in found} == {3}
    assert "asking" in found[0].judge


def test_what_cannot_work_is_one_sentence(runs: list[tj.Trajectory]) -> None:
    def plain(trajectory: tj.Trajectory, ask: tj.Model) -> tj.Verdict:
        return tj.Verdict()

    async def heuristic(trajectory: tj.Trajectory, ask: tj.Model) -> tj.Verdict:
        return tj.Verdict()

    async def silent(trajectory: tj.Trajectory, ask: tj.Model) -> None:
        return None

    with pytest.raises(tj.UserError, match="write  async def plain"):
        tj.judge(runs, plain)  # type: ignore[arg-type]
    with pytest.raises(tj.UserError, match="rename it"):
        tj.judge(runs, heuristic)
    with pytest.raises(tj.UserError, match="judge silent gave NoneType"):
        tj.judge(runs, silent)  # type: ignore[arg-type]
    with pytest.raises(tj.UserError, match="the run has none: name one with"):
        tj.judge(runs, asking)
    with pytest.raises(tj.UserError, match="--stratified goes with --limit N"):
        tj.judge(runs, "heuristic", stratified=True)
    with pytest.raises(tj.UserError, match="'opnai' is unknown"):
        tj.judge(runs, "heuristic", adapter="opnai")
    with pytest.raises(tj.UserError, match="--samples 0: must be at least 1"):
        tj.judge(runs, "heuristic", samples=0)
    with pytest.raises(TypeError, match="argument 'modle', did you mean 'model'"):
        tj.judge(runs, "heuristic", modle="gpt-4o")


def test_every_option_of_the_command_is_a_keyword() -> None:
    """With the same words for a value that is refused; what a terminal alone needs is not there."""
    not_here, judge = {"dry_run", "full", "log_format", "data"}, cast(Any, tj.judge)
    for one in options_of(RunRequest):
        if one.name in not_here or one.name.startswith("batch"):
            with pytest.raises(TypeError, match=f"unexpected keyword argument '{one.name}'"):
                judge("sample", "heuristic", **{one.name: 1})
        elif one.inner in (int, float):
            with pytest.raises(tj.UserError, match=f"^{one.flag} many: must be a"):
                judge("sample", "heuristic", **{one.name: "many"})


@pytest.mark.parametrize("seed", [10**30, -1, "x"])
def test_a_seed_that_no_manifest_holds_is_refused(seed: object) -> None:
    with pytest.raises(tj.UserError, match=r"^--seed (1000|-1|x)"):
        tj.judge("sample", "heuristic", limit=1, seed=seed)
