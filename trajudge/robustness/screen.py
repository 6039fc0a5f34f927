"""Screens of ``trajudge robust``: the finding, the worst perturbations and caveats; with
defences their gain and cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trajudge.judges.defences import DEFENCES, Defences
from trajudge.judges.model import Judgment, Status
from trajudge.robustness.catalogue import find_perturbation, twins
from trajudge.robustness.figures import DefenceCurve, DefencePoint, write_curves
from trajudge.robustness.model import Attacker, Relation
from trajudge.robustness.pairs import judged_run
from trajudge.robustness.rates import (
    OperatingPoints,
    PerturbationRates,
    RobustnessRate,
    WorstCase,
    precision_at_recall,
)
from trajudge.robustness.report import JudgeRobustness
from trajudge.util.files import save_bytes
from trajudge.util.tables import Table, all_folded, comma_separated, first_screen, text
from trajudge.util.terminal import count_of

_ROWS = 10  # on the screen
_FEW = 20  # trials below which a rate is too uncertain
_HEAD = ("perturbation", "by", "failures accepted, % [95 %]", "of", "twin, %", "flips, %", "of")


def written_to(files: Sequence[Path]) -> str:
    """Name the written files, or state that they could not be written."""
    return f"written to {', '.join(map(str, files))}" if files else "its files are not written"


def screen(judges: Sequence[JudgeRobustness], files: Sequence[Path], *, full: bool) -> str:
    """Lay out one screen; with ``full`` every table completely."""
    finding = [line for judge in judges for line in _finding(judge)]
    tables = [table for judge in judges if (table := _table(judge, full=full)).rows]
    warnings = list(dict.fromkeys(line for judge in judges for line in _warnings(judge)))
    rest = written_to(files)
    if full:
        whole = "\n".join(text(table) for table in tables)
        return "\n".join([*all_folded(finding), "", whole, *all_folded([*warnings, rest])]) + "\n"
    most = max(_ROWS // max(len(tables), 1), 1)
    hidden = sum(max(len(table.rows) - most, 0) for table in tables)
    below = [f"and {count_of(hidden, 'more perturbation')}: --full"] if hidden else []
    tables = [table._replace(rows=table.rows[:most]) for table in tables]
    return first_screen(finding, tables, below, warnings, rest=rest)


def _finding(judge: JudgeRobustness) -> Iterator[str]:
    both = judge.worst["agent and page"]
    if both.precision is None:
        yield f"{judge.judge}: accepts none of the runs as they were"
        return
    precision, recall = judge.overall.precision, judge.overall.recall
    first = both.attacks[0] if both.attacks else None
    sentence = (
        f"{judge.judge}: of the runs that it accepts {_share(precision)} % are true successes"
    )
    if first is not None and first.precision < both.precision:
        sentence += f", and {_percent(first.precision)} % under the worst attack ({first.name})"
    yield f"{sentence}."
    yield (
        f"  on clean runs: precision {_limited(precision)} %, recall {_limited(recall)} % (95 % "
        "limits over tasks)"
    )
    rejected = {one.name for one in judge.rates if one.attack_success.trials}
    for threat in ("agent", "page"):
        yield f"  {_threat(threat, judge.worst[threat], rejected)}"
    overall = judge.overall
    parts = [
        (overall.noise, "verdicts that flip when the same prompt is sent again"),
        (overall.consistency, f"runs judged alike under {overall.changes} harmless changes"),
        (overall.pair_accuracy, "pairs right where the truth changes"),
    ]
    shares = [f"{name} {_share(rate)} %" for rate, name in parts if rate.trials]
    if shares:
        yield f"  {'; '.join(shares)}"
    yield from _worst_call_change(judge)
    if judge.adaptive:
        shares = [f"{_share(rate)} % within {n}" for n, rate in judge.adaptive.within.items()]
        tried = next(iter(judge.adaptive.within.values())).trials
        yield f"  an attacker that learns: {', '.join(shares)} queries ({tried} failures)"


def _worst_call_change(judge: JudgeRobustness) -> Iterator[str]:
    """Name the perturbation of the call with the most flips."""
    askings = [one for one in judge.rates if getattr(find_perturbation(one.name), "asking", None)]
    tried = [(one.flips.estimate, one.name) for one in askings]
    known = [(share, name) for share, name in tried if share is not None]
    if known:
        share, name = max(known, key=lambda one: one[0])
        ways = f"{len(known)} ways" if len(known) > 1 else "another way"
        yield f"  asked in {ways}: at most {_percent(share)} % of verdicts flip ({name})"


def _threat(threat: str, worst: WorstCase, rejected: Collection[str]) -> str:
    if not worst.attacks:
        why = "no attack was tried on a failure" if worst.precision else "there is none to lower"
        return f"attacks by the {threat}: {why}"
    if not any(attack.name in rejected for attack in worst.attacks):
        return (
            f"attacks by the {threat}: cannot be measured, every failure that {len(worst.attacks)} "
            "attacks were tried on was accepted before them"
        )
    first = worst.attacks[0]
    low = "" if worst.low is None else f" (at least {_percent(worst.low)} %)"
    if worst.precision is not None and first.precision >= worst.precision:
        return (
            f"attacks by the {threat}: none of the {len(worst.attacks)} tried lowered precision on "
            f"these runs{low}"
        )
    return (
        f"attacks by the {threat}: precision {_percent(first.precision)} %{low} under the worst "
        f"of {len(worst.attacks)}, {first.name}"
    )


def _table(judge: JudgeRobustness, *, full: bool) -> Table:
    rates = sorted(judge.rates, key=_by_success)
    tried = {attack.name for worst in judge.worst.values() for attack in worst.attacks}
    attacks = [one for one in rates if one.name in tried]
    if not any(one.attack_success.trials for one in attacks):
        attacks = []
    rows = [
        (
            one.name,
            _attacker(one.name),
            _limited(one.attack_success),
            str(one.attack_success.trials),
            _share(one.twin_success),
            _share(one.flips),
            str(one.pairs),
        )
        for one in (rates if full else attacks)
    ]
    return Table(f"{judge.judge}: failures that it rejected, and accepts now", _HEAD, rows)


def _by_success(one: PerturbationRates) -> tuple[float, float, str]:
    success, flips = one.attack_success.estimate, one.flips.estimate
    return (1.0 if success is None else -success, -(flips or 0.0), one.name)


def _attacker(name: str) -> str:
    known = find_perturbation(name)
    return "" if known is None or known.attacker is Attacker.NONE else str(known.attacker)


def _warnings(judge: JudgeRobustness) -> Iterator[str]:
    if not judge.overall.noise.trials:
        yield "the judge's own noise is not measured: no run and its identity were both judged"
    if judge.undetectable:
        hidden = ", ".join(f"{n} ({k} of {of})" for n, k, of in judge.undetectable[:4])
        more = len(judge.undetectable) - 4
        rest = f" and {more} more" if more > 0 else ""
        yield f"{judge.judge}: some failures have the prompts of a success under {hidden}{rest}"
    few = sum(0 < one.attack_success.trials < _FEW for one in judge.rates)
    if few:
        yield f"{few} perturbations have fewer than {_FEW} failures that the judge had rejected"
    lost = [one for one in judge.rates if one.coverage_lost.hits]
    if lost:
        worst = max(lost, key=lambda one: one.coverage_lost.estimate or 0.0)
        share = _share(worst.coverage_lost)
        yield f"{judge.judge} gives no verdict under {len(lost)} (worst: {worst.name}, {share} %)"


def _limited(rate: RobustnessRate) -> str:
    if rate.low is None or rate.high is None:
        return _share(rate)
    return f"{_share(rate)} [{_percent(rate.low)}, {_percent(rate.high)}]"


def _share(rate: RobustnessRate) -> str:
    return _percent(rate.estimate)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


# Judges with a defence and the same judge without.

_COMPARED = (
    *("defence", "precision", "recall", "gain", "agent", "page", "fooled"),
    *("no verdict", "calls", "tokens", "cents"),
)


class JudgingCost(NamedTuple):
    """Totals of ``judgments``: judgments without a verdict of success, calls, prompt and reply
    tokens, dollars (None: a price is unknown)."""

    judgments: int
    undecided: int
    calls: int
    tokens: int
    dollars: float | None


class DefendedJudgeRow(NamedTuple):
    """A judge (``base`` without its defences) and the measures of a defence. ``agent`` and
    ``page`` are precision under the worst attack of either; ``fooled`` is the largest share of
    rejected failures that any attack got accepted. ``gain`` is precision minus that of the base
    at equal recall (``precision_at_recall``). Shares are None without a trial."""

    judge: str
    base: str
    defences: str
    precision: float | None
    recall: float | None
    agent: float | None
    page: float | None
    fooled: float | None
    cost: JudgingCost
    gain: float | None = None


def compared(judges: Sequence[JudgeRobustness], runs: Sequence[Path]) -> list[DefendedJudgeRow]:
    """List judges with a defence after the same judge without; empty without defences."""
    judgments: dict[str, list[Judgment]] = defaultdict(list)
    defences: dict[str, Defences] = {}
    for run in map(judged_run, runs):
        # Perturbations of the call use only unchanged runs.
        for name, made in () if run.sources_only else run.judgments.items():
            judgments[name] += made
            defences.setdefault(name, _defences(run.manifest.get("options")))
    rows = [_row(one, defences[one.judge], judgments[one.judge]) for one in judges]
    if not any(row.defences for row in rows):
        return []
    points = {one.judge: one.operating for one in judges}
    rows = [row._replace(gain=_gain(row, points.get(row.base))) for row in rows]
    first = {row.base: index for index, row in reversed(list(enumerate(rows)))}
    return sorted(rows, key=lambda row: (first[row.base], row.defences))


def _defences(options: object) -> Defences:
    known = options if isinstance(options, Mapping) else {}
    return Defences.model_validate({name: known[name] for name in DEFENCES if name in known})


def _gain(row: DefendedJudgeRow, base: OperatingPoints | None) -> float | None:
    if base is None or not row.defences or row.precision is None or row.recall is None:
        return None
    reference = precision_at_recall(base, row.recall)
    return None if reference is None else row.precision - reference


def _row(
    robustness: JudgeRobustness, defences: Defences, judgments: Sequence[Judgment]
) -> DefendedJudgeRow:
    both = robustness.worst["agent and page"]
    attacks = [one.attack_success.estimate for one in robustness.rates if _gains(one.name)]
    return DefendedJudgeRow(
        judge=robustness.judge,
        base=robustness.judge.replace(defences.suffix, "", 1),
        defences=", ".join(name for name in defences.given),
        precision=both.precision,
        recall=both.recall,
        agent=_under_attack(robustness.worst["agent"]),
        page=_under_attack(robustness.worst["page"]),
        fooled=max((one for one in attacks if one is not None), default=None),
        cost=cost_of(judgments),
    )


def _under_attack(worst: WorstCase) -> float | None:
    return worst.attacks[0].precision if worst.attacks else None


def _gains(name: str) -> bool:
    """Return True if an attacker gains by the perturbation: it is not a twin and keeps the
    truth."""
    known = find_perturbation(name)
    if known is None or known.attacker is Attacker.NONE or name in twins():
        return False
    return set(known.relations.values()) == {Relation.KEEP}


def cost_of(judgments: Sequence[Judgment]) -> JudgingCost:
    """Sum the cost of judgments; cached calls count with their original cost."""
    calls = [call for judgment in judgments for call in judgment.calls]
    costs = [call.cost for call in calls if call.cost is not None]
    usages = [call.usage for call in calls if call.usage is not None]
    return JudgingCost(
        judgments=len(judgments),
        undecided=sum(j.status is not Status.OK or j.success is None for j in judgments),
        calls=len(calls),
        tokens=sum(u.prompt + u.output for u in usages),
        dollars=sum(costs) if len(costs) == len(calls) else None,
    )


def comparison_tables(rows: Sequence[DefendedJudgeRow]) -> list[Table]:
    """Lay out a table per judge; calls, tokens and cents are per judgment."""
    bases = dict.fromkeys(row.base for row in rows)
    return [
        Table(
            f"{base}, in %: on clean runs, under the worst attack; and per judgment",
            _COMPARED,
            [(row.defences or "none", *_figures(row)) for row in rows if row.base == base],
            names=1,
        )
        for base in bases
    ]


def _figures(row: DefendedJudgeRow) -> tuple[str, ...]:
    count = max(row.cost.judgments, 1)
    dollars = row.cost.dollars
    return (
        *map(_percent, (row.precision, row.recall)),
        "–" if row.gain is None else f"{100 * row.gain:+z.1f}",
        *map(_percent, (row.agent, row.page, row.fooled, row.cost.undecided / count)),
        f"{row.cost.calls / count:.2f}",
        f"{row.cost.tokens / count:.0f}",
        "–" if dollars is None else f"{100 * dollars / count:.3f}",
    )


def comparison_screen(rows: Sequence[DefendedJudgeRow], files: Sequence[Path]) -> str:
    """Lay out one screen."""
    rest = f"{written_to(files)}; --full shows every attack"
    return first_screen((), comparison_tables(rows), rest=rest)


def write_comparison(
    judges: Sequence[JudgeRobustness], rows: Sequence[DefendedJudgeRow], folder: Path
) -> tuple[Path, ...]:
    """Write ``defences.csv``, every row with its judge's name, and the curves of precision and
    recall. Raises UserError."""
    if not rows:
        return ()
    cells = [(row.judge, row.defences or "none", *_figures(row)) for row in rows]
    file = folder / "defences.csv"
    save_bytes(file, comma_separated(Table("", ("judge", *_COMPARED), cells)).encode())
    return (file, *write_curves(_defence_curves(judges, rows), folder))


def _defence_curves(
    judges: Sequence[JudgeRobustness], rows: Sequence[DefendedJudgeRow]
) -> list[DefenceCurve]:
    """Return the curve of every judge that was measured both without and with defences."""
    points = {one.judge: one.operating for one in judges}
    made = []
    for base in dict.fromkeys(row.base for row in rows if row.defences and row.base in points):
        known = tuple(
            DefencePoint(row.defences, row.precision, row.recall)
            for row in rows
            if row.base == base and row.precision is not None and row.recall is not None
        )
        made.append(DefenceCurve(base, points[base], known))
    return made
