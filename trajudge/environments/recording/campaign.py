"""A whole recording: which agents do which cases how often, continued where it was, with or without
faults, and what is shown of it.

A fault plan is recorded one fault at a time, each in an arm (a folder) of its own, so that what
happens can be told to be its doing; the clean arm goes through the same proxy. The arms are paired
by case, agent and attempt; ``resilience.json`` names them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from trajudge.environments.agents.model import ModelAgent
from trajudge.environments.agents.model_client import open_model_client
from trajudge.environments.agents.plugin import AgentPlugin
from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import (
    AGENTS,
    LADDER,
    RESILIENT,
    Behaviour,
    behaviour_of,
    is_scripted,
    resilience_of,
)
from trajudge.environments.apps import load_app
from trajudge.environments.model.case import Case, read_cases
from trajudge.environments.model.config import Config, Engine
from trajudge.environments.model.payload import USER_CONTENT, Payload, drawn, read_payloads
from trajudge.environments.model.variant import MARK, RunVariant
from trajudge.environments.recording.card import write_card
from trajudge.environments.recording.episode import Recorded
from trajudge.environments.recording.fault_proxy import FaultArm, check_plan
from trajudge.environments.recording.journal import COUNTED, Journal, assemble
from trajudge.environments.recording.recorder import FailedJob, Recorder, for_all, run_name
from trajudge.environments.serving.noise import noise
from trajudge.environments.variants import variant_jobs
from trajudge.prompts.render import load_prompt
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.represent import Representation
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, write_bytes
from trajudge.util.tables import Table, first_screen, first_warnings, screen_width
from trajudge.util.terminal import count_of, one_line, progress_bar

if TYPE_CHECKING:
    from trajudge.judges.calls.handle import ModelHandle

FEWER: Mapping[Behaviour, str] = {
    Behaviour.NEAR_MISS: "has one for each value of the task that can be mistaken for another",
    Behaviour.SIDE_EFFECT: "needs a task with something else to change",
    Behaviour.MISREADS: "needs a task that asks for an answer",
}
"""Why an agent has not one run of every case."""


def jobs_for(cases: Sequence[Case], agents: Sequence[str], attempts: int = 1) -> list[Job]:
    """Return every agent on every case; a near-miss agent once for each slot that has a decoy, a
    resilient one, a model and a user's agent ``attempts`` times."""
    return [job for case in cases for agent in agents for job in _jobs(case, agent, attempts)]


def with_payloads(jobs: Sequence[Job], payloads: Sequence[Payload], seed: int) -> list[Job]:
    """Plant the payloads in the jobs' applications, one a job, in turn from the ``seed``. Raises
    UserError for an application of which is not known what its users write."""
    if payloads and (unknown := {job.config.app for job in jobs} - USER_CONTENT.keys()):
        raise UserError(
            f"--payloads: it is not known what the users of {', '.join(sorted(unknown))} write: "
            f"give cases of {', '.join(USER_CONTENT)}"
        )
    return [
        job.model_copy(update={"payload": drawn(payloads, seed + number)})
        for number, job in enumerate(jobs)
    ]


def _jobs(case: Case, agent: str, attempts: int) -> list[Job]:
    behaviour = AGENTS.get(agent)
    config = case.config
    scenario = load_app(config.app).scenario(config.scenario)
    if behaviour is Behaviour.NEAR_MISS:
        attempts = len(scenario.mistakable)
    elif behaviour is Behaviour.SIDE_EFFECT:
        attempts = int(scenario.distractor is not None)
    elif behaviour is Behaviour.MISREADS:
        attempts = int(any(answer.kind != "code" for answer in scenario.answers))
    elif behaviour is not None:
        attempts = 1
    if behaviour is Behaviour.BLOCKED:
        config = _with_promotion(config)
    return [
        Job(
            config=config,
            agent=agent,
            attempt=n,
            goal=case.goal,
            shortest=case.shortest,
            fewest=case.fewest,
        )
        for n in range(attempts)
    ]


def _with_promotion(config: Config) -> Config:
    """Return the configuration with the first noise that covers the page."""
    for index in range(1, 100):
        tried = config.model_copy(update={"noise": index})
        if any(item.kind == "promotion" for item in noise(tried)):
            return tried
    raise RuntimeError("no noise holds a promotion")


def chosen(words: Sequence[str]) -> list[str]:
    """Return the agents named, by name, by behaviour or as a group, each once. Raises UserError for
    a name that is none of these."""
    behaviours = {name: behaviour.value for name, behaviour in AGENTS.items()}
    behaviours |= {name: f"resilient-{resilience_of(name)}" for name in RESILIENT}
    behaviours |= {name: f"ladder-{rung}" for name, rung in LADDER.items()}
    by_behaviour = {behaviour: name for name, behaviour in behaviours.items()}
    groups = {"all": [*AGENTS], "resilient": [*RESILIENT], "ladder": [*LADDER]}
    for word in words:
        if word not in behaviours and word not in by_behaviour and word not in groups:
            known = ", ".join(f"{name} ({behaviour})" for name, behaviour in behaviours.items())
            raise UserError(
                f"no agent is called {word!r}: name a Python file of your own, or choose from all, "
                f"resilient, ladder, {known}"
            )
    named = (groups.get(word, [by_behaviour.get(word, word)]) for word in words)
    return [*dict.fromkeys(chain.from_iterable(named))]


# --- a recording ---

Counts = Mapping[str, Mapping[str, int]]


class RecordedModel(NamedTuple):
    """A model that is recorded: how it is reached, what it sees, how often it tries a case."""

    handle: ModelHandle
    see: Representation
    attempts: int

    @property
    def what(self) -> dict[str, Any]:
        """What tells its recording from another."""
        prompt = load_prompt("web_agent").hash
        return {
            **self.handle.manifest,
            "see": self.see,
            "prompt": prompt,
            "attempts": self.attempts,
        }


class RecordingPlan(NamedTuple):
    """Recordings to make: scripted agents, agents of the user's and a model on a file of cases; the
    scripted runs once more in each of the ``variants``."""

    cases: Path
    agents: Sequence[str]
    seed: int
    model: RecordedModel | None = None
    attempts: int = 1
    payloads: Path | None = None
    variants: Sequence[RunVariant] = ()
    plugins: Sequence[AgentPlugin] = ()
    engine: Engine = "chromium"

    @property
    def names(self) -> list[str]:
        """The agents, in the order in which they are recorded."""
        model = [self.model.handle.model] if self.model else []
        return [*self.agents, *(plugin.name for plugin in self.plugins), *model]


class CampaignResult(NamedTuple):
    """Labels by agent, the jobs that gave no run, and what the code of users' agents failed with in
    runs of this session."""

    counts: Counts
    failed: list[FailedJob]
    failures: Sequence[str] = ()


def record(
    plan: RecordingPlan,
    out: Path,
    workers: int = 1,
    arm: FaultArm | None = None,
    *,
    spent: float = 0.0,
) -> CampaignResult:
    """Record what is missing and write what there is. Raises UserError, and Halted where nothing
    can be recorded any more; the runs until then are kept. With an ``arm`` the browsers are behind
    a proxy that carries out its faults; ``spent`` dollars of the budget went to other arms."""
    model, seed = plan.model, plan.seed
    cases = read_cases(plan.cases)
    jobs = jobs_for(cases, plan.names, plan.attempts)
    if plan.variants:
        jobs += variant_jobs(jobs, plan.variants, plan.payloads, seed)
    elif plan.payloads:
        jobs = with_payloads(jobs, read_payloads(plan.payloads), seed)
    journal = Journal(out, _described(plan, arm))
    if (counts := journal.counts) is not None:
        return CampaignResult(counts, [])
    done = journal.done()
    missing = [job for job in jobs if run_name(job) not in done]
    failed: list[FailedJob] = []
    failures: list[str] = []
    with progress_bar() as show:
        numbers = count(len(jobs) - len(missing) + 1)

        def keep(job: Job, recorded: Recorded) -> None:
            journal.add(run_name(job), recorded)
            if failure := recorded.facts.get("agent_failure"):
                failures.append(f"{run_name(job)}: {failure}")
            show("recording", next(numbers), len(jobs))

        each = partial(for_all, keep=keep, seed=seed, workers=workers, arm=arm, engine=plan.engine)
        failed += each([job for job in missing if is_scripted(job.agent)], Recorder.record)
        plugins = {plugin.name: plugin for plugin in plan.plugins}
        ours = [job for job in missing if job.agent in plugins]
        failed += each(ours, partial(_play_plugin, plugins), side_by_side="threads")
        by_model = [job for job in missing if model and job.agent == model.handle.model]
        if model and by_model:
            costs = (one["trajectory"]["telemetry"].get("cost", 0.0) for one in done.values())
            # A model's agents wait for replies most of the time, so threads do, which share the
            # budget; when the recording is left early, nothing is asked any more.
            with open_model_client(model.handle, model.see, spent + sum(costs)) as client:

                def ask(recorder: Recorder, job: Job) -> Recorded:
                    return recorder.play(job, lambda run: ModelAgent(client, job, run.goal))

                failed += each(by_model, ask, side_by_side="threads", halt=client.stop)
    counts = assemble(journal, [run_name(job) for job in jobs])
    if not failed:
        write_card(out, cases, plan.engine, seed)
    return CampaignResult(counts, failed, failures)


def _play_plugin(plugins: Mapping[str, AgentPlugin], recorder: Recorder, job: Job) -> Recorded:
    with plugins[job.agent].open(job.goal or "") as agent:
        return recorder.play(job, lambda _: agent)


def _described(plan: RecordingPlan, arm: FaultArm | None) -> dict[str, Any]:
    """Tell this recording from another."""
    record: dict[str, Any] = {
        "cases": sha256(read_regular(plan.cases)).hexdigest(),
        "agents": plan.names,
        "seed": plan.seed,
        "engine": plan.engine,
    }
    if plan.plugins:
        record["plugins"] = [plugin.description for plugin in plan.plugins]
    if plan.model:
        record["model"] = plan.model.what
    if plan.payloads:
        record["payloads"] = sha256(read_regular(plan.payloads)).hexdigest()
    if plan.variants:
        record["variants"] = list(plan.variants)
    if arm:
        record |= {**arm.record, "pictures": arm.pictures, "attempts": plan.attempts}
    return record


def table(counts: Counts) -> Table:
    """Labels by agent; ambiguous are runs of which the success is."""
    rows = []
    for agent, row in counts.items():
        base, mark, variant = agent.partition(MARK)
        known = behaviour_of(base)
        cells = (str(row[name]) for name in COUNTED)
        rung = f"ladder-{LADDER[base]}" if base in LADDER else ""
        word = known.value if known else resilience_of(base) or rung or "not scripted"
        word += f", {variant}" if mark else ""
        rows.append((agent, word, *cells))
    return Table("Labels by agent", ("agent", "behaviour", *COUNTED), rows)


# --- with faults ---

CLEAN = "clean"
ARMS = "resilience.json"
_FORMAT = "trajudge-resilience"


class ArmResult(NamedTuple):
    """What was recorded in an arm."""

    name: str
    recorded: CampaignResult


def arms_of(path: Path, *, pictures: bool) -> list[FaultArm]:
    """Return the clean arm and one for each fault of a plan. Raises UserError for a file that is no
    plan; what is wrong with a fault the proxy says when its arm begins."""
    try:
        plan = json.loads(read_regular(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a fault plan in --faults") from error
    except ValueError as error:
        raise UserError(f"{path}: no JSON ({error}): docs/proxy.md shows a plan") from error
    faults = plan.get("faults") if isinstance(plan, dict) else None
    if not isinstance(faults, list) or not faults:
        raise UserError(f"{path}: names no faults: docs/proxy.md shows a plan")
    names = [fault.get("id") if isinstance(fault, dict) else None for fault in faults]
    if not all(isinstance(name, str) and name not in ("", CLEAN) for name in names):
        raise UserError(f"{path}: each fault needs an id of its own, other than {CLEAN!r}")
    if len(set(names)) < len(names):
        raise UserError(f"{path}: two faults have one id: give each its own")
    rest = {name: value for name, value in plan.items() if name != "faults"}
    alone = [
        FaultArm(fault["id"], {**rest, "faults": [fault]}, pictures=pictures) for fault in faults
    ]
    return [FaultArm(CLEAN, {**rest, "faults": []}, pictures=pictures), *alone]


def record_arms(
    plan: RecordingPlan, arms: Sequence[FaultArm], out: Path, workers: int
) -> list[ArmResult]:
    """Record what is missing of every arm, the clean one first. Raises UserError and Halted."""
    results: list[ArmResult] = []
    spent = 0.0
    for arm in arms:
        recorded = record(plan, out / arm.name, workers, arm, spent=spent)
        results.append(ArmResult(arm.name, recorded))
        if plan.model is not None:
            spent += _spent_in(out / arm.name)
    content: Mapping[str, Any] = {
        "format": _FORMAT,
        "version": 1,
        "seed": plan.seed,
        "arms": {arm.name: dict(arm.plan) for arm in arms},
    }
    write_bytes(out / ARMS, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return results


def _spent_in(folder: Path) -> float:
    """Return what the runs of an arm cost, in US dollars: one budget holds for all arms."""
    if store.find_file(folder) is None:
        return 0.0
    runs = (run for run in store.read(folder) if isinstance(run, Trajectory))
    return sum(run.telemetry.get("cost", 0.0) for run in runs)


# --- what is shown ---


def recorded(
    plan: RecordingPlan, out: Path, workers: int, faults: Path | None, *, pictures: bool
) -> tuple[str, list[FailedJob]]:
    """Record what is planned, with each fault of ``faults`` once more; return what is shown, and
    the jobs that gave no run. Raises UserError and Halted."""
    if faults is None:
        campaign = record(plan, out, workers)
        return recording_screen(campaign, out), campaign.failed
    check_plan(faults)
    arms = record_arms(plan, arms_of(faults, pictures=pictures), out, workers)
    return arms_screen(arms, out), [job for arm in arms for job in arm.recorded.failed]


def recording_screen(campaign: CampaignResult, out: Path) -> str:
    """Show a recording: how many runs succeeded, and the labels by agent."""
    summary = [
        _finding([*campaign.counts.values()], count_of(len(campaign.counts), "agent")),
        *_again(campaign.failed),
    ]
    rest = f"judge them with  trajudge judge --data {quote(f'trajudge:{out}')}"
    warnings = [*_failures(campaign.failures), *_fewer(campaign.counts)]
    return first_screen(summary, [table(campaign.counts)], warnings, rest=rest, more="labels.jsonl")


def _failures(failures: Sequence[str]) -> list[str]:
    if not failures:
        return []
    runs = count_of(len(failures), "run")
    return [f"{runs} ended because the agent failed (facts.jsonl), such as {failures[0]}"]


def _finding(counts: Sequence[Mapping[str, int]], agents: str) -> str:
    """Say in a sentence what the runs came to, by the state at their end."""
    runs, right, unclear = (
        sum(row[name] for row in counts) for name in ("runs", "success", "ambiguous")
    )
    if not runs:
        return "No run was recorded."
    sentence = (
        f"{right:,} of {count_of(runs, 'run')} of {agents} succeeded, by the state at the end"
    )
    return sentence + (f"; {unclear:,} stay open." if unclear else ".")


def _fewer(counts: Counts) -> list[str]:
    """Say why agents have fewer runs than others."""
    most = max((row["runs"] for row in counts.values()), default=0)
    short = [agent.partition(MARK) for agent, row in counts.items() if row["runs"] < most]
    known = {behaviour_of(base) for base, _, _ in short}
    reasons = [f"{one} {why}" for one, why in FEWER.items() if one in known]
    if any(variant for _, _, variant in short):
        reasons.append("a variant needs a run that can end so")
    return [f"fewer runs: {'; '.join(reasons)}"] if reasons else []


def arms_screen(arms: Sequence[ArmResult], out: Path) -> str:
    """Show a recording with faults: runs and successes by arm."""
    rows = []
    for arm in arms:
        agents = arm.recorded.counts.values()
        totals = (sum(row[name] for row in agents) for name in ("runs", "success", "ambiguous"))
        rows.append((arm.name, *map(str, totals)))
    failed = [job for arm in arms for job in arm.recorded.failed]
    clean, *faulty = (sum(row["success"] for row in a.recorded.counts.values()) for a in arms)
    summary = [_finding([*arms[0].recorded.counts.values()], "the arm without faults")]
    if faulty:
        fewest, most = min(faulty), max(faulty)
        span = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        summary.append(f"With a fault {span} succeeded, against {clean:,} without.")
    summary += _again(failed)
    head = ("arm", "runs", "success", "ambiguous")
    rest = f"compare them with  trajudge proxy results {quote(str(out))}"
    return first_screen(summary, [Table("Runs by arm", head, rows, names=1)], rest=rest)


def failure_lines(failed: Sequence[FailedJob]) -> list[str]:
    """Say which jobs gave no run, and why, in a few lines."""
    reasons = [f"failed: {run_name(job)}: {one_line(reason)}" for job, reason in failed]
    return first_warnings(reasons, screen_width(), rest="the same command tries all again")


def _again(failed: Sequence[FailedJob]) -> list[str]:
    runs = count_of(len(failed), "run")
    return [f"{runs} failed: the same command tries again"] if failed else []
