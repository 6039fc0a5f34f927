"""What a selection sees: judgments first, and once the plan is frozen the labels, as arrays of who
accepts which labelled trajectory, and whether it had succeeded.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, JsonValue

from trajudge.annotations import (
    Labels,
    open_annotations,
    open_labels,
    primary_labels,
)
from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of, family_of
from trajudge.annotations.sources import agentrewardbench
from trajudge.eval.scoring.observations import trained_on, without_training
from trajudge.eval.scoring.records import UnfinishedRun
from trajudge.eval.select.binding import JudgeConfiguration, configuration_of_run, differences
from trajudge.eval.select.decision import UnderAttack
from trajudge.eval.select.plan import SelectionPlan, Target
from trajudge.eval.select.rates import TaskSums, cluster_sums
from trajudge.eval.select.scores import accepts, judge_scores, price, rule_scores
from trajudge.eval.select.settings import Threat
from trajudge.eval.sources import (
    Source,
    combine,
    judge_names,
    read_last_judgments,
    read_table,
    representation_name,
    unfinished_runs,
    with_judgments,
)
from trajudge.eval.store.labels import merged_labels, refuse_conflicts
from trajudge.eval.store.published import read_published_folder
from trajudge.eval.store.run_folder import read_labels, read_manifest
from trajudge.eval.store.table import JudgmentTable
from trajudge.judges.model import Judgment
from trajudge.stats.intervals import Bools, Floats, Ints, unequal
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import refuse_repeated
from trajudge.util.terminal import count_of, one_line
from trajudge.util.validation import read_record

THREATS: Mapping[Threat, str] = {"agent": "agent", "page": "page", "both": "agent and page"}
"""Who attacks, and the name of that threat model in ``robustness.json``."""


@dataclass(frozen=True)
class Inputs:
    """Judgments. ``configurations`` are those of their judges, by the name that the judgments have;
    ``unfinished`` the runs that lack judgments."""

    judgments: list[Judgment]
    configurations: dict[str, JudgeConfiguration]
    unfinished: tuple[UnfinishedRun, ...] = ()


def read_inputs(runs: Sequence[Path], published: Path | None) -> Inputs:
    """Read the judgments, and how their judges were configured. Raises UserError if there is
    none, and for a run that is given twice."""
    refuse_repeated(runs)
    made_with = {str(run): {} if run.is_file() else read_manifest(run) for run in runs}
    read = {str(run): _last_judgments(run) for run in runs}
    kept = with_judgments({name: len(table) for name, table in read.items()})
    manifests: list[dict[str, Any] | None] = [made_with[name] for name in kept]
    sources = [_held_out(name, read[name], made_with[name]) for name in kept]
    if published is not None:
        sources.append(read_published_folder(published, with_labels=False))
        manifests.append(None)
    whole = combine(sources)
    judgments = list(whole.judgments)
    if not judgments:
        raise UserError("no judgments to select from: give the folder of a run, or --judgments DIR")
    configurations = {
        name: _configuration(judge, source, manifest)
        for source, manifest, names in zip(sources, manifests, judge_names(sources), strict=True)
        for judge, name in names.items()
    }
    return Inputs(judgments, configurations, tuple(whole.unfinished))


def check_planned(inputs: Inputs, plan: SelectionPlan) -> None:
    """Raise UserError where no judge of the plan judged."""
    judged = inputs.configurations
    planned = {judge for family in plan.families for judge in family.rule.judges}
    if not planned & judged.keys():
        raise UserError(
            f"the plan's candidates are of {', '.join(sorted(planned))}, while the runs are of "
            f"{', '.join(sorted(judged))}: give runs of the plan's judges, or freeze another plan"
        )


def _last_judgments(run: Path) -> JudgmentTable:
    """Read a run's judgments, and note which come more than once. Raises UserError."""
    if run.is_file():
        return read_table(run).judgments
    judgments, notes = read_last_judgments(run)
    sys.stderr.write("".join(f"note: {one_line(note)}\n" for note in notes))
    return judgments


def _held_out(run: str, judgments: JudgmentTable, manifest: dict[str, Any]) -> Source:
    """Leave out what the run's judge was trained on: nothing can be certified on that. Raises
    UserError for a run without a judgment."""
    if not len(judgments):
        raise UserError(
            f"{run}: no judgment was made yet: judge first, the command that made the folder goes "
            "on"
        )
    trained = trained_on(manifest, judgments)
    for judge, keys in trained.items():
        sys.stderr.write(
            f"note: {count_of(len(keys), 'trajectory')} left out: {judge} was trained on them\n"
        )
    cut = unfinished_runs(manifest, len(judgments))
    kept = JudgmentTable.of(without_training(judgments, trained))
    return Source(run, kept, {}, unfinished=cut)


def _configuration(
    judge: str, source: Source, manifest: dict[str, Any] | None
) -> JudgeConfiguration:
    """Describe the judge of a run; or, ``manifest`` None, what published judgments tell of their
    judge."""
    if manifest is not None:
        return configuration_of_run(judge, manifest)
    facts: dict[str, JsonValue] = {}
    if judge in source.models:
        facts["model"] = source.models[judge]
    if judge in source.representations:
        facts["representation"] = representation_name(source.representations[judge])
    return JudgeConfiguration(judge=judge, facts=facts)


def read_all_labels(
    runs: Sequence[Path],
    published: Path | None,
    annotations: str | None,
    keys: Iterable[TrajectoryKey],
) -> Labels:
    """Read the expert labels that belong to them: the named ones, a table joined to ``keys``, or
    else those of each source.
    Raises UserError where these differ in success."""
    if annotations:
        return open_labels(annotations, keys=keys)
    named = [(str(run), read_labels(run)) for run in runs if not run.is_file()]
    if published is not None:
        beside = agentrewardbench.detect(published)
        spec = f"{agentrewardbench.KIND}:{published}" if beside else agentrewardbench.KIND
        named.append((str(published), primary_labels(open_annotations(spec))))
    refuse_conflicts(named, ["success"])
    return merged_labels([labels for _, labels in named])


@dataclass(frozen=True, eq=False)
class SelectionData:
    """N labelled trajectories and L candidates, in the plan's order.

    ``judged`` (N, L): the candidate has a score; ``accepted`` (N, L) is within it. ``prices``
    are dollars a trajectory by candidate. ``unsure`` labels are left out and counted, as are
    judged trajectories that are ``unlabelled``.
    ``agents`` counts the trajectories of each agent. ``weight`` (N,) is one over the probability
    with which each was drawn to be labelled, None where all had the same. ``shares`` (L,) are the
    shares that the candidates accept of all that they judged, labelled or not; None: of those here.
    ``names`` are those of the tasks. ``seed`` draws one run of each task.
    """

    success: Bools
    task: Ints
    benchmark: NDArray[np.str_]
    judged: Bools
    accepted: Bools
    prices: tuple[float | None, ...]
    unsure: int = 0
    unlabelled: int = 0
    agents: Mapping[str, int] = field(default_factory=dict)
    weight: Floats | None = None
    shares: tuple[float | None, ...] | None = None
    names: tuple[str, ...] = ()
    seed: int = 0

    @property
    def benchmarks(self) -> list[str]:
        """Those with a labelled trajectory; known ones in the paper's order, others by name."""
        names = set(self.benchmark.tolist())
        known = [name for name in BENCHMARKS if name in names]
        return [*known, *sorted(names - set(known))]

    def within(self, chosen: Bools) -> SelectionData:
        """Keep the chosen trajectories (N,) alone."""
        return replace(
            self,
            success=self.success[chosen],
            task=self.task[chosen],
            benchmark=self.benchmark[chosen],
            judged=self.judged[chosen],
            accepted=self.accepted[chosen],
            weight=None if self.weight is None else self.weight[chosen],
        )

    def clusters(self, hits: Bools, trials: Bools) -> TaskSums:
        """Sum by task within benchmark of two arrays (N, L), weighted."""
        return cluster_sums(
            hits, trials, self.task, self.benchmark, weights=self.weight, seed=self.seed
        )

    def accepted_share(self, candidate: int) -> float | None:
        """Return the share that a candidate accepts; None where it judged nothing."""
        if self.shares is not None:
            return self.shares[candidate]
        judged = int(self.judged[:, candidate].sum())
        return float(self.accepted[:, candidate].sum() / judged) if judged else None

    def largest_task(self, candidate: int) -> tuple[str, float]:
        """Find the task with the largest share of what a candidate accepts, and that share."""
        tasks, runs = np.unique(self.task[self.accepted[:, candidate]], return_counts=True)
        if not runs.size:
            return "", 0.0
        task = tasks[runs.argmax()]
        return self.names[task] if self.names else str(task), float(runs.max() / runs.sum())


def gather(plan: SelectionPlan, judgments: Sequence[Judgment], labels: Labels) -> SelectionData:
    """Gather the scores and labels of every candidate over the trajectories that any judge of the
    plan judged.

    Raises UserError if none of them is labelled.
    """
    scored = {use: judge_scores(judgments, use) for use in {f.rule.use for f in plan.families}}
    named = {judge for family in plan.families for judge in family.rule.judges}
    split = {k for k, a in labels.items() if plan.split in ("all", a.split)}
    judged_keys = {j.key for j in judgments if j.judge in named}
    keys = sorted(judged_keys & split, key=lambda k: k.order)
    known = [key for key in keys if labels[key].success is not None]
    if not known:
        raise UserError(
            f"none of the judged trajectories has an expert label of success (split {plan.split}): "
            "name the labels of these runs with --annotations KIND:PATH"
        )
    tasks = {task: number for number, task in enumerate(sorted({_task(k) for k in known}))}
    # What a candidate accepts and costs takes no label: all that it judged show it.
    every = keys
    if plan.split == "all":
        every = sorted(judged_keys, key=lambda k: k.order)
    judged, accepted, prices, shares = [], [], [], []
    for family in plan.families:
        mine = scored[family.rule.use]
        scores, all_scores = (rule_scores(family.rule, mine, part) for part in (known, every))
        has_score = ~np.isnan(all_scores)
        reached = [key for key, has in zip(every, has_score, strict=True) if has]
        cost = price(family.rule, mine, reached, plan.prices.judgments)
        for threshold in family.thresholds:
            judged.append(~np.isnan(scores))
            accepted.append(accepts(scores, threshold))
            prices.append(cost)
            share = accepts(all_scores, threshold)[has_score]
            shares.append(float(share.mean()) if len(share) else None)
    return SelectionData(
        success=np.array([bool(labels[key].success) for key in known], dtype=bool),
        task=np.array([tasks[_task(key)] for key in known], dtype=np.int64),
        benchmark=np.array([benchmark_of(key) for key in known], dtype=np.str_),
        judged=np.stack(judged, axis=1),
        accepted=np.stack(accepted, axis=1),
        prices=tuple(prices),
        unsure=len(keys) - len(known),
        unlabelled=len(judged_keys - labels.keys()),
        agents=dict(sorted(Counter(key.agent for key in known).items())),
        weight=drawn_weights(labels, known),
        shares=tuple(shares),
        names=tuple(" / ".join(task) for task in tasks),
        seed=plan.seed,
    )


def drawn_weights(labels: Labels, keys: Sequence[TrajectoryKey]) -> Floats | None:
    """Return one over the probability with which each label was drawn (N,), None where all had the
    same or none is recorded. Raises UserError where some have one and others have not."""
    chances = [labels[key].inclusion_probability for key in keys]
    drawn = [chance for chance in chances if chance is not None]
    if not drawn:
        return None
    if len(drawn) < len(chances):
        raise UserError(
            f"{len(drawn):,} of {len(chances):,} labels say with what probability they were drawn, "
            "the others do not: give the labels of one queue alone, or none of a queue"
        )
    return unequal(1 / np.array(drawn, dtype=float))


def _task(key: TrajectoryKey) -> tuple[str, str]:
    return (key.benchmark, family_of(key))


def hits_and_trials(evidence: SelectionData, target: Target) -> tuple[Bools, Bools]:
    """Find hits and trials (N, L) of the rate that the target bounds from below: successes among
    the accepted, or rejections among the failures."""
    success = evidence.success[:, None]
    if target.kind == "precision":
        return evidence.accepted & success, evidence.accepted
    failures = evidence.judged & ~success
    return failures & ~evidence.accepted, failures


def required_rate(target: Target) -> float:
    """Return what that rate must reach."""
    return target.rate if target.kind == "precision" else 1 - target.rate


class _Attack(BaseModel):
    name: str
    precision: float | None = None  # of an attack that no failure allows


class _WorstCase(BaseModel):
    attacks: tuple[_Attack, ...] = ()
    low: float | None = None


class _AttackedJudge(BaseModel):
    judge: str
    worst: dict[str, _WorstCase] = {}
    configuration: JudgeConfiguration | None = None


class _Robustness(BaseModel):
    """What is read of ``robustness.json``."""

    catalogue: str = ""
    judges: tuple[_AttackedJudge, ...]


def read_under_attack(
    files: Sequence[Path],
    threat: Threat,
    judges: Sequence[str],
    configurations: Mapping[str, JudgeConfiguration],
) -> dict[str, UnderAttack]:
    """Read the worst case of each of the judges, by their names, from ``robustness.json`` files.

    Raises UserError for a file that cannot be read, for a judge whose worst case under this threat
    is in none of them, and for one that was measured as another judge of that name.
    """
    worst: dict[str, UnderAttack] = {}
    for file in files:
        for measured, known in _worst_cases(file, threat):
            judge, used = measured.judge, configurations.get(measured.judge)
            if judge not in judges:
                continue
            before = measured.configuration or used
            if before and used and (different := list(differences(before, used))):
                raise UserError(
                    f"{file}: its {judge} was configured otherwise than that of the run "
                    f"({'; '.join(different)}): measure the judge that is to be chosen"
                )
            if worst.setdefault(judge, known) != known:
                raise UserError(f"{file}: tells of {judge} otherwise than a file before it")
    for judge in judges:
        if judge not in worst:
            named = ", ".join(map(str, files)) or "no --robustness FILE"
            raise UserError(
                f"{judge}: {named} does not tell its precision under attacks by the "
                f"{THREATS[threat]}: measure it with  trajudge robust --judge …  and name its "
                "robustness.json with --robustness, or leave the judge out with --judge"
            )
    return worst


def _worst_cases(path: Path, threat: Threat) -> Iterator[tuple[_AttackedJudge, UnderAttack]]:
    file = path / "robustness.json" if path.is_dir() else path
    measured = read_record(file, _Robustness, "name the file that  trajudge robust  wrote")
    for each in measured.judges:
        worst = each.worst.get(THREATS[threat], _WorstCase())
        tried = [(a.precision, a.name) for a in worst.attacks if a.precision is not None]
        if tried:
            precision, attack = min(tried)
            yield (
                each,
                UnderAttack(
                    attack=attack,
                    precision=precision,
                    low=worst.low,
                    attacks=len(tried),
                    catalogue=measured.catalogue,
                ),
            )
