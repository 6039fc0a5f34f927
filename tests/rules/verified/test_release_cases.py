"""The release mode's verdict is the package's, an error told from a failure."""

from __future__ import annotations

import msgspec
import pytest

from tests.rules.verified.release_cases import CASES, ReleaseCase
from tests.rules.verified.tasks import HOSTS
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import trace_of_list
from trajudge.rules.verified.release import ERROR
from trajudge.rules.verified.runs import TaskResult, result_of
from trajudge.rules.verified.tasks import Task

EVALUATOR = VerifiedEvaluator(mode=Mode.RELEASE, hosts=HOSTS)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_verdict_is_the_package_s(case: ReleaseCase) -> None:
    task = msgspec.convert(case.task, Task)
    verdict = EVALUATOR.evaluate(task, case.answer, trace_of_list(case.entries))
    ended = any(assertion.name == ERROR for assertion in verdict.assertions)
    passed = verdict.outcome is Outcome.PASS
    assert ("success" if passed else "error" if ended else "failure") == case.verdict
    # What stands in a verdict, an agent's half characters included, can be written to a file.
    result = result_of(task, verdict, None, 0.0)
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=TaskResult)
    assert stored.outcome is verdict.outcome
