"""The card of a judge: what its verdicts survive, on which data, and what was not tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson
from pydantic import JsonValue

from trajudge.robustness.cards.data import CardData
from trajudge.robustness.cards.naming import cell, file_names
from trajudge.robustness.defences.comparison import DefendedJudgeRow, comparison_tables
from trajudge.robustness.measures.differences import RateDifference
from trajudge.robustness.measures.rates import PerturbationRates, RobustnessRate
from trajudge.robustness.measures.report import (
    JudgeRobustness,
    catalogue_version,
    known_perturbation,
)
from trajudge.robustness.measures.worst_case import WorstCase
from trajudge.util.files import save_bytes
from trajudge.util.tables import markdown

_SHOWN = 10  # attacks
_FACTS = ("model", "prompt_hash", "options", "parameters", "representation", "samples", "version")


def write_cards(
    judges: Sequence[JudgeRobustness],
    rows: Sequence[DefendedJudgeRow],
    data: CardData,
    folder: Path,
) -> list[Path]:
    """Write ``cards/JUDGE.md`` for every judge; ``rows`` compare judges with and without defences.
    Raises UserError."""
    names = file_names(judge.judge for judge in judges)
    files = []
    for judge in judges:
        files.append(folder / "cards" / f"{names[judge.judge]}.md")
        save_bytes(files[-1], card(judge, rows, data).encode())
    return files


def card(judge: JudgeRobustness, rows: Sequence[DefendedJudgeRow], data: CardData) -> str:
    """Write the card in Markdown, with the header that the hub reads."""
    return "\n".join(
        [
            *("---", "license: other", "tags:", "- llm-judge", "- robustness", "---", ""),
            f"# What the verdicts of {cell(judge.judge)} survive",
            "",
            f"`{badge(judge)}`",
            "",
            "Precision of its verdicts if every failure came with the attack that hurts most, "
            "with the limits explained below. Written by `trajudge robust`.",
            "",
            *_facts([*_identity(judge), *_tried(judge), *_runs(judge, data)]),
            *("", "## Runs as they were", "", *_clean(judge)),
            *("", "## Under attack", "", *_attacked(judge)),
            *("", "## Noise and consistency", "", *_steadiness(judge)),
            *("", "## What no judge that is shown the same can see", "", *_unseen(judge)),
            *("", "## Defences", "", *_defences(judge, rows)),
            *("", "## What was not done", "", *_left_out(judge, data), ""),
        ]
    )


def badge(judge: JudgeRobustness) -> str:
    """Return the line for a leaderboard: version of the catalogue, and precision under the worst
    attack of the agent and of the page with its limits."""
    parts = [f"{threat} {_worst(judge.worst.get(threat))}" for threat in ("agent", "page")]
    return " · ".join([f"robust {catalogue_version().partition('-')[0]}", *parts])


def _worst(worst: WorstCase | None) -> str:
    if worst is None or not worst.attacks:
        return "–"
    found = f"{worst.attacks[0].precision:.2f}"
    if worst.low is None or worst.high is None:
        return found
    return f"{found} [{worst.low:.2f}, {worst.high:.2f}]"


def _facts(rows: Sequence[tuple[str, str]]) -> list[str]:
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]


def _identity(judge: JudgeRobustness) -> Iterator[tuple[str, str]]:
    yield "judge", cell(judge.judge)
    facts = judge.configuration.facts if judge.configuration else {}
    for name in _FACTS:
        value = facts.get(name)
        if value is None or value in ({}, []):
            continue
        shown = _without_folders(value)
        text = shown if isinstance(shown, str) else orjson.dumps(shown).decode()
        yield name.replace("_", " "), cell(text)


def _without_folders(value: JsonValue) -> JsonValue:
    """Name files by their names alone: where they lie on a machine is nobody's business."""
    if isinstance(value, dict):
        return {name: _without_folders(one) for name, one in value.items()}
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _tried(judge: JudgeRobustness) -> Iterator[tuple[str, str]]:
    known = [one for rates in judge.rates if (one := known_perturbation(rates.name))]
    families = ", ".join(f"{k} {n}" for k, n in sorted(Counter(p.family for p in known).items()))
    grades = Counter(p.grade for p in known if p.attacker == "page")
    yield "catalogue", f"{catalogue_version()}: {len(judge.rates)} perturbations tried ({families})"
    shown = ", ".join(f"{n} {grade}" for grade, n in sorted(grades.items()))
    yield "changes of pages", shown or "none"


def _runs(judge: JudgeRobustness, data: CardData) -> Iterator[tuple[str, str]]:
    runs, points = judge.runs, judge.operating
    outcome = f"{points.successes} successes, {points.failures} failures"
    yield "runs", f"{runs.runs} of {runs.tasks} tasks ({outcome}), in {runs.variants} variants"
    yield "benchmarks (runs)", _counted(runs.benchmarks)
    yield "agents (runs)", _counted(runs.agents)
    state = "the state that each run left in its application, and nobody's opinion"
    yield "truth", state if data.from_state else "the labels that people gave"
    yield "licence of the runs", data.licence or "not known: name it before you publish any of them"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{cell(name)} ({n})" for name, n in counts.items())


def _clean(judge: JudgeRobustness) -> Iterator[str]:
    overall = judge.overall
    yield from _facts([("precision", _rate(overall.precision)), ("recall", _rate(overall.recall))])
    yield from ("", "At the judge's own verdict: no threshold was fitted. 95 % limits over tasks.")


def _attacked(judge: JudgeRobustness) -> Iterator[str]:
    yield "| attacks by | tried | precision under the worst [limits] | the worst |"
    yield "|:--|--:|--:|:--|"
    for threat, worst in judge.worst.items():
        first = worst.attacks[0].name if worst.attacks else "–"
        yield f"| {threat} | {len(worst.attacks)} | {_worst(worst)} | {cell(first)} |"
    yield ""
    yield (
        "Each limit is one-sided and made for 95 %; the lower one holds for all attacks of the "
        "row at once. How often they hold in simulations: `python -m benchmarks.robustness`."
    )
    names = {attack.name for worst in judge.worst.values() for attack in worst.attacks}
    found = [one for one in judge.rates if one.name in names and one.attack_success.trials]
    found.sort(key=lambda one: (-(one.attack_success.estimate or 0.0), one.name))
    if found:
        yield from ("", "Of the failures that it had rejected, the share that it accepts:", "")
        yield "| attack | failures accepted | under the benign twin |"
        yield "|:--|--:|--:|"
        yield from (_attack(one) for one in found[:_SHOWN])
    if len(found) > _SHOWN:
        yield from ("", f"And {len(found) - _SHOWN} more attacks, none of which does more.")


def _attack(one: PerturbationRates) -> str:
    return f"| {cell(one.name)} | {_rate(one.attack_success)} | {_rate(one.twin_success)} |"


def _steadiness(judge: JudgeRobustness) -> Iterator[str]:
    overall = judge.overall
    rows = [
        ("verdicts that flip when the same is asked again", _rate(overall.noise)),
        ("flips under harmless changes beyond that", _difference(overall.excess_flips)),
        (
            f"runs judged alike under all of {overall.changes} harmless changes",
            _rate(overall.consistency),
        ),
        ("pairs right where the truth changes", _rate(overall.pair_accuracy)),
        ("verdicts lost under a change", _rate(overall.coverage_lost)),
    ]
    for one in judge.rates:
        known = known_perturbation(one.name)
        if known is not None and known.asking is not None:
            rows.append((f"flips under {one.name}", _rate(one.flips)))
    if judge.adaptive:
        rows += [
            (f"an attacker that learns, within {n} queries", _rate(rate))
            for n, rate in judge.adaptive.within.items()
        ]
    return iter(_facts(rows))


def _unseen(judge: JudgeRobustness) -> Iterator[str]:
    if not judge.asks_model:
        yield "Not told: the judge sends no prompts that could be compared."
    elif not judge.undetectable:
        yield "No failure had, byte by byte, the prompts of a success."
    for name, variants, of in judge.undetectable:
        yield (
            f"- {cell(name)}: {variants} of {of} failures have, byte by byte, the prompts of a "
            "run that succeeded"
        )


def _defences(judge: JudgeRobustness, rows: Sequence[DefendedJudgeRow]) -> Iterator[str]:
    base = next((row.base for row in rows if row.judge == judge.judge), None)
    mine = [row for row in rows if row.base == base]
    if not any(row.defences for row in mine):
        yield "None was measured beside it (`trajudge robust --defence each`)."
        return
    yield from (markdown(table).strip() for table in comparison_tables(mine))
    yield ""
    yield (
        "A defence that only makes the judge stricter lies on the judge's own curve of precision "
        "and recall (`curve.svg`), and adds nothing above it."
    )


def _left_out(judge: JudgeRobustness, data: CardData) -> Iterator[str]:
    checks = "the record and of the application's state" if data.from_state else "the record alone"
    yield (
        "- A reading by people: that a change does to the truth what is said of it rests on checks "
        f"of {checks}."
    )
    yield "- Attacks that are not in the catalogue, other languages and other locales."
    if not judge.adaptive:
        yield "- An attacker that learns from the judge's verdicts (`--adaptive`)."
    grades = {
        known.grade
        for one in judge.rates
        if (known := known_perturbation(one.name)) and known.attacker == "page"
    }
    if "native" not in grades:
        yield (
            "- Pages that held the attack when they were recorded: the records were edited, which "
            "is a weaker claim (`trajudge env record --variants`)."
        )
    if not judge.overall.noise.trials:
        yield "- The judge's own noise: no run was judged twice."
    yield "- Choosing: a limit holds for one judge, not for the best of several."


def _rate(rate: RobustnessRate) -> str:
    if rate.estimate is None:
        return "–"
    limits = _limits(rate.low, rate.high)
    return f"{100 * rate.estimate:.1f} %{limits} ({rate.hits} of {rate.trials})"


def _difference(found: RateDifference) -> str:
    if found.estimate is None:
        return "–"
    points = f"{100 * found.estimate:+z.1f} points"
    return f"{points}{_limits(found.low, found.high)} ({found.trials} pairs)"


def _limits(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{100 * low:z.1f}, {100 * high:z.1f}]"
