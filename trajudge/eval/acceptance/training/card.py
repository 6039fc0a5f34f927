"""The card of training data: what accepted it, how sure that is, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trajudge.eval.acceptance.training.choosing import TEST
from trajudge.eval.acceptance.training.settings import TrainingConfig
from trajudge.eval.reporting.sentences import threshold_text
from trajudge.util.terminal import count_of

# The share of test rows is told where it misses by more than this part of the smaller share.
_NOTABLE = 0.25


class Guarantee(NamedTuple):
    """What a decision showed of the judge: its precision is at least ``precision_at_least``, with
    ``confidence``; both None without a decision."""

    precision_at_least: float | None = None
    confidence: float | None = None


class TrainingCounts(NamedTuple):
    """Rows by file, runs and tasks behind them, and what was left out by the reason."""

    rows: Mapping[str, int]
    runs: int
    tasks: int
    left_out: Mapping[str, int]
    screenshots: Mapping[str, int]


class CardSource(NamedTuple):
    """What the training data was made from: the judge, its threshold and guarantee, the data, the
    agents with their runs."""

    judge: str
    threshold: float
    decision: str | None
    guarantee: Guarantee
    data: str
    agents: Mapping[str, int]


def training_warnings(config: TrainingConfig, counts: TrainingCounts) -> list[str]:
    """Say what the user should know of the rows."""
    warnings = []
    reasons = ", ".join(f"{reason}: {n:,}" for reason, n in counts.left_out.items())
    if not counts.rows:
        warnings.append(f"no row of training data ({reasons or 'nothing was accepted'})")
    elif reasons:
        warnings.append(f"left out of the training data ({reasons})")
    warnings += _other_share(config.test_share, counts)
    for problem, n in counts.screenshots.items():
        warnings.append(f"{n} turns without their screenshot: {problem}")
    return warnings


def _other_share(wanted: float, counts: TrainingCounts) -> list[str]:
    """Say where the share of test rows is notably another than that of the tasks asked for."""
    rows = sum(counts.rows.values())
    if not wanted or not rows:
        return []
    share = counts.rows.get(TEST, 0) / rows
    if abs(share - wanted) <= _NOTABLE * min(wanted, 1 - wanted):
        return []
    sentence = f"--test-share {wanted:g}: {100 * share:.3g} % of the rows are in test, for "
    if counts.tasks == 1:
        return [f"{sentence}all rows are of one task, which is not divided"]
    tasks = count_of(counts.tasks, "task")
    return [
        f"{sentence}whole tasks are drawn, and the {tasks} are few or of unequal size "
        "(another --seed draws others)"
    ]


def card(
    source: CardSource, config: TrainingConfig, counts: TrainingCounts, files: Sequence[str]
) -> str:
    """Write the card in Markdown, with the header that the hub reads."""
    lines = [
        *_header(files),
        "# Runs of web agents that a judge accepted",
        "",
        f"Written by `trajudge accept --format {config.format}`. {_precision(source)}",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in _facts(source, config, counts)),
        "",
        *_warnings(config, counts),
        "The label of a run is copied to each of its steps (`credit: outcome`). The licence is "
        "that of the recorded runs and of the pages in them: name it before you publish this.",
        "",
    ]
    return "\n".join(lines)


def _header(files: Sequence[str]) -> list[str]:
    splits = [name for name in files if name.partition(".")[0] in ("train", "test")]
    places = [
        line
        for name in splits
        for line in (f"  - split: {name.partition('.')[0]}", f"    path: {name}")
    ]
    return [
        "---",
        "license: other",
        "configs:",
        "- config_name: default",
        "  data_files:",
        *places,
        "---",
        "",
    ]


def _precision(source: CardSource) -> str:
    low, confidence = source.guarantee
    if low is None or confidence is None:
        return "No decision stands behind this judge: the share of true successes is not known."
    return (
        f"Of the accepted runs at least {100 * low:.1f} % are true successes, with a confidence of "
        f"{100 * confidence:g} %, for the tasks, agents and settings that decision.json names."
    )


def _facts(
    source: CardSource, config: TrainingConfig, counts: TrainingCounts
) -> list[tuple[str, str]]:
    agents = ", ".join(f"{_cell(name)} ({n})" for name, n in sorted(source.agents.items()))
    facts = [
        ("judge", f"{_cell(source.judge)} at threshold {threshold_text(source.threshold)}"),
        ("decision", source.decision or "none"),
        ("runs from", _cell(source.data)),
        ("agents (runs)", agents),
        ("runs, tasks", f"{counts.runs}, {counts.tasks}"),
        *((f"rows in {name}", str(n)) for name, n in counts.rows.items()),
        *((f"left out: {reason}", str(n)) for reason, n in counts.left_out.items()),
        *((f"screenshots {reason}", str(n)) for reason, n in counts.screenshots.items()),
    ]
    if config.per_task is not None or config.test_share:
        facts.append(("seed", str(config.seed)))
    return facts


def _warnings(config: TrainingConfig, counts: TrainingCounts) -> list[str]:
    if not counts.left_out.get("above the cap per task"):
        return []
    return [
        "A cap per task gives rare tasks more weight than they had where precision was measured: "
        "the share of true successes among these rows may differ from it.",
        "",
    ]


def _cell(text: str) -> str:
    """Keep a name from ending a table's cell or line."""
    return " ".join(text.replace("|", "\\|").split())
