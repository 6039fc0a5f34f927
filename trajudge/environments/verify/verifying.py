"""The entry: everything that is known of a run, from its states, its last message, its trace."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.verify.answers import answered, declared, is_nothing
from trajudge.environments.verify.evidence import RunEvidence
from trajudge.environments.verify.frame import ChangeReport, report_changes
from trajudge.environments.verify.labels import looping, optimality, repeated
from trajudge.environments.verify.model import AnswerFact, Labels, VerificationResult
from trajudge.environments.verify.truth import ResolvedAnswer, expected_answers

NOT_POSSIBLE = '{"answer": null}'  # ``answer(None)``


def verify(evidence: RunEvidence) -> VerificationResult:
    """Derive the labels of a run and the facts they rest on; nothing is changed."""
    reading = report_changes(evidence.scenario, evidence.bound, evidence.changes)
    message = last_message(evidence)
    facts = answered(right_answers(evidence, reading), message)
    disowned = [is_nothing(value) for value in declared(message or "") or ()] == [True]
    success = succeeded(reading, facts, disowned and bool(evidence.scenario.expect))
    times, steps = repeated(evidence.actions), len(evidence.actions)
    return VerificationResult(
        labels=Labels(
            success=success,
            side_effect=not reading.no_side_effect,
            repetition=looping(times),
            optimality=optimality(success, steps, evidence.shortest),
        ),
        predicates=reading.predicates,
        answers=facts,
        changes=reading.changes,
        repeated=times,
        steps=steps,
        shortest=evidence.shortest,
    )


def right_answers(evidence: RunEvidence, reading: ChangeReport) -> tuple[ResolvedAnswer, ...]:
    """Ask the states, as they were and are, what the last message must say."""
    scenario, after, code = evidence.scenario, evidence.after, evidence.code
    if not reading.changes or all(a.kind == "code" or a.when == "after" for a in scenario.answers):
        return expected_answers(
            scenario, reading.bound, reading.rows, before=after, after=after, code=code
        )
    earlier = after.copy()
    try:
        for name in {change.table for change in reading.changes}:
            earlier.db.execute(f'DELETE FROM "{name}"')  # noqa: S608
            earlier.load({name: [tuple(row.values()) for row in evidence.before[name].values()]})
        return expected_answers(
            scenario, reading.bound, reading.rows, before=earlier, after=after, code=code
        )
    finally:
        earlier.close()


def expected(evidence: RunEvidence) -> tuple[str, ...]:
    """Give the right answers, one text for each that the scenario asks; () if one does not
    exist."""
    reading = report_changes(evidence.scenario, evidence.bound, evidence.changes)
    right = right_answers(evidence, reading)
    known = all(one.values for one in right)
    return tuple(", ".join(one.values) for one in right) if known else ()


def last_message(evidence: RunEvidence) -> str | None:
    """Return what the run said at last; ``report_infeasible`` declares that there is no answer."""
    last = evidence.actions[-1].action if evidence.actions else ""
    return NOT_POSSIBLE if last.startswith("report_infeasible(") else evidence.answer


def succeeded(
    reading: ChangeReport, facts: Sequence[AnswerFact], not_done: bool = False
) -> bool | None:
    """Tell whether every expectation holds and every answer is right; None if an answer
    leaves it open, or if the agent did it and says that it did not."""
    if not reading.holds or any(fact.right is False for fact in facts):
        return False
    return None if not_done or any(fact.right is None for fact in facts) else True
