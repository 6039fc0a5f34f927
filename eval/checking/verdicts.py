"""Findings about the judgments: is every one there, once, and how did they end?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trajudge.eval.checking.findings import RunFinding, error, note, warning
from trajudge.eval.checking.recorded import CheckedRun
from trajudge.judges.model import Status

# More failed judgments than this share say more about the service than about the judge.
MOST_FAILED = 0.05


def complete(run: CheckedRun) -> Iterator[RunFinding]:
    """Find judgments that are missing, that come twice, or that belong to no trajectory."""
    again = f"start the same command again, with --out {run.folder.name}"
    if run.torn:
        yield error("torn", f"the last line of the judgments was cut off: {again}")
    samples = int(run.manifest.get("samples", 1))
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
            f"{len(twice)} trajectories have two judgments of one sample, {twice[0][1]} for one: "
            "remove what was added to judgments.jsonl",
        )
    if strangers := sorted(run.keys - run.rewards.keys(), key=lambda key: key.order):
        yield error(
            "strangers",
            f"{len(strangers)} judgments are of trajectories that the run did not read, "
            f"{strangers[0]} for one: remove what was added to judgments.jsonl",
        )


def ended(run: CheckedRun) -> Iterator[RunFinding]:
    """Find judgments that failed or were skipped, and a judge that says one thing of every run."""
    statuses = Counter(judgment.status for judgment in run.judgments)
    total, skipped = len(run.judgments), statuses.pop(Status.SKIPPED, 0)
    fine = statuses.pop(Status.OK, 0)
    if failed := sum(statuses.values()):
        listed = ", ".join(f"{status} {count}" for status, count in sorted(statuses.items()))
        text = (
            f"{failed} of {total} judgments failed ({listed}), which counts as not accepted: the "
            "same command with --retry-failed asks for them again"
        )
        yield (error if failed > MOST_FAILED * total else warning)("failed", text)
    if skipped:
        yield (warning if fine else error)(
            "skipped",
            f"{skipped} of {total} judgments were skipped, because the trajectory lacks what the "
            "judge must see: they count as not accepted and against its coverage",
        )
    verdicts = {j.success for j in run.judgments if j.status is Status.OK}
    if fine > 1 and None not in verdicts and len(verdicts) == 1:
        answer = "a success" if verdicts == {True} else "no success"
        yield note("constant", f"the judge says {answer} of every trajectory")


def labelled(run: CheckedRun) -> Iterator[RunFinding]:
    """Find out how many judgments have a label of what the judge was asked: success or process."""
    about = "success" if any(j.success is not None for j in run.judgments) else "process"
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
