"""The release mode's verdict on the cases that the package judges."""

from __future__ import annotations

from typing import Any

from trajudge.rules.values import Mode, equal
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import trace_of_list
from trajudge.rules.verified.tasks import Task
from trajudge.util.errors import UserError

Tasks = dict[int, Task]
Reply = dict[str, Any]


def judged(case: Reply, tasks: Tasks) -> Reply:
    """Return our reply to one case, in the worker's form."""
    return _value(case) if "kind" in case else _run(case, tasks)


def _value(case: Reply) -> Reply:
    match = equal(case["kind"], case["expected"], case["actual"], mode=Mode.RELEASE)
    return {"verdict": "equal" if match.equal else "different", "reason": match.reason}


def _run(case: Reply, tasks: Tasks) -> Reply:
    hosts = {name: tuple(urls) for name, urls in case["hosts"].items()}
    evaluator = VerifiedEvaluator(mode=Mode.RELEASE, hosts=hosts)
    try:
        trace = None if case["entries"] is None else trace_of_list(case["entries"])
    except UserError as error:
        return {"verdict": "error", "score": 0, "reason": str(error)}
    made = evaluator.evaluate(tasks[case["task_id"]], case["answer"], trace)
    ended = any(part.name == "error" for part in made.assertions)
    verdict = "success" if made.outcome is Outcome.PASS else "error" if ended else "failure"
    return {
        "verdict": verdict,
        "score": int(verdict == "success"),
        "reason": " | ".join(made.reasons),
    }
