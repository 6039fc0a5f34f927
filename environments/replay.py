"""Blind replay: ``python -m environments.replay --configs CASES --out FILE``.

Records the oracle on each case and plays its actions back, word for word and without looking, on
the same configuration and on ones in which a single axis or every axis is another. A static
environment gives such an agent its pass@k (paper 001, section 2.1 and appendix 9); one that varies
must not. "same run" repeats the run with its codes; "same" is a new run, whose operation codes are
others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import orjson
from rich.progress import track
from rich.table import Table

from environments.agents.protocol import GaveUp, Job
from environments.agents.script import ORACLE
from environments.checks.variation import AXES, Axis, others
from environments.model.case import Case, read_cases
from environments.recording.episode import play
from environments.recording.recorder import Recorder, recorder
from eval.stats.binomial import wilson
from trajectories.atomic import write_bytes
from trajectories.errors import UserError
from trajectories.exits import DONE, Parser, user_errors
from trajectories.terminal import terminal_console

if TYPE_CHECKING:
    from environments.chromium import View

REPLAYER = "replay"
CONDITIONS: dict[str, tuple[Axis, ...]] = {
    "same run": (),
    "same": (),
    **{axis: (axis,) for axis in AXES},
    "all": AXES,
}


class Outcome(NamedTuple):
    """Whether a replay under a condition was a success; None: its configuration cannot be."""

    case: str
    condition: str
    success: bool | None


class Replay:
    """Plays actions back without looking; ends when none is left."""

    telemetry: Mapping[str, float] = MappingProxyType({})

    def __init__(self, actions: Sequence[str]) -> None:
        self._actions = iter(actions)

    def act(self, _: View) -> tuple[str, str]:
        action = next(self._actions, None)
        if action is None:
            raise GaveUp
        return action, ""


def replay(here: Recorder, case: Case) -> Iterator[Outcome]:
    """The outcomes of one case under every condition. Where the next configuration of an axis is
    no sound case, the one after it is taken."""
    actions = here.oracles_actions(_job(case, ORACLE), name="o")
    for condition, axes in CONDITIONS.items():
        varied = next(others(case.config, axes), None) if axes else case
        if varied is None:
            yield Outcome(case.id, condition, None)
            continue
        name = "o" if condition == "same run" else condition
        played = play(
            here.server,
            here.browser,
            _job(varied, REPLAYER),
            lambda _: Replay(actions),
            name=name,
        )
        yield Outcome(case.id, condition, played.finding.labels.success is True)


def _job(case: Case, agent: str) -> Job:
    return Job(config=case.config, agent=agent, goal=case.goal, shortest=case.shortest)


def summary(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """Success by condition with Wilson's interval."""
    rows: list[dict[str, object]] = []
    for condition in CONDITIONS:
        known = [o.success for o in outcomes if o.condition == condition and o.success is not None]
        rate = wilson(sum(known), len(known))
        low, high = float(rate.low), float(rate.high)
        row = {"condition": condition, "n": len(known), "successes": sum(known)}
        rows.append({**row, "low": low, "high": high})
    return rows


def _shown(rows: Sequence[dict[str, object]]) -> Table:
    table = Table("what differs", "runs", "success", "95 % interval", title="Blind replay")
    for row in rows:
        interval = f"[{100 * float(str(row['low'])):.1f}, {100 * float(str(row['high'])):.1f}] %"
        table.add_row(str(row["condition"]), str(row["n"]), str(row["successes"]), interval)
    return table


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = Parser(prog="python -m environments.replay", description=__doc__)
    parser.add_argument("--configs", type=Path, required=True, help="file of cases")
    parser.add_argument("--out", type=Path, default=Path("replay.json"), help="file to write")
    parser.add_argument("--seed", type=int, default=0, help="seed of the agents (default 0)")
    options = parser.parse_args(arguments)
    cases = read_cases(options.configs)
    if not cases:
        raise UserError(f"{options.configs} holds no case")
    errors = terminal_console(stderr=True)
    with recorder(options.seed) as here:
        outcomes = [
            outcome
            for case in track(cases, "replaying", console=errors, transient=True)
            for outcome in replay(here, case)
        ]
    rows = summary(outcomes)
    content = {"conditions": rows, "outcomes": [outcome._asdict() for outcome in outcomes]}
    write_bytes(options.out, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    terminal_console().print(_shown(rows))
    return DONE


if __name__ == "__main__":
    sys.exit(main())
