"""Robustness of the judges of some runs, as records and as files."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from pydantic import ValidationError

from trajudge.eval.select.binding import JudgeConfiguration, configuration_of_run, differences
from trajudge.judges.model import Judgment
from trajudge.robustness.attacked import VARIANTS, VariantLine
from trajudge.robustness.catalogue import catalogue, chosen
from trajudge.robustness.measures.adaptive import AdaptiveSuccess
from trajudge.robustness.measures.differences import RateDifference
from trajudge.robustness.measures.instructive import InstructiveCase, instructive_cases
from trajudge.robustness.measures.obedience import with_obedience
from trajudge.robustness.measures.operating_points import OperatingPoints, operating_points
from trajudge.robustness.measures.overall import (
    OverallRates,
    Undetectable,
    overall_rates,
    undetectable,
)
from trajudge.robustness.measures.pairing import asked_pairs, asked_runs, judged_run
from trajudge.robustness.measures.pairs import (
    IDENTITY,
    PerturbedPairs,
    perturbed_pairs,
    runs_as_they_were,
    verdicts_of,
)
from trajudge.robustness.measures.rates import PerturbationRates, RobustnessRate, all_rates
from trajudge.robustness.measures.runs_measured import RunsMeasured, runs_measured
from trajudge.robustness.measures.worst_case import WorstCase, worst_case
from trajudge.robustness.model import Attacker, Perturbation, Relation
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import read_utf8, save_bytes
from trajudge.util.validation import first_error

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
    """One judge: its rates by perturbation, its worst case by who attacks, what all perturbations
    tell together, those that nobody who is shown what it is shown could tell, and what an attacker
    that learns came to, where one was let loose. ``configuration`` tells which judge it was,
    ``runs`` what it was measured on, ``operating`` how it trades precision for recall there,
    ``cases`` what shows best what moves it; ``asks_model``: it sent requests."""

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
    """Measure every judge of the runs. Raises UserError for files that cannot be read, and for
    runs without a verdict on the changed trajectories."""
    variants = read_variants(attacked)
    by_judge: dict[str, list[Judgment]] = defaultdict(list)
    configured: dict[str, tuple[Path, JudgeConfiguration]] = {}
    read = [judged_run(run) for run in runs]
    asked = asked_runs(read)
    otherwise = {one.run.folder for one in asked if one.run.sources_only}
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
            base, mine = runs_as_they_were(pairs), [one for one in asked if one.base == name]
            pairs += filter(None, (asked_pairs(one, base, verdicts) for one in mine))
            made = _robustness(name, pairs, np.random.default_rng(seed))
            judges.append(made._replace(configuration=configured[name][1]))
    if not judges:
        raise UserError(
            f"{runs[0]}: holds no judgment of a changed run and of its source: judge the folder "
            f"with  trajudge judge --data {attacked}  (it needs the perturbation identity, or a "
            "run on the sources beside it)"
        )
    return judges


def _check_same(
    run: Path, configuration: JudgeConfiguration, first: Path, other: JudgeConfiguration
) -> None:
    if different := list(differences(other, configuration)):
        raise UserError(
            f"{run}: its {configuration.judge} is configured otherwise than that of {first} "
            f"({'; '.join(different)}): measure them apart"
        )


def read_variants(attacked: Path) -> list[VariantLine]:
    """Read ``variants.jsonl`` of a folder of changed runs. Raises UserError."""
    file = attacked / VARIANTS
    try:
        lines = read_utf8(file).splitlines()
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror}): --attacked is what  trajudge data "
            "perturb  wrote"
        ) from error
    variants = []
    for number, line in enumerate(lines, start=1):
        try:
            variants.append(VariantLine.model_validate_json(line))
        except ValidationError as error:
            raise UserError(f"{file}, line {number}: {first_error(error, 'the line')}") from error
    return [
        one
        for one in variants
        if getattr(known_perturbation(one.perturbation), "asking", None) is None
    ]


def _robustness(
    judge: str, pairs: Sequence[PerturbedPairs], rng: np.random.Generator
) -> JudgeRobustness:
    known = {one.name: known_perturbation(one.name) for one in pairs}
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
        asks_model=any(one.requests for of in pairs if of.details for one in of.details.clean),
    )


def known_perturbation(name: str) -> Perturbation | None:
    """Return a perturbation of the catalogue, or composed of it; None for another."""
    try:
        (one,) = chosen([name])
    except UserError:
        return None
    return one


def _is_attack(pairs: PerturbedPairs, who: Sequence[Attacker]) -> bool:
    """Say whether it is for one of these attackers, and not the benign twin of an attack."""
    known = known_perturbation(pairs.name)
    if known is None or pairs.name in {one.twin for one in catalogue().values()}:
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
    rows = StringIO(newline="")
    writer = csv.writer(rows)
    writer.writerow(_COLUMNS)
    for judge in judges:
        for one in judge.rates:
            for name, rate in one._asdict().items():
                if isinstance(rate, RobustnessRate) and rate.trials:
                    writer.writerow((judge.judge, one.name, name, *rate, "", ""))
                if isinstance(rate, RateDifference) and rate.trials:
                    writer.writerow((judge.judge, one.name, name, "", *rate))
    save_bytes(table, rows.getvalue().encode())
    return record, table


def catalogue_version() -> str:
    """Name the perturbations that are known and their versions by a hash."""
    known = sorted((name, one.version) for name, one in catalogue().items())
    return f"v1-{sha256(orjson.dumps(known)).hexdigest()[:8]}"


def _plain(value: Any) -> Any:
    """Return tuples with names, and records, as JSON objects."""
    if isinstance(value, Record):
        return value.model_dump(mode="json")
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value
