"""What judges are asked: whether the agent succeeded, and whether its process had a fault."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from trajudge.annotations.model import Labels
from trajudge.eval.leaderboard.records import Question
from trajudge.eval.leaderboard.sources.entries import BoardEntry
from trajudge.judges.model import Judgment, Status


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
    return replace(entry, source=replace(source, judgments=kept))


def _about_fault(entry: BoardEntry) -> BoardEntry:
    source = entry.source
    judged = {j.judge for j in source.judgments if j.process is not None}
    kept = [_fault_judgment(j) for j in source.judgments if j.judge in judged]
    labels: Labels = {
        key: label.model_copy(update={"success": _fault(label.process)})
        for key, label in source.labels.items()
    }
    rewards = dict.fromkeys(source.rewards)
    return replace(entry, source=replace(source, judgments=kept, labels=labels, rewards=rewards))


def _fault_judgment(judgment: Judgment) -> Judgment:
    fault = _fault(judgment.process) if judgment.status is Status.OK else None
    other = dict.fromkeys(("side_effect", "repetition", "process", "score"))
    return judgment.model_copy(update={**other, "success": fault})


def _fault(sound: bool | None) -> bool | None:
    return None if sound is None else not sound
