"""A pytest plugin: the package's own tests, with the release mode for its evaluator.

Loaded by ``python -m benchmarks.rules --tests CHECKOUT`` in processes of their own, whose folder
``tests`` is the package's; nothing of this project's ``tests`` is imported here.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from trajudge.rules.values import Mode
from trajudge.rules.verdict import Assertion, Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import Trace, load_trace, trace_of_list
from trajudge.rules.verified.release import ERROR
from trajudge.rules.verified.tasks import Task, load_tasks
from trajudge.util.errors import UserError

OPTIONS = "TRAJUDGE_PACKAGE_TESTS"
"""Environment variable: a JSON object of ``site`` (where the package is installed), ``ours`` (whose
evaluator is asked) and ``out`` (the file for the tests' outcomes)."""

_options = json.loads(os.environ[OPTIONS])
_outcomes = dict[str, str]()
_judged_runs = Counter[str]()
sys.path.append(_options["site"])


def pytest_configure() -> None:
    """Replace the one method through which the package judges a run."""
    package = importlib.import_module("webarena_verified.api.internal.evaluator")
    judge = package.WebArenaVerifiedEvaluator
    theirs = judge.evaluate_task

    def evaluate_task(self: Any, **run: Any) -> Any:
        _judged_runs[os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]] += 1
        return _judged(self, **run) if _options["ours"] else theirs(self, **run)

    judge.evaluate_task = evaluate_task


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what the package's authors skip as well: both evaluators are asked."""
    for node in {node for item in items for node in item.listchain()}:
        node.own_markers = [mark for mark in node.own_markers if mark.name != "skip"]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep how a test ended: the first part of it that did not pass decides."""
    if _outcomes.get(report.nodeid, "passed") == "passed":
        _outcomes[report.nodeid] = report.outcome


def pytest_sessionfinish() -> None:
    """Write how the tests ended that had a run judged, and how many runs they had."""
    kept = {name: outcome for name, outcome in _outcomes.items() if name in _judged_runs}
    result = {"outcomes": kept, "runs": _judged_runs.total()}
    Path(_options["out"]).write_text(json.dumps(result))


@lru_cache
def _tasks(path: Path) -> dict[int, Task]:
    return {int(task.task_id): task for task in load_tasks(path)}


@lru_cache(maxsize=2)
def _trace_of_file(path: Path, _changed: int) -> Trace:
    return load_trace(path)


def _judged(
    package: Any, *, task_id: int, agent_response: object = None, network_trace: Any = None
) -> Any:
    """Return our verdict as the package's result."""
    types = importlib.import_module("webarena_verified.types.eval")
    task = _tasks(Path(package.config.test_data_file))[task_id]
    hosts = {
        str(getattr(site, "value", site)): tuple(environment.urls)
        for site, environment in (package.config.environments or {}).items()
    }
    hosts = {f"__{name.strip('_').upper()}__": urls for name, urls in hosts.items()}
    evaluator = VerifiedEvaluator(mode=Mode.RELEASE, hosts=hosts)
    if isinstance(agent_response, Path):
        agent_response = agent_response.read_bytes()
    try:
        if isinstance(network_trace, Path):
            trace = _trace_of_file(network_trace, network_trace.stat().st_mtime_ns)
        else:
            trace = trace_of_list(network_trace)
    except UserError as error:
        return package._create_eval_error_result(task_id, str(error))
    trace.memory.clear()
    made = evaluator.evaluate(task, agent_response, trace).assertions
    known = package.reader.get_task_by_id(task_id)
    parts = [_part(types, "AgentResponseEvaluator", [one for one in made if _of_answer(one)])]
    for number in range(1, len(task.network_checks) + 1):
        own = [one for one in made if one.name.split(".")[:2] == ["network", str(number)]]
        parts.append(_part(types, "NetworkEventEvaluator", own))
    errors = [one for one in made if one.name == ERROR]
    parts += [_part(types, "error", errors)] if errors else []
    return types.TaskEvalResult.create(
        task_id=task_id,
        intent_template_id=known.intent_template_id,
        sites=known.sites,
        task_revision=known.revision,
        data_checksum="",
        evaluators_results=parts,
    )


def _of_answer(assertion: Assertion) -> bool:
    return assertion.name.startswith(("answer.", "parse_failure."))


def _part(types: Any, name: str, made: list[Assertion]) -> Any:
    """Return the result of one evaluator: what did not hold is an assertion of it."""
    if any(one.name == ERROR for one in made):
        return types.EvaluatorResult.create(
            evaluator_name=name, is_error=True, error_msg=made[0].reason
        )
    failed = [
        types.EvalAssertion(
            assertion_name=one.name,
            status=types.EvalStatus.FAILURE,
            assertion_msgs=(one.reason,),
        )
        for one in made
        if one.outcome is not Outcome.PASS
    ]
    return types.EvaluatorResult.create(evaluator_name=name, assertions=failed)
