"""Findings about the judgments: is every one there, once, and how did they end?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trajudge.eval.checking.findings import RunFinding, error, note, warning
from trajudge.eval.checking.recorded import CheckedRun
from trajudge.eval.data.manifest import recorded_samples
from trajudge.eval.data.run_folder import JUDGMENTS, unreadable_said
from trajudge.eval.process.question import question_of
from trajudge.judges.model import Status
from trajudge.trajectories.util.terminal import count_of

# Whatever command shows the finding has no such option.
_RETRY = "trajudge judge … --retry-failed"

# More failed judgments than this share say more about the service than about the judge.
MOST_FAILED = 0.05


def complete(run: CheckedRun) -> Iterator[RunFinding]:
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
    unread = {judgment.key for judgment in run.skipped_unread}
    if strangers := sorted(run.keys - run.rewards.keys() - unread, key=lambda key: key.order):
        yield error(
            "strangers",
            f"the run did not read {count_of(len(strangers), 'judged trajectory')}, "
            f"{strangers[0]} for one: remove what was added to judgments.jsonl",
        )


def readable(run: CheckedRun) -> Iterator[RunFinding]:
    """Find what of the data could not be read: trajectories, and records of which not even the key
    is known."""
    if skipped := run.skipped_unread:
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


def ended(run: CheckedRun) -> Iterator[RunFinding]:
    """Find judgments that failed or were skipped, and a judge that says one thing of every run."""
    statuses = Counter(judgment.status for judgment in run.judgments)
    total, unread = len(run.judgments), len(run.skipped_unread)
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


def labelled(run: CheckedRun) -> Iterator[RunFinding]:
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
