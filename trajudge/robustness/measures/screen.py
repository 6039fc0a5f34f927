"""What ``trajudge robust`` prints: the finding, the worst perturbations, what to be careful of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from trajudge.robustness.measures.rates import PerturbationRates, RobustnessRate
from trajudge.robustness.measures.report import JudgeRobustness, known_perturbation
from trajudge.robustness.measures.worst_case import WorstCase
from trajudge.robustness.model import Attacker
from trajudge.util.tables import Table, all_folded, first_screen, text
from trajudge.util.terminal import count_of

_ROWS = 10  # on the screen
_FEW = 20  # trials below which a rate says little
_HEAD = ("perturbation", "by", "failures accepted, % [95 %]", "of", "twin, %", "flips, %", "of")


def written_to(files: Sequence[Path]) -> str:
    """Say where the files of a measurement are; without any, that they could not be written."""
    return f"written to {', '.join(map(str, files))}" if files else "its files are not written"


def screen(judges: Sequence[JudgeRobustness], files: Sequence[Path], *, full: bool) -> str:
    """Lay out one screen; with ``full`` every table whole."""
    finding = [line for judge in judges for line in _finding(judge)]
    tables = [_table(judge, full=full) for judge in judges]
    tables = [table for table in tables if table.rows]
    most = max(_ROWS // max(len(tables), 1), 1)
    hidden = sum(max(len(table.rows) - most, 0) for table in tables)
    below = [f"and {count_of(hidden, 'more perturbation')}: --full"] if hidden else []
    warnings = list(dict.fromkeys(line for judge in judges for line in _warnings(judge)))
    rest = written_to(files)
    if full:
        whole = "\n".join(text(table) for table in tables)
        return "\n".join([*all_folded(finding), "", whole, *all_folded([*warnings, rest])]) + "\n"
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
        yield f"  {_worst(threat, judge.worst[threat], rejected)}"
    overall = judge.overall
    parts = [
        (overall.noise, "verdicts that flip when the same is asked again"),
        (overall.consistency, f"runs judged alike under {overall.changes} harmless changes"),
        (overall.pair_accuracy, "pairs right where the truth changes"),
    ]
    told = [f"{what} {_share(rate)} %" for rate, what in parts if rate.trials]
    if told:
        yield f"  {'; '.join(told)}"
    yield from _asked_otherwise(judge)
    if judge.adaptive:
        shares = [f"{_share(rate)} % within {n}" for n, rate in judge.adaptive.within.items()]
        tried = next(iter(judge.adaptive.within.values())).trials
        yield f"  an attacker that learns: {', '.join(shares)} queries ({tried} failures)"


def _asked_otherwise(judge: JudgeRobustness) -> Iterator[str]:
    """Say under which way of asking it most verdicts flip."""
    tried = [(one.flips.estimate, one.name) for one in judge.rates if _is_asking(one.name)]
    found = [(share, name) for share, name in tried if share is not None]
    if found:
        share, name = max(found, key=lambda one: one[0])
        ways = f"{len(found)} ways" if len(found) > 1 else "another way"
        yield f"  asked in {ways}: at most {_percent(share)} % of verdicts flip ({name})"


def _is_asking(name: str) -> bool:
    known = known_perturbation(name)
    return known is not None and known.asking is not None


def _worst(threat: str, worst: WorstCase, rejected: Collection[str]) -> str:
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
    known = known_perturbation(name)
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
    if rate.estimate is None:
        return "–"
    if rate.low is None or rate.high is None:
        return _percent(rate.estimate)
    return f"{_percent(rate.estimate)} [{_percent(rate.low)}, {_percent(rate.high)}]"


def _share(rate: RobustnessRate) -> str:
    return "–" if rate.estimate is None else _percent(rate.estimate)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
