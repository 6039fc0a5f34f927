"""A leaderboard: from its settings to scored suites of benchmarks, a row per judge.

``gather_board`` reads every source (runs, published verdicts, judges that need no model), leaves
out runs that may not be compared, groups the rest into suites of benchmarks that were judged
together, and scores each with the statistics of ``trajudge score``. Ranks come from paired
differences: judges whose difference is not significant share a rank.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson
from pydantic import Field

from trajudge.annotations import (
    open_labels,
    primary_labels,
)
from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of
from trajudge.annotations.model import Annotation, Labels
from trajudge.annotations.published import SUFFIX, open_verdicts, verdict_kinds
from trajudge.annotations.sources import agentrewardbench
from trajudge.eval.baselines import trivial_baselines
from trajudge.eval.check_run import check_run
from trajudge.eval.imported import to_judgments
from trajudge.eval.reporting.sentences import warnings_of
from trajudge.eval.scoring.comparison import mixed_versions
from trajudge.eval.scoring.compute import WEIGHTED, score
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    ALPHA,
    OVERALL,
    RULE_BASED,
    Comparison,
    Score,
    ScoreReport,
)
from trajudge.eval.scoring.usage import judge_usage
from trajudge.eval.settings import LabelConfig, Split
from trajudge.eval.sources import Source, are_parts, read_run
from trajudge.eval.store.inputs import find_source
from trajudge.eval.store.manifest import configuration_of
from trajudge.eval.store.published import judgments_folder, read_published_folder
from trajudge.eval.store.run_folder import read_manifest
from trajudge.eval.store.table import JudgmentTable, KeyColumns, columns_of
from trajudge.judges.judging import NoModel, judge_trajectory
from trajudge.judges.model import Judgment, Status
from trajudge.judges.registry import make_judge, needs_of
from trajudge.trajectories.loaders import loader
from trajudge.trajectories.loaders.agentrewardbench_text import KIND as TEXT_KIND
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey
from trajudge.trajectories.sample import SAMPLE
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, refuse_repeated, utf8
from trajudge.util.terminal import count_of


@dataclass(frozen=True)
class BoardEntry:
    """One source of verdicts. ``configuration`` is equal for runs that differ in their data alone;
    ``free``: no model was called, therefore a judgment costs nothing. ``trusted``: the labels are
    the annotations' own; those in a run's folder are what the submitter says they are.
    """

    source: Source
    configuration: str
    free: bool
    trusted: bool = False

    @property
    def benchmarks(self) -> set[str]:
        """The benchmarks that it is scored on."""
        return {benchmark_of(key) for key in self.source.labels} or {
            benchmark_of(judgment.key) for judgment in self.source.judgments
        }


class JudgeVerdicts(NamedTuple):
    """All verdicts of one row of the leaderboard, and the trajectories it was trained on."""

    judgments: list[Judgment]
    trained_on: set[TrajectoryKey]
    versions: Mapping[str, int]
    free: bool


def read_runs(folders: Sequence[Path]) -> list[BoardEntry]:
    """Read folders of runs, by name; each is named after its folder. Raises UserError for what is
    no run."""
    names = Counter(folder.resolve().name for folder in folders)
    return [
        _read_run(folder, f" {number}" if names[folder.resolve().name] > 1 else "")
        for number, folder in enumerate(sorted(folders, key=lambda f: f.resolve().name), start=1)
    ]


def _read_run(folder: Path, suffix: str) -> BoardEntry:
    manifest = read_manifest(folder)
    free = manifest.get("model") is None and not manifest.get("published")
    source = replace(read_run(folder), name=folder.resolve().name + suffix)
    labels = str(manifest.get("annotations") or "").partition(":")[0]
    if "/" in labels and not labels.startswith((".", "/")):
        source.notes.append(f"labels of {source.name}: {labels}")
    return BoardEntry(source, configuration_of(manifest), free=free)


def verdicts_by_judge(entries: Sequence[BoardEntry]) -> dict[str, JudgeVerdicts]:
    """Give every judge one row, by name.

    Entries of one judge with one configuration and no trajectory in common are parts of one row;
    any other two are told apart by their sources' names.
    """
    parts: dict[str, list[tuple[BoardEntry, list[Judgment]]]] = {}
    for entry in entries:
        for judge, judgments in _by_judge(entry.source.judgments).items():
            parts.setdefault(judge, []).append((entry, judgments))
    rows: dict[str, JudgeVerdicts] = {}
    for judge, mine in sorted(parts.items()):
        one = are_parts(
            {entry.configuration for entry, _ in mine},
            (KeyColumns.of(judgment.key for judgment in judgments) for _, judgments in mine),
        )
        for entry, judgments in mine:
            name = judge if one else f"{judge} ({entry.source.name})"
            row = rows.setdefault(
                name, JudgeVerdicts([], set(), entry.source.versions.get(judge, {}), entry.free)
            )
            row.judgments.extend(
                judgments
                if name == judge
                else [j.model_copy(update={"judge": name}) for j in judgments]
            )
            row.trained_on.update(entry.source.training.get(judge, ()))
    return rows


def _by_judge(judgments: Iterable[Judgment]) -> dict[str, list[Judgment]]:
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_judge.setdefault(judgment.judge, []).append(judgment)
    return by_judge


WITHOUT_MODEL = ("heuristic",)


def baseline_entries(spec: str, annotations: str | None = None) -> list[BoardEntry]:
    """Judge all labelled trajectories of ``spec`` (KIND:PATH, or "sample") without a call.

    The judges are the heuristic and the trivial baselines, of which the trained ones are fitted on
    other tasks than the judged one's; the official rewards come along. Raises UserError where
    the data cannot be opened, or no trajectory has a label.
    """
    dataset = find_source(spec, annotations)
    labels = primary_labels(dataset.annotations)
    runs = [
        run
        for run in dataset.read(labels.__contains__)
        if isinstance(run, Trajectory) and run.key in labels
    ]
    if not runs:
        raise UserError(f"--data {spec}: no trajectory has an expert's label: add --annotations")
    rewards = {run.key: run.official_reward for run in runs}
    judgments = [*asyncio.run(_judged(runs)), *trivial_baselines(runs, labels).judgments]
    source = Source("baselines", JudgmentTable.of(judgments), rewards, labels, data=[dataset.spec])
    return [BoardEntry(source, "baselines", free=True, trusted=True)]


async def _judged(runs: Sequence[Trajectory]) -> list[Judgment]:
    judgments = []
    for name in WITHOUT_MODEL:
        judge_id, judge = make_judge(name)
        needs = needs_of(name)
        judgments += [
            await judge_trajectory(judge_id, judge, run, NoModel(), needs=needs) for run in runs
        ]
    return judgments


FILE = "results.json"

_SUCCESS = "trajectory_success"

_MAX_BYTES = 256 * 2**20


def read_result_arrays(path: Path, annotations: Sequence[Annotation]) -> list[Judgment]:
    """Read the verdicts in ``path`` (``FOLDER/results.json``), one judge after the other.

    ``annotations`` are AgentRewardBench's, in file order. A judge is named after the folder where
    the file holds one, else after itself; verdict -1 is a judgment that failed. Raises UserError
    where the file is none of these, or the experts' labels in it are not those of ``annotations``.
    """
    published = _decoded(path)
    order = _test_order(annotations)
    filled = {
        judge: groups for judge, groups in published.items() if any(_arrays(path, judge, groups))
    }
    judgments: list[Judgment] = []
    for judge, groups in filled.items():
        name = path.parent.name if len(filled) == 1 else judge
        for place, expert, verdicts in _arrays(path, judge, groups):
            keys = order.get(place, ())
            if [int(label) for _, label in keys] != expert or len(expert) != len(verdicts):
                raise UserError(
                    f"{path}: {judge}, {'/'.join(place)}: y_human is not the labels of the "
                    "annotations' test split: give the annotations that it was computed from"
                )
            judgments += [
                _judgment(key, name + SUFFIX, verdict)
                for (key, _), verdict in zip(keys, verdicts, strict=True)
            ]
    return judgments


def _decoded(path: Path) -> Mapping[str, Any]:
    try:
        published = orjson.loads(utf8(read_regular(path, _MAX_BYTES), path))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    if not isinstance(published, dict):
        raise UserError(f"{path}: holds no JSON object: give a published {FILE}")
    return published


def _arrays(
    path: Path, judge: str, groups: Any
) -> Iterator[tuple[tuple[str, str], list[int], list[int]]]:
    """Yield (benchmark, agent), labels and verdicts where there are any; sums over benchmarks or
    agents ("all") are left out."""
    try:
        for benchmark in filter(groups.keys().__contains__, BENCHMARKS):
            for agent, cells in groups[benchmark].items():
                expert, verdicts = cells[_SUCCESS]["y_human"], cells[_SUCCESS]["y_judge"]
                if agent != "all" and expert:
                    yield (benchmark, agent), list(map(int, expert)), list(map(int, verdicts))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: {judge}: is not BENCHMARK -> AGENT -> {_SUCCESS} -> y_human, y_judge: give a "
            f"published {FILE}"
        ) from error


def _test_order(
    annotations: Sequence[Annotation],
) -> dict[tuple[str, str], list[tuple[TrajectoryKey, bool]]]:
    """List, by benchmark and agent, the labelled test trajectories with their label."""
    order: dict[tuple[str, str], dict[TrajectoryKey, bool]] = {}
    for each in annotations:
        if each.split == "test" and each.success is not None:
            place = (benchmark_of(each.key), each.key.agent)
            order.setdefault(place, {}).setdefault(each.key, each.success)
    return {place: list(keys.items()) for place, keys in order.items()}


def _judgment(key: TrajectoryKey, judge: str, verdict: int) -> Judgment:
    if verdict in (0, 1):
        return Judgment(key=key, judge=judge, status=Status.OK, success=bool(verdict))
    detail = f"the published verdict is {verdict}: no valid response"
    return Judgment(key=key, judge=judge, status=Status.PROVIDER_ERROR, detail=detail)


def read_published_data(folder: Path) -> list[BoardEntry]:
    """Read every known data set in ``folder`` (itself one, or with one in a folder of its own).

    AgentRewardBench: ``annotations.csv`` with ``splits.csv``, ``published/JUDGE/results.json`` and
    ``judgments/``. Raises UserError where there is none.
    """
    entries = [entry for place in (folder, *_subfolders(folder)) for entry in _data_set(place)]
    if not entries:
        raise UserError(
            f"--published {folder}: holds no published verdicts that are known here: give a folder "
            "with AgentRewardBench's annotations.csv and judgments/ or published/"
        )
    return entries


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        raise UserError(f"--published {folder}: cannot be read ({error.strerror})") from error


def _data_set(folder: Path) -> Iterator[BoardEntry]:
    if (folder / "annotations.csv").is_file():
        yield from _agentrewardbench(folder)
        return
    kind = next((kind for kind in verdict_kinds() if loader(kind).detect(folder)), None)
    if kind is not None:
        yield from _verdicts(f"{kind}:{folder}", folder.name)


def _verdicts(spec: str, name: str) -> Iterator[BoardEntry]:
    """Yield the verdicts that are published in the data, and the baselines where it is labelled."""
    judgments = to_judgments(open_verdicts(spec))
    dataset = find_source(spec, None)
    labels = primary_labels(dataset.annotations)
    rewards = dict.fromkeys(judgment.key for judgment in judgments)
    # The label policy, where the data have several.
    notes = [dataset.note] if dataset.note else []
    source = Source(name, JudgmentTable.of(judgments), rewards, labels, notes=notes)
    yield BoardEntry(source, name + SUFFIX, free=False, trusted=True)
    if labels:
        yield from baseline_entries(spec)


def _agentrewardbench(folder: Path) -> Iterator[BoardEntry]:
    """Yield the complete verdicts first; a judge's replies are left out where they are among these,
    because they are fewer."""
    annotations = agentrewardbench.load(folder)
    if not any(annotation.split for annotation in annotations):
        annotations = agentrewardbench.with_packaged_splits(annotations)
    labels = primary_labels(annotations)
    complete: set[str] = set()
    for path in sorted(folder.glob(f"published/*/{FILE}")):
        judgments = read_result_arrays(path, annotations)
        complete |= {judgment.judge.removesuffix(SUFFIX) for judgment in judgments}
        source = Source(f"published/{path.parent.name}", JudgmentTable.of(judgments), {}, labels)
        yield BoardEntry(source, f"{path.parent.name}{SUFFIX}", free=False, trusted=True)
    if not judgments_folder(folder).is_dir() or judgments_folder(folder) == folder:
        return
    replies = read_published_folder(folder, with_labels=False)
    rest = [
        judgment.model_copy(update={"judge": judgment.judge + SUFFIX})
        for judgment in replies.judgments
        if judgment.judge not in complete
    ]
    source = Source("judgments", JudgmentTable.of(rest), replies.rewards, labels)
    yield BoardEntry(source, f"judgments{SUFFIX}", free=False, trusted=True)
    # Whole trajectories, or what the replies tell of them.
    for kind in (agentrewardbench.KIND, TEXT_KIND):
        if loader(kind).detect(folder):
            yield from baseline_entries(f"{kind}:{folder}", f"{agentrewardbench.KIND}:{folder}")
            return


def asked(entries: Iterable[BoardEntry], question: Question) -> list[BoardEntry]:
    """Keep what judges say about the question, as a verdict of success each: whoever finds a fault
    says yes, and is right where experts call the process not sound.

    A judge that never answers the question, and says something of the other, was not asked.
    """
    about = _about_success if question == "success" else _about_fault
    questions = [about(entry) for entry in entries]
    return [entry for entry in questions if entry.source.judgments or entry.trusted]


def _about_success(entry: BoardEntry) -> BoardEntry:
    source = entry.source
    judged = {j.judge for j in source.judgments if j.success is not None}
    others = {j.judge for j in source.judgments if j.process is not None} - judged
    if not others:
        return entry
    kept = [j for j in source.judgments if j.judge not in others]
    return replace(entry, source=replace(source, judgments=JudgmentTable.of(kept)))


def _about_fault(entry: BoardEntry) -> BoardEntry:
    source = entry.source
    judged = {j.judge for j in source.judgments if j.process is not None}
    kept = [_fault_judgment(j) for j in source.judgments if j.judge in judged]
    labels: Labels = {
        key: label.model_copy(update={"success": _fault(label.process)})
        for key, label in source.labels.items()
    }
    rewards = dict.fromkeys(source.rewards)
    table = JudgmentTable.of(kept)
    return replace(entry, source=replace(source, judgments=table, labels=labels, rewards=rewards))


def _fault_judgment(judgment: Judgment) -> Judgment:
    fault = _fault(judgment.process) if judgment.status is Status.OK else None
    other = dict.fromkeys(("side_effect", "repetition", "process", "score"))
    return judgment.model_copy(update={**other, "success": fault})


def _fault(sound: bool | None) -> bool | None:
    return None if sound is None else not sound


AGENTREWARDBENCH = "AgentRewardBench"

BUNDLED = "Bundled sample"


class EntrySuite(NamedTuple):
    """Entries on benchmarks that belong together."""

    name: str
    entries: tuple[BoardEntry, ...]


def suites_of(entries: Sequence[BoardEntry]) -> list[EntrySuite]:
    """Group the entries: two share a suite where they, or others between them, share a benchmark.

    AgentRewardBench is first, the others follow by name.
    """
    groups: list[tuple[set[str], list[int]]] = []
    for number, entry in enumerate(entries):
        benchmarks, members = set(entry.benchmarks), [number]
        # AgentRewardBench's five are one suite, even where no source judged two of them.
        if benchmarks & BENCHMARKS.keys():
            benchmarks |= BENCHMARKS.keys()
        for group in [group for group in groups if group[0] & benchmarks]:
            benchmarks |= group[0]
            members = group[1] + members
            groups.remove(group)
        groups.append((benchmarks, members))
    suites = [_named([entries[number] for number in sorted(members)]) for _, members in groups]
    return sorted(suites, key=lambda suite: (suite.name != AGENTREWARDBENCH, suite.name))


def _named(entries: list[BoardEntry]) -> EntrySuite:
    benchmarks = set[str]().union(*(entry.benchmarks for entry in entries))
    specs = {spec for entry in entries for spec in entry.source.data}
    if benchmarks <= BENCHMARKS.keys():
        return EntrySuite(AGENTREWARDBENCH, tuple(entries))
    name = BUNDLED if specs == {SAMPLE} else ", ".join(sorted(benchmarks))
    return EntrySuite(name, tuple(entries))


class LeaderboardConfig(LabelConfig):
    """``runs`` are folders of runs, ``published`` a folder of published verdicts; on ``data`` the
    judges that need no model are run.

    ``annotations`` are the labels of ``data``; without it, those that the runs are held to. Of
    annotations with splits those of ``split`` count. The page and the CSV are written into ``out``.
    """

    runs: tuple[Path, ...] = ()
    published: Path | None = None
    data: tuple[str, ...] = ()
    split: Split = "test"
    out: Path = Path("board")


Question = Literal["success", "fault"]

QUESTIONS: dict[Question, str] = {"success": "success", "fault": "fault in the process"}

RANKED: tuple[str, ...] = ("precision", "f1")


class RankRange(Record):
    """Ranks that a judge may hold, 1 the best: ``best`` is 1 plus the judges that are significantly
    better, ``worst`` the number of ranked judges less those that are significantly worse."""

    best: int
    worst: int


class BoardRow(Record):
    """One judge on one benchmark.

    ``score`` counts failed judgments as not accepted; ``labelled`` is the number of trajectories
    that any judge could have been scored on; ``cost`` in US dollars per 1,000 judgments, None if a
    price is not known. ``ranks`` lacks a metric that is undefined; ``common`` is the smallest
    number of trajectories that the judge shares with another one, None where it stands alone.
    """

    judge: str
    score: Score
    labelled: int
    cost: float | None
    ranks: dict[str, RankRange] = Field(default_factory=dict)
    common: int | None = None

    @property
    def coverage(self) -> float:
        """Share of the labelled trajectories that the judge gave a verdict on."""
        return (self.score.n - self.score.missing) / self.labelled if self.labelled else 0.0


class BoardTable(Record):
    """The judges on one benchmark, or on all of a suite (``OVERALL``); the best first."""

    benchmark: str
    rows: tuple[BoardRow, ...]


class BoardSuite(Record):
    """Benchmarks whose trajectories are judged together; the table over all of them is the first.

    ``question`` is what the judges were asked; to ``fault`` (in the process) the positive answer is
    that there is one. ``remarks`` weaken the figures.
    """

    name: str
    question: Question = "success"
    tables: tuple[BoardTable, ...]
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The suite with its question, where that is not success."""
        return self.name if self.question == "success" else f"{self.name}, {self.asked}"

    @property
    def asked(self) -> str:
        """The question in words."""
        return QUESTIONS[self.question]


class Board(Record):
    """The whole leaderboard. ``split`` of the annotations is what was scored; ``left_out`` are runs
    that may not be compared, with the reason; ``notes`` name verdicts that no label is known of.
    """

    split: str
    suites: tuple[BoardSuite, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


METHOD = (
    "Ranks: two judges are compared on the trajectories that both judged, by the difference of the "
    "metric with an interval over tasks; p-values are corrected by Holm over all pairs of a table "
    "(α = .05). The first number is 1 plus the judges that are significantly better, the second "
    "the number of judges less those that are significantly worse: judges whose difference is not "
    "significant share a rank."
)


def rank_ranges(
    comparison: Comparison, benchmark: str, metric: str, judges: Collection[str]
) -> dict[str, RankRange]:
    """Rank ``judges``, those whose metric is defined, by their differences in success."""
    better, worse = dict.fromkeys(judges, 0), dict.fromkeys(judges, 0)
    for each in comparison.differences:
        if (each.benchmark, each.label, each.metric) != (benchmark, "success", metric):
            continue
        if not {each.first, each.second} <= better.keys() or not each.difference:
            continue
        if each.p_holm is not None and each.p_holm <= ALPHA:
            won, lost = (
                (each.first, each.second) if each.difference > 0 else (each.second, each.first)
            )
            better[lost] += 1
            worse[won] += 1
    return {
        judge: RankRange(best=1 + better[judge], worst=len(better) - worse[judge])
        for judge in better
    }


def smallest_overlap(comparison: Comparison, benchmark: str) -> dict[str, int]:
    """Return, per judge, the smallest number of trajectories that it shares with another one."""
    overlaps: dict[str, int] = {}
    for each in comparison.differences:
        if (each.benchmark, each.label) == (benchmark, "success"):
            for judge in (each.first, each.second):
                overlaps[judge] = min(each.n, overlaps.get(judge, each.n))
    return overlaps


Expert = dict[TrajectoryKey, Annotation]

Rewards = dict[TrajectoryKey, float | None]


def build_board(
    entries: Sequence[BoardEntry], *, split: str = "test", left_out: Iterable[str] = ()
) -> Board:
    """Score all entries. Of annotations with splits only those of ``split`` count ("all": every
    one). Raises UserError where nothing can be scored."""
    built = [
        (suite, question, _suite(suite, question, split))
        for question in QUESTIONS
        for suite in suites_of(asked(entries, question))
    ]
    suites = [scored for _, _, scored in built if scored]
    if not suites:
        raise UserError(
            f"no judgment of split {split} has an expert's label: name runs on labelled "
            "trajectories, or --split all"
        )
    notes = [
        _not_scored(suite, question)
        for suite, question, scored in built
        if not scored and any(entry.source.judgments for entry in suite.entries)
    ]
    return Board(split=split, suites=tuple(suites), left_out=tuple(left_out), notes=tuple(notes))


def _not_scored(suite: EntrySuite, question: Question) -> str:
    judgments = [judgment for entry in suite.entries for judgment in entry.source.judgments]
    judges = ", ".join(sorted({judgment.judge for judgment in judgments}))
    return (
        f"{suite.name}, {QUESTIONS[question]}: no trajectory has an expert's label, therefore "
        f"nothing of {judges} is scored (judgments: {len(judgments)})"
    )


def _suite(suite: EntrySuite, question: Question, split: str) -> BoardSuite | None:
    labels, conflicts = _labels(suite.entries)
    labels = _of_split(labels, split)
    labelled = {key for key, label in labels.items() if label.success is not None}
    rewards = _rewards(suite.entries, labels)
    rows = {
        name: row._replace(judgments=[j for j in row.judgments if j.key in labels])
        for name, row in _with_rule_based(verdicts_by_judge(suite.entries), rewards).items()
    }
    rows = {name: row for name, row in rows.items() if row.judgments}
    if not rows or not labelled:
        return None
    report = score(
        [judgment for row in rows.values() for judgment in row.judgments],
        labels,
        rewards=rewards,
        compared="benchmark",
        training={name: row.trained_on for name, row in rows.items() if row.trained_on},
    )
    versions = {name: row.versions for name, row in rows.items()}
    return BoardSuite(
        name=suite.name,
        question=question,
        tables=tuple(_tables(_Scored(report, rows, labelled))),
        remarks=(
            *_notes(suite.entries),
            *(line for line in report.remarks if line == WEIGHTED),
            *conflicts,
            *mixed_versions(versions),
            *_warnings(report, question),
        ),
    )


def _warnings(report: ScoreReport, question: Question) -> list[str]:
    """List what weakens the figures that are shown: those of success, of the judges themselves."""
    success = tuple(s for s in report.scores if s.label == "success" and not s.baseline)
    lines = warnings_of(report.model_copy(update={"scores": success}))
    # A fault found is scored in the place of a success.
    return [line.replace("(success", f"({QUESTIONS[question]}") for line in lines]


def _labels(entries: Sequence[BoardEntry]) -> tuple[Expert, list[str]]:
    """Bring the labels together, and say where they contradict each other.

    On benchmarks with trusted labels no others count: a run's folder is the submitter's. Elsewhere
    the first of two labels counts.
    """
    trusted: Expert = {}
    claimed: Expert = {}
    contradicted: set[TrajectoryKey] = set()
    for entry in sorted(entries, key=lambda entry: not entry.trusted):
        kind = trusted if entry.trusted else claimed
        for key, label in entry.source.labels.items():
            known = trusted.get(key) or kind.setdefault(key, label)
            if known.success != label.success:
                contradicted.add(key)
    covered = {benchmark_of(key) for key in trusted}
    foreign = {key for key in claimed if benchmark_of(key) in covered}
    labels = trusted | {key: label for key, label in claimed.items() if key not in foreign}
    return labels, [*_contradictions(contradicted), *_foreign(foreign)]


def _notes(entries: Iterable[BoardEntry]) -> list[str]:
    """List what the readers of the sources said, each sentence once."""
    return list(dict.fromkeys(note for entry in entries for note in entry.source.notes))


def _contradictions(keys: Collection[TrajectoryKey]) -> Iterator[str]:
    if keys:
        first = min(keys, key=lambda key: key.order)
        yield (
            f"warning: two different labels of {count_of(len(keys), 'trajectory')}, {first} for "
            "one: those of the annotations count, else the first run's; score all against the same "
            "ones"
        )


def _foreign(keys: Collection[TrajectoryKey]) -> Iterator[str]:
    if keys:
        first = min(keys, key=lambda key: key.order)
        yield (
            f"warning: {count_of(len(keys), 'trajectory')} labelled by a run alone and not by the "
            f"benchmark's annotations, {first} for one, left out"
        )


def _of_split(labels: Expert, split: str) -> Expert:
    if split == "all" or not any(label.split for label in labels.values()):
        return labels
    return {key: label for key, label in labels.items() if label.split in (None, split)}


def _rewards(entries: Sequence[BoardEntry], labels: Expert) -> Rewards:
    """Return the official reward of every labelled trajectory, None where no source tells it."""
    rewards: Rewards = dict.fromkeys(labels)
    for entry in sorted(entries, key=lambda entry: not entry.trusted):
        for key, reward in entry.source.rewards.items():
            if key in rewards and rewards[key] is None:
                rewards[key] = reward
    return rewards


def _with_rule_based(
    rows: Mapping[str, JudgeVerdicts], rewards: Rewards
) -> dict[str, JudgeVerdicts]:
    """Add the official rewards as a judge, unless a run holds it already."""
    known = {key: reward for key, reward in rewards.items() if reward is not None}
    if RULE_BASED in rows or not known:
        return dict(rows)
    judgments = [
        Judgment(key=key, judge=RULE_BASED, status=Status.OK, success=reward > 0.5)
        for key, reward in sorted(known.items(), key=lambda each: each[0].order)
    ]
    return {**rows, RULE_BASED: JudgeVerdicts(judgments, set(), {}, free=True)}


class _Scored(NamedTuple):
    """A scored suite: the report, the rows it was computed from, and the labelled trajectories."""

    report: ScoreReport
    rows: Mapping[str, JudgeVerdicts]
    labelled: set[TrajectoryKey]


def _tables(suite: _Scored) -> list[BoardTable]:
    """Make the table of the whole suite, then one per benchmark; a single benchmark has one."""
    scores: dict[str, list[Score]] = {}
    for each in suite.report.scores:
        if (each.label, each.agent, each.baseline) == ("success", ALL_AGENTS, False):
            scores.setdefault(each.benchmark, []).append(each)
    listed = sorted(scores, key=lambda benchmark: benchmark != OVERALL)
    single = {benchmark_of(key) for key in suite.labelled}
    if len(single) == 1:
        # One benchmark alone is compared once, as the whole.
        return [_table(single.pop(), OVERALL, scores[OVERALL], suite)]
    return [_table(name, name, scores[name], suite) for name in listed]


def _table(benchmark: str, compared: str, scores: Sequence[Score], suite: _Scored) -> BoardTable:
    """Make one table; its judges were compared under the name ``compared``."""
    known = [each for each in scores if each.n]
    comparison = suite.report.comparison
    ranks = {
        metric: rank_ranges(comparison, compared, metric, _defined(known, metric))
        for metric in RANKED
    }
    overlap = smallest_overlap(comparison, compared)
    due = sum(benchmark in (OVERALL, benchmark_of(key)) for key in suite.labelled)
    made = [
        BoardRow(
            judge=each.judge,
            score=each,
            labelled=due,
            cost=_cost(each.judge, benchmark, suite.rows[each.judge]),
            ranks={
                metric: by_judge[each.judge]
                for metric, by_judge in ranks.items()
                if each.judge in by_judge
            },
            common=overlap.get(each.judge),
        )
        for each in known
    ]
    return BoardTable(benchmark=benchmark, rows=tuple(sorted(made, key=_order)))


def _defined(scores: Iterable[Score], metric: str) -> list[str]:
    """List the judges whose metric is defined: without an accepted trajectory precision is not."""
    return [
        each.judge
        for each in scores
        if getattr(each, metric) is not None and (metric != "precision" or each.counts.accepted)
    ]


def _order(row: BoardRow) -> tuple[float | str, ...]:
    """Order by rank and value of each metric in turn, precision first, then by name; judges without
    a rank are last."""
    places = [
        place
        for metric in RANKED
        for place in (*_ends(row.ranks.get(metric)), -(getattr(row.score, metric) or 0.0))
    ]
    return (*places, row.judge)


def _ends(rank: RankRange | None) -> tuple[float, float]:
    return (float("inf"), float("inf")) if rank is None else (rank.best, rank.worst)


def _cost(judge: str, benchmark: str, row: JudgeVerdicts) -> float | None:
    """Return US dollars per 1,000 judgments; None where a call's price, or whether there were
    calls, is not known."""
    mine = [j for j in row.judgments if benchmark in (OVERALL, benchmark_of(j.key))]
    used = judge_usage(judge, columns_of(mine))
    if not used.calls:
        return 0.0 if row.free else None
    if used.cost is None or used.unpriced:
        return None
    return 1000 * used.cost / len(mine)


def gather_board(config: LeaderboardConfig) -> Board:
    """Read and score what ``config`` names; a run with an error is left out. Raises UserError as
    the readers do, for a run that is given twice, and where nothing is left."""
    refuse_repeated(config.runs)
    left_out = _errors(config.runs)
    kept = [run for run in config.runs if run not in left_out]
    if left_out and not kept and not (config.published or config.data):
        raise UserError(f"no run may be compared: {'; '.join(left_out.values())}")
    entries = read_published_data(config.published) if config.published else []
    for spec in config.data:
        entries += baseline_entries(spec, config.annotations)
    if config.annotations and not config.data:
        labels = open_labels(config.annotations)
        source = Source("annotations", JudgmentTable.of([]), {}, labels)
        entries.append(BoardEntry(source, "annotations", free=True, trusted=True))
    entries += read_runs(kept)
    return build_board(entries, split=config.split, left_out=left_out.values())


def _errors(runs: Sequence[Path]) -> dict[Path, str]:
    """Say of every run that may not be compared why."""
    checks = {run: check_run(run) for run in runs}
    return {
        run: f"{run.resolve().name}: "
        + "; ".join(f.text for f in check.findings if f.severity == "error")
        for run, check in checks.items()
        if not check.comparable
    }
