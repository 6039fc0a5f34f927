"""Record agents in the environments: ``python -m environments.record --configs CASES --out DIR``.

Every agent does every case (``python -m environments.generate`` makes them) in real Chromium:
scripted agents with known behaviour, or with ``--model`` any model. What is written:
``trajectories.jsonl.gz`` with ``images/`` (``--data trajudge:DIR``), ``labels.jsonl`` (annotations
that follow from the final state), ``facts.jsonl`` (what they rest on), ``traces/`` (HAR files). A
recording that was killed goes on where it was, and asks a model nothing twice; runs that failed
are told (exit code 1) and tried again by the same command. The same seed gives the same text;
pictures may differ between versions of Chromium.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.progress import Progress
from rich.table import Table

from environments.agents.model import ModelAgent
from environments.agents.protocol import Halted, Job
from environments.agents.script import AGENTS, Behaviour, behaviour_of
from environments.agents.talk import side_of, talking
from environments.apps import load_app
from environments.model.case import Case, read_cases
from environments.model.config import Config
from environments.recording.episode import Recorded, play
from environments.recording.journal import COUNTED, Journal, assemble
from environments.recording.pool import Failed, for_all
from environments.recording.recorder import Recorder, named
from environments.serving.noise import noise
from prompts.render import load_prompt
from trajectories.errors import UserError
from trajectories.exits import DONE, FAILURES, Parser, user_errors
from trajectories.represent import Representation
from trajectories.terminal import one_line, terminal_console

if TYPE_CHECKING:
    from eval.model_side import ModelSide

# Options of eval.judge that say how a model is reached.
CALLS = {
    "adapter": "NAME",
    "script": "FILE",
    "base-url": "URL",
    "temperature": "T",
    "max-tokens": "N",
    "rpm": "N",
    "tpm": "N",
    "context": "N",
    "timeout": "SECONDS",
    "max-cost": "DOLLARS",
    "prices": "FILE",
    "cache": "FILE",
}
Counts = Mapping[str, Mapping[str, int]]


def jobs_for(cases: Sequence[Case], agents: Sequence[str], attempts: int = 1) -> list[Job]:
    """Every agent on every case; a near-miss agent once for each slot that has a decoy, a model
    ``attempts`` times."""
    return [job for case in cases for agent in agents for job in _jobs(case, agent, attempts)]


def _jobs(case: Case, agent: str, attempts: int) -> list[Job]:
    behaviour = AGENTS.get(agent)
    config = case.config
    scenario = load_app(config.app).scenario(config.scenario)
    if behaviour is Behaviour.NEAR_MISS:
        attempts = len(scenario.mistakable)
    elif behaviour is Behaviour.SIDE_EFFECT:
        attempts = int(scenario.aside is not None)
    elif behaviour is not None:
        attempts = 1
    if behaviour is Behaviour.BLOCKED:
        config = _with_promotion(config)
    return [
        Job(config=config, agent=agent, attempt=n, goal=case.goal, shortest=case.shortest)
        for n in range(attempts)
    ]


def _with_promotion(config: Config) -> Config:
    """The configuration with the first noise that covers the page."""
    for index in range(1, 100):
        tried = config.model_copy(update={"noise": index})
        if any(item.kind == "promotion" for item in noise(tried)):
            return tried
    raise RuntimeError("no noise holds a promotion")


def chosen(words: Sequence[str]) -> list[str]:
    """The agents named, by name or by behaviour. Raises UserError for a name that is neither."""
    by_behaviour = {behaviour.value: name for name, behaviour in AGENTS.items()}
    if list(words) == ["all"]:
        return list(AGENTS)
    for word in words:
        if word not in AGENTS and word not in by_behaviour:
            known = ", ".join(f"{name} ({behaviour})" for name, behaviour in AGENTS.items())
            raise UserError(f"no agent is called {word!r}: choose from all, {known}")
    return [by_behaviour.get(word, word) for word in words]


class Model(NamedTuple):
    """A model that is recorded: how it is reached, what it sees, how often it tries a case."""

    side: ModelSide
    see: Representation
    attempts: int

    @property
    def what(self) -> dict[str, Any]:
        """What tells its recording from another."""
        prompt = load_prompt("web_agent").hash
        return {**self.side.manifest, "see": self.see, "prompt": prompt, "attempts": self.attempts}


class Plan(NamedTuple):
    """What is recorded: scripted agents and a model on a file of cases."""

    cases: Path
    agents: Sequence[str]
    seed: int
    model: Model | None = None


class Outcome(NamedTuple):
    """Labels by agent, and the jobs that gave no run."""

    counts: Counts
    failed: list[Failed]


def record(plan: Plan, out: Path, workers: int = 1) -> Outcome:
    """Record what is missing and write what there is. Raises UserError, and Halted where nothing
    can be recorded any more; the runs until then are kept."""
    cases, agents, seed, model = plan
    names = [*agents, model.side.model] if model else list(agents)
    jobs = jobs_for(read_cases(cases), names, model.attempts if model else 1)
    if not jobs:
        raise UserError(f"{cases} holds no case")
    what = {"cases": sha256(cases.read_bytes()).hexdigest(), "agents": names, "seed": seed}
    journal = Journal(out, {**what, "model": model.what} if model else what)
    if (counts := journal.counts) is not None:
        return Outcome(counts, [])
    done = journal.done()
    missing = [job for job in jobs if named(job) not in done]
    failed: list[Failed] = []
    with Progress(console=terminal_console(stderr=True), transient=True) as progress:
        bar = progress.add_task("recording", total=len(jobs), completed=len(jobs) - len(missing))

        def keep(job: Job, recorded: Recorded) -> None:
            journal.add(named(job), recorded)
            progress.advance(bar)

        scripted = [job for job in missing if job.agent in AGENTS]
        failed += for_all(scripted, Recorder.record, keep, seed=seed, workers=workers)
        if model and len(scripted) < len(missing):
            asked = [job for job in missing if job.agent not in AGENTS]
            spent = sum(
                entry["trajectory"]["telemetry"].get("cost", 0.0) for entry in done.values()
            )
            ask = partial(_ask, model, spent=spent, seed=seed, workers=workers)
            failed += ask(asked, keep)
    return Outcome(assemble(journal, [named(job) for job in jobs]), failed)


def _ask(
    model: Model,
    jobs: Sequence[Job],
    keep: Callable[[Job, Recorded], None],
    *,
    spent: float,
    seed: int,
    workers: int,
) -> list[Failed]:
    """Record a model. Its agents wait for replies most of the time, so threads do, which share the
    budget; when the recording is left early, nothing is asked any more."""
    with talking(model.side, model.see, spent) as talk:

        def work(here: Recorder, job: Job) -> Recorded:
            return play(here.server, here.browser, job, lambda run: ModelAgent(talk, job, run.goal))

        return for_all(
            jobs,
            work,
            keep,
            seed=seed,
            workers=workers,
            side_by_side="threads",
            halt=talk.stop,
        )


def table(counts: Mapping[str, Mapping[str, int]]) -> Table:
    """Labels by agent; open are labels in the ambiguous band."""
    shown = Table("agent", "behaviour", *COUNTED, title="Labels by agent")
    for agent, row in counts.items():
        known = behaviour_of(agent)
        cells = [str(row[name]) for name in COUNTED]
        shown.add_row(agent, known.value if known else "model", *cells)
    return shown


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    options = _parser().parse_args(arguments)
    for name, least in (("seed", 0), ("workers", 1), ("attempts", 1)):
        if getattr(options, name) < least:
            raise UserError(f"--{name} is {getattr(options, name)}: give a number from {least}")
    model = _model(options)
    agents = chosen(options.agents or ([] if model else ["all"]))
    try:
        plan = Plan(options.configs, agents, options.seed, model)
        counts, failed = record(plan, options.out, options.workers)
    except Halted as halted:
        sys.stderr.write(f"stopped: {one_line(str(halted))}; the same command goes on\n")
        return FAILURES
    console = terminal_console()
    console.print(table(counts))
    if failed:
        for job, reason in failed:
            sys.stderr.write(f"failed: {one_line(f'{named(job)}: {reason}')}\n")
        sys.stderr.write(f"{len(failed)} runs failed: the same command tries them again\n")
        return FAILURES
    console.print(f"judge them with  python -m eval.judge --data trajudge:{options.out}")
    return DONE


def _parser() -> Parser:
    parser = Parser(prog="python -m environments.record", description=__doc__)
    parser.add_argument("--configs", type=Path, required=True, help="file of cases")
    parser.add_argument("--out", type=Path, default=Path("recorded"), help="folder to write into")
    parser.add_argument(
        "--agents",
        nargs="+",
        metavar="AGENT",
        help="scripted agents by name or behaviour, or all (default: all, none with --model)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the agents (default 0)")
    parser.add_argument("--workers", type=int, default=1, help="browsers side by side")
    group = parser.add_argument_group("a model as agent (the options of eval.judge)")
    group.add_argument("--model", metavar="NAME", help="e.g. gpt-4o, claude-..., provider/name")
    group.add_argument(
        "--see",
        choices=("axtree", "screenshot", "both"),
        default="axtree",
        help="what it sees of a page (default axtree)",
    )
    group.add_argument("--attempts", type=int, default=1, help="runs a case (default 1)")
    for name, metavar in CALLS.items():
        group.add_argument(f"--{name}", metavar=metavar)
    return parser


def _model(options: argparse.Namespace) -> Model | None:
    calls = {name.replace("-", "_") for name in CALLS}
    given = {name: value for name, value in vars(options).items() if name in calls}
    if options.model is None:
        for name, value in given.items():
            if value is not None:
                raise UserError(f"--{name.replace('_', '-')} goes with --model NAME")
        return None
    if options.model in AGENTS:
        raise UserError(f"--model {options.model}: a scripted agent is called so")
    side = side_of(options.model, argparse.Namespace(**given, seed=options.seed))
    return Model(side, Representation(options.see), options.attempts)


if __name__ == "__main__":
    sys.exit(main())
