"""What ``trajudge score`` scores: folders of runs and of published judgments, brought together, and
how their labels fit.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from trajudge.annotations import KINDS, Labels, store
from trajudge.annotations.model import SampleFrame
from trajudge.eval.scoring.notes import repeated_note
from trajudge.eval.scoring.observations import (
    Observations,
    ReferenceLabels,
    predictions_by_judge,
    trained_on,
    without_training,
)
from trajudge.eval.scoring.records import LabelName, Missing, UnattributedCost, UnfinishedRun
from trajudge.eval.scoring.usage import paid_in_all, unattributed_cost
from trajudge.eval.store.inputs import recorded_data
from trajudge.eval.store.labels import LabelColumns, merged_labels
from trajudge.eval.store.manifest import (
    RecordedPrompts,
    configuration_of,
    recorded_prompts,
    recorded_samples,
    recorded_versions,
)
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
    LABELS,
    read_labels,
    read_manifest,
    read_rewards,
    unreadable_note,
)
from trajudge.eval.store.table import (
    PAYMENTS,
    JudgmentTable,
    KeyColumns,
    concatenate,
    distinct,
    joined,
    last_of_each,
    places_among,
    read_run_judgments,
)
from trajudge.eval.store.task_goals import Task, read_goals
from trajudge.judges.model import Judgment
from trajudge.judges.models import guesses, recorded_windows
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import refuse_repeated
from trajudge.util.foreign_table import TASK_NAMES, choose_column, read_rows
from trajudge.util.terminal import listed
from trajudge.util.validation import first_error

_REPRESENTATIONS = {
    "both": (True, True),
    "axtree": (True, False),
    "screenshot": (False, True),
    "none": (False, False),
}


@dataclass
class Source:
    """Judgments with the labels and official rewards that belong to them.

    ``representations`` says whether a judge saw the final accessibility tree and screenshot,
    where that is known; ``data`` are the specifications that open the trajectories; ``notes`` what
    the user should know of the reading; ``models`` the model of a published judge;
    ``training`` the trajectories that a judge was trained on; ``versions`` those of a judge's
    cards (``eval.data.manifest.recorded_versions``), ``configurations`` its settings in a run,
    ``prompts`` whose it asked with;
    ``policies`` by which the labels were made, of sources that have several;
    ``unattributed_cost`` what runs paid on top of their judgments' cost; ``unfinished`` the runs
    that lack judgments; ``frames`` what the labels were drawn from; ``goals`` digests of the
    tasks' goals.
    """

    name: str
    judgments: JudgmentTable
    rewards: Mapping[TrajectoryKey, float | None]
    labels: Labels = field(default_factory=dict)
    protocols: set[str] = field(default_factory=set)
    representations: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    training: dict[str, set[TrajectoryKey]] = field(default_factory=dict)
    versions: dict[str, dict[str, int]] = field(default_factory=dict)
    configurations: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, RecordedPrompts] = field(default_factory=dict)
    policies: set[str] = field(default_factory=set)
    unattributed_cost: UnattributedCost = field(default_factory=UnattributedCost)
    unfinished: list[UnfinishedRun] = field(default_factory=list)
    frames: set[SampleFrame] = field(default_factory=set)
    goals: dict[Task, int] = field(default_factory=dict)

    def restrict(self, split: str) -> None:
        """Keep the trajectories whose annotation is in ``split``. Raises UserError if none is, or
        none of those is judged."""
        kept = {key: label for key, label in self.labels.items() if label.split == split}
        if not kept:
            counts = Counter(label.split for label in self.labels.values())
            has = ", ".join(f"{n} in {name or 'no split'}" for name, n in counts.most_common())
            raise UserError(
                f"--split {split}: no label is in it ({has or 'there are none'}): leave it out, or "
                "name labels that have splits with --annotations"
            )
        # Nobody knows for which trajectories it was paid.
        self.labels, self.unattributed_cost = kept, UnattributedCost()
        self.judgments = judgments_of(self.judgments, kept)
        if not len(self.judgments):
            raise UserError(f"--split {split}: none of its {len(kept)} trajectories was judged")
        self.rewards = {key: r for key, r in self.rewards.items() if key in self.labels}


def observed_verdicts(
    source: Source, missing: Missing, question: LabelName = "success"
) -> dict[str, Observations]:
    """Observe each judge's verdicts, judges by name; what one was trained on is left out."""
    judgments = without_training(source.judgments, source.training)
    reference = ReferenceLabels.of(judgments.keys, source.labels, source.rewards)
    judges = predictions_by_judge(judgments, reference, {})
    return {judge.judge: judge.observe(question, missing) for judge in judges}


_ROW = (
    *("judge", "sample", "status", "success", "side_effect", "repetition", "optimality", "score"),
    *("reasoning", "fallback", "detail", "process", "failure_step", "failure_type"),
)


def read_table(table: Any) -> Source:
    """Read a table of judgments: a file or frame with the columns of ``Run.to_frame()``, or a
    ``judgments.jsonl``; the task may have any of the names that ``trajudge check`` knows
    (``TASK_NAMES``), other columns are ignored, and ``status`` is ok where it has none.

    Raises UserError for a table without benchmark, agent, task_id, judge and success, and for a
    cell that is no value of its column.
    """
    rows = read_rows(table)
    names = {name.removeprefix("key."): name for name in rows.columns}
    if "task_id" not in names and (task := choose_column(rows, TASK_NAMES)):
        names["task_id"] = task
    if missing := [
        n for n in ("benchmark", "agent", "task_id", "judge", "success") if n not in names
    ]:
        raise UserError(
            f"{rows.source}: has no column {', '.join(missing)}, only {listed(rows.columns, 12)}: "
            "give a table as Run.to_frame() makes it; any other is read by  trajudge check TABLE"
        )
    used = [(name, rows.columns.index(column)) for name, column in names.items()]
    judgments = []
    for number, row in enumerate(rows.rows):
        cells = {name: row[place] for name, place in used if row[place]}
        fields: dict[str, Any] = {name: cells[name] for name in _ROW if name in cells}
        fields["key"] = {name: cells.get(name, "") for name in ("benchmark", "agent", "task_id")}
        fields["key"]["attempt"] = cells.get("attempt", 0)
        try:
            fields["calls"] = _calls_of(cells)
            judgments.append(Judgment.model_validate({"status": "ok"} | fields))
        except ValueError as error:
            why = "calls, cost or seconds are no numbers"
            if isinstance(error, ValidationError):
                why = first_error(error, "the row")
            raise UserError(f"{rows.at(number)}: {why}: mend the row or remove it") from error
    return Source(rows.source, JudgmentTable.of(judgments), {})


def _calls_of(cells: Mapping[str, str]) -> list[dict[str, Any]]:
    """Make the calls of a row: those that it holds, or as many as it counts, whose cost and seconds
    are equal parts of the row's."""
    calls = cells.get("calls", "0")
    if calls.startswith("["):
        found: list[dict[str, Any]] = orjson.loads(calls)
        return found
    count = int(calls) if calls.isdecimal() else 0
    cost = float(cells["cost"]) / count if count and "cost" in cells else None
    part = {"cost": cost, "seconds": float(cells.get("seconds", 0)) / max(count, 1)}
    known = {"stage": "verdict", "request": "", "rung": "full", "finish": "", "text": ""}
    return [known | {"usage": None} | part for _ in range(count)]


def read_run(folder: Path) -> Source:
    """Read the folder of a run, or a file with a table of judgments. Raises UserError if it is
    neither."""
    if folder.is_file():
        return read_table(folder)
    manifest = read_manifest(folder)
    judgments, repeated = read_last_judgments(folder)
    judges = judgments.judges
    unattributed = unattributed_cost(folder / PAYMENTS, judgments.calls)
    shown = _REPRESENTATIONS.get(str(dict(manifest.get("options") or {}).get("representation")))
    return Source(
        name=str(folder),
        judgments=judgments,
        rewards=read_rewards(folder),
        labels=read_labels(folder),
        protocols={str(manifest.get("protocol", "default"))},
        representations=dict.fromkeys(judges, shown) if shown else {},
        data=[data] if (data := recorded_data(folder)) else [],
        training=trained_on(manifest, judgments),
        notes=[*unreadable_note(folder), *repeated, *guesses(recorded_windows(manifest))],
        versions={judge: recorded_versions(manifest) for judge in judges},
        configurations=dict.fromkeys(judges, configuration_of(manifest)),
        prompts=dict.fromkeys(judges, recorded_prompts(manifest)),
        policies=recorded_policies(manifest.get("annotations")),
        unattributed_cost=unattributed,
        unfinished=unfinished_runs(manifest, len(judgments)),
        frames=frames_of(folder / LABELS),
        goals=read_goals(folder),
    )


def frames_of(path: Path) -> set[SampleFrame]:
    """Read what the labels of a file were drawn from; empty where it does not say so."""
    frame = store.read_frame(path)
    return set() if frame is None else {frame}


def unfinished_runs(manifest: Mapping[str, Any], judged: int) -> list[UnfinishedRun]:
    """Tell whether a run of so many judgments lacks some: it alone, or nothing. Of published
    verdicts nobody knows."""
    selection = manifest.get("selection")
    selected = selection.get("trajectories") if isinstance(selection, dict) else None
    due = selected * recorded_samples(manifest) if isinstance(selected, int) else judged
    judge = str(manifest.get("judge"))
    return [UnfinishedRun(judge=judge, judged=judged, due=due)] if judged < due else []


def read_runs(folders: Sequence[Path]) -> list[Source]:
    """Read the folders of runs; one without a judgment is left out as ``with_judgments`` says.
    Raises UserError for one that is none, or is given twice: its judge would be compared with
    itself."""
    refuse_repeated(folders)
    read = list(map(read_run, folders))
    kept = with_judgments({source.name: len(source.judgments) for source in read})
    return [source for source in read if source.name in kept]


def with_judgments(judged: Mapping[str, int]) -> list[str]:
    """Return the runs of ``judged``, judgments by run, that have some; warn of each other one. All
    of them where none has any."""
    kept = [name for name, count in judged.items() if count]
    if not kept:
        return [*judged]
    for name, count in judged.items():
        if not count:
            sys.stderr.write(f"warning: {name}: left out, for no judgment was made yet\n")
    return kept


def read_last_judgments(folder: Path) -> tuple[JudgmentTable, list[str]]:
    """Read a run's judgments; of those that come more than once the last counts, and a sentence
    says so. Raises UserError."""
    judgments = read_run_judgments(folder / JUDGMENTS, folder / CALLS)
    last = last_of_each(judgments)
    if len(last) == len(judgments):
        return judgments, []
    return judgments.at(last), [f"{folder / JUDGMENTS}: {repeated_note(judgments, last)}"]


def recorded_policies(spec: object) -> set[str]:
    """Return the ``KIND/POLICY`` that a run's manifest names, without a look at the labels'
    files; empty where the kind has none."""
    head = str(spec or "").partition(":")[0]
    return {head} if head.partition("/")[0] in KINDS and "/" in head else set()


def policy_name(policies: set[str]) -> str:
    """Name the one policy without its kind, "" if there is none."""
    return ", ".join(sorted(name.partition("/")[2] for name in policies))


def judgments_of(judgments: Iterable[Judgment], keys: Collection[TrajectoryKey]) -> JudgmentTable:
    """Keep the judgments of these trajectories."""
    table = JudgmentTable.of(judgments)
    return table.at(places_among(table.keys, KeyColumns.of(keys)) >= 0)


def representation_name(shown: tuple[bool, bool]) -> str:
    """Name the representation that ``shown``, (saw the tree, saw the screenshot), stands for."""
    return next(name for name, each in _REPRESENTATIONS.items() if each == shown)


def judge_names(sources: Sequence[Source]) -> list[dict[str, str]]:
    """For each source its judges, with the name that tells them apart from the other sources'.

    What several runs hold of a judge with the same settings, on different trajectories, is one
    judge's, under its own name.
    """
    renamed = names_apart([(source.name, source.judgments.judges) for source in sources])
    for judge in {judge for names in renamed for judge, name in names.items() if name != judge}:
        its_own = [place for place, names in enumerate(renamed) if judge in names]
        settings = {sources[place].configurations.get(judge) for place in its_own}
        if are_parts(settings, (_keys(sources[place].judgments, judge) for place in its_own)):
            for place in its_own:
                renamed[place][judge] = judge
    return renamed


def are_parts(settings: Collection[str | None], parts: Iterable[KeyColumns]) -> bool:
    """Tell whether a judge's keys in several places are parts of what one judge judged: under one
    configuration that is known (``manifest.configuration_of``), no trajectory in two of them."""
    if len(settings) > 1 or None in settings:
        return False
    keys = [*parts]
    return len(distinct(joined(keys))[0]) == sum(len(distinct(each)[0]) for each in keys)


def _keys(judgments: JudgmentTable, judge: str) -> KeyColumns:
    return judgments.keys.at(judgments.of_judge(judge))


def names_apart(places: Sequence[tuple[str, Collection[str]]]) -> list[dict[str, str]]:
    """For each place, by its name and judges, the judges with the name that tells them apart from
    the other places'."""
    owners = Counter(judge for _, judges in places for judge in judges)
    return [
        {judge: f"{judge} ({place})" if owners[judge] > 1 else judge for judge in judges}
        for place, judges in places
    ]


def combine(sources: Sequence[Source]) -> Source:
    """Combine all sources into one. A judge that several of them have is named as ``judge_names``
    says; of several labels of one trajectory the last counts."""
    rewards = known_rewards([source.rewards for source in sources])
    renamed = judge_names(sources)
    parts = [s.judgments.renamed(names) for s, names in zip(sources, renamed, strict=True)]
    whole = Source("", concatenate(parts), rewards, merged_labels([s.labels for s in sources]))
    for source, names in zip(sources, renamed, strict=True):
        whole.representations |= {
            names[judge]: shown for judge, shown in source.representations.items()
        }
        whole.configurations |= {
            names[judge]: told for judge, told in source.configurations.items()
        }
        whole.prompts |= {names[judge]: told for judge, told in source.prompts.items()}
        for judge, keys in source.training.items():
            whole.training.setdefault(names[judge], set()).update(keys)
        whole.versions |= {names[judge]: told for judge, told in source.versions.items()}
        whole.notes += source.notes
        whole.data += [spec for spec in source.data if spec not in whole.data]
        whole.protocols |= source.protocols
        whole.policies |= source.policies
        whole.frames |= source.frames
        whole.goals |= source.goals
        for run in source.unfinished:
            name = names.get(run.judge, run.judge)
            whole.unfinished.append(run.model_copy(update={"judge": name}))
    whole.unattributed_cost = paid_in_all(source.unattributed_cost for source in sources)
    return whole


def unmatched_labels_message(
    spec: str, known: Collection[TrajectoryKey], key: TrajectoryKey
) -> str:
    """Say that none of the labels of ``spec`` belongs to a trajectory that is judged, and by what a
    label and a trajectory are known."""
    label = next(iter(known))
    return (
        f"{spec}: none of its {len(known):,} labels belongs to a trajectory that is "
        f"judged: a label is of agent {label.agent!r} on {label.benchmark!r}, task "
        f"{label.task_id!r}; a trajectory of agent {key.agent!r} on {key.benchmark!r}, task "
        f"{key.task_id!r}"
    )


def known_rewards(
    parts: Sequence[Mapping[TrajectoryKey, float | None]],
) -> Mapping[TrajectoryKey, float | None]:
    """Bring the rewards together, of several of a trajectory the first that is known; those of a
    single part are kept as they are, in columns."""
    if len(parts) == 1:
        return parts[0]
    rewards: dict[TrajectoryKey, float | None] = {}
    for part in parts:
        for key, reward in part.items():
            if rewards.get(key) is None:
                rewards[key] = reward
    return rewards


class LabelFit(NamedTuple):
    """``unsplit`` are trajectories that a split leaves out because no label names the split of
    their task. Where some that are judged have a label and others, ``unlabelled``, have none,
    ``strays`` are labels of the same agents and benchmarks that belong to no trajectory."""

    unsplit: KeyColumns
    unlabelled: KeyColumns
    strays: KeyColumns


def refuse_unmatched_labels(spec: str, keys: KeyColumns, labels: Labels, split: str) -> None:
    """Raise UserError for a split of labels none of which belongs to the data."""
    if split != "all" and not any(key in labels for key in keys):
        said = unmatched_labels_message(spec, labels, keys.key(0))
        raise UserError(f"{said}: correct the labels, or judge without them with --split all")


def label_fit(
    data: KeyColumns, judged: KeyColumns, unsplit: KeyColumns, labels: Labels
) -> LabelFit:
    """Find what does not fit between the labels and the trajectories of ``data``."""
    labelled = LabelColumns.of(labels).keys
    unlabelled = judged.at(places_among(judged, labelled) < 0)
    if not 0 < len(unlabelled) < len(judged):
        return LabelFit(unsplit, _none_of(judged), _none_of(labelled))
    lost = labelled.at(places_among(labelled, data) < 0)
    agents = {(key.benchmark, key.agent) for key in judged}
    strays = lost.at([(key.benchmark, key.agent) in agents for key in lost])
    return LabelFit(unsplit, unlabelled, strays)


def misfits(fit: LabelFit, spec: str) -> Iterator[str]:
    """Yield a sentence for each thing that does not fit."""
    if len(fit.strays):
        yield (
            f"warning: {spec}: labels that belong to no trajectory of the data: "
            f"{_counted(fit.strays)}; trajectories without a label: {_counted(fit.unlabelled)}"
        )
    if len(fit.unsplit):
        yield (
            "warning: not judged, because no label assigns their tasks to dev or test: "
            f"{_counted(fit.unsplit)}: label these tasks, or judge all with --split all"
        )


def _counted(keys: KeyColumns) -> str:
    first = keys.key(0)
    return (
        f"{len(keys):,} (the first of agent {first.agent!r}, task {first.task_id!r}, attempt "
        f"{first.attempt})"
    )


def _none_of(keys: KeyColumns) -> KeyColumns:
    return keys.at(slice(0, 0))
