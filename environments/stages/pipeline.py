"""The stages one after another, until there are as many cases as were asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from trajudge.environments.checks.integrity import Reject
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

DRY = 240  # configurations of a scenario in a row without a case; then it is given up
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def produce(
    specification: SuiteSpecification,
    planned: GenerationPlan,
    progress: Callable[[int], None] = lambda _: None,
    validate: Validate | None = None,
) -> Produced:
    """Return cases spread evenly over the planned scenarios. Every scenario draws from a generator
    of its own, so that its configurations do not depend on the others. ``progress`` is told the
    number of cases whenever it grew."""
    tally = Tally(Counter(), Counter(), Counter(), Counter())
    sources = {
        template: _cases(specification, planned, template, tally, validate)
        for template in planned.templates
    }
    counts = dict.fromkeys(planned.templates, 0)
    cases: list[Case] = []
    while counts and len(cases) < specification.count:
        template = min(counts, key=lambda one: counts[one])
        case = next(sources[template], None)
        if case is None:
            del counts[template]
            continue
        counts[template] += 1
        cases.append(case)
        progress(len(cases))
    return Produced(tuple(cases), tally)


def _cases(
    specification: SuiteSpecification,
    planned: GenerationPlan,
    template: Template,
    tally: Tally,
    validate: Validate | None,
) -> Iterator[Case]:
    """Yield the cases of one scenario; ends where there seem to be no more."""
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
                if isinstance(found, Case):
                    dry = 0
                    yield found
        if isinstance(found, Reject):
            tally.rejects[found.reason, _QUOTED.sub("...", found.detail)] += 1
        if dry >= DRY:
            return


def _tried(case: Case | Reject, validate: Validate | None) -> Case | Reject:
    """Return the case, unless a browser finds it broken."""
    if isinstance(case, Reject) or validate is None:
        return case
    outcome = validate(case)
    return outcome if isinstance(outcome, Reject) else case
