"""The adaptive attacker at work: failures that a judge rejects, and at most so many queries of
each until it accepts one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from numpy.random import PCG64, Generator

from trajudge.judges.model import Judgment, Status
from trajudge.robustness.adaptive.bandit import Arm, ThompsonBandit, UniformChoice
from trajudge.robustness.apply import apply
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.catalogue.injections import CARRIERS, injection
from trajudge.robustness.changing.techniques import TECHNIQUES
from trajudge.robustness.measures.adaptive import Query
from trajudge.robustness.model import Attacker, Channel, Facts, NotApplicable, Perturbation
from trajudge.trajectories.model import Trajectory, TrajectoryKey

QUERIES = 25  # a failure (Zhao et al. 2026 need as many)
TOGETHER = 8  # failures that are attacked at once, whatever --concurrency says
Ask = Callable[[Trajectory], Awaitable[Judgment]]


def arsenal() -> dict[Arm, Perturbation]:
    """Return every attack of an agent or a page that keeps a failure one: instructions in every
    technique at every carrier but pixels, and claims."""
    made = {
        Arm(one.name, ("D", f"at {carrier}", f"as {technique}")): one
        for carrier, place in CARRIERS.items()
        if Channel.SCREENSHOT not in place.channels and place.attacker is not Attacker.RECORDER
        for technique in TECHNIQUES
        for one in [injection(carrier, "success", technique)]
    }
    twins = {one.twin for one in catalogue().values()}
    claims = [
        one
        for one in catalogue().values()
        if one.family == "C" and one.name not in {*twins, "doubt", "failure-admitted"}
    ]
    places = {one.name: min(one.channels) for one in claims}
    return made | {Arm(c.name, ("C", f"at {places[c.name]}", f"as {c.name}")): c for c in claims}


async def attack(
    sources: Sequence[Trajectory],
    facts: Mapping[TrajectoryKey, Facts],
    ask: Ask,
    chooser: ThompsonBandit | UniformChoice,
    attacks: Sequence[Perturbation],
    *,
    queries: int = QUERIES,
    seed: int = 0,
) -> list[Query]:
    """Query the judge about each source until it accepts it, ``TOGETHER`` sources at once.

    The same verdicts give the same queries, whatever their order in time: what was asked before
    comes from the cache.
    """
    rng = Generator(PCG64(seed))
    log: list[Query] = []
    for start in range(0, len(sources), TOGETHER):
        under_way = {source.key: source for source in sources[start : start + TOGETHER]}
        tried: dict[TrajectoryKey, set[int]] = {key: set() for key in under_way}
        for number in range(1, queries + 1):
            moves = []
            for key, source in under_way.items():
                move = _move(source, facts[key], chooser, attacks, tried[key], rng=rng, seed=seed)
                moves += [(key, *move)] if move else []
            made = await asyncio.gather(*(ask(changed) for _, _, changed in moves))
            for (key, arm, _), judgment in zip(moves, made, strict=True):
                answered = judgment.status is Status.OK
                success = judgment.success if answered else None
                score = judgment.score if answered else None
                chooser.learn(arm, float(success is True))
                log.append(Query(key, number, attacks[arm].name, success, score))
                if success:
                    del under_way[key]
            if not moves:
                break
    return log


def _move(
    source: Trajectory,
    facts: Facts,
    chooser: ThompsonBandit | UniformChoice,
    attacks: Sequence[Perturbation],
    tried: set[int],
    *,
    rng: Generator,
    seed: int,
) -> tuple[int, Trajectory] | None:
    """Choose an attack that applies; None if none is left. One that does not costs no query."""
    while len(tried) < len(attacks):
        arm = chooser.choose(rng, tried)
        tried.add(arm)
        changed = apply(attacks[arm], source, facts, seed)
        if not isinstance(changed, NotApplicable):
            return arm, changed.trajectory
    return None
