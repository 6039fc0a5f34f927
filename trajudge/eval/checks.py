"""Whether runs may be compared: ``trajudge score --checks``.

A finding has a severity: an error keeps the run out of a ranking, a warning weakens its figures, a
note is for the reader. No model is called and no trajectory is read.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import orjson
from pydantic import computed_field

from trajudge.annotations import open_annotations, primary_labels
from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.annotations.model import Labels
from trajudge.annotations.sources import agentrewardbench
from trajudge.eval.process import question_of
from trajudge.eval.store.inputs import MEMORY, find_source
from trajudge.eval.store.manifest import recorded_samples, recorded_versions
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    UnreadableRecord,
    read_judgments,
    read_labels,
    read_manifest,
    read_rewards,
    read_unreadable,
    unreadable_said,
)
from trajudge.judges.model import Judgment, Status
from trajudge.judges.models import guesses, recorded_windows
from trajudge.judges.registry import JUDGES, find_judge, make_judge, versions_of
from trajudge.judges.training import key_hash
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.trajectories.sample import SAMPLE
from trajudge.trajectories.sources import card_of_kind
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular
from trajudge.util.tables import folded, screen_width
from trajudge.util.terminal import LINES, count_of, one_line

Severity = Literal["error", "warning", "note"]
_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
_INDENTED = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_RETRY = "trajudge judge … --retry-failed"
_CUTS = ("limit", "benchmark", "agent", "task", "stratified")
MOST_FAILED = 0.05
"""More failed judgments than this share say more about the service than about the judge."""


class RunFinding(Record):
    """One finding: ``name`` is the same for every run, ``text`` names the problem and its fix."""

    severity: Severity
    name: str
    text: str


def error(name: str, text: str) -> RunFinding:
    return RunFinding(severity="error", name=name, text=text)


def warning(name: str, text: str) -> RunFinding:
    return RunFinding(severity="warning", name=name, text=text)


def note(name: str, text: str) -> RunFinding:
    return RunFinding(severity="note", name=name, text=text)


class RunCheck(Record):
    """The findings about a run's folder, errors first."""

    run: str
    judge: str
    judgments: int
    findings: tuple[RunFinding, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def comparable(self) -> bool:
        """Whether there is no error."""
        return not any(finding.severity == "error" for finding in self.findings)


def check_run(folder: Path, *, annotations: str | None = None) -> RunCheck:
    """List the reasons against comparing the run in ``folder`` with others.

    ``annotations`` (KIND:PATH) are compared with the run's labels; by default those that the run
    names, where they are available. Raises UserError for a folder that is no run.
    """
    run = _read(folder)
    findings = [
        *_complete(run),
        *_one_configuration(run),
        *_prompts(run),
        *_readable(run),
        *_endings(run),
        *_labelled(run),
        *_data(run),
        *_labels(run, annotations),
        *_contamination(run),
    ]
    findings.sort(key=lambda finding: _SEVERITIES.index(finding.severity))
    return RunCheck(
        run=str(folder),
        judge=str(run.manifest.get("judge")),
        judgments=len(run.judgments),
        findings=tuple(findings),
    )


def left_out_runs(runs: Sequence[Path], *, other_labels: bool) -> dict[Path, str]:
    """Map each run that may not be compared to the reason; with ``other_labels`` a run needs none
    of its own. Raises UserError as ``check_run``."""
    left_out = {}
    for run in runs:
        reasons = [
            finding.text
            for finding in check_run(run).findings
            if finding.severity == "error" and not (other_labels and finding.name == "unlabelled")
        ]
        if reasons:
            left_out[run] = f"{run.resolve().name}: {'; '.join(reasons)}"
    return left_out


def print_checks(runs: Sequence[Path], annotations: str | None, *, as_json: bool) -> bool:
    """Print the findings about each run, as JSON or as one screen; return whether all runs may be
    compared. Raises UserError as ``check_run``."""
    checks = [check_run(run, annotations=annotations) for run in runs]
    if as_json:
        listed = [check.model_dump(mode="json") for check in checks]
        sys.stdout.buffer.write(orjson.dumps(listed, option=_INDENTED))
        sys.stdout.flush()
    else:
        sys.stdout.write(checks_screen(checks))
    return all(check.comparable for check in checks)


def checks_screen(checks: Sequence[RunCheck]) -> str:
    """Lay out each run's verdict and findings, on one screen at most."""
    width = screen_width()
    lines: list[str] = []
    for check in checks:
        lines += folded(one_line(_verdict(check)), width, most=2)
        for finding in check.findings:
            text = f"  {finding.severity}: {finding.name}: {one_line(finding.text)}"
            lines += folded(text, width, most=3)
    if len(lines) >= LINES:
        cut = len(lines) - LINES + 1
        lines = [*lines[: LINES - 1], f"and {count_of(cut, 'more line')}: --json"]
    return "\n".join(lines) + "\n"


def _verdict(check: RunCheck) -> str:
    counts = Counter(finding.severity for finding in check.findings)
    listed = ", ".join(count_of(counts[each], each) for each in _SEVERITIES if counts[each])
    verdict = "may be compared" if check.comparable else "may not be compared"
    judged = count_of(check.judgments, "judgment")
    return f"{check.run}: {check.judge}, {judged}: {verdict} ({listed or 'ok'})"


@dataclass(frozen=True)
class _Run:
    """The files of a run's folder; ``torn``: the last line of the judgments is cut off.
    ``unreadable`` are records of the data that could not be read and whose key is unknown."""

    folder: Path
    manifest: Mapping[str, Any]
    judgments: list[Judgment]
    labels: Labels
    rewards: Mapping[TrajectoryKey, float | None]
    unreadable: list[UnreadableRecord]
    torn: bool

    @cached_property
    def keys(self) -> set[TrajectoryKey]:
        """The trajectories that have a judgment."""
        return {judgment.key for judgment in self.judgments}

    @cached_property
    def unread(self) -> list[Judgment]:
        """Judgments skipped because their trajectory could not be read: it has no reward."""
        return [
            judgment
            for judgment in self.judgments
            if judgment.status is Status.SKIPPED and judgment.key not in self.rewards
        ]

    def part(self, name: str) -> dict[str, Any]:
        """Return a mapping of the manifest, empty where it holds none of that name."""
        value = self.manifest.get(name)
        return dict(value) if isinstance(value, dict) else {}

    @property
    def judge_name(self) -> str | None:
        """The registered judge; None for a judge of the user's own."""
        named = (*self.part("judge_versions"), self.part("card").get("name"))
        return next((str(name) for name in named if name in JUDGES), None)


def _read(folder: Path) -> _Run:
    manifest, judgments = read_manifest(folder), read_judgments(folder)
    if not judgments:
        raise UserError(f"{folder / JUDGMENTS}: holds no judgment: judge with this --out first")
    return _Run(
        folder=folder,
        manifest=manifest,
        judgments=judgments,
        labels=read_labels(folder),
        rewards=read_rewards(folder),
        unreadable=read_unreadable(folder),
        torn=not read_regular(folder / JUDGMENTS).endswith(b"\n"),
    )


def _one_configuration(run: _Run) -> Iterator[RunFinding]:
    """Find several judges, endpoints or settings under one run."""
    named = str(run.manifest.get("judge"))
    if others := sorted({j.judge for j in run.judgments} - {named}):
        yield error(
            "mixed_judges",
            f"the run is of {named} and holds judgments of {', '.join(others)}: give every judge a "
            "run of its own",
        )
    entries = [entry for entry in run.manifest.get("sent") or [] if isinstance(entry, dict)]
    several_stages = len({call.stage for j in run.judgments for call in j.calls}) > 1
    by_model: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in entries:
        by_model[str(entry.get("model"))].append(entry)
    for model, mine in sorted(by_model.items()):
        endpoints = sorted({str(entry.get("endpoint")) for entry in mine})
        if len(endpoints) > 1:
            yield error(
                "mixed_endpoints",
                f"{model} was asked at {len(endpoints)} endpoints ({', '.join(endpoints)}), which "
                "may serve different weights: judge again at one of them",
            )
        sent = [entry.get("parameters") for entry in mine]
        parameters = {orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in sent}
        if len(parameters) > 1 and not several_stages:
            yield error(
                "mixed_parameters",
                f"{model} was called with {len(parameters)} sets of parameters: judge again with "
                "one of them",
            )
    samples: dict[TrajectoryKey, set[int]] = defaultdict(set)
    for judgment in run.judgments:
        samples[judgment.key].add(judgment.sample)
    counts = {len(each) for each in samples.values()}
    if len(counts) > 1:
        yield error(
            "mixed_samples",
            f"trajectories have between {min(counts)} and {max(counts)} samples: judge all of them "
            "equally often",
        )
    for sentence in guesses(recorded_windows(run.manifest)):
        yield warning("guessed_window", sentence)


def _prompts(run: _Run) -> Iterator[RunFinding]:
    """Hold the run's versions and prompt hash to this release's cards and templates."""
    judge_id = str(run.manifest.get("judge"))
    if run.manifest.get("published"):
        yield note("published", f"others ran {judge_id}: its prompts are not recorded")
        return
    name = run.judge_name
    if name is None:
        recorded = "by the hash of its file" if run.manifest.get("prompt_hash") else "by name only"
        yield note("own_judge", f"{judge_id} is no judge of trajudge: it is known {recorded}")
        return
    options = run.part("options")
    try:
        judge, versions = make_judge(name, options)[1], versions_of(name, options)
    except (UserError, ValueError) as problem:  # options of a stranger's file
        # Judges without a model may read files, which are where the judge was run.
        grave = error if find_judge(name).needs_model else note
        yield grave("not_made_again", f"this release cannot make the judge again: {problem}")
        return
    recorded_of = recorded_versions(run.manifest)
    older = {
        card: (recorded_of[card], versions[card])
        for card in sorted(recorded_of.keys() & versions.keys())
        if recorded_of[card] != versions[card]
    }
    for card, (before, now) in older.items():
        yield warning(
            "other_version",
            f"judge {card} had version {before}, this release has version {now}: the two differ in "
            "their prompts; compare it with runs of its version, or judge again",
        )
    expected = getattr(judge, "prompt_hash", None)
    if not older and expected != run.manifest.get("prompt_hash"):
        yield error(
            "other_prompts",
            f"the prompts are not those of version {versions.get(name, 1)} of judge {name} (hash "
            f"{str(run.manifest.get('prompt_hash'))[:12]}, this release has {str(expected)[:12]}): "
            "judge again with a release, or publish the prompts as a judge of your own",
        )


def _contamination(run: _Run) -> Iterator[RunFinding]:
    """Find trajectories that the judge was trained on."""
    hashes = set(run.manifest.get("training_keys") or ())
    trained = [key for key in run.keys if hashes and key_hash(key) in hashes]
    if trained:
        every = len(trained) == len(run.keys)
        yield (error if every else warning)(
            "contaminated",
            f"the judge was trained on {len(trained)} of the {len(run.keys)} trajectories that it "
            "judged: they are left out of its scores" + ("; none is left" if every else ""),
        )


def _data(run: _Run) -> Iterator[RunFinding]:
    """Find data that others cannot open again, or of an unknown revision."""
    spec = str(run.manifest.get("data") or "")
    kind, revision = spec.partition(":")[0], run.manifest.get("revision") or None
    if spec.startswith(MEMORY):
        yield warning(
            "data_in_memory",
            "the trajectories were in memory, so that nobody can judge them again: publish them as "
            "files",
        )
    elif run.manifest.get("loader_digest"):
        yield warning(
            "own_loader",
            f"the trajectories were read by a loader of the submitter's ({Path(spec).name}): "
            "others see the same only with that file",
        )
    elif revision is None and kind in ("agentrewardbench", "cuaverifierbench"):
        yield warning(
            "no_revision",
            f"the revision of the benchmark's files is not recorded: judge the copy that  trajudge "
            f"data fetch {kind}  makes",
        )
    elif revision is None and spec and spec != SAMPLE:
        yield note("no_revision", "the data are files of the submitter's, without a revision")
    card = card_of_kind(kind) if spec != SAMPLE else None
    if card and card.revision and revision and revision != card.revision:
        yield error(
            "other_revision",
            f"the run judged revision {str(revision)[:12]} of {card.title}, others judge "
            f"{card.revision[:12]}: judge the copy that  trajudge data fetch {kind}  makes",
        )
    if card and card.contamination not in ("", "not read"):
        yield note("source", f"{card.title}: {card.contamination}")
    cuts = [
        f"{name} {' '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in run.part("selection").items()
        if name in _CUTS
    ]
    if cuts:
        yield warning("selection", f"only a part of the data was judged ({', '.join(cuts)})")


def _labels(run: _Run, annotations: str | None) -> Iterator[RunFinding]:
    """Hold the run's labels to the annotations, and the run to all that these label.

    ``annotations`` is KIND:PATH; None: those that the run names, where they are at hand. Raises
    UserError where the user names some that cannot be read.
    """
    known = _expected_labels(run, annotations)
    if known is None:
        yield note(
            "labels_not_checked",
            "the labels were not held to their source: name it with --annotations KIND:PATH",
        )
        return
    other = [
        key
        for key, label in sorted(run.labels.items(), key=lambda each: each[0].order)
        if key not in known
        or (known[key].success, known[key].process) != (label.success, label.process)
    ]
    if other:
        yield error(
            "other_labels",
            f"{len(other)} of {len(run.labels)} labels are not those of the annotations, "
            f"{other[0]} for one: judge again with these annotations",
        )
    split = run.part("selection").get("split")
    benchmarks = {benchmark_of(key) for key in run.rewards}
    due = {
        key
        for key, label in known.items()
        if label.success is not None
        and benchmark_of(key) in benchmarks
        and (split not in ("dev", "test") or label.split == split)
    }
    if absent := due - run.rewards.keys():
        first = min(absent, key=lambda key: key.order)
        yield warning(
            "dropped",
            f"{len(absent)} of {len(due)} labelled trajectories of these benchmarks are not in the "
            f"run, {first} for one: they count against its coverage",
        )


def _expected_labels(run: _Run, named: str | None) -> Labels | None:
    if named:
        annotations = open_annotations(named)
        if named.startswith(agentrewardbench.KIND) and not any(a.split for a in annotations):
            annotations = agentrewardbench.with_packaged_splits(annotations)
        return primary_labels(annotations)
    recorded = run.manifest.get("annotations")
    if recorded == SAMPLE:
        return primary_labels(find_source(SAMPLE, None).annotations)
    if recorded != agentrewardbench.KIND:
        return None  # a path of the submitter's machine
    try:
        return primary_labels(open_annotations(agentrewardbench.KIND))
    except UserError:
        return None


def _complete(run: _Run) -> Iterator[RunFinding]:
    """Find judgments that are missing, that come twice, or that belong to no trajectory."""
    again = f"start the same command again, with --out {run.folder.name}"
    if run.torn:
        yield error("torn", f"the last line of the judgments was cut off: {again}")
    samples = recorded_samples(run.manifest)
    selected = run.part("selection").get("trajectories")
    due = max(len(run.rewards), selected if isinstance(selected, int) else 0)
    missing = due * samples - len({(j.key, j.sample) for j in run.judgments})
    if missing > 0:
        yield error(
            "unfinished",
            f"{missing} of {due * samples} judgments are missing, so that nobody knows how the "
            f"judge does on them: {again}",
        )
    repeated = Counter((j.judge, j.key, j.sample) for j in run.judgments)
    if twice := [place for place, count in repeated.items() if count > 1]:
        yield error(
            "repeated",
            f"{JUDGMENTS} holds {count_of(len(twice), 'judgment')} more than once, of "
            f"{twice[0][1]} for one: remove what was added to it",
        )
    unread = {judgment.key for judgment in run.unread}
    if strangers := sorted(run.keys - run.rewards.keys() - unread, key=lambda key: key.order):
        yield error(
            "strangers",
            f"the run did not read {count_of(len(strangers), 'judged trajectory')}, "
            f"{strangers[0]} for one: remove what was added to judgments.jsonl",
        )


def _readable(run: _Run) -> Iterator[RunFinding]:
    """Find what of the data could not be read: trajectories, and records of which not even the key
    is known."""
    if skipped := run.unread:
        every = len(skipped) == len(run.judgments)
        yield (error if every else warning)(
            "unread",
            f"{len(skipped)} of {count_of(len(run.judgments), 'judgment')} skipped, because the "
            f"trajectory cannot be read, which counts as not accepted; the first is "
            f"{skipped[0].detail}: mend it, then start the command that made the run again, with "
            f"{_RETRY}",
        )
    if run.unreadable:
        yield warning(
            "unread",
            f"judged without {unreadable_said(run.unreadable)}: they are in no count; mend the "
            "data and judge it again with another --out",
        )


def _endings(run: _Run) -> Iterator[RunFinding]:
    """Find judgments that failed or were skipped, and a judge that says one thing of every run."""
    statuses = Counter(judgment.status for judgment in run.judgments)
    total, unread = len(run.judgments), len(run.unread)
    skipped = statuses.pop(Status.SKIPPED, 0) - unread
    fine = statuses.pop(Status.OK, 0)
    if failed := sum(statuses.values()):
        listed = ", ".join(f"{status} {count}" for status, count in sorted(statuses.items()))
        text = (
            f"{failed} of {count_of(total, 'judgment')} failed ({listed}), which counts as not "
            f"accepted: the command that made the run asks for them again with {_RETRY}"
        )
        yield (error if failed > MOST_FAILED * total else warning)("failed", text)
    if skipped:
        yield (warning if fine else error)(
            "skipped",
            f"{skipped} of {count_of(total, 'judgment')} skipped, because the trajectory lacks "
            "what the judge must see: they count as not accepted and against its coverage",
        )
    verdicts = {j.success for j in run.judgments if j.status is Status.OK}
    if fine > 1 and None not in verdicts and len(verdicts) == 1:
        answer = "a success" if verdicts == {True} else "no success"
        yield note("constant", f"the judge says {answer} of every trajectory")


def _labelled(run: _Run) -> Iterator[RunFinding]:
    """Find out how many judgments have a label of what the judge was asked: success or process."""
    about = question_of(run.judgments)
    known = {key for key, label in run.labels.items() if getattr(label, about) is not None}
    count = len(run.keys & known)
    if not count:
        yield error(
            "unlabelled",
            f"no judged trajectory has an expert's label of {about}: judge labelled data, or name "
            "the labels with --annotations KIND:PATH when judging",
        )
    elif count < len(run.keys):
        yield note(
            "unlabelled",
            f"{len(run.keys) - count} of {len(run.keys)} judged trajectories have no expert's "
            f"label of {about}: they are not scored",
        )
