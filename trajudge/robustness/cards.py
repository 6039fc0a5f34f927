"""Cards and cases for publication: a card per judge with its robustness, the data and what was
not tested; and the most instructive cases."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from trajudge.eval.store.inputs import find_source
from trajudge.robustness.catalogue import catalogue_version, find_perturbation
from trajudge.robustness.rates import PerturbationRates, RateDifference, RobustnessRate, WorstCase
from trajudge.robustness.report import CaseKind, InstructiveCase, JudgeRobustness
from trajudge.robustness.screen import DefendedJudgeRow, comparison_tables
from trajudge.robustness.subjects import FACTS
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.sources import card_of_kind
from trajudge.util.files import save_bytes
from trajudge.util.tables import markdown

# Escape file names and texts of others for Markdown.

_NO_FILE_NAME = re.compile(r"[^\w.-]+")
_TICKS = re.compile(r"`+")


def file_names(judges: Iterable[str]) -> dict[str, str]:
    """Return a unique file name, without extension, for every judge."""
    names: dict[str, str] = {}
    for judge in judges:
        name = plain = _NO_FILE_NAME.sub("-", judge).strip(".-") or "judge"
        number = 1
        while name.lower() in {one.lower() for one in names.values()}:
            number += 1
            name = f"{plain}-{number}"
        names[judge] = name
    return names


def cell(text: str) -> str:
    """Escape a text for a cell of a Markdown table, without line breaks, HTML or links."""
    line = visible(" ".join(text.split()))
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", line)


def fenced(lines: Iterable[str], language: str = "") -> list[str]:
    """Return lines as a code block that no line of them closes."""
    shown = [visible(line) for line in lines]
    longest = max((len(run) for line in shown for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *shown, fence]


def visible(text: str) -> str:
    """Replace invisible characters except tabs by their code points."""
    return "".join(
        letter if letter.isprintable() or letter == "\t" else f"\\u{{{ord(letter):x}}}"
        for letter in text
    )


class CardData(NamedTuple):
    """Whether the truth is based on an application's state or on human labels, and the data's
    licence ("" if unknown)."""

    from_state: bool
    licence: str = ""


def card_data(attacked: Path, spec: str | None, *, is_source: bool) -> CardData:
    """Describe a folder of perturbed runs; ``is_source``: they were made from ``spec`` (None:
    the default). Raises UserError for data that do not exist."""
    from_state = (attacked / FACTS).is_file()
    if not is_source:
        return CardData(from_state)
    name = find_source(spec, None).spec
    known = card_of_kind(name.partition(":")[0])
    return CardData(from_state, "" if known is None else f"{known.licence} ({known.title})")


# The card.

_SHOWN = 10  # attacks
_FACTS = ("model", "prompt_hash", "options", "parameters", "representation", "samples", "version")


def write_cards(
    judges: Sequence[JudgeRobustness],
    rows: Sequence[DefendedJudgeRow],
    origin: CardData,
    folder: Path,
) -> list[Path]:
    """Write ``cards/JUDGE.md`` for every judge; ``rows`` compare judges with and without
    defences. Raises UserError."""
    names = file_names(judge.judge for judge in judges)
    files = []
    for judge in judges:
        files.append(folder / "cards" / f"{names[judge.judge]}.md")
        save_bytes(files[-1], card(judge, rows, origin).encode())
    return files


def card(judge: JudgeRobustness, rows: Sequence[DefendedJudgeRow], origin: CardData) -> str:
    """Return the card in Markdown, with the metadata header of the Hugging Face Hub."""
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
            *_facts([*_identity(judge), *_tried(judge), *_runs(judge, origin)]),
            *("", "## Runs as they were", "", *_clean(judge)),
            *("", "## Under attack", "", *_attacked(judge)),
            *("", "## Noise and consistency", "", *_steadiness(judge)),
            *("", "## What no judge that is shown the same can see", "", *_unseen(judge)),
            *("", "## Defences", "", *_defences(judge, rows)),
            *("", "## What was not done", "", *_left_out(judge, origin), ""),
        ]
    )


def badge(judge: JudgeRobustness) -> str:
    """Return the line for a leaderboard: the catalogue's version, and precision with limits
    under the worst attack by the agent and by the page."""
    parts = [f"{threat} {_worst(judge.worst.get(threat))}" for threat in ("agent", "page")]
    return " · ".join([f"robust {catalogue_version().partition('-')[0]}", *parts])


def _worst(worst: WorstCase | None) -> str:
    if worst is None or not worst.attacks:
        return "–"
    precision = f"{worst.attacks[0].precision:.2f}"
    if worst.low is None or worst.high is None:
        return precision
    return f"{precision} [{worst.low:.2f}, {worst.high:.2f}]"


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
    """Reduce paths to file names, because folders of a machine are private."""
    if isinstance(value, dict):
        return {name: _without_folders(one) for name, one in value.items()}
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _tried(judge: JudgeRobustness) -> Iterator[tuple[str, str]]:
    known = [one for rates in judge.rates if (one := find_perturbation(rates.name))]
    families = ", ".join(f"{k} {n}" for k, n in sorted(Counter(p.family for p in known).items()))
    grades = Counter(p.grade for p in known if p.attacker == "page")
    yield "catalogue", f"{catalogue_version()}: {len(judge.rates)} perturbations tried ({families})"
    shown = ", ".join(f"{n} {grade}" for grade, n in sorted(grades.items()))
    yield "changes of pages", shown or "none"


def _runs(judge: JudgeRobustness, origin: CardData) -> Iterator[tuple[str, str]]:
    runs, points = judge.runs, judge.operating
    outcome = f"{points.successes} successes, {points.failures} failures"
    yield "runs", f"{runs.runs} of {runs.tasks} tasks ({outcome}), in {runs.variants} variants"
    yield "benchmarks (runs)", _counted(runs.benchmarks)
    yield "agents (runs)", _counted(runs.agents)
    state = "the state that each run left in its application, not people's opinions"
    yield "truth", state if origin.from_state else "the labels that people gave"
    yield (
        "licence of the runs",
        origin.licence or "not known: name it before you publish any of them",
    )


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
    attacks = [one for one in judge.rates if one.name in names and one.attack_success.trials]
    attacks.sort(key=lambda one: (-(one.attack_success.estimate or 0.0), one.name))
    if attacks:
        yield from ("", "Of the failures that it had rejected, the share that it accepts:", "")
        yield "| attack | failures accepted | under the benign twin |"
        yield "|:--|--:|--:|"
        yield from (_attack(one) for one in attacks[:_SHOWN])
    if len(attacks) > _SHOWN:
        yield from ("", f"And {len(attacks) - _SHOWN} more attacks, none of which does more.")


def _attack(one: PerturbationRates) -> str:
    return f"| {cell(one.name)} | {_rate(one.attack_success)} | {_rate(one.twin_success)} |"


def _steadiness(judge: JudgeRobustness) -> Iterator[str]:
    overall = judge.overall
    rows = [
        ("verdicts that flip when the same prompt is sent again", _rate(overall.noise)),
        ("flips under harmless changes beyond that", _difference(overall.excess_flips)),
        (
            f"runs judged alike under all of {overall.changes} harmless changes",
            _rate(overall.consistency),
        ),
        ("pairs right where the truth changes", _rate(overall.pair_accuracy)),
        ("verdicts lost under a change", _rate(overall.coverage_lost)),
    ]
    for one in judge.rates:
        known = find_perturbation(one.name)
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
        yield "Not known: the judge sends no prompts that could be compared."
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
        yield "None was measured with it (`trajudge robust --defence each`)."
        return
    yield from (markdown(table).strip() for table in comparison_tables(mine))
    yield ""
    yield (
        "A defence that only makes the judge stricter lies on the judge's own curve of precision "
        "and recall (`curve.svg`), and adds nothing above it."
    )


def _left_out(judge: JudgeRobustness, origin: CardData) -> Iterator[str]:
    checks = (
        "the record and of the application's state" if origin.from_state else "the record alone"
    )
    yield (
        "- A reading by people: that a change does to the truth what it declares rests on checks "
        f"of {checks}."
    )
    yield "- Attacks that are not in the catalogue, other languages and other locales."
    if not judge.adaptive:
        yield "- An attacker that learns from the judge's verdicts (`--adaptive`)."
    grades = {
        known.grade
        for one in judge.rates
        if (known := find_perturbation(one.name)) and known.attacker == "page"
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


def _difference(rate: RateDifference) -> str:
    if rate.estimate is None:
        return "–"
    points = f"{100 * rate.estimate:+z.1f} points"
    return f"{points}{_limits(rate.low, rate.high)} ({rate.trials} pairs)"


def _limits(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{100 * low:z.1f}, {100 * high:z.1f}]"


# The cases.

_HEADINGS: Mapping[CaseKind, str] = {
    "fooled": "accepts a failure",
    "not followed": "does not follow a change of the truth",
    "unstable": "changes its verdict under a harmless change",
}
_LINES = 60  # of a difference
_WIDTH = 300  # of a line, in characters
_WORDS = 1_000  # of the judge's reasons, in characters
Runs = Mapping[TrajectoryKey, Trajectory]


def write_cases(judges: Sequence[JudgeRobustness], attacked: Path, folder: Path) -> list[Path]:
    """Write ``cases/JUDGE.md`` for every judge with changed verdicts, from the folder of
    perturbed runs. Raises UserError."""
    wanted = {key for judge in judges for case in judge.cases for key in _keys(case)}
    if not wanted:
        return []
    read = store.read(attacked, lambda key: key in wanted)
    runs = {one.key: one for one in read if isinstance(one, Trajectory)}
    files = []
    names = file_names(judge.judge for judge in judges)
    for judge in judges:
        if judge.cases:
            files.append(folder / "cases" / f"{names[judge.judge]}.md")
            save_bytes(files[-1], cases_text(judge.judge, judge.cases, runs).encode())
    return files


def _keys(case: InstructiveCase) -> tuple[TrajectoryKey, TrajectoryKey]:
    changed = f"{case.source.agent}~{case.perturbation}"
    return case.source, case.source.model_copy(update={"agent": changed})


def cases_text(judge: str, cases: Sequence[InstructiveCase], runs: Runs) -> str:
    """Return all cases; runs that are not in ``runs`` have no difference."""
    lines = [
        f"# What moves {cell(judge)}",
        "",
        "One run for each of the changes that move this judge most. The texts are those of the "
        "runs and of the judge: their licence is that of the data.",
        "",
    ]
    for number, case in enumerate(cases, start=1):
        lines += _case(number, case, runs)
    return "\n".join(lines).rstrip() + "\n"


def _case(number: int, case: InstructiveCase, runs: Runs) -> Iterator[str]:
    known = find_perturbation(case.perturbation)
    yield from (f"## {number}. {cell(case.perturbation)}: {_HEADINGS[case.kind]}", "")
    if known is not None:
        yield from (cell(known.summary), "")
    source, changed = (runs.get(key) for key in _keys(case))
    yield f"- run: {cell(str(case.source))}"
    if source is not None:
        yield f"- goal: {cell(source.goal)}"
    yield f"- truth: {_verdict(case.truth, None)}"
    yield f"- verdict before: {_verdict(case.clean, case.clean_score)}"
    yield from (f"- verdict after: {_verdict(case.perturbed, case.perturbed_score)}", "")
    for name, words in (("before", case.clean_reasoning), ("after", case.perturbed_reasoning)):
        if words:
            short = words if len(words) <= _WORDS else f"{words[:_WORDS]} …"
            yield from (f"The judge {name}:", "", *fenced(short.splitlines(), "text"), "")
    if source is not None and changed is not None:
        yield from ("What the change made of the run:", "")
        yield from (*fenced(difference(source, changed), "diff"), "")


def _verdict(verdict: bool | None, score: float | None) -> str:
    word = {True: "success", False: "failure", None: "not known"}[verdict]
    return word if score is None else f"{word} (score {score:.3g})"


def difference(before: Trajectory, after: Trajectory) -> list[str]:
    """Return the lines in which two runs differ, with one line of context, truncated."""
    lines = [
        line if len(line) <= _WIDTH else f"{line[:_WIDTH]} …"
        for line in unified_diff([*_lines(before)], [*_lines(after)], lineterm="", n=1)
        if not line.startswith(("---", "+++"))
    ]
    left = len(lines) - _LINES
    return lines if left <= 0 else [*lines[:_LINES], f"… and {left} more lines"]


def _lines(run: Trajectory) -> Iterator[str]:
    """Return a run as text, one fact per line; lines of a tree or a thought begin with the
    step's number."""
    yield f"goal: {run.goal}"
    for step in run.steps:
        yield from _step_lines(step)
    yield from _block("answer", run.answer)


def _step_lines(step: Step) -> Iterator[str]:
    seen = step.observation
    name = f"step {step.index}"
    yield from _block(f"{name}, url", seen.url)
    yield from _block(f"{name}, tree", seen.axtree or seen.axtree_pruned)
    if seen.screenshot is not None:
        yield f"{name}, screenshot: {_picture(seen.screenshot)}"
    yield from _block(f"{name}, error", seen.page_error)
    yield from _block(f"{name}, thought", step.reasoning)
    yield from _block(f"{name}, action", step.action)


def _block(name: str, text: str | None) -> Iterator[str]:
    return (f"{name}: {line}" for line in (text or "").splitlines())


def _picture(ref: ImageRef) -> str:
    return (ref.sha256 or (ref.path.name if ref.path else "not known"))[:12]
