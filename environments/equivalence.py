"""Replay is pass@k where nothing varies: ``python -m environments.equivalence --configs CASES``.

A scripted agent that succeeds now and then does every case several times, each time from the same
start. A replay policy that keeps k of these recordings and plays a good one back blindly reaches
what pass@k says of the agent (paper 001, remark 1 and appendix 9): shown here on real runs, each
success played back in the browser.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
from rich.progress import track

from environments.agents.protocol import Job
from environments.agents.script import AGENTS, Behaviour
from environments.model.case import Case, read_cases
from environments.recording.episode import play
from environments.recording.recorder import Recorder, recorder
from environments.replay import REPLAYER, Replay
from eval.rendering import Table, render
from eval.stats.pass_at_k import pass_at_k
from trajectories.atomic import write_bytes
from trajectories.errors import UserError
from trajectories.exits import DONE, Parser, user_errors
from trajectories.terminal import terminal_console

# Of the scripted agents the one whose success is a matter of chance.
WANDERER = next(name for name, behaviour in AGENTS.items() if behaviour is Behaviour.LOOPS)


class Attempt(NamedTuple):
    """Whether an attempt was a success, and whether playing it back was one (not tried after a
    failure)."""

    case: str
    success: bool
    replayed: bool


def attempts(here: Recorder, case: Case, count: int) -> Iterator[Attempt]:
    """The attempts at one case, each followed by its replay in the same run."""
    for number in range(count):
        job = Job(
            config=case.config,
            agent=WANDERER,
            attempt=number,
            goal=case.goal,
            shortest=case.shortest,
        )
        recorded = here.record(job)
        success = recorded.finding.labels.success is True
        actions = [step.action for step in recorded.trajectory.steps if step.action]
        yield Attempt(case.id, success, success and _again(here, job, actions))


def _again(here: Recorder, job: Job, actions: Sequence[str]) -> bool:
    """Whether the actions reach the same without looking."""
    name = f"{job.agent} {job.attempt}"
    blind = job.model_copy(update={"agent": REPLAYER})
    played = play(here.server, here.browser, blind, lambda _: Replay(actions), name=name)
    return played.finding.labels.success is True


def summary(found: Sequence[Attempt], count: int) -> list[dict[str, float]]:
    """For every k up to ``count``: pass@k of the agent, and what the replay policy with k kept
    recordings reaches, both as the mean over cases of the unbiased estimate."""
    cases = sorted({attempt.case for attempt in found})
    done = [[a for a in found if a.case == case] for case in cases]
    rows = []
    for k in range(1, count + 1):
        reached = {
            name: float(np.mean(pass_at_k([sum(of) for of in counts], count, k)))
            for name, counts in (
                ("pass_at_k", [[a.success for a in tries] for tries in done]),
                ("replay", [[a.replayed for a in tries] for tries in done]),
            )
        }
        rows.append({"k": k, **reached})
    return rows


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = Parser(prog="python -m environments.equivalence", description=__doc__)
    parser.add_argument("--configs", type=Path, required=True, help="file of cases")
    parser.add_argument("--attempts", type=int, default=5, help="at every case (default 5)")
    parser.add_argument("--out", type=Path, default=Path("equivalence.json"), help="file to write")
    parser.add_argument("--seed", type=int, default=0, help="seed of the agent (default 0)")
    options = parser.parse_args(arguments)
    cases = read_cases(options.configs)
    if not cases:
        raise UserError(f"{options.configs} holds no case")
    if options.attempts < 1 or options.seed < 0:
        raise UserError("--attempts needs a number from 1, --seed one from 0")
    errors = terminal_console(stderr=True)
    with recorder(options.seed) as here:
        found = [
            attempt
            for case in track(cases, "attempting", console=errors, transient=True)
            for attempt in attempts(here, case, options.attempts)
        ]
    rows = summary(found, options.attempts)
    content = {"rows": rows, "attempts": [attempt._asdict() for attempt in found]}
    write_bytes(options.out, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    shown = [
        (str(row["k"]), f"{100 * row['pass_at_k']:.1f}", f"{100 * row['replay']:.1f}")
        for row in rows
    ]
    title = f"Blind replay beside pass@k, {len(cases)} cases, {options.attempts} attempts each (%)"
    table = Table(title, ("k", "pass@k", "replay with k kept"), shown, names=1)
    terminal_console(soft_wrap=True).print(render([table], "table"))
    return DONE


if __name__ == "__main__":
    sys.exit(main())
