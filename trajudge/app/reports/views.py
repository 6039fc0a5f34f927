"""The parts of a report's page, ready to be shown: no template computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.app.pages.figures import IntervalBar, interval_bar
from trajudge.eval.reporting.sentences import (
    benchmark_name,
    ordered_judges,
    percent,
    precision_cell,
    rate_cell,
    shown_benchmarks,
)
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL, LabelName, Score, ScoreReport
from trajudge.eval.store.run_folder import read_manifest
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.sources import SourceCard, card_of_kind
from trajudge.util.errors import UserError

RULE, BASELINE = "rule-based", "baseline"


class JudgeRow(NamedTuple):
    """An evaluator's overall figures; ``kind`` is "judge", "rule-based" or "baseline". ``counts``
    are true and false positives, false and true negatives."""

    name: str
    kind: str
    bar: IntervalBar | None
    precision: str
    recall: str
    f1: str
    n: str
    counts: tuple[int, int, int, int]


class BenchmarkCell(NamedTuple):
    """An evaluator's precision on one benchmark."""

    bar: IntervalBar | None
    text: str
    n: str


class BenchmarkTable(NamedTuple):
    """Precision by benchmark: a row an evaluator, with a cell (or None) for each of ``names``."""

    names: list[str]
    rows: list[tuple[str, list[BenchmarkCell | None]]]


class RunCard(NamedTuple):
    """What a run's manifest says it was: names and values."""

    folder: str
    facts: list[tuple[str, str]]


def judge_rows(scores: ScoreReport, label: LabelName) -> list[JudgeRow]:
    """Make a row a judge, best first, then the rule-based baseline and the trivial ones."""
    return [
        JudgeRow(
            name=name,
            kind=kind,
            bar=interval_bar(score),
            precision=precision_cell(score),
            recall=percent(score.recall),
            f1=rate_cell(score, "f1"),
            n=f"{score.n:,}",
            counts=(score.counts.tp, score.counts.fp, score.counts.fn, score.counts.tn),
        )
        for name, kind, score in overall_scores(scores, label)
    ]


def overall_scores(scores: ScoreReport, label: LabelName) -> list[tuple[str, str, Score]]:
    """List every evaluator with its kind and its score over all benchmarks."""
    return [
        (name, kind, places[OVERALL])
        for (name, kind), places in _evaluators(scores, label).items()
        if OVERALL in places
    ]


def benchmark_table(scores: ScoreReport, label: LabelName) -> BenchmarkTable | None:
    """Set the precision on every benchmark beside each other; None where there is one alone."""
    names = [b for b in sorted(shown_benchmarks(scores)) if b != OVERALL]
    if len(names) < 2:
        return None
    rows = [
        (name, [_cell(places.get(benchmark)) for benchmark in names])
        for (name, _), places in _evaluators(scores, label).items()
    ]
    return BenchmarkTable([benchmark_name(name) for name in names], rows)


def _cell(score: Score | None) -> BenchmarkCell | None:
    if score is None:
        return None
    return BenchmarkCell(interval_bar(score), precision_cell(score), f"{score.n:,}")


def _evaluators(scores: ScoreReport, label: LabelName) -> dict[tuple[str, str], dict[str, Score]]:
    """Map an evaluator's name and kind to its scores by benchmark: judges best first, the rule
    once where it is the same beside all judges."""
    order = {judge: place for place, judge in enumerate(ordered_judges(scores))}
    here = [s for s in scores.scores if (s.agent, s.label) == (ALL_AGENTS, label)]
    judges = sorted((s for s in here if not s.baseline), key=lambda s: order.get(s.judge, 0))
    rules = [s for s in here if s.baseline]
    same = len({(s.n, s.counts) for s in rules if s.benchmark == OVERALL}) < 2
    found: dict[tuple[str, str], dict[str, Score]] = {}
    for score in judges:
        found.setdefault((score.judge, "judge"), {})[score.benchmark] = score
    for score in rules:
        name = RULE if same else f"{RULE} beside {score.judge}"
        found.setdefault((name, RULE), {}).setdefault(score.benchmark, score)
    for score in scores.baselines:
        if (score.agent, score.label) == (ALL_AGENTS, label):
            found.setdefault((score.judge, BASELINE), {})[score.benchmark] = score
    return found


# Their paths are those of the machine that judged: only the last part is told.
_SPECIFICATIONS = {"data", "annotations"}
_FACTS = {
    "judge": "judge",
    "model": "model",
    "data": "data",
    "revision": "revision of the data",
    "annotations": "expert labels",
    "samples": "samples per trajectory",
    "parameters": "parameters",
    "options": "options",
    "selection": "selection",
    "protocol": "protocol",
    "prompt_hash": "hash of the prompts",
    "seed": "seed",
    "version": "version of trajudge",
}


def run_card(folder: Path) -> RunCard:
    """Say what a run was, by its manifest. Raises UserError if it cannot be read."""
    manifest = read_manifest(folder)
    facts = [
        (title, _specification(fact) if name in _SPECIFICATIONS else fact)
        for name, title in _FACTS.items()
        if manifest.get(name) and (fact := _fact(manifest[name]))
    ]
    return RunCard(folder.name, facts)


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {one}" for name, one in value.items() if one is not None)
    return str(value)


def _specification(spec: str) -> str:
    kind, colon, path = spec.partition(":")
    return f"{kind}{colon}{Path(path).name}" if colon else Path(spec).name


def data_licences(specs: Sequence[str]) -> list[SourceCard]:
    """Find the cards of the data sets that these specifications name, where they are known."""
    cards: dict[str, SourceCard] = {}
    for spec in specs:
        try:
            card = card_of_kind(parse_source(spec)[0])
        except UserError:
            card = card_of_kind(spec.partition(":")[0])
        if card is not None:
            cards[card.name] = card
    return list(cards.values())
