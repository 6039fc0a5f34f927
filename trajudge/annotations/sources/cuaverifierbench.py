"""CUAVerifierBench's labels and published verdicts.

A run has one or more blind annotators, one adjudicated label, and verdicts of the Universal
Verifier and of older judges. A named policy determines the label:

- ``adjudicated`` (default): the authors' final label, a column of the runs;
- ``blind-majority``: the majority of the blind annotators; a tie is unsure and not scored;
- ``each``: every blind annotator's label, the first one as primary, for agreement between people.

Labels that were given after the Universal Verifier's verdict was shown (``informed_*``) are not
read: they must not be used to score it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from trajudge.annotations.model import Label, Role
from trajudge.annotations.published import PublishedVerdict
from trajudge.annotations.sources.fara import flag, rubric_of, score_fields, verifier_fields
from trajudge.trajectories.loaders._files import readable
from trajudge.trajectories.loaders.cuaverifierbench import (
    KIND,
    read_rows,
    run_files,
    run_key,
    table_files,
)
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError

POLICIES = ("adjudicated", "blind-majority", "each")
CONFIG = "annotations"
# The Universal Verifier's own threshold for a sound process, as its score files are named.
PROCESS_THRESHOLD = 0.8
_MARKS = (b"annotator", b"human_judgement_outcome")
_BLIND = (
    "task_id",
    "annotator",
    "human_judgement_outcome",
    "human_judgement_process",
    "human_process_score",
)
_ADJUDICATED = (
    "task_id",
    "final_human_outcome_label",
    "final_human_process_label",
    "median_human_rubric_score_agnostic",
)
_VERDICTS = (
    "task_id",
    "uv_outcome_success",
    "uv_rubric_score",
    "mm_is_success",
    "verifier_is_success",
    "gpt_eval_json",
)
# Of the Universal Verifier's own file; what the columns say counts as they say it.
_KEPT = ("side_effect", "reasoning", "record")
_WORDS = {"Correct": True, "Incorrect": False}
_JSON = msgspec.json.Decoder(dict[str, Any])


def detect(path: Path) -> bool:
    """Return True if the path has the runs, whose rows have the adjudicated labels, or the blind
    annotations."""
    return bool(run_files(path) or table_files(path, CONFIG, _MARKS))


def load(path: Path, policy: str | None = None) -> list[Label]:
    """Read the labels by a policy of ``POLICIES`` (None: the first), in the order of files and
    rows. Raises UserError for a missing file or column."""
    if policy in (None, POLICIES[0]):
        return [*_adjudicated(path)]
    opinions = _opinions(path)
    return [*_each(opinions)] if policy == "each" else [*_majorities(opinions)]


def read_verdicts(path: Path) -> Iterator[PublishedVerdict]:
    """Yield the verdicts in the columns of the runs, in the order of files and rows.

    Raises UserError if there is no run.
    """
    for key, row in _rows(path, _VERDICTS):
        yield from _of_verifier(key, row)
        for judge, column in (
            ("webtailbench-mm", "mm_is_success"),
            ("webtailbench-text", "verifier_is_success"),
        ):
            if row[column] is not None:
                yield PublishedVerdict(key=key, judge=judge, **score_fields(row[column], ""))
        if (opinion := _json(row["gpt_eval_json"])) and not _is_verifiers(opinion):
            fields = score_fields(opinion.get("score"), opinion.get("gpt_response_text"))
            yield PublishedVerdict(key=key, judge="om2w-gpt", **fields)


def _of_verifier(key: TrajectoryKey, row: Mapping[str, Any]) -> Iterator[PublishedVerdict]:
    """Yield the Universal Verifier's verdict, if there is one. ``gpt_eval_json`` of some rows is
    its score file, which has more fields; the columns take precedence."""
    outcome, points = row["uv_outcome_success"], row["uv_rubric_score"]
    if outcome is None and points is None:
        return
    opinion = _json(row["gpt_eval_json"])
    kept = (
        verifier_fields(opinion["gpt_response_text"]) if opinion and _is_verifiers(opinion) else {}
    )
    fields: dict[str, Any] = {name: kept[name] for name in _KEPT if name in kept}
    fields |= score_fields(outcome, fields.get("reasoning", ""))
    if points is not None:
        # The column has single precision: a score of 0.8 is the threshold.
        score = round(float(points), 6)
        fields |= {"scores": {"process_score": score}, "process": score >= PROCESS_THRESHOLD}
    yield PublishedVerdict(key=key, judge="universal-verifier", **fields)


def _is_verifiers(opinion: Mapping[str, Any]) -> bool:
    return rubric_of(opinion.get("gpt_response_text")) is not None


def _json(content: object) -> dict[str, Any] | None:
    if not isinstance(content, str) or not content.strip():
        return None
    try:
        return python_json.decode(content.encode("utf-8", "replace"), _JSON)
    except (ValueError, RecursionError):
        return {}


def _adjudicated(path: Path) -> Iterator[Label]:
    for key, row in _rows(path, _ADJUDICATED):
        success = flag(row["final_human_outcome_label"])
        process = flag(row["final_human_process_label"])
        if success is None and process is None:
            continue
        yield Label(
            key=key,
            raw_task_id=readable(str(row["task_id"])),
            annotator="adjudicated",
            success=success,
            process=process,
            process_score=_share(row["median_human_rubric_score_agnostic"]),
        )


def _opinions(path: Path) -> dict[TrajectoryKey, list[Label]]:
    """Return the blind annotators' labels of every run, in file order."""
    files = table_files(path, CONFIG, _MARKS)
    if not files:
        raise UserError(
            f"{path}: holds no annotators' labels of {KIND}: name the folder with its folder "
            f"{CONFIG}, or choose --label-policy {POLICIES[0]}"
        )
    opinions: dict[TrajectoryKey, list[Label]] = defaultdict(list)
    for file in files:
        for row in read_rows(file, _BLIND):
            key = run_key(file.split, row["task_id"])
            opinion = Label(
                key=key,
                raw_task_id=readable(str(row["task_id"])),
                annotator=readable(str(row["annotator"])),
                role=Role.SECONDARY if opinions[key] else Role.PRIMARY,
                success=_WORDS.get(str(row["human_judgement_outcome"])),
                process=_WORDS.get(str(row["human_judgement_process"])),
                process_score=_share(row["human_process_score"]),
            )
            opinions[key].append(opinion)
    return opinions


def _each(opinions: Mapping[TrajectoryKey, Sequence[Label]]) -> Iterator[Label]:
    for several in opinions.values():
        yield from several


def _majorities(opinions: Mapping[TrajectoryKey, Sequence[Label]]) -> Iterator[Label]:
    for several in opinions.values():
        scores = [each.process_score for each in several if each.process_score is not None]
        yield several[0].model_copy(
            update={
                "annotator": "blind-majority",
                "role": Role.PRIMARY,
                "success": majority(each.success for each in several),
                "process": majority(each.process for each in several),
                "process_score": median(scores) if scores else None,
            }
        )


def majority(opinions: Iterable[bool | None]) -> bool | None:
    """Return the more frequent answer; None for a tie."""
    counts = Counter(opinions)
    if counts[True] == counts[False]:
        return None
    return counts[True] > counts[False]


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[TrajectoryKey, dict[str, Any]]]:
    """Yield the rows of the runs, each with its key. Raises UserError if there is none."""
    files = run_files(path)
    if not files:
        raise UserError(f"{path}: holds no runs of {KIND}, whose rows have labels and verdicts")
    for file in files:
        for row in read_rows(file, columns):
            yield run_key(file.split, row["task_id"]), row


def _share(value: object) -> float | None:
    is_share = isinstance(value, int | float) and 0 <= value <= 1
    return float(value) if is_share else None  # type: ignore[arg-type]  # is_share says so
