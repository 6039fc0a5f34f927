"""What a leaderboard needs: its fields, the verdicts beside the labels, and hashes of both.

The fields are those of AgentRewardBench's leaderboard, in percent; ``results`` has the layout of
its ``results.json``, so that its readers can check every figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from trajudge.annotations.agentrewardbench import BENCHMARKS
from trajudge.annotations.model import Labels
from trajudge.annotations.store import annotation_line
from trajudge.eval.scoring.observations import (
    Predictions,
    ReferenceLabels,
    groups,
    one_per_trajectory,
)
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    OVERALL,
    LabelName,
    Missing,
    Score,
    ScoreReport,
)
from trajudge.eval.store.manifest import code_version
from trajudge.eval.store.run_folder import judgment_line
from trajudge.eval.store.table import JudgmentTable
from trajudge.judges.model import Judgment
from trajudge.util.files import save_bytes

FORMAT = "trajudge-submission"

VERSION = 1

_SHORT = {
    "assistantbench": "AB",
    "visualwebarena": "VWA",
    "webarena": "WA",
    "workarena": "Work",
    "workarena++": "Work++",
}

_CATEGORIES: dict[LabelName, str] = {
    "success": "trajectory_success",
    "side_effect": "trajectory_side_effect",
    "repetition": "trajectory_looping",
}


def write_submission(
    path: Path, scores: ScoreReport, judgments: Sequence[Judgment], labels: Labels, split: str
) -> None:
    """Write the file. Raises UserError if it cannot be written."""
    save_bytes(path, orjson.dumps(submission(scores, judgments, labels, split)) + b"\n")


def submission(
    scores: ScoreReport, judgments: Sequence[Judgment], labels: Labels, split: str
) -> dict[str, Any]:
    """Leaderboard fields and results of every judge, and what they were computed from."""
    judges = sorted({j.judge for j in judgments})
    verdicts = {
        name: one_per_trajectory(j for j in judgments if j.judge == name) for name in judges
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "leaderboard": [_line(scores, judge) for judge in judges],
        "results": {judge: _results(verdicts[judge], labels, scores.missing) for judge in judges},
        "computed_from": {
            "trajudge": code_version(),
            "missing": scores.missing,
            "split": split,
            "trajectories": {
                judge: [str(j.key) for j in verdicts[judge] if j.key in labels] for judge in judges
            },
            "judgments_sha256": {
                judge: _hash(judgment_line(j) for j in verdicts[judge]) for judge in judges
            },
            "labels_sha256": _hash(
                annotation_line(labels[key]) for key in sorted(labels, key=lambda key: key.order)
            ),
        },
    }


def _line(scores: ScoreReport, judge: str) -> dict[str, Any]:
    found = {
        s.benchmark: s
        for s in scores.scores
        if (s.judge, s.label, s.agent, s.baseline) == (judge, "success", ALL_AGENTS, False)
    }
    whole = found.get(OVERALL)
    return {
        "Judge": judge,
        "Overall": _percent(whole, "precision"),
        "Recall": _percent(whole, "recall"),
        "F1": _percent(whole, "f1"),
        **{_SHORT[b]: _percent(found.get(b), "precision") for b in BENCHMARKS},
    }


def _percent(score: Score | None, rate: str) -> float | None:
    value = None if score is None else getattr(score, rate)
    return None if value is None else round(100 * value, 1)


def _results(verdicts: Sequence[Judgment], labels: Labels, missing: Missing) -> dict[str, Any]:
    """Benchmark -> agent -> category -> the labels and verdicts (-1: missing), in order of keys."""
    found: dict[str, Any] = {}
    table = JudgmentTable.of(verdicts)
    reference = ReferenceLabels.of(table.keys, labels, {})
    predicted = Predictions.of(verdicts[0].judge, table, reference)
    asked = {label: predicted.observe(label, missing) for label in predicted.labels()}
    for group in groups(reference):
        members = group.members(reference)
        cells = {}
        for label, seen in asked.items():
            here = seen.at(members[seen.index] & (seen.answered | (missing != "exclude")))
            cells[_CATEGORIES[label]] = {
                "y_human": here.labels.astype(int).tolist(),
                "y_judge": here.predictions.tolist(),
            }
        name = "all" if group.benchmark == OVERALL else group.benchmark
        found.setdefault(name, {})[group.agent] = cells
    return found


def _hash(lines: Iterable[bytes]) -> str:
    digest = sha256()
    for line in lines:
        digest.update(line)
    return digest.hexdigest()
