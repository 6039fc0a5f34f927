"""One job that fails takes no other with it; how many work side by side makes no difference."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Event
from typing import ClassVar

import pytest

from tests.environments.cases import agent, job, sound
from trajudge.environments.agents.protocol import GaveUp, Halted, Job, NotPlayed
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.recording.campaign import jobs_for
from trajudge.environments.recording.episode import Recorded, play
from trajudge.environments.recording.recorder import (
    TRIES,
    FailedJob,
    Recorder,
    attempted,
    for_all,
    run_name,
)

pytestmark = pytest.mark.browser
ORACLE = agent(Behaviour.ORACLE)
IDLE = agent(Behaviour.NOTHING)


def texts(recorded: Recorded) -> str:
    """The run without its pictures."""
    steps = [
        s.model_dump(exclude={"observation": {"screenshot"}}) for s in recorded.trajectory.steps
    ]
    return repr((steps, recorded.trajectory.answer, recorded.finding, recorded.facts))


def crash(recorder: Recorder, task: Job) -> str:
    """Work that ends its browser, once."""
    marker = Path(os.environ["CRASHED"]) / run_name(task)
    if task.attempt == 1 and not marker.exists():
        marker.touch()
        raise RuntimeError("out of the blue")
    return texts(recorder.record(task))


def die(recorder: Recorder, task: Job) -> str:
    """Work whose process is killed, once."""
    marker = Path(os.environ["CRASHED"]) / run_name(task)
    if task.attempt == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run_name(task)


def always_fail(recorder: Recorder, task: Job) -> str:
    if task.attempt == 1:
        raise RuntimeError("again and again")
    return "done"


@pytest.mark.slow
def test_two_workers_record_what_one_does(chromium: Path) -> None:
    jobs = jobs_for([sound("unwish")], [ORACLE, IDLE, agent(Behaviour.CHEATS)])

    def recorded(workers: int) -> dict[str, str]:
        kept: dict[str, str] = {}

        def keep(job: Job, recorded: Recorded) -> None:
            kept[run_name(job)] = texts(recorded)

        assert not for_all(jobs, Recorder.record, keep, seed=3, workers=workers)
        return kept

    alone = recorded(1)
    assert sorted(alone) == sorted(map(run_name, jobs))
    assert recorded(2) == alone


def test_a_job_that_fails_once_is_done_in_a_fresh_browser(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRASHED", str(tmp_path))
    task = job(sound("unwish"), IDLE, attempt=1)
    before = recorder.browser
    assert isinstance(attempted(recorder, crash, task), str)
    assert recorder.browser is not before


def test_a_browser_that_is_killed_costs_no_run(recorder: Recorder, tmp_path: Path) -> None:
    class Killer:
        """Ends Chromium in the middle of its first run."""

        telemetry: ClassVar[dict[str, float]] = {}
        armed = True

        def act(self, _: object) -> tuple[str, str]:
            if not Killer.armed:
                raise GaveUp
            Killer.armed = False
            _kill_chromium()
            return "noop()", ""

    def work(recorder: Recorder, task: Job) -> Recorded:
        return play(recorder.server, recorder.browser, task, lambda _: Killer())

    outcome = attempted(recorder, work, job(sound("unwish"), IDLE))
    assert not isinstance(outcome, FailedJob)
    assert not isinstance(
        attempted(recorder, Recorder.record, job(sound("unwish"), ORACLE)), FailedJob
    )


def _kill_chromium() -> None:
    """The browsers that this process started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            parents[int(entry.name)] = (int(fields[2].split()[1]), fields[0].partition("(")[2])
    ours = {os.getpid()}
    for _ in range(4):
        ours |= {pid for pid, (parent, _) in parents.items() if parent in ours}
    browsers = [pid for pid in ours if pid != os.getpid() and "chrom" in parents[pid][1]]
    assert browsers
    for pid in browsers:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_a_job_that_fails_again_is_reported_and_the_others_go_on(chromium: Path) -> None:
    jobs = [job(sound("unwish"), IDLE, attempt=n) for n in range(3)]
    kept: list[Job] = []
    failed = for_all(jobs, always_fail, lambda j, _: kept.append(j), seed=0, workers=1)
    assert kept == [jobs[0], jobs[2]]
    assert failed == [FailedJob(jobs[1], "RuntimeError: again and again")]


def test_what_cannot_be_played_is_not_tried_again(recorder: Recorder) -> None:
    tried = []

    def work(_: Recorder, task: Job) -> str:
        tried.append(task)
        raise NotPlayed("no provider")

    task = job(sound("unwish"), IDLE)
    assert attempted(recorder, work, task) == FailedJob(task, "no provider")
    assert len(tried) == 1 < TRIES


def test_nothing_is_begun_any_more_once_all_is_halted(recorder: Recorder) -> None:
    jobs = [job(sound("unwish"), IDLE, attempt=n) for n in range(20)]
    begun: list[Job] = []
    never = Event()

    def work(_: Recorder, task: Job) -> str:
        begun.append(task)
        if task.attempt == 0:
            raise Halted("the budget is spent")
        never.wait(0.5)
        return ""

    with pytest.raises(Halted, match="budget"):
        for_all(jobs, work, lambda *_: None, seed=0, workers=2, side_by_side="threads")
    assert len(begun) < len(jobs)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_no_job(
    chromium: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRASHED", str(tmp_path))
    jobs = [job(sound("unwish"), IDLE, attempt=n) for n in range(4)]
    kept: list[str] = []
    failed = for_all(jobs, die, lambda _, name: kept.append(name), seed=0, workers=2)
    assert not failed
    assert sorted(kept) == sorted(map(run_name, jobs))
