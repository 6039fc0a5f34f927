"""The watch over rewards: seldom wrong while nothing changes, soon there when something does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.llm_server import LlmServer
from tests.rewards.cases import ACCEPTED, config, trajectory
from tests.rewards.server.conftest import record_of, serving
from tests.worlds.rewards import audits_until_stop, canaries_until_stop, reward
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardConfig, WatchConfig
from trajudge.rewards.watch import Audited, RewardMonitor, WatchJournal, WatchState, run_name
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory
from trajudge.util.errors import UserError

WATCH = WatchConfig(audit_share=1.0)
REJECTED = ACCEPTED.replace("Successful", "Unsuccessful")


def test_a_judge_that_stays_is_seldom_stopped() -> None:
    """Of 100 streams at the edge of what is noise, 1 % may stop."""
    rng = np.random.default_rng(1)
    stops = [canaries_until_stop(rng, flips=0.05, most=500, config=WATCH) for _ in range(100)]
    assert sum(stop is not None for stop in stops) <= 3


def test_a_verdict_that_a_judge_seldom_gives_is_not_what_it_is_held_to() -> None:
    """100 judges that do not move, of which every verdict on ten canaries is another in 2.5 % of
    cases: two are, in 4.9 %. One in five gave such a verdict the first time."""
    rng = np.random.default_rng(3)
    stopped = 0
    for _ in range(100):
        monitor = RewardMonitor(WATCH)
        for asked in range(800):
            monitor.add_canary(str(asked % 10), bool(rng.random() < 0.025))
        stopped += monitor.state is WatchState.STOP
    assert stopped <= 2


def test_an_exchanged_judge_is_found_within_300_canaries() -> None:
    rng = np.random.default_rng(2)
    stops = [canaries_until_stop(rng, flips=0.2, most=300, config=WATCH) for _ in range(50)]
    assert sum(stop is not None for stop in stops) >= 47


def test_a_policy_that_is_believed_too_much_is_found_within_500_audits() -> None:
    rng = np.random.default_rng(3)
    hacked = [
        audits_until_stop(rng, believed=0.8, true=0.4, most=500, config=WATCH) for _ in range(30)
    ]
    assert None not in hacked
    honest = [
        audits_until_stop(rng, believed=0.5, true=0.4, most=500, config=WATCH) for _ in range(30)
    ]
    assert sum(stop is not None for stop in honest) <= 1


@pytest.mark.parametrize("keep_going", [False, True])
def test_three_tests_share_the_error_and_a_tenth_of_their_evidence_is_watched(
    keep_going: bool,
) -> None:
    for evidence, state in (
        (30.1, WatchState.STOP),
        (30.0, WatchState.STOP),
        (29.9, WatchState.WATCH),
        (3.0, WatchState.WATCH),
        (2.9, WatchState.OK),
    ):
        monitor = RewardMonitor(WatchConfig(alpha=0.1, keep_going=keep_going))
        monitor.audit_test.largest = evidence
        stops = state is WatchState.STOP
        assert (monitor.state, monitor.stopped) == (state, stops and not keep_going)
        told = f"the mean of 0 audited rewards is above the truth (e-value {evidence:g}; 30 stops)"
        assert monitor.reason == ("" if state is WatchState.OK else told)
    monitor = RewardMonitor(WatchConfig(alpha=0.1))
    assert (monitor.state, monitor.gauges()["canary_agreement"]) == (WatchState.OK, 1.0)
    monitor.probe_test.largest = 10.0
    told = "the judge accepted 0 of 0 doctored failures"
    assert (monitor.state, monitor.reason) == (WatchState.WATCH, told)
    monitor.audit_test.largest = 30.0
    assert monitor.reason.endswith(f"30 stops); {told}")


def test_an_audit_compares_the_value_with_the_truth() -> None:
    """The bound of the gap 0.1 is at 0.55 of the range from -1 to 1; the mean stake is 1/2."""
    for success, wealth in ((False, 1 + 0.5 * 0.45 / 0.55), (True, 1.0)):
        monitor = RewardMonitor(WATCH)
        monitor.draw(Audited("a", 1.0))
        assert monitor.add_audit("a", success)
        assert monitor.audit_test.largest == pytest.approx(wealth)
    monitor = RewardMonitor(WATCH)
    for verdict in (True, True, True, False, True, True):
        monitor.add_canary("c", verdict)
    assert monitor.gauges()["canary_agreement"] == 0.75


def test_a_hundred_thousand_rewards_wait_for_audits_at_most() -> None:
    monitor = RewardMonitor(WATCH)
    for number in range(100_000):
        monitor.draw(Audited(str(number), 1.0))
    assert next(monitor.to_audit()).name == "0"
    monitor.draw(Audited("one more", 1.0))
    assert next(monitor.to_audit()).name == "1"
    assert monitor.gauges()["rewards_to_audit"] == 100_000.0


def test_a_judge_that_fails_too_often_stops_the_rewards() -> None:
    monitor = RewardMonitor(WatchConfig(failures=0.2))
    failed = reward("x", True).model_copy(
        update={"value": None, "probability": None, "verdict": None, "abstained": "failed"}
    )
    for number in range(60):
        assert monitor.state is not WatchState.STOP or number > 5
        monitor.add_reward(str(number), failed if number % 2 else reward(str(number), True))
    assert monitor.state is WatchState.STOP
    assert "the judge failed too often" in monitor.reason


def test_late_rewards_say_nothing_of_the_judge() -> None:
    monitor = RewardMonitor(WATCH)
    late = reward("x", True).model_copy(
        update={"value": None, "probability": None, "verdict": None, "abstained": "late"}
    )
    for number in range(100):
        monitor.add_reward(str(number), late)
    assert monitor.state is WatchState.OK
    assert list(monitor.to_audit()) == []


def test_what_is_audited_is_drawn_by_the_ids() -> None:
    drawn = []
    for _ in range(2):
        monitor = RewardMonitor(WatchConfig(audit_share=0.1))
        for number in range(2_000):
            monitor.add_reward(str(number), reward(str(number), True))
        drawn.append([one.name for one in monitor.to_audit()])
    assert drawn[0] == drawn[1]
    assert 150 < len(drawn[0]) < 250
    assert not monitor.add_audit("nothing", True)


def test_completions_of_one_task_are_drawn_one_by_one() -> None:
    """They share a key: drawn by it, all of a task would be audited, or none of it ever."""

    async def drawn(share: float) -> list[str]:
        given = RewardConfig(
            judge=JudgeConfig(judge="heuristic"), watch=WatchConfig(audit_share=share)
        )
        async with Rewarder(given) as rewarder:
            for number in range(60):
                await rewarder.reward(trajectory(1, answer=f"done {number}"))
            await rewarder.reward(trajectory(1, answer="done 0"))  # equal: no new evidence
            return [one.name for one in rewarder.watch.monitor.to_audit()]

    half, all_ = asyncio.run(drawn(0.5)), asyncio.run(drawn(1.0))
    assert 18 < len(half) < 42
    assert all_ == [run_name(trajectory(1, answer=f"done {number}")) for number in range(60)]


def test_a_picture_that_came_inline_ends_no_reward() -> None:
    """Runs of logs with pictures in them raised an error; the picture is part of the name."""

    def shown(picture: bytes) -> Trajectory:
        run = trajectory(1)
        page = Observation(url="http://shop/", screenshot=ImageRef(data=picture))
        return run.model_copy(update={"steps": (Step(index=0, observation=page),)})

    async def value() -> float | None:
        async with Rewarder(RewardConfig(judge=JudgeConfig(judge="heuristic"))) as rewarder:
            return (await rewarder.reward(shown(b"\xff\xd8 one"))).value

    assert asyncio.run(value()) is not None
    assert run_name(shown(b"\xff\xd8 one")) != run_name(shown(b"\xff\xd8 other"))


def test_a_half_character_ends_no_reward() -> None:
    async def named() -> list[str]:
        given = RewardConfig(
            judge=JudgeConfig(judge="heuristic"), watch=WatchConfig(audit_share=1.0)
        )
        async with Rewarder(given) as rewarder:
            for answer in ("done \ud800", "done \ud801"):
                await rewarder.reward(trajectory(1, answer=answer))
            return [one.name for one in rewarder.watch.monitor.to_audit()]

    first, second = asyncio.run(named())
    assert first != second


def test_a_torn_line_costs_no_event_after_it(tmp_path: Path) -> None:
    file = tmp_path / "watch.jsonl"
    WatchJournal(file, "v").add("drawn", "a", 1.0)
    file.write_bytes(file.read_bytes() + b'{"version":"v","ki')
    for name in ("b", "c"):
        journal = WatchJournal(file, "v")
        journal.replay(RewardMonitor(WATCH))
        journal.add("drawn", name, 1.0)
    monitor = RewardMonitor(WATCH)
    WatchJournal(file, "v").replay(monitor)
    assert [one.name for one in monitor.to_audit()] == ["a", "b", "c"]


def test_a_moved_model_ends_the_rewards(tmp_path: Path) -> None:
    """Canaries are asked past the cache, beside the rewards; a restart does not forget them."""
    folder = store.write(tmp_path / "canaries", [trajectory(f"c{n}") for n in range(4)])
    watch = WatchConfig(
        canaries=f"trajudge:{folder}", every=1, alpha=0.2, journal=tmp_path / "watch.jsonl"
    )
    verdict = [ACCEPTED]

    async def abstentions(server: LlmServer, first: int, last: int) -> list[str]:
        async with Rewarder(config(server, tmp_path, watch=watch)) as rewarder:
            ends: list[str] = []
            for number in range(first, last):
                ends.append((await rewarder.reward(trajectory(number))).abstained)
                await rewarder.watch.settled()
            return ends

    with LlmServer(text=lambda _: verdict[0]) as server:
        assert asyncio.run(abstentions(server, 0, 12)) == [""] * 12
        assert server.stats.requests == 28, "a canary is asked each time, twice at first"
        verdict[0] = REJECTED
        ends = asyncio.run(abstentions(server, 12, 30))
        assert 0 < ends.index("drift") < 8
        assert set(ends[ends.index("drift") :]) == {"drift"}
        asked = server.stats.requests
        assert asyncio.run(abstentions(server, 30, 31)) == ["drift"]
        assert server.stats.requests == asked


@pytest.mark.slow
def test_audits_are_asked_for_and_answered_over_http(tmp_path: Path) -> None:
    with serving(tmp_path, "--judge", "heuristic", "--audit-share", "1") as server:
        for number in range(3):
            item = {"id": f"r{number}", "trajectory": record_of(trajectory(number))}
            assert server.ask("/v1/trajectories", item).status == 201
            server.ask("/v1/rewards", {"items": [{"id": f"r{number}"}]})
        waiting = server.ask("/v1/audits").content["audits"]
        assert [one["id"] for one in waiting] == ["r0", "r1", "r2"]
        answer = server.ask("/v1/audits", {"id": "r1", "success": False})
        assert answer.content == {"state": "ok"}
        assert server.ask("/v1/audits", {"id": "r1", "success": False}).status == 404
        assert server.ask("/v1/audits", {"id": "r0", "success": "no"}).status == 400
        assert "trajudge_rewards_audited 1" in server.ask("/metrics").content
        assert server.ask("/v1/card").content["watch"] == {"state": "ok", "reason": ""}
    with serving(tmp_path, "--judge", "heuristic", "--audit-share", "1") as server:
        assert "trajudge_rewards_audited 1" in server.ask("/metrics").content, "after a restart"
        assert len(server.ask("/v1/audits").content["audits"]) == 2


def test_canaries_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    empty = tmp_path / "none"
    given = RewardConfig(
        judge=JudgeConfig(judge="heuristic"), watch=WatchConfig(canaries=f"trajudge:{empty}")
    )
    with pytest.raises(UserError, match=r"^--canaries 'trajudge:.*there is no file or folder"):
        Rewarder(given)
