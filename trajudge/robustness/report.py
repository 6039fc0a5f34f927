"""Robustness of the judges of some runs: the results for each judge, the most instructive cases,
and their files."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from trajudge.eval.select.binding import JudgeConfiguration, configuration_of_run, differences
from trajudge.judges.model import Judgment
from trajudge.robustness.adaptive import AdaptiveSuccess
from trajudge.robustness.catalogue import catalogue_version, find_perturbation, twins
from trajudge.robustness.model import Attacker, Relation
from trajudge.robustness.pairs import (
    IDENTITY,
    PerturbedPairs,
    call_change_pairs,
    call_change_runs,
    judged_run,
    perturbed_pairs,
    runs_as_they_were,
    verdicts_of,
)
from trajudge.robustness.perturb import read_variants
from trajudge.robustness.rates import (
    OperatingPoints,
    OverallRates,
    PerturbationRates,
    RateDifference,
    RobustnessRate,
    Undetectable,
    WorstCase,
    all_rates,
    on_the_same_runs,
    operating_points,
    overall_rates,
    undetectable,
    with_obedience,
    worst_case,
)
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes


class RunsMeasured(NamedTuple):
    """The numbers of perturbed ``runs``, of their ``tasks`` and ``variants``; runs by benchmark
    and by agent."""

    runs: int = 0
    tasks: int = 0
    variants: int = 0
    benchmarks: Mapping[str, int] = MappingProxyType({})
    agents: Mapping[str, int] = MappingProxyType({})


def runs_measured(everything: Sequence[PerturbedPairs]) -> RunsMeasured:
    """Count the sources of all pairs, each once."""
    sources = {source for one in everything for source in one.sources}
    return RunsMeasured(
        len(sources),
        len({(one.benchmark, one.task_id) for one in sources}),
        sum(len(one.sources) for one in everything),
        dict(sorted(Counter(one.benchmark for one in sources).items())),
        dict(sorted(Counter(one.agent for one in sources).items())),
    )


# The most instructive cases: one for each of the most effective changes.

CaseKind = Literal["fooled", "not followed", "unstable"]
CASES = 10
# Of each kind, if there are enough; attacks fill the rest.
_SHARES: Mapping[CaseKind, int] = {"fooled": 6, "not followed": 2, "unstable": 2}


class InstructiveCase(NamedTuple):
    """A run with the verdicts ``clean`` and ``perturbed``, with scores and reasons. ``fooled``:
    the judge now accepts a failure. ``not followed``: the truth changed, the right verdict did
    not. ``unstable``: a harmless change flipped it. ``truth`` is the source's."""

    kind: CaseKind
    perturbation: str
    source: TrajectoryKey
    truth: bool | None
    clean: bool
    perturbed: bool
    clean_score: float | None
    perturbed_score: float | None
    clean_reasoning: str
    perturbed_reasoning: str


class _Candidate(NamedTuple):
    """One pair of a perturbation, and its rank, the best lowest."""

    rank: tuple[object, ...]
    kind: CaseKind
    pairs: PerturbedPairs
    at: int


def instructive_cases(
    everything: Sequence[PerturbedPairs],
    attacks: Mapping[str, str | None],
    harmless: Collection[str],
) -> tuple[InstructiveCase, ...]:
    """Choose at most ``CASES``. ``attacks`` maps attacks to their benign twins, ``harmless`` names
    family A.

    One run of each perturbation is chosen, if possible of a new task: the perturbations with the
    most changed verdicts first, and of their runs those that the twin does not flip and with the
    largest change of the score.
    """
    by_name = {one.name: one for one in everything}
    ranked: dict[CaseKind, list[list[_Candidate]]] = {kind: [] for kind in _SHARES}
    for one in everything:
        kind: CaseKind = "not followed"
        if one.name in attacks:
            kind = "fooled"
        elif one.name in harmless and one.name != IDENTITY:
            kind = "unstable"
        elif one.relation not in (Relation.FALSE, Relation.TRUE):
            continue
        if candidates := _candidates(one, kind, by_name.get(attacks.get(one.name) or "")):
            ranked[kind].append(candidates)
    for kinds in ranked.values():
        kinds.sort(
            key=lambda candidates: (
                -len(candidates) / len(candidates[0].pairs.clean),
                candidates[0].pairs.name,
            )
        )
    return tuple(_case(candidate) for candidate in _chosen(ranked))


def _chosen(ranked: Mapping[CaseKind, list[list[_Candidate]]]) -> list[_Candidate]:
    first = [candidates for kind, most in _SHARES.items() for candidates in ranked[kind][:most]]
    rest = [candidates for kind, most in _SHARES.items() for candidates in ranked[kind][most:]]
    shown: set[tuple[str, str]] = set()
    chosen = []
    for candidates in [*first, *rest][:CASES]:
        candidate = min(candidates, key=lambda one: (_task(one) in shown, one.rank))
        shown.add(_task(candidate))
        chosen.append(candidate)
    return sorted(chosen, key=lambda one: list(_SHARES).index(one.kind))


def _candidates(
    pairs: PerturbedPairs, kind: CaseKind, twin: PerturbedPairs | None
) -> list[_Candidate]:
    """List the pairs of one perturbation that show an effect of its kind, the best first."""
    if not pairs.verdicts:
        return []
    benign = on_the_same_runs(pairs, twin, twin.perturbed if twin else np.empty(0))
    before, after = pairs.scores
    change = np.nan_to_num(np.abs(after - before))
    made = [
        _Candidate((benign[at] == 1, -change[at], source.order), kind, pairs, int(at))
        for at in np.flatnonzero(_moved(pairs, kind))
        for source in [pairs.sources[at]]
    ]
    return sorted(made, key=lambda one: one.rank)


def _moved(pairs: PerturbedPairs, kind: CaseKind) -> NDArray[np.bool_]:
    both = ~np.isnan(pairs.clean) & ~np.isnan(pairs.perturbed)
    flipped = both & (pairs.clean != pairs.perturbed)
    after = float(pairs.relation is Relation.TRUE)
    moved = {
        "fooled": flipped & (pairs.truth == 0) & (pairs.perturbed == 1),
        "unstable": flipped,
        "not followed": both & ~flipped & (pairs.truth == pairs.clean) & (pairs.truth == 1 - after),
    }
    return np.asarray(moved[kind])


def _task(candidate: _Candidate) -> tuple[str, str]:
    source = candidate.pairs.sources[candidate.at]
    return source.benchmark, source.task_id


def _case(candidate: _Candidate) -> InstructiveCase:
    pairs, at = candidate.pairs, candidate.at
    (before, after), truth = pairs.verdicts[at], pairs.truth[at]
    return InstructiveCase(
        candidate.kind,
        pairs.name,
        pairs.sources[at],
        None if np.isnan(truth) else bool(truth),
        bool(pairs.clean[at]),
        bool(pairs.perturbed[at]),
        before.score,
        after.score,
        before.reasoning,
        after.reasoning,
    )


# The results of each judge.

THREATS = {
    "agent": (Attacker.AGENT,),
    "page": (Attacker.PAGE,),
    "agent and page": (Attacker.AGENT, Attacker.PAGE),
}

ROBUSTNESS_FILE = "robustness.json"
_COLUMNS = (
    *("judge", "perturbation", "rate", "hits", "trials", "estimate", "low", "high"),
    *("p_value", "p_adjusted"),
)


class JudgeRobustness(NamedTuple):
    """Results of one judge: its rates by perturbation, its worst case by attacker, its overall
    rates, perturbations that no judge with the same prompts could detect, and the results of the
    adaptive attacker, if any. ``configuration`` identifies the judge, ``runs`` the data,
    ``operating`` its trade-off between precision and recall, ``cases`` the most instructive
    cases; ``asks_model``: it called a model."""

    judge: str
    rates: tuple[PerturbationRates, ...]
    worst: dict[str, WorstCase]
    overall: OverallRates = OverallRates()
    undetectable: tuple[Undetectable, ...] = ()
    adaptive: AdaptiveSuccess | None = None
    configuration: JudgeConfiguration | None = None
    runs: RunsMeasured = RunsMeasured()
    operating: OperatingPoints = OperatingPoints()
    cases: tuple[InstructiveCase, ...] = ()
    asks_model: bool = False


def measured(runs: Sequence[Path], attacked: Path, seed: int) -> list[JudgeRobustness]:
    """Compute the results of every judge of the runs. Raises UserError for files that cannot be
    read, and for runs without a verdict on the perturbed trajectories."""
    variants = read_variants(attacked)
    by_judge: dict[str, list[Judgment]] = defaultdict(list)
    configured: dict[str, tuple[Path, JudgeConfiguration]] = {}
    read = [judged_run(run) for run in runs]
    others = call_change_runs(read)
    otherwise = {one.run.folder for one in others if one.run.sources_only}
    for run in (one for one in read if one.folder not in otherwise):
        for name, judgments in run.judgments.items():
            by_judge[name] += judgments
            configuration = configuration_of_run(name, run.manifest)
            first = configured.setdefault(name, (run.folder, configuration))
            _check_same(run.folder, configuration, *first)
    judges = []
    for name, judgments in sorted(by_judge.items()):
        verdicts = verdicts_of(judgments)
        pairs = perturbed_pairs(variants, verdicts)
        if pairs:
            base, mine = runs_as_they_were(pairs), [one for one in others if one.base == name]
            pairs += filter(None, (call_change_pairs(one, base, verdicts) for one in mine))
            made = _robustness(name, pairs, np.random.default_rng(seed))
            judges.append(made._replace(configuration=configured[name][1]))
    if not judges:
        raise UserError(
            f"{runs[0]}: holds no judgment of a changed run and of its source: judge the folder "
            f"with  trajudge judge --data {attacked}  (it needs the perturbation identity, or a "
            "run on the sources too)"
        )
    return judges


def _check_same(
    run: Path, configuration: JudgeConfiguration, first: Path, other: JudgeConfiguration
) -> None:
    if different := list(differences(other, configuration)):
        raise UserError(
            f"{run}: its {configuration.judge} is configured otherwise than that of {first} "
            f"({'; '.join(different)}): measure them separately"
        )


def _robustness(
    judge: str, pairs: Sequence[PerturbedPairs], rng: np.random.Generator
) -> JudgeRobustness:
    known = {one.name: find_perturbation(one.name) for one in pairs}
    rates = all_rates(pairs, {name: getattr(one, "twin", None) for name, one in known.items()})
    measured = zip(rates, pairs, strict=True)
    identity = next((one for one in pairs if one.name == IDENTITY), None)
    base = identity if identity and not identity.is_drawn_again else runs_as_they_were(pairs)
    worst = {
        threat: worst_case([one for one in pairs if _is_attack(one, who)], base, rng)
        for threat, who in THREATS.items()
    }
    harmless, changing = (
        [name for name, one in known.items() if one and one.family == letter] for letter in "AB"
    )
    attacks = {
        one.name: getattr(known[one.name], "twin", None)
        for one in pairs
        if _is_attack(one, THREATS["agent and page"])
    }
    return JudgeRobustness(
        judge,
        tuple(with_obedience(one, of, judge) for one, of in measured),
        worst,
        overall_rates(pairs, harmless, changing, base),
        undetectable(pairs),
        runs=runs_measured(pairs),
        operating=operating_points(pairs),
        cases=instructive_cases(pairs, attacks, harmless),
        asks_model=any(before.requests for one in pairs for before, _ in one.verdicts),
    )


def _is_attack(pairs: PerturbedPairs, who: Sequence[Attacker]) -> bool:
    """Return True for an attack by one of these attackers, not a benign twin."""
    known = find_perturbation(pairs.name)
    if known is None or pairs.name in twins():
        return False
    return known.attacker in who and pairs.relation is Relation.KEEP


def write_robustness(
    judges: Sequence[JudgeRobustness], folder: Path, settings: Mapping[str, Any]
) -> tuple[Path, Path]:
    """Write ``robustness.json``, with the settings, and ``robustness.csv``; return their paths.
    Raises UserError."""
    record, table = folder / ROBUSTNESS_FILE, folder / "robustness.csv"
    content = {
        "catalogue": catalogue_version(),
        "settings": settings,
        "judges": [_plain(one) for one in judges],
    }
    save_bytes(record, orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
    save_csv(table, _COLUMNS, (row for judge in judges for row in _rows(judge)))
    return record, table


def _rows(judge: JudgeRobustness) -> Iterator[tuple[object, ...]]:
    for one in judge.rates:
        for name, rate in one._asdict().items():
            if isinstance(rate, RobustnessRate) and rate.trials:
                yield (judge.judge, one.name, name, *rate, "", "")
            if isinstance(rate, RateDifference) and rate.trials:
                yield (judge.judge, one.name, name, "", *rate)


def save_csv(file: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table as CSV. Raises UserError."""
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows(rows)
    save_bytes(file, text.getvalue().encode())


def _plain(value: Any) -> Any:
    """Convert named tuples and records to JSON objects."""
    if isinstance(value, Record):
        return value.model_dump(mode="json")
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value
