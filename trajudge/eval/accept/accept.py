"""Apply a decision, or a judge at a threshold: which trajectories it accepts, and why not the
others.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.eval.accept.conversations import (
    SYSTEM,
    ChatFormat,
    ChatTurn,
    chat_turns,
    provenance,
    without_observation,
)
from trajudge.eval.accept.recertify import (
    check_sample,
    check_unused,
    draw_sample,
    other_agents,
    sample_text,
)
from trajudge.eval.accept.settings import AcceptConfig
from trajudge.eval.accept.training import TrainingCounts, TrainingData, guarantee_of
from trajudge.eval.reporting.sentences import threshold_text, unfinished
from trajudge.eval.scoring.records import UnfinishedRun
from trajudge.eval.select.binding import JudgeConfiguration, differences, unknown
from trajudge.eval.select.decision import Decision, Transport, read_decision
from trajudge.eval.select.evidence import Inputs, read_inputs
from trajudge.eval.select.rates import cluster_sums, lower_limits, rate_sums
from trajudge.eval.select.scores import Rule, accepts, accepts_score, judge_scores, rule_scores
from trajudge.eval.store.inputs import open_recorded, open_spec, recorded_data
from trajudge.eval.store.manifest import code_version
from trajudge.eval.store.task_goals import read_goals, shared_goals, shared_sentence, task_units
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable, canonical_task_id
from trajudge.util import jsonl as python_json
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, read_text, save_bytes
from trajudge.util.tables import Table, first_screen
from trajudge.util.terminal import count_of, listed

ACCEPTED_FILE = "accepted.jsonl"
REJECTED_FILE = "rejected.jsonl"
SUMMARY_FILE = "acceptance.json"
ACCEPTED = "accepted"
BELOW = "below the threshold"
NO_OBSERVATION = "no observation"
OTHER_BENCHMARK = "benchmark not covered"
_ASSUME = "--assume-same-judge"
_NAMED = 4  # tasks in a warning


@dataclass(frozen=True)
class AcceptanceFilter:
    """What accepts: a rule at a threshold.

    ``guarantee`` is the precision that the decision showed, at least, and its confidence.
    ``benchmarks`` are those that it was shown to hold on, None: any; ``obstacles`` tells of others
    why the choice does not transfer, "" where it does. ``agents`` are those whose runs are taken,
    None: all; runs on ``held_out`` tasks (benchmark, "" for any, and task id) are not taken.
    ``decision`` is the hash of the plan that it was chosen under; ``warning`` is what the user
    should know of its guarantee.
    """

    name: str
    rule: Rule
    threshold: float
    benchmarks: frozenset[str] | None = None
    decision: str | None = None
    warning: str = ""
    guarantee: tuple[float, float] | None = None
    obstacles: Mapping[str, str] = field(default_factory=dict)
    agents: frozenset[str] | None = None
    held_out: frozenset[tuple[str, str]] = frozenset()

    @property
    def accepted_by(self) -> dict[str, Any]:
        """What is recorded beside every accepted trajectory."""
        return {"judge": self.name, "threshold": self.threshold, "decision": self.decision}


class AcceptDecision(NamedTuple):
    """How a trajectory ended. ``reason`` is empty for an accepted one; ``score`` None where there
    is none."""

    kind: str
    reason: str
    score: float | None


@dataclass(frozen=True)
class Acceptance:
    """What was applied, how many trajectories ended how, what the user should know, the folder that
    holds it all (the accepted ones in ``accepted.jsonl``), the rows of training data in ``format``,
    and the runs that lack judgments."""

    choice: AcceptanceFilter
    counts: dict[str, int]
    warnings: tuple[str, ...]
    folder: Path
    training: TrainingCounts | None = None
    format: str | None = None
    unfinished: tuple[UnfinishedRun, ...] = ()

    @property
    def finding(self) -> str:
        """How many trajectories were accepted of how many, and how many of them are true successes
        by the decision behind it."""
        total, accepted = sum(self.counts.values()), self.counts.get(ACCEPTED, 0)
        share = f" ({100 * accepted / total:.1f} %)" if total else ""
        name = f"{self.choice.name} at threshold {threshold_text(self.choice.threshold)}"
        finding = f"Accepted {accepted:,} of {count_of(total, 'trajectory')}{share} with {name}"
        if self.choice.guarantee is None:
            return (
                f"{finding}; how many of them are true successes is unknown: no decision of "
                "trajudge select was applied."
            )
        if not accepted:
            return f"{finding}."
        low, confidence = self.choice.guarantee
        return (
            f"{finding}; by its decision at least {100 * low:.1f} % of such are true "
            f"successes, with {100 * confidence:.4g} % confidence."
        )

    def screen(self, more: str) -> str:
        """Say on one screen what was accepted, why the others were not, and where all of it stands;
        ``more`` holds the warnings that have no room."""
        finding = self.finding
        if cut := unfinished(self.unfinished):
            finding = f"{finding.removesuffix('.')}; {cut}"
        warnings = sorted(self.warnings, key=lambda each: not each.startswith("warning: "))
        rest = f"written to {self.folder}: {ACCEPTED_FILE}, {REJECTED_FILE}, {SUMMARY_FILE}"
        if self.training is not None:
            rows = ", ".join(f"{count} in {name}" for name, count in self.training.rows.items())
            rest += f"; rows in {self.format}/: {rows or 'none'}"
        rejected = [(kind, str(n)) for kind, n in self.counts.items() if kind != ACCEPTED]
        table = Table("", ("rejected because", "trajectories"), rejected, names=1)
        tables = [table] if rejected else []
        return first_screen([finding], tables, (), warnings, rest=rest, more=more)


def run(config: AcceptConfig) -> int:
    """Apply the choice and write, or test the sample; return the exit code."""
    if config.recertify and config.annotations:
        if config.decision or config.judge or config.run or config.judgments:
            raise UserError(
                "--recertify DIR with --annotations tests a sample that was drawn: leave out what "
                "accepts, and to what it is applied"
            )
        shown, message = check_sample(config.recertify, config.annotations)
        sys.stdout.write(message)
        return OK if shown else FAILURES
    for name in ("annotations", "agent", "size"):
        if getattr(config, name) and not config.recertify:
            raise UserError(f"--{name} is of a sample: give --recertify DIR, too")
    made = accept(config)
    sys.stdout.write(made.screen(SUMMARY_FILE))
    if config.recertify and made.counts.get(ACCEPTED):
        sys.stdout.write("\n" + sample_text(config.recertify))
    return OK if made.counts.get(ACCEPTED) else FAILURES


def accept(config: AcceptConfig) -> Acceptance:
    """Write the accepted trajectories as conversations and the others with the reason; draw the
    sample of ``config.recertify``.

    Raises UserError for settings that contradict each other, for files that cannot be read or
    written, and for judgments that the decision does not cover.
    """
    decision, choice = _choose(config)
    if not config.run and config.judgments is None:
        raise UserError("no judgments to apply it to: give --run RUN or --judgments DIR")
    if config.recertify and decision is None:
        raise UserError("--recertify: certifies a decision again: give --decision DIR")
    if config.recertify:
        check_unused(config.recertify)
    chat = ChatFormat(config.page, _read_option("--system", config.system) or SYSTEM)
    inputs = read_inputs(config.run, config.judgments)
    goals = {task: goal for folder in config.run for task, goal in read_goals(folder).items()}
    warnings: list[str] = []
    with task_units(goals, config.task_id):
        if decision is not None:
            choice, warnings = _covered(decision, choice, inputs, config)
        held_out = read_held_out(config.held_out)
        choice = replace(choice, held_out=held_out)
        seen: set[tuple[str, str]] = set()
        spec = _data(config)
        training = None
        if config.training.format is not None:
            form = config.training.format
            training = TrainingData(
                config,
                form,
                accepted_by=choice.accepted_by,
                decision=decision,
                spec=spec,
                chat=chat,
            )
        agents: Counter[str] = Counter()

        def observe(
            trajectory: Trajectory, ending: AcceptDecision, turns: Sequence[ChatTurn]
        ) -> None:
            key = trajectory.key
            seen.update(held_out & {(key.benchmark, key.task_id), ("", key.task_id)})
            if ending.kind == ACCEPTED:
                agents[key.agent] += 1
            if training is not None and turns and ending.score is not None:
                training.add(
                    trajectory, turns, ending.score, ending.kind == ACCEPTED, ending.kind == BELOW
                )

        counts = apply(
            open_source(spec),
            inputs.judgments,
            choice,
            config.out,
            chat=chat,
            bare_turns=config.without_observations,
            screenshots=config.training.with_screenshots,
            observe=observe,
        )
        warnings += _unmatched(held_out, seen)
        divided = config.recertify or config.training.test_share
        shared = shared_sentence(shared_goals(goals)) if config.task_id == "recorded" else ""
        if divided and shared:
            warnings.append(f"warning: {shared}: count goals with --task-id goal")
        if decision is not None and not config.recertify:
            warnings += _new_agents(decision, agents, config)
        warnings += [choice.warning] if choice.warning else []
        warnings += _left_out(counts)
        written = None
        if training is not None:
            written = training.write(config.out)
            warnings += written.warnings(config.training)
        if config.recertify and decision is not None and counts.get(ACCEPTED):
            draw_sample(decision, config, config.out / ACCEPTED_FILE)
    made = Acceptance(
        choice,
        dict(sorted(counts.items())),
        tuple(warnings),
        config.out,
        written,
        config.training.format,
        inputs.unfinished,
    )
    _write_summary(config, made, config.data or spec)
    return made


def _unmatched(held_out: Set[tuple[str, str]], seen: Set[tuple[str, str]]) -> Iterator[str]:
    """Name the tasks of ``--held-out`` that no run is of: a typing error would let a task in."""
    if absent := sorted(held_out - seen):
        names = listed(["/".join(filter(None, task)) for task in absent], _NAMED)
        yield f"warning: {len(absent)} of {len(held_out)} held-out tasks match no run: {names}"


def _left_out(counts: Mapping[str, int]) -> Iterator[str]:
    """Say which option takes runs that were left out for another reason than their verdict."""
    if others := counts.get(OTHER_BENCHMARK):
        yield (
            f"{count_of(others, 'run')} of benchmarks on which the decision was not shown to hold: "
            "--any-benchmark takes them, without a guarantee there"
        )
    if bare := counts.get(NO_OBSERVATION):
        yield (
            f"{count_of(bare, 'run')} left out, a page not recorded: {REJECTED_FILE} says what "
            "supplies it; or --without-observations"
        )


def _choose(config: AcceptConfig) -> tuple[Decision | None, AcceptanceFilter]:
    """Take the choice from the settings, or from their decision. Raises UserError."""
    if config.decision is not None and config.judge is None:
        if config.threshold is not None:
            raise UserError("--threshold is part of the decision: leave it out, or use --judge")
        decision = read_decision(config.decision)
        return decision, filter_of(decision, config.decision)
    if config.decision is not None or config.judge is None:
        raise UserError("give either --decision DIR, or --judge NAME with --threshold T")
    if config.threshold is None:
        raise UserError(f"--judge {config.judge} needs --threshold T: for a verdict 1")
    return None, AcceptanceFilter(config.judge, Rule(judges=(config.judge,)), config.threshold)


def filter_of(decision: Decision, source: Path) -> AcceptanceFilter:
    """Take the chosen candidate of a decision. Raises UserError if none qualified."""
    if decision.chosen is None:
        raise UserError(
            f"{source}: no judge qualified, so there is no choice to apply; --judge and "
            "--threshold apply one without a guarantee"
        )
    finding = decision.findings[decision.chosen]
    shown = frozenset(part.benchmark for part in finding.by_benchmark if part.rate.trials)
    warning = ""
    if decision.recertified:
        shown = frozenset(decision.binding.benchmarks)
        mix = ", ".join(f"{name} {n}" for name, n in decision.binding.benchmarks.items())
        warning = f"certified again on labels of {', '.join(decision.binding.agents)}: {mix}"
    elif len(finding.by_benchmark) > 1 and not finding.qualifies_everywhere:
        names = ", ".join(f"{part.benchmark} {part.labelled}" for part in finding.by_benchmark)
        warning = f"the target was shown to be met only over this mix of benchmarks: {names}"
    low, confidence = guarantee_of(decision)
    return AcceptanceFilter(
        finding.family,
        finding.rule,
        finding.threshold,
        shown,
        decision.plan_hash,
        warning,
        None if low is None or confidence is None else (low, confidence),
    )


def _covered(
    decision: Decision, choice: AcceptanceFilter, inputs: Inputs, config: AcceptConfig
) -> tuple[AcceptanceFilter, list[str]]:
    """Complete the choice with the benchmarks and agents that it may be applied to, and what the
    user has to know. Raises UserError for another judge."""
    source = config.decision or Path()
    absent = [judge for judge in choice.rule.judges if judge not in inputs.configurations]
    if absent:
        of_run = sorted(inputs.configurations)
        wanted, judged = (
            f"{'judge' if len(names) == 1 else 'judges'} {', '.join(names)}"
            for names in (absent, of_run)
        )
        raise UserError(
            f"{source}: the decision is for {wanted}, while the run is of {judged}: name the run "
            f"of {', '.join(absent)} with --run, or select anew"
        )
    warnings = check_judges(
        decision,
        choice.rule,
        inputs.configurations,
        source=source,
        assume_same=config.assume_same_judge,
    )
    obstacles = transfer_obstacles(
        decision.transport,
        choice.rule,
        choice.threshold,
        inputs.judgments,
        decision.plan.confidence,
    )
    agents = frozenset(decision.binding.agents) if config.agents == "same" else None
    benchmarks = None if config.any_benchmark else choice.benchmarks
    return replace(choice, benchmarks=benchmarks, obstacles=obstacles, agents=agents), warnings


def check_judges(
    decision: Decision,
    rule: Rule,
    configurations: Mapping[str, JudgeConfiguration],
    *,
    source: Path,
    assume_same: bool,
) -> list[str]:
    """Compare the judges that the decision was made for with those that judged now; what the user
    has to know of them.

    Raises UserError naming what differs; and, unless ``assume_same``, what only one side knows.
    """
    warnings: list[str] = []
    for judge in rule.judges:
        certified = decision.binding.judges.get(judge) or JudgeConfiguration(judge=judge)
        current = configurations.get(judge) or JudgeConfiguration(judge=judge)
        if different := list(differences(certified, current)):
            raise UserError(
                f"{source}: was made for another judge of the name {judge}: this one has "
                f"{'; '.join(different)}: judge with the settings of the decision, or select anew"
            )
        one_sided, neither = unknown(certified, current)
        if one_sided and not assume_same:
            raise UserError(
                f"{source}: cannot be compared with {judge} in its {', '.join(one_sided)}, which "
                f"only one of the two records: if it is the same judge, say so with {_ASSUME}"
            )
        if missing := [*one_sided, *neither]:
            warnings.append(f"not compared, because not recorded, of {judge}: {', '.join(missing)}")
        before, now = certified.facts.get("endpoint"), current.facts.get("endpoint")
        if before != now and before is not None and now is not None:
            warnings.append(f"{judge} was asked at {now}, when it was certified at {before}")
    return warnings


def transfer_obstacles(
    transport: Transport | None,
    rule: Rule,
    threshold: float,
    judgments: Sequence[Judgment],
    confidence: float,
) -> dict[str, str]:
    """Map benchmark -> why the decision does not transfer there, "" where it does.

    It may where its rates were shown to be equivalent across benchmarks and the share that the
    rule accepts there shows a success rate of at least ``least_success_rate``: with a
    false-positive rate of at most f, accepting a share q takes a success rate of at least
    (q - f) / (1 - f).
    """
    scored = judge_scores(judgments, rule.use)
    keys = sorted({j.key for j in judgments if j.judge in rule.judges}, key=lambda key: key.order)
    scores = rule_scores(rule, scored, keys)
    benchmark = np.array([benchmark_of(key) for key in keys], dtype=np.str_)
    task = np.array([family_of(key) for key in keys], dtype=np.str_)
    obstacles = {}
    for name in np.unique(benchmark):
        here = (benchmark == name) & ~np.isnan(scores)
        hits = accepts(scores[here], threshold)[:, None]
        sums = rate_sums(cluster_sums(hits, np.ones_like(hits), task[here], benchmark[here]))
        low = float(lower_limits(sums, 1 - confidence)[0]) if here.any() else 0.0
        obstacles[str(name)] = _obstacle(transport, low)
    return obstacles


def _obstacle(transport: Transport | None, accepted: float) -> str:
    if transport is None or not transport.allowed:
        return f"nor does it transfer there: {transport.reason if transport else 'not tested'}"
    least, limit = transport.least_success_rate, transport.false_positive_limit
    if least is None or limit is None or limit >= 1:
        return ""
    shown = max(0.0, (accepted - limit) / (1 - limit))
    if shown >= least:
        return ""
    return (
        f"and it transfers only where at least {100 * least:.1f} % of the rollouts succeed: "
        f"its verdicts there show {100 * shown:.1f} %"
    )


def _new_agents(
    decision: Decision, accepted: Mapping[str, int], config: AcceptConfig
) -> Iterator[str]:
    """Ask for a sample of the accepted runs of agents that the decision was not made on."""
    others = other_agents(decision, accepted)
    if not others or config.agents is not None:
        return
    named = ", ".join(f"{name} ({accepted[name]})" for name in others)
    yield (
        f"warning: the decision was not made on {named}: the target is not shown for them: draw a "
        "sample to label with --recertify DIR, or leave them out with --agents same"
    )


def apply(
    trajectories: Iterable[Trajectory | Unreadable],
    judgments: Sequence[Judgment],
    choice: AcceptanceFilter,
    folder: Path,
    *,
    chat: ChatFormat,
    bare_turns: bool,
    screenshots: bool,
    observe: Callable[[Trajectory, AcceptDecision, Sequence[ChatTurn]], None] | None = None,
) -> Counter[str]:
    """Write ``accepted.jsonl`` and ``rejected.jsonl``, one trajectory in memory at a time, in the
    order in which they come; how many ended how. Both appear when complete.

    ``observe`` is called with every trajectory that could be read, how it ended and its
    conversation; a rejected one that could not be exported, with none. ``bare_turns``: accept runs
    with steps whose page was not recorded; ``screenshots`` go along with the turns, so that one
    alone is a page. Raises UserError for an unwritable folder.
    """
    decide = _acceptor(choice, judgments)
    counts: Counter[str] = Counter()
    try:
        make_folder(folder, "--out")
        with ExitStack() as stack:
            files = {
                name: stack.enter_context((folder / f"{name}.part").open("wb"))
                for name in (ACCEPTED_FILE, REJECTED_FILE)
            }
            for trajectory in trajectories:
                if isinstance(trajectory, Unreadable):
                    key = trajectory.key.model_dump() if trajectory.key else None
                    kind, name = "unreadable", REJECTED_FILE
                    line: dict[str, Any] = {"key": key, "kind": kind, "reason": trajectory.reason}
                else:
                    ending = decide(trajectory.key)
                    turns = chat_turns(trajectory, chat)
                    why_not = _not_exported(trajectory, turns, bare_turns, screenshots)
                    if ending.kind == ACCEPTED and why_not:
                        ending = AcceptDecision(*why_not, ending.score)
                    kind = ending.kind
                    name = ACCEPTED_FILE if kind == ACCEPTED else REJECTED_FILE
                    line = _line(trajectory, ending, choice, turns)
                    if observe is not None:
                        observe(trajectory, ending, () if why_not else turns)
                counts[kind] += 1
                files[name].write(python_json.encode(line) + b"\n")
        for name in files:
            (folder / f"{name}.part").replace(folder / name)
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be written ({error.strerror})") from error
    return counts


def _acceptor(
    choice: AcceptanceFilter, judgments: Sequence[Judgment]
) -> Callable[[TrajectoryKey], AcceptDecision]:
    """Make the function that decides on a trajectory, from the judgments at hand."""
    scored = judge_scores(judgments, choice.rule.use)
    keys = sorted({j.key for j in judgments}, key=lambda key: key.order)
    scores = dict(zip(keys, rule_scores(choice.rule, scored, keys).tolist(), strict=True))
    # A judge of the rule gave no verdict in any sample.
    answered = {(j.judge, j.key) for j in judgments if j.status is Status.OK}
    failures = {
        j.key: f"{j.judge}: {j.status.value}: {j.detail}"
        for j in judgments
        if j.judge in choice.rule.judges and (j.judge, j.key) not in answered
    }

    def decide(key: TrajectoryKey) -> AcceptDecision:
        score = scores.get(key, math.nan)
        if obstacle := _not_covered(choice, key):
            return AcceptDecision(*obstacle, None if math.isnan(score) else score)
        if math.isnan(score):
            return AcceptDecision("not judged", f"{choice.name} has not judged it", None)
        if accepts_score(score, choice.threshold):
            return AcceptDecision(ACCEPTED, "", score)
        if key in failures:
            return AcceptDecision("judgment failed", failures[key], score)
        mine, least = threshold_text(score), threshold_text(choice.threshold)
        return AcceptDecision(BELOW, f"its score {mine} is below the threshold {least}", score)

    return decide


def _not_covered(choice: AcceptanceFilter, key: TrajectoryKey) -> tuple[str, str] | None:
    """Return kind and reason where the choice was made for other benchmarks or agents, or the task
    is held out."""
    benchmark = benchmark_of(key)
    if {(key.benchmark, key.task_id), ("", key.task_id)} & choice.held_out:
        return "held-out task", "its task is in the list of --held-out"
    why = choice.obstacles.get(benchmark, "nor does it transfer there")
    if choice.benchmarks is not None and benchmark not in choice.benchmarks and why:
        return OTHER_BENCHMARK, f"the choice was not shown to hold on {benchmark}, {why}"
    if choice.agents is not None and key.agent not in choice.agents:
        return "agent not covered", f"the choice was not shown to hold for the agent {key.agent}"
    return None


def _not_exported(
    trajectory: Trajectory, turns: Sequence[ChatTurn], bare_turns: bool, screenshots: bool
) -> tuple[str, str] | None:
    """Return kind and reason where a trajectory has no action, or a step with an action shows
    nothing of its page."""
    if not turns:
        return "no action", "no step has an action: there is nothing to learn"
    bare, acted = without_observation(trajectory, screenshots=screenshots)
    if bare_turns or not bare:
        return None
    missing, remedy = "no address, page or error", "give the full trajectories with --data"
    if screenshots:
        missing = "no address, page, error or screenshot"
    elif not without_observation(trajectory, screenshots=True)[0]:
        remedy = "take their screenshots along with --format NAME --with-screenshots"
    return NO_OBSERVATION, (
        f"{bare} of {acted} steps with an action have no observation ({missing}), "
        f"so their user turns would be empty: {remedy}, or export "
        "them as they are with --without-observations"
    )


def _line(
    trajectory: Trajectory,
    ending: AcceptDecision,
    choice: AcceptanceFilter,
    turns: Sequence[ChatTurn],
) -> dict[str, Any]:
    if ending.kind != ACCEPTED:
        return {"key": trajectory.key.model_dump(), **ending._asdict()}
    return {
        "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
        "provenance": {
            **provenance(trajectory),
            **choice.accepted_by,
            "score": ending.score,
        },
    }


def _read_option(option: str, file: Path | None) -> str | None:
    try:
        return None if file is None else read_text(file)
    except OSError as error:
        raise UserError(f"{option} {file}: cannot be read ({error.strerror})") from error


def read_held_out(file: Path | None) -> frozenset[tuple[str, str]]:
    """Read a list of tasks, one per line: ``TASK`` or ``BENCHMARK/TASK``; # begins a comment.

    Raises UserError for a file that cannot be read or lists none.
    """
    text = _read_option("--held-out", file)
    if text is None:
        return frozenset()
    tasks = set()
    for line in text.splitlines():
        if task := line.partition("#")[0].strip():
            benchmark, slash, name = task.partition("/")
            tasks.add((benchmark, canonical_task_id(benchmark, name)) if slash else ("", task))
    if not tasks:
        raise UserError(
            f"--held-out {file}: lists no task: write one per line, TASK or BENCHMARK/TASK"
        )
    return frozenset(tasks)


def _data(config: AcceptConfig) -> str:
    """Name the trajectories: ``data``, or what the first run was made from. Raises UserError."""
    if config.data:
        return open_spec(config.data)
    if not config.run:
        raise UserError("published judgments need their trajectories: give --data KIND:PATH")
    spec = recorded_data(config.run[0])
    if not spec:
        raise UserError(f"{config.run[0]}: its manifest names no data: give --data KIND:PATH")
    return open_recorded(spec)


def _write_summary(config: AcceptConfig, made: Acceptance, spec: str) -> None:
    choice = made.choice
    training = None
    if made.training is not None:
        training = {**config.training.model_dump(mode="json"), **made.training.facts()}
    summary = {
        "judge": choice.name,
        "rule": choice.rule.model_dump(mode="json"),
        "threshold": choice.threshold,
        "decision": choice.decision,
        "benchmarks": sorted(choice.benchmarks) if choice.benchmarks is not None else None,
        "data": spec,
        "runs": [str(run) for run in config.run],
        "judgments": str(config.judgments) if config.judgments else None,
        "counts": made.counts,
        "training": training,
        "cautions": made.warnings,
        "unfinished": [run.model_dump() for run in made.unfinished],
        "version": code_version(),
    }
    content = orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n"
    save_bytes(config.out / SUMMARY_FILE, content)
