"""Steps per second of the Gymnasium environment: ``python -m benchmarks.gym_steps [--cases N]``.

The oracle's actions on the same cases in Chromium with screenshots, in Chromium with text alone,
and without a browser, one after the other for each case. CPU time is that of this process and of
Chromium.
"""

from __future__ import annotations

import argparse

from benchmarks.environments import ORACLE, sound
from benchmarks.usage import Spent, spent
from trajudge.environments.agents.protocol import Job
from trajudge.environments.gym import WebEnv
from trajudge.environments.model.case import Case
from trajudge.environments.recording.recorder import recorded_offline


def actions(case: Case) -> list[str]:
    job = Job(config=case.config, agent=ORACLE, goal=case.goal, shortest=case.shortest)
    steps = recorded_offline(job, 0).trajectory.steps
    return [step.action for step in steps if step.action]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cases", type=int, default=21)
    cases = sound(options.parse_args().cases)
    envs = {
        "Chromium, screenshots": WebEnv(cases),
        "Chromium, text": WebEnv(cases, pictures=False),
        "no browser": WebEnv(cases, browser=False),
    }
    for env in envs.values():
        env.reset(seed=0)  # starts the browser
    used = {name: Spent() for name in envs}
    steps = 0
    for case in cases:
        known = actions(case)
        steps += len(known)
        for name, env in envs.items():
            with spent() as played:
                env.reset(options={"case": case.id})
                for action in known:
                    env.step(action)
            used[name].wall += played.wall
            used[name].cpu += played.cpu
    slowest = used["Chromium, screenshots"]
    for name, each in used.items():
        print(
            f"{name:22} {steps / each.wall:8.1f} steps/s of wall time, {steps / each.cpu:8.1f} of "
            f"CPU time; {slowest.wall / each.wall:6.1f} times the first"
        )
        envs[name].close()


if __name__ == "__main__":
    main()
