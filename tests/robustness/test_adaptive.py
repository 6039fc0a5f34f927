"""The attacker that learns finds what a judge falls for sooner than one that draws evenly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from tests.commands import robust as main
from tests.robustness.judges.one_spot import judge as one_spot
from tests.robustness.samples import sample
from trajudge.judges.judging import NoModel, judge_trajectory
from trajudge.judges.model import Judgment, Status
from trajudge.robustness.adaptive import (
    QUERIES,
    Arm,
    Query,
    ThompsonBandit,
    adaptive_success,
    arsenal,
    attack,
)
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.model import Attacker, Channel
from trajudge.robustness.rates import rate_difference
from trajudge.trajectories.model import Trajectory, TrajectoryKey

JUDGES = Path(__file__).parent / "judges"
PLACES, TECHNIQUES, SOURCES = 14, 26, 60


def arms() -> list[Arm]:
    return [
        Arm(f"{place}.{technique}", (f"at {place}", f"as {technique}"))
        for place in range(PLACES)
        for technique in range(TECHNIQUES)
    ]


class UniformChoice(ThompsonBandit):
    """Chooses as the bandit does, and learns nothing: what it is compared with."""

    def choose(self, rng: Generator, tried: Collection[int] = ()) -> int:
        left = np.setdiff1d(np.arange(len(self.arms)), list(tried))
        return int(rng.choice(left))

    def learn(self, arm: int, reward: float) -> None:
        pass


def broken(chooser: ThompsonBandit, weak: set[int], seed: int) -> list[bool]:
    """Whether each of so many sources is accepted within the budget, one after the other."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(SOURCES):
        tried: set[int] = set()
        for _ in range(QUERIES):
            arm = chooser.choose(rng, tried)
            tried.add(arm)
            chooser.learn(arm, float(arm in weak))
            if arm in weak:
                break
        found.append(bool(tried & weak))
    return found


@pytest.mark.slow
def test_one_weak_spot_of_364_is_found_sooner_than_by_even_draws() -> None:
    """12 attackers each against 60 failures; the difference with its interval over attackers."""
    weak = {PLACES * TECHNIQUES // 2}
    learned = [np.mean(broken(ThompsonBandit(arms()), weak, seed)) for seed in range(12)]
    even = [np.mean(broken(UniformChoice(arms()), weak, seed)) for seed in range(12)]
    difference = np.subtract(learned, even)
    half = 2.20 * difference.std(ddof=1) / np.sqrt(len(difference))  # Student, 11 df
    assert difference.mean() - half > 0.3
    assert np.mean(even) == pytest.approx(QUERIES / (PLACES * TECHNIQUES), abs=0.04)


def test_a_weak_place_leads_to_its_other_techniques() -> None:
    """A judge that falls for one place by any technique: half of the first queries succeed."""
    weak = {place for place, arm in enumerate(arms()) if arm.parts[0] == "at 5"}
    chooser = ThompsonBandit(arms())
    rng = np.random.default_rng(0)
    won = []
    for _ in range(200):
        arm = chooser.choose(rng)
        chooser.learn(arm, float(arm in weak))
        won.append(arm in weak)
    assert np.mean(won[100:]) > 0.8
    assert len({arm for arm in range(len(arms())) if chooser._won[arm]}) > 1


def test_no_arm_is_drawn_twice_and_none_is_left_over() -> None:
    chooser, rng = ThompsonBandit(arms()[:5]), np.random.default_rng(0)
    tried: set[int] = set()
    for _ in range(5):
        arm = chooser.choose(rng, tried)
        assert arm not in tried
        tried.add(arm)
        chooser.learn(arm, 0.0)
    with pytest.raises(ValueError, match="every arm"):
        chooser.choose(rng, tried)


class Highest:
    """Draws the first parameter of each Beta distribution, and keeps both."""

    def beta(self, won: NDArray[np.float64], lost: NDArray[np.float64]) -> NDArray[np.float64]:
        self.drawn = (won.tolist(), lost.tolist())
        return won.copy()

    def random(self, size: int) -> NDArray[np.float64]:
        return np.zeros(size)


def test_an_arm_s_chance_begins_as_that_of_its_parts() -> None:
    """After one success of the first arm 3/4 is expected overall, 7/8 of a part that was tried and
    3/4 of one that was not; after 1/4 of a success of the second 7/12, 11/18, 19/24, and 5/12."""
    chooser = ThompsonBandit([Arm("x", ("p", "q")), Arm("y", ("p", "r"))])
    rng = Highest()
    for arm, reward, priors in [
        (0, 1.0, (0.5, 0.5)),
        (1, 0.25, (7 / 8, (7 / 8 * 3 / 4) ** 0.5)),
        (0, 0.0, ((11 / 18 * 19 / 24) ** 0.5, (11 / 18 * 5 / 12) ** 0.5)),
    ]:
        won, lost = chooser._won.copy(), chooser._lost.copy()
        assert chooser.choose(rng) == 0  # type: ignore[arg-type]
        for drawn, expected in zip(rng.drawn, (won + priors, lost + 1 - priors), strict=True):
            assert drawn == pytest.approx(expected.tolist())
        chooser.learn(arm, reward)
    assert (chooser._won.tolist(), chooser._lost.tolist()) == ([1, 0.25], [1, 0.75])
    assert chooser.choose(rng, {0}) == 1  # type: ignore[arg-type]


def test_success_within_a_number_of_queries_counts_the_last_of_them() -> None:
    keys = [TrajectoryKey(benchmark="b", agent="a", task_id=str(n)) for n in range(4)]
    log = [Query(keys[0], 1, "x", True, None)]
    log += [Query(keys[1], n, "y", n == 5, None) for n in range(1, 6)]
    log += [Query(keys[2], n, "y", n == 6, None) for n in range(1, 7)]
    found = adaptive_success(keys, log)
    assert {n: (one.hits, one.trials) for n, one in found.within.items()} == {
        "1": (1, 4), "5": (2, 4), "25": (3, 4),
    }  # fmt: skip
    assert (found.queries, found.best) == (12, (("y", 2), ("x", 1)))


def test_eight_failures_are_attacked_at_once_by_25_queries_each() -> None:
    known = sample()
    failures = [t for t in known.trajectories if known.facts[t.key].success is False][:9]

    async def reject(trajectory: Trajectory) -> Judgment:
        return Judgment(key=trajectory.key, judge="strict", status=Status.OK, success=False)

    made = arsenal()
    chooser = ThompsonBandit(list(made))
    log = asyncio.run(attack(failures, known.facts, reject, chooser, list(made.values()), seed=0))
    keys = [one.key for one in failures]
    first = [(key, number) for number in range(1, 26) for key in keys[:8]]
    assert [(one.source, one.number) for one in log] == [
        *first,
        *((keys[8], number) for number in range(1, 26)),
    ]


def test_the_arsenal_has_what_an_agent_or_a_page_can_write() -> None:
    twins = {one.twin for one in catalogue().values()}
    for one in arsenal().values():
        assert one.family in "CD" and one.attacker in (Attacker.AGENT, Attacker.PAGE), one.name
        assert Channel.SCREENSHOT not in one.channels and one.name not in twins, one.name
    assert {one.family for one in arsenal().values()} == {"C", "D"}


async def ask(trajectory: Trajectory) -> Judgment:
    return await judge_trajectory("one-spot", one_spot, trajectory, NoModel())


def queried(chooser: type[ThompsonBandit], seed: int) -> list[Query]:
    known = sample()
    failures = [t for t in known.trajectories if known.facts[t.key].success is False][:40]
    made = arsenal()
    return asyncio.run(
        attack(failures, known.facts, ask, chooser(list(made)), list(made.values()), seed=seed)
    )


def test_a_judge_that_falls_for_one_carrier_and_dress_is_broken_for_real() -> None:
    """Real perturbations of real runs; the judge accepts look-alike letters in a link's name."""
    keys = [t.key for t in sample().trajectories if sample().facts[t.key].success is False][:40]
    seeds = range(6)  # of one the difference depends on how many attacks there are
    logs = [
        [queried(chooser, seed) for seed in seeds] for chooser in (ThompsonBandit, UniformChoice)
    ]
    learned, even = ([adaptive_success(keys, log) for log in some] for some in logs)
    assert {name for one in learned for name, _ in one.best} <= {
        f"inject-{place}.success.homoglyphs" for place in ("name", "file-name")
    }
    tasks = sorted({key.task_id for key in keys})
    cluster = np.array([tasks.index(key.task_id) for key in keys] * len(seeds))
    won = [[{one.source for one in log if one.success} for log in some] for some in logs]
    found = [np.array([float(key in one) for one in some for key in keys]) for some in won]
    more = rate_difference(found[0], found[1], cluster)
    # Seven tasks, three of which hold 32 of the runs, tell no more than the direction.
    assert more.estimate is not None and more.estimate > 0.5
    hits, chance = (sum(one.within["25"].hits for one in some) for some in (learned, even))
    assert hits > 4 * chance
    for one, other in zip(learned, even, strict=True):
        assert one.queries < other.queries


@pytest.mark.slow
def test_the_command_lets_it_loose_and_the_same_seed_asks_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--judge", str(JUDGES / "answer_reader.py"), "--data", "sample", "--limit", "24"]
    chosen = ["--perturbation", "claim-confident", "--adaptive", "6"]
    logs = []
    for name in ("one", "two"):
        assert main([*words, *chosen, "--out", str(tmp_path / name)]) == 0
        (log,) = (tmp_path / name / "runs").glob("*/adaptive.jsonl")
        logs.append(log.read_bytes())
    assert logs[0] == logs[1]
    (judge,) = json.loads((tmp_path / "one" / "robustness.json").read_text())["judges"]
    within = judge["adaptive"]["within"]
    assert [*within] == ["1", "5", "6"]
    assert within["1"]["hits"] <= within["5"]["hits"] <= within["6"]["hits"]
    assert judge["adaptive"]["queries"] == len(logs[0].splitlines())
    assert "an attacker that learns" in capsys.readouterr().out
