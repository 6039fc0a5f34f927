"""Cases of a plan: configurations are drawn, checked, worded and searched for their shortest way,
until there are as many as were asked for; and what was counted on the way.

Drawing, checking and wording are stages of WebForge (section 3); the last one, the validation in
Chromium, is ``recording.validation``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from trajudge.environments.apps import load_app, mistakes_of
from trajudge.environments.checks.integrity import Reject, check
from trajudge.environments.checks.shortest import shortest
from trajudge.environments.kit.theme import theme, wordings
from trajudge.environments.model.axes import generator
from trajudge.environments.model.case import Case, Vector, write_cases
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.environments.planning import GenerationPlan, SuiteSpecification, Template
from trajudge.environments.specification import write_tasks
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes
from trajudge.util.machine import worked_on
from trajudge.util.tables import Table
from trajudge.util.terminal import count_of

POSTPONED = 12  # tries without a case count like a case: scenarios that have some come first
MOST_DOUBLED = 3  # tries of another difficulty in a row that count double: most have one alone
DRY = 240  # configurations of a scenario in a row without a case; then it is given up
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
INSTANCES = 10_000
NOISES = 100  # indices of noise that are drawn from; 0 is none
NEAREST = 5  # vectors that are named where the wanted one does not exist
_MOST_SHOWN = 12  # lines of a table
_OF_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


class Tally(NamedTuple):
    """What was counted on the way: configurations tried, rejects by (reason, detail), checked
    configurations of another difficulty, and the vectors of all that were checked, by template."""

    tried: Counter[Template]
    rejects: Counter[tuple[str, str]]
    other: Counter[Template]
    vectors: Counter[tuple[Vector, str, str]]


class Produced(NamedTuple):
    """The cases in order, and the statistics. Fewer cases than asked for: there were no more to be
    found."""

    cases: tuple[Case, ...]
    tally: Tally


class TriedConfiguration(NamedTuple):
    """The case that a configuration gave, if any, and how many in a row, this one included, were
    cases of another difficulty than was asked for."""

    case: Case | None
    others: int

    @property
    def weight(self) -> float:
        """What the try counts, in cases."""
        if self.case is not None:
            return 1.0
        doublings = max(min(self.others, MOST_DOUBLED) - 1, 0)
        return (1 << doublings) / POSTPONED


def produce(
    specification: SuiteSpecification,
    planned: GenerationPlan,
    progress: Callable[[int, int], None] = lambda _cases, _tried: None,
    *,
    search: bool = True,
    workers: int = 1,
) -> Produced:
    """Return cases spread evenly over the planned scenarios. Every scenario draws from a generator
    of its own, so that its configurations do not depend on the others. ``progress`` is told the
    numbers of cases and of configurations tried with each of these. Without ``search`` no shortest
    way is looked for, which takes most of the time and which only optimality needs; it is searched
    for in so many processes, if ``workers`` is more than one. Raises UserError if one of them
    dies."""
    tally = Tally(Counter(), Counter(), Counter(), Counter())
    cases: list[Case] = []

    def tried() -> None:
        progress(len(cases), tally.tried.total())

    drawn = islice(_spread(specification, planned, tally, tried), specification.count)
    for case in worked_on(_searched, drawn, workers) if search else drawn:
        cases.append(case)  # one by one: ``progress`` is told how many there are
        tried()
    return Produced(tuple(cases), tally)


def _spread(
    specification: SuiteSpecification,
    planned: GenerationPlan,
    tally: Tally,
    tried: Callable[[], None],
) -> Iterator[Case]:
    """Yield cases, evenly spread over the scenarios, until none of these has more."""
    sources: dict[Template, Iterator[TriedConfiguration]] = {
        template: _cases(specification, planned, template, tally) for template in planned.templates
    }
    ranks = dict.fromkeys(planned.templates, 0.0)
    while ranks:
        template = min(ranks, key=lambda one: ranks[one])
        try:
            outcome = next(sources[template])
        except StopIteration:
            del ranks[template]
            continue
        tried()
        if outcome.case is None:
            ranks[template] += outcome.weight
            continue
        ranks[template] = 1 + int(ranks[template])
        yield outcome.case


def _cases(
    specification: SuiteSpecification,
    planned: GenerationPlan,
    template: Template,
    tally: Tally,
) -> Iterator[TriedConfiguration]:
    """Yield what became of the configurations of one scenario; ends where there seem to be no more
    cases."""
    seed = specification.seed
    rng = generator("refine", *template, seed)
    further = planned.wordings.get(template, ())
    dry = others = 0
    for case in generate(template, seed, generator("generate", *template, seed)):
        tally.tried[template] += 1
        dry += 1
        if isinstance(case, Case):
            tally.vectors[case.vector, *template] += 1
            others = 0 if specification.wants(case) else others + 1
            if others:
                tally.other[template] += 1
            else:
                case = refine(case, further, rng, noise=specification.noise)  # noqa: PLW2901
        if isinstance(case, Reject):
            tally.rejects[case.reason, _QUOTED.sub("...", case.detail)] += 1
        fits = isinstance(case, Case) and specification.wants(case)
        dry = 0 if fits else dry
        yield TriedConfiguration(case if isinstance(case, Case) and fits else None, others)
        if dry >= DRY:
            return


def _searched(case: Case) -> Case:
    """Return the case with the length of the shortest way, where the search comes to its end."""
    way = shortest(case)
    return case.model_copy(update={"fewest": way.actions if way.proved else None})


def generate(template: Template, seed: int, rng: np.random.Generator) -> Iterator[Case | Reject]:
    """Yield what the checks made of configurations of one scenario, each tried once. Endless: the
    instance is the next one each time, the other axes are drawn anew. Raises UserError for what a
    user's application raises."""
    app = load_app(template[0])
    for instance in count(int(rng.integers(INSTANCES))):
        profile, theme, ui = rng.integers((PROFILES, THEMES, STATES)).tolist()
        config = Config(
            app=app.id,
            scenario=template[1],
            instance=instance,
            profile=profile,
            theme=theme,
            ui=ui,
            seed=seed,
        )
        with mistakes_of(app.id, f"{config.id} cannot be checked"):
            checked = check(app, config)
        yield checked


def refine(
    case: Case, further: Sequence[str], rng: np.random.Generator, *, noise: bool
) -> Case | Reject:
    """Return the case in one of the scenario's own wordings or of ``further`` ones, with noise if
    it is wanted. Another wording is checked as the configuration was: it must not give the answer
    away."""
    app = load_app(case.config.app)
    try:
        wordings(app, theme(case.config.theme, case.config.seed))
    except ValueError as error:
        return Reject(reason="theme", detail=str(error))
    drawn, disturbed = rng.random(), int(rng.integers(1, NOISES))
    own = len(app.scenario(case.config.scenario).goals)
    place = int(drawn * (own + len(further))) - own
    if place >= 0:
        checked = check(app, case.config, further[place])
        if isinstance(checked, Reject):
            return checked
        case = checked
    if not noise:
        return case
    return case.model_copy(update={"config": case.config.model_copy(update={"noise": disturbed})})


# --- what was generated ---


def nearest(specification: SuiteSpecification, produced: Produced) -> list[tuple[int, Vector, str]]:
    """Return the vectors nearest to the wanted one: how far (sum over the dimensions), and a
    scenario that has it."""
    wanted = specification.vector or ()
    closest: dict[Vector, tuple[int, str]] = {}
    for have, app, scenario in sorted(produced.tally.vectors):
        distance = sum(abs(a - b) for a, b in zip(wanted, have, strict=True))
        closest.setdefault(have, (distance, f"{app} {scenario}"))
    ranked = sorted((distance, have, where) for have, (distance, where) in closest.items())
    return ranked[:NEAREST]


def summary(
    specification: SuiteSpecification, plan: GenerationPlan, produced: Produced
) -> dict[str, Any]:
    """Return all that was counted, for a file."""
    cases, tally = produced
    accepted = Counter((case.config.app, case.config.scenario) for case in cases)
    return {
        "specification": specification.model_dump(mode="json"),
        "accepted": len(cases),
        "tried": tally.tried.total(),
        "other_difficulty": tally.other.total(),
        "rejects": [
            {"reason": reason, "detail": detail, "count": count}
            for (reason, detail), count in _ranked(tally.rejects)
        ],
        "levels": {str(key): n for key, n in sorted(Counter(c.level for c in cases).items())},
        "vectors": {_shown(key): n for key, n in _ranked(Counter(c.vector for c in cases))},
        "scenarios": {
            f"{app} {scenario}": {
                "tried": tally.tried[app, scenario],
                "accepted": accepted[app, scenario],
            }
            for app, scenario in sorted(tally.tried)
        },
        "dropped_proposals": [proposal.model_dump() for proposal in plan.dropped],
    }


def _ranked(counts: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _shown(vector: Sequence[int]) -> str:
    return ",".join(map(str, vector))


def tables(counted: dict[str, Any]) -> list[Table]:
    """Return what was accepted and what was rejected, to be shown."""
    levels = [(key, "", str(count)) for key, count in counted["levels"].items()]
    vectors = [("", key, str(count)) for key, count in counted["vectors"].items()]
    rejects = [
        (entry["reason"], entry["detail"], str(entry["count"]))
        for entry in counted["rejects"][:_MOST_SHOWN]
    ]
    if more := counted["rejects"][_MOST_SHOWN:]:
        rejects.append(("others", "", str(sum(entry["count"] for entry in more))))
    if counted["other_difficulty"]:
        other = str(counted["other_difficulty"])
        rejects.append(("difficulty", "another one was asked for", other))
    tried = f"{count_of(counted['tried'], 'configuration')} tried"
    accepted = f"{count_of(counted['accepted'], 'case')} of {tried}"
    cases = Table(accepted, ("level", "vector", "cases"), [*levels, *vectors[:_MOST_SHOWN]])
    rejected = Table(f"Rejects of {tried}", ("reason", "detail", "count"), rejects)
    return [cases, rejected] if rejects else [cases]


def remarks(
    specification: SuiteSpecification, plan: GenerationPlan, produced: Produced
) -> list[str]:
    """Return what the user should know beside the tables."""
    lines = []
    short = len(produced.cases) < specification.count
    if short and specification.vector is not None:
        near = "; ".join(
            f"{_shown(v)} ({where})" for _, v, where in nearest(specification, produced)
        )
        lines.append(
            f"{len(produced.cases)} cases have the vector {_shown(specification.vector)}; "
            f"the nearest that were found: {near}"
        )
    elif short:
        lines.append(
            f"no more than {len(produced.cases)} of {specification.count} cases were found"
        )
    lines += [
        f"dropped of {drop.app}{drop.scenario and ' ' + drop.scenario}: {drop.reason}"
        + (f" ({drop.text})" if drop.text else "")
        for drop in plan.dropped
    ]
    return lines


def check_place(out: Path) -> None:
    """Look at where the report is to be written, before the work. Raises UserError."""
    # /dev/stdout that goes to a file is one, too; /dev/shm is a folder for files.
    is_stream = out.absolute().parent in _OF_STREAMS
    if (out.exists() and not out.is_file()) or is_stream:
        raise UserError(
            f"--save {out}: is a device or a pipe, and other files stand beside the cases: name a "
            "file"
        )


def write_report(out: Path, counted: dict[str, Any], produced: Produced) -> None:
    """Write the cases and, beside them, their tasks in WebArena Verified's form and what was
    counted. Raises UserError."""
    if produced.cases:
        write_cases(out, produced.cases)
        write_tasks(out.with_suffix(".tasks.json"), produced.cases)
    beside = out.with_suffix(".summary.json")
    save_bytes(beside, orjson.dumps(counted, option=orjson.OPT_INDENT_2) + b"\n")
