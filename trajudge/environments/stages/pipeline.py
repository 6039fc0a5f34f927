"""The stages one after another, until there are as many cases as were asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from trajudge.environments.checks.integrity import Reject
from trajudge.environments.checks.shortest import shortest
from trajudge.environments.model.axes import generator
from trajudge.environments.model.case import Case
from trajudge.environments.stages.generate import generate
from trajudge.environments.stages.model import (
    GenerationPlan,
    Produced,
    SuiteSpecification,
    Tally,
    Template,
)
from trajudge.environments.stages.refine import refine
from trajudge.environments.stages.validate import Validate
from trajudge.util.machine import worked_on

POSTPONED = 12  # tries without a case count like a case: scenarios that have some come first
MOST_DOUBLED = 3  # tries of another difficulty in a row that count double: most have one alone
DRY = 240  # configurations of a scenario in a row without a case; then it is given up
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


class TriedConfiguration(NamedTuple):
    """The case that a configuration gave, if any, and how many in a row, this one included, were
    cases of another difficulty than was asked for."""

    case: Case | None
    others: int = 0

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
    validate: Validate | None = None,
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

    drawn = islice(_spread(specification, planned, tally, tried, validate), specification.count)
    for case in worked_on(_searched, drawn, workers) if search else drawn:
        cases.append(case)  # one by one: ``progress`` is told how many there are
        tried()
    return Produced(tuple(cases), tally)


def _spread(
    specification: SuiteSpecification,
    planned: GenerationPlan,
    tally: Tally,
    tried: Callable[[], None],
    validate: Validate | None,
) -> Iterator[Case]:
    """Yield cases, evenly spread over the scenarios, until none of these has more."""
    sources: dict[Template, Iterator[TriedConfiguration]] = {
        template: _cases(specification, planned, template, tally, validate)
        for template in planned.templates
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
    validate: Validate | None,
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
                refined = refine(case, further, rng, noise=specification.noise)
                case = _tried(refined, validate)  # noqa: PLW2901 - the same case, further on
        if isinstance(case, Reject):
            tally.rejects[case.reason, _QUOTED.sub("...", case.detail)] += 1
        fits = isinstance(case, Case) and specification.wants(case)
        dry = 0 if fits else dry
        yield TriedConfiguration(case if isinstance(case, Case) and fits else None, others)
        if dry >= DRY:
            return


def _tried(case: Case | Reject, validate: Validate | None) -> Case | Reject:
    """Return the case, unless a browser finds it broken."""
    if isinstance(case, Reject) or validate is None:
        return case
    outcome = validate(case)
    return outcome if isinstance(outcome, Reject) else case


def _searched(case: Case) -> Case:
    """Return the case with the length of the shortest way, where the search comes to its end."""
    way = shortest(case)
    return case.model_copy(update={"fewest": way.actions if way.proved else None})
