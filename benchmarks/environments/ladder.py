"""Agents of graded skill over every scenario: what each solves of each level."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

import numpy as np

from benchmarks.environments.sample import configs
from trajudge.environments.agents.ladder import RUNGS, LadderAgent, Skills
from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import LADDER, ORACLE
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.guessing import guessing_floors
from trajudge.environments.checks.integrity import check
from trajudge.environments.model.axes import generator
from trajudge.environments.model.case import Case
from trajudge.environments.model.spec import App
from trajudge.environments.recording.recorder import Recorder, open_recorder
from trajudge.stats.intervals import wilson


def ladder(instances: int) -> None:
    """Success of the ladder's agents by level over all scenarios, with Wilson intervals; of P
    without each of its skills; and how often the best guess is right."""
    names = {rung: name for name, rung in LADDER.items()}
    climbers = {rung: (names[rung], "") for rung in RUNGS}
    climbers |= {f"P-{skill}": (names["P"], skill) for skill in Skills._fields}
    climbers["O"] = ORACLE, ""
    solved: dict[tuple[str, int], list[bool]] = {}
    with open_recorder(1, engine="text") as recorder:
        for case in chain.from_iterable(_of_each(load_app(name), instances) for name in APPS):
            for rung, climber in climbers.items():
                climbs = _climbs(recorder, case, *climber)
                solved.setdefault((rung, case.level), []).append(climbs)
    for rung in climbers:
        cells = []
        for level in (1, 2, 3):
            runs = solved[rung, level]
            interval = wilson(sum(runs), len(runs))
            low, high = 100 * float(interval.low), 100 * float(interval.high)
            cells.append(f"{sum(runs):4}/{len(runs)} [{low:4.1f}, {high:5.1f}] %")
        print(f"{rung:10} {'   '.join(cells)}")
    guesses: dict[int, list[float]] = {}
    for app in map(load_app, APPS):
        for name, floor in guessing_floors(app, app.scenarios, suites=4).items():
            guesses.setdefault(app.scenario(name).demand, []).append(floor.share)
    for level, shares in sorted(guesses.items()):
        over = sum(share > 0.03 for share in shares)
        print(
            f"level {level}: the best guess is right in {100 * np.mean(shares):.1f} %, "
            f"in more than 3 % of {over} of {len(shares)} scenarios"
        )


def _of_each(app: App, instances: int) -> Iterator[Case]:
    for scenario in app.scenarios:
        drawn = islice(configs(app, scenario.id, 1), 8 * instances)
        checked = (check(app, config) for config in drawn)
        yield from islice((case for case in checked if isinstance(case, Case)), instances)


def _climbs(recorder: Recorder, case: Case, agent: str, lacking: str) -> bool:
    """Tell whether an agent, or P without the skill that it is ``lacking``, solves a case."""
    job = Job(config=case.config, agent=agent, goal=case.goal, shortest=case.shortest)
    if lacking:
        full = RUNGS["P"] or Skills()
        rest, rng = full._replace(**{lacking: False}), generator("ladder", lacking)
        run = recorder.play(job, lambda served: LadderAgent(served.goal, rest, rng))
    else:
        run = recorder.record(job)
    return run.finding.labels.success is True
