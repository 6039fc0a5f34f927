"""Both sides on the same cases, and where they disagree."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from tests.rules.against_package.peer import PackageProcess, Spent
from tests.rules.against_package.runs import Runs, Tasks
from tests.rules.against_package.values import draw_pair
from trajudge.rules.values import Mode, equal
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.answers import kind_of
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import trace_of_list
from trajudge.rules.verified.tasks import load_tasks
from trajudge.util.errors import UserError

Case = dict[str, Any]
Reply = dict[str, Any]


def judged(case: Reply, tasks: Tasks) -> Reply:
    """Return our reply to one case, in the worker's form."""
    return _judged_value(case) if "kind" in case else _judged_run(case, tasks)


def _judged_value(case: Reply) -> Reply:
    match = equal(case["kind"], case["expected"], case["actual"], mode=Mode.RELEASE)
    return {"verdict": "equal" if match.equal else "different", "reason": match.reason}


def _judged_run(case: Reply, tasks: Tasks) -> Reply:
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


AT_ONCE = 200
SHARES = {"values": 0.7, "foreign runs": 0.1, "one change": 0.1, "two or three changes": 0.1}
"""Classes of cases, and their shares: a pair of values takes the package 0.1 ms, a run 4 ms."""


class Disagreement(NamedTuple):
    """A case as it was drawn, and both replies to it."""

    label: str
    case: Case
    package: Reply
    ours: Reply

    def __str__(self) -> str:
        shown = json.dumps(self.case, ensure_ascii=True)
        return (
            f"{self.label}{' ' + str(self.case['changes']) if 'changes' in self.case else ''}\n"
            f"  case:    {shown[:2000]}\n"
            f"  package: {self.package['verdict']}: {self.package['reason'][:300]}\n"
            f"  ours:    {self.ours['verdict']}: {self.ours['reason'][:300]}"
        )


@dataclass
class Tally:
    """Cases, verdicts and disagreements by class; processor seconds of both sides."""

    cases: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)
    differing: Counter[str] = field(default_factory=Counter)
    package: Spent = field(default_factory=Spent)
    ours: Spent = field(default_factory=Spent)


def agree(package: Reply, ours: Reply) -> bool:
    """Tell whether both give the same verdict.

    A value that is none in the specification is an error there and a difference here: the run's
    evaluator makes the error of it. A value that the package does not come back from is no case.
    """
    theirs, here = str(package["verdict"]), str(ours["verdict"])
    if theirs == "no end":
        return True
    if here in ("equal", "different"):
        return (theirs == "equal") == (here == "equal")
    return theirs == here


class Comparison:
    """Draws cases from a seed and holds both sides to each other."""

    def __init__(self, process: PackageProcess, seed: int, most_shown: int = 20) -> None:
        self.process = process
        self.tasks: Tasks = {int(task.task_id): task for task in load_tasks(process.tasks)}
        self.runs = Runs(self.tasks)
        self.known = expected_values(self.tasks)
        self.seed = seed
        self.most_shown = most_shown
        self.tally = Tally()

    def draw(self, label: str, index: int) -> Case:
        """Return one case; it depends on the seed, its class and its index alone."""
        rng = np.random.default_rng([self.seed, list(SHARES).index(label), index])
        makers: dict[str, Callable[[Generator], Case]] = {
            "values": lambda rng: draw_pair(self.known, rng),
            "foreign runs": self.runs.foreign,
            "one change": lambda rng: self.runs.changed(rng, 1),
            "two or three changes": lambda rng: self.runs.changed(rng, 3),
        }
        return makers[label](rng)

    def run(self, cases: int) -> Tally:
        """Judge about ``cases`` cases by both sides."""
        for label, share in SHARES.items():
            count = round(cases * share)
            for start in range(0, count, AT_ONCE):
                indices = range(start, min(start + AT_ONCE, count))
                self._judge(label, [self.draw(label, index) for index in indices])
        self.tally.package = self.process.spent
        return self.tally

    def _judge(self, label: str, cases: list[Case]) -> None:
        def here() -> list[Reply]:
            started, used = time.perf_counter(), time.process_time()
            replies = [judged(case, self.tasks) for case in cases]
            spent = Spent(time.perf_counter() - started, time.process_time() - used)
            self.tally.ours = self.tally.ours.plus(spent)
            return replies

        theirs, ours = self.process.judge(cases, here)
        self.tally.cases[label] += len(cases)
        for case, package, mine in zip(cases, theirs, ours, strict=True):
            self.tally.verdicts[label, package["verdict"]] += 1
            if not agree(package, mine):
                self.tally.differing[label] += 1
                if len(self.tally.disagreements) < self.most_shown:
                    self.tally.disagreements.append(Disagreement(label, case, package, mine))


def expected_values(tasks: Tasks) -> dict[str, list[Any]]:
    """Return by kind the values that the tasks' specifications expect in answers."""
    found: dict[str, list[Any]] = {}
    for task in tasks.values():
        check = task.answer_check
        if check is not None and isinstance(check.expected.retrieved_data, list):
            for item in check.expected.retrieved_data:
                for schema, value in _leaves(check.results_schema.get("items") or {}, item):
                    found.setdefault(kind_of(schema), []).append(value)
    return found


def _leaves(schema: dict[str, Any], value: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    if isinstance(value, dict) and schema.get("type") == "object" and not schema.get("format"):
        for key, part in value.items():
            yield from _leaves((schema.get("properties") or {}).get(key) or {}, part)
    else:
        yield schema, value
