"""The stages one after another, until there are as many cases as were asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

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

POSTPONED = 12  # tries without a case count like a case: scenarios that have some come first
DRY = 240  # configurations of a scenario in a row without a case; then it is given up
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def produce(
    specification: SuiteSpecification,
    planned: GenerationPlan,
    progress: Callable[[int, int], None] = lambda _cases, _tried: None,
    validate: Validate | None = None,
    *,
    search: bool = True,
) -> Produced:
    """Return cases spread evenly over the planned scenarios. Every scenario draws from a generator
    of its own, so that its configurations do not depend on the others. ``progress`` is told the
    numbers of cases and of configurations tried with each of these. Without ``search`` no shortest
    way is looked for, which takes most of the time and which only optimality needs."""
    tally = Tally(Counter(), Counter(), Counter(), Counter())
    sources: dict[Template, Iterator[Case | None]] = {
        template: _cases(specification, planned, template, tally, validate)
        for template in planned.templates
    }
    ranks = dict.fromkeys(planned.templates, 0.0)
    cases: list[Case] = []
    while ranks and len(cases) < specification.count:
        template = min(ranks, key=lambda one: ranks[one])
        try:
            case = next(sources[template])
        except StopIteration:
            del ranks[template]
            continue
        progress(len(cases), tally.tried.total())
        if case is None:
            ranks[template] += 1 / POSTPONED
            continue
        ranks[template] = 1 + int(ranks[template])
        cases.append(_searched(case) if search else case)
    return Produced(tuple(cases), tally)


def _cases(
    specification: SuiteSpecification,
    planned: GenerationPlan,
    template: Template,
    tally: Tally,
    validate: Validate | None,
) -> Iterator[Case | None]:
    """Yield the cases of one scenario, None for a configuration that is none; ends where there seem
    to be no more."""
    seed = specification.seed
    rng = generator("refine", *template, seed)
    further = planned.wordings.get(template, ())
    dry = 0
    for found in generate(template, seed, generator("generate", *template, seed)):
        tally.tried[template] += 1
        dry += 1
        if isinstance(found, Case):
            tally.vectors[found.vector, *template] += 1
            if not specification.wants(found):
                tally.other[template] += 1
            else:
                refined = refine(found, further, rng, noise=specification.noise)
                found = _tried(refined, validate)  # noqa: PLW2901 - the same case, further on
        if isinstance(found, Reject):
            tally.rejects[found.reason, _QUOTED.sub("...", found.detail)] += 1
        fits = isinstance(found, Case) and specification.wants(found)
        dry = 0 if fits else dry
        yield found if fits and isinstance(found, Case) else None
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
    found = shortest(case)
    return case.model_copy(update={"fewest": found.actions if found.proved else None})
