"""What a defence gives and what it costs: precision, recall, robustness, verdicts lost, calls and
tokens of a judge with it, beside the same judge without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trajudge.judges.defences import DEFENCES, Defences
from trajudge.judges.model import Judgment, Status
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.defences.curve import DefenceCurve, DefencePoint, write_curves
from trajudge.robustness.measures.operating_points import OperatingPoints, precision_at_recall
from trajudge.robustness.measures.pairing import judged_run
from trajudge.robustness.measures.rates import PerturbationRates
from trajudge.robustness.measures.report import JudgeRobustness, known_perturbation
from trajudge.robustness.measures.screen import written_to
from trajudge.robustness.measures.worst_case import WorstCase
from trajudge.robustness.model import Attacker, Relation
from trajudge.util.files import save_bytes
from trajudge.util.tables import Table, comma_separated, first_screen

_HEAD = (
    *("defence", "precision", "recall", "gain", "agent", "page", "fooled"),
    *("no verdict", "calls", "tokens", "cents"),
)


class JudgingCost(NamedTuple):
    """Of ``judgments``: those without a verdict of success, and what all took: calls, tokens of
    prompts and replies, dollars (None: a price is not known)."""

    judgments: int
    undecided: int
    calls: int
    tokens: int
    dollars: float | None


class DefendedJudgeRow(NamedTuple):
    """A judge (``base`` without its defences) and what a defence is weighed by. ``agent`` and
    ``page`` are precision under the worst attack of either; ``fooled`` is the largest share of the
    failures that it had rejected which any attack made it accept. ``gain`` is precision less that
    of the base made as strict or lax (``precision_at_recall``). Shares are None without a trial."""

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
    """Put judges with a defence behind the same judge without; empty if none has one."""
    judgments: dict[str, list[Judgment]] = defaultdict(list)
    defences: dict[str, Defences] = {}
    for run in map(judged_run, runs):
        # Where a judge is asked otherwise, it is asked about the runs as they were alone.
        for name, made in () if run.sources_only else run.judgments.items():
            judgments[name] += made
            defences.setdefault(name, _defences(run.manifest.get("options")))
    rows = [_row(one, defences[one.judge], judgments[one.judge]) for one in judges]
    if not any(row.defences for row in rows):
        return []
    points = {one.judge: one.operating for one in judges}
    rows = [row._replace(gain=_gain(row, points.get(row.base))) for row in rows]
    first = {row.base: place for place, row in reversed(list(enumerate(rows)))}
    return sorted(rows, key=lambda row: (first[row.base], row.defences))


def _gain(row: DefendedJudgeRow, base: OperatingPoints | None) -> float | None:
    if base is None or not row.defences or row.precision is None or row.recall is None:
        return None
    reference = precision_at_recall(base, row.recall)
    return None if reference is None else row.precision - reference


def defence_curves(
    judges: Sequence[JudgeRobustness], rows: Sequence[DefendedJudgeRow]
) -> list[DefenceCurve]:
    """Return the curve of every judge that was measured without a defence, and with some."""
    points = {one.judge: one.operating for one in judges}
    made = []
    for base in dict.fromkeys(row.base for row in rows if row.defences and row.base in points):
        mine = (row for row in rows if row.base == base)
        known = tuple(
            DefencePoint(row.defences, row.precision, row.recall)
            for row in mine
            if row.precision is not None and row.recall is not None
        )
        made.append(DefenceCurve(base, points[base], known))
    return made


def _defences(options: object) -> Defences:
    known = options if isinstance(options, Mapping) else {}
    return Defences.model_validate({name: known[name] for name in DEFENCES if name in known})


def _row(
    robustness: JudgeRobustness, defences: Defences, judgments: Sequence[Judgment]
) -> DefendedJudgeRow:
    both = robustness.worst["agent and page"]
    attacks = [one.attack_success.estimate for one in robustness.rates if _is_attack(one)]
    return DefendedJudgeRow(
        judge=robustness.judge,
        base=robustness.judge.replace(defences.suffix, "", 1),
        defences=", ".join(name for name in defences.given),
        precision=both.precision,
        recall=both.recall,
        agent=_worst(robustness.worst["agent"]),
        page=_worst(robustness.worst["page"]),
        fooled=max((one for one in attacks if one is not None), default=None),
        cost=cost_of(judgments),
    )


def _worst(worst: WorstCase) -> float | None:
    return worst.attacks[0].precision if worst.attacks else None


def _is_attack(rates: PerturbationRates) -> bool:
    """Tell whether somebody gains by it: no twin, and no change of the truth."""
    known = known_perturbation(rates.name)
    if known is None or known.attacker is Attacker.NONE:
        return False
    keeps = set(known.relations.values()) == {Relation.KEEP}
    return keeps and rates.name not in {one.twin for one in catalogue().values()}


def cost_of(judgments: Sequence[Judgment]) -> JudgingCost:
    """Sum what judgments took, the calls that the cache answered at what they took first."""
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
    """Lay out a table for every judge; calls, tokens and cents are those of one judgment."""
    bases = dict.fromkeys(row.base for row in rows)
    return [
        Table(
            f"{base}, in %: on clean runs, under the worst attack; and per judgment",
            _HEAD,
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
        *map(_percent, (row.agent, row.page, row.fooled)),
        _percent(row.cost.undecided / count),
        f"{row.cost.calls / count:.2f}",
        f"{row.cost.tokens / count:.0f}",
        "–" if dollars is None else f"{100 * dollars / count:.3f}",
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def comparison_screen(rows: Sequence[DefendedJudgeRow], files: Sequence[Path]) -> str:
    """Lay out one screen."""
    rest = f"{written_to(files)}; --full shows every attack"
    return first_screen((), comparison_tables(rows), rest=rest)


def write_comparison(
    judges: Sequence[JudgeRobustness], rows: Sequence[DefendedJudgeRow], folder: Path
) -> tuple[Path, ...]:
    """Write ``defences.csv``, every row with its judge's name, and the curves that defences must
    leave. Raises UserError."""
    if not rows:
        return ()
    cells = [(row.judge, row.defences or "none", *_figures(row)) for row in rows]
    file = folder / "defences.csv"
    save_bytes(file, comma_separated(Table("", ("judge", *_HEAD), cells)).encode())
    return (file, *write_curves(defence_curves(judges, rows), folder))
