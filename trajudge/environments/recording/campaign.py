"""A whole recording: scripted agents and a model on a file of cases, continued where it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trajudge.environments.agents.model import ModelAgent
from trajudge.environments.agents.model_client import open_model_client
from trajudge.environments.agents.plugin import AgentPlugin
from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import behaviour_of, is_scripted, resilience_of
from trajudge.environments.model.case import read_cases
from trajudge.environments.model.payload import read_payloads
from trajudge.environments.model.variant import MARK, RunVariant
from trajudge.environments.recording.episode import Recorded
from trajudge.environments.recording.fault_proxy import FaultArm
from trajudge.environments.recording.jobs import jobs_for, with_payloads
from trajudge.environments.recording.journal import COUNTED, Journal, assemble
from trajudge.environments.recording.pool import FailedJob, for_all
from trajudge.environments.recording.recorder import Recorder, run_name
from trajudge.environments.variants.jobs import variant_jobs
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.represent import Representation
from trajudge.util.files import read_regular
from trajudge.util.tables import Table
from trajudge.util.terminal import progress_bar

if TYPE_CHECKING:
    from trajudge.judges.calls.handle import ModelHandle

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
    jobs = jobs_for(read_cases(plan.cases), plan.names, plan.attempts)
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

        scripted = [job for job in missing if is_scripted(job.agent)]
        failed += for_all(scripted, Recorder.record, keep, seed=seed, workers=workers, arm=arm)
        plugins = {plugin.name: plugin for plugin in plan.plugins}
        ours = [job for job in missing if job.agent in plugins]
        failed += for_all(
            ours,
            partial(_play_plugin, plugins),
            keep,
            seed=seed,
            workers=workers,
            arm=arm,
            side_by_side="threads",
        )
        if model and len(scripted) + len(ours) < len(missing):
            with_model = [job for job in missing if job.agent == model.handle.model]
            spent += sum(
                entry["trajectory"]["telemetry"].get("cost", 0.0) for entry in done.values()
            )
            ask = partial(_ask, model, spent=spent, seed=seed, workers=workers, arm=arm)
            failed += ask(with_model, keep)
    return CampaignResult(assemble(journal, [run_name(job) for job in jobs]), failed, failures)


def _play_plugin(plugins: Mapping[str, AgentPlugin], recorder: Recorder, job: Job) -> Recorded:
    with plugins[job.agent].open(job.goal or "") as agent:
        return recorder.play(job, lambda _: agent)


def _described(plan: RecordingPlan, arm: FaultArm | None) -> dict[str, Any]:
    """Tell this recording from another."""
    record: dict[str, Any] = {
        "cases": sha256(read_regular(plan.cases)).hexdigest(),
        "agents": plan.names,
        "seed": plan.seed,
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


def _ask(
    model: RecordedModel,
    jobs: Sequence[Job],
    keep: Callable[[Job, Recorded], None],
    *,
    spent: float,
    seed: int,
    workers: int,
    arm: FaultArm | None,
) -> list[FailedJob]:
    """Record a model. Its agents wait for replies most of the time, so threads do, which share the
    budget; when the recording is left early, nothing is asked any more."""
    with open_model_client(model.handle, model.see, spent) as client:

        def work(recorder: Recorder, job: Job) -> Recorded:
            return recorder.play(job, lambda run: ModelAgent(client, job, run.goal))

        return for_all(
            jobs,
            work,
            keep,
            seed=seed,
            workers=workers,
            arm=arm,
            side_by_side="threads",
            halt=client.stop,
        )


def table(counts: Mapping[str, Mapping[str, int]]) -> Table:
    """Labels by agent; ambiguous are runs of which the success is."""
    rows = []
    for agent, row in counts.items():
        base, mark, variant = agent.partition(MARK)
        known = behaviour_of(base)
        cells = (str(row[name]) for name in COUNTED)
        word = known.value if known else resilience_of(base) or "not scripted"
        word += f", {variant}" if mark else ""
        rows.append((agent, word, *cells))
    return Table("Labels by agent", ("agent", "behaviour", *COUNTED), rows)
