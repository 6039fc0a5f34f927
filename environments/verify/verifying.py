"""The entry: everything that is known of a run, from its states, its last message, its trace."""

from __future__ import annotations

from collections.abc import Sequence

from environments.model.spec import Bound, Scenario
from environments.model.state import Dump, World, difference
from environments.verify.answers import answered
from environments.verify.frame import Reading, read
from environments.verify.labels import Deed, looping, optimality, repeated
from environments.verify.model import AnswerFact, Finding, Labels
from environments.verify.truth import Asked, Code, asked


def verify(  # noqa: PLR0917 - everything that is known of a run
    scenario: Scenario,
    bound: Bound,
    before: Dump,
    after: World,
    answer: str | None,
    code: Code,
    deeds: Sequence[Deed],
    shortest: int,
    goal: str,
) -> Finding:
    """The labels of a run and the facts they rest on; nothing is changed.

    ``answer`` is the last message, ``code(table, key)`` seals a row as it is now, ``shortest`` is
    the length of the oracle's run, counted as ``deeds`` are.
    """
    reading = read(scenario, bound, difference(before, after.dump()))
    facts = answered(right_answers(scenario, reading, before, after, code), answer, goal)
    success = succeeded(reading, facts)
    times = repeated(deeds)
    return Finding(
        labels=Labels(
            success=success,
            side_effect=not reading.framed,
            repetition=looping(times),
            optimality=optimality(success, len(deeds), shortest),
        ),
        predicates=reading.predicates,
        answers=facts,
        changes=reading.changes,
        repeated=times,
        steps=len(deeds),
        shortest=shortest,
    )


def right_answers(
    scenario: Scenario, reading: Reading, before: Dump, after: World, code: Code
) -> tuple[Asked, ...]:
    """What the last message must say, given how the state was and is."""
    if not reading.changes or all(a.kind == "code" or a.when == "after" for a in scenario.answers):
        return asked(scenario, reading.bound, reading.rows, before=after, after=after, code=code)
    earlier = World(tuple(after.tables.values()))
    try:
        earlier.load(
            {
                name: [tuple(row.values()) for row in records.values()]
                for name, records in before.items()
            }
        )
        return asked(scenario, reading.bound, reading.rows, before=earlier, after=after, code=code)
    finally:
        earlier.close()


def expected(
    scenario: Scenario, bound: Bound, before: Dump, after: World, code: Code
) -> tuple[str, ...]:
    """The right answers, one text for each that the scenario asks; () if one does not exist."""
    reading = read(scenario, bound, difference(before, after.dump()))
    right = right_answers(scenario, reading, before, after, code)
    known = all(one.values for one in right)
    return tuple(", ".join(one.values) for one in right) if known else ()


def succeeded(reading: Reading, facts: Sequence[AnswerFact]) -> bool | None:
    """Whether every expectation holds and every answer is right; None if an answer
    leaves it open."""
    if not reading.holds or any(fact.right is False for fact in facts):
        return False
    return None if any(fact.right is None for fact in facts) else True
