"""Agents of graded skill over every scenario: what each solves of each level."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from benchmarks.environments.sample import configs
from trajudge.environments.agents.ladder import RUNGS, LadderAgent, Skills
from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.guessing import guessing_floors
from trajudge.environments.checks.integrity import check
from trajudge.environments.model.axes import generator
from trajudge.environments.model.case import Case
from trajudge.environments.model.spec import App
from trajudge.environments.recording.episode import play_offline
from trajudge.environments.recording.recorder import recorded_offline
from trajudge.stats.intervals import wilson


def ladder(instances: int) -> None:
    """Success of the ladder's agents by level over all scenarios, with Wilson intervals; of P
    without each of its skills; and how often the best guess is right."""
    full = RUNGS["P"] or Skills()
    without = {f"P-{name}": full._replace(**{name: False}) for name in Skills._fields}
    solved: dict[tuple[str, int], list[bool]] = {}
    rungs = {**RUNGS, **without}
    for name in APPS:
        app = load_app(name)
        for case in _of_each(app, instances):
            for rung, skills in (*rungs.items(), ("O", None)):
                played = _climb(case, rung, skills)
                solved.setdefault((rung, case.level), []).append(played)
    for rung in (*rungs, "O"):
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


def _climb(case: Case, rung: str, skills: Skills | None) -> bool:
    """Tell whether an agent of a rung solves a case in the text engine."""
    agent = ORACLE if rung == "O" else f"ladder-{rung}"
    job = Job(config=case.config, agent=agent, goal=case.goal, shortest=case.shortest)
    if rung == "O":
        run = recorded_offline(job, 1)
    else:
        rng = generator("climb", rung, case.id)
        run = play_offline(job, lambda served: LadderAgent(served.goal, skills, rng), b"ladder" * 6)
    return run.finding.labels.success is True
