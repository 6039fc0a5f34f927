"""Results as the released package writes them: ``TASK_ID/eval_result.json``, ``eval_results.json``.

The package knows success, failure and error. What is unknown here is an error there, with the
reason: it counts as not passed, and is no failure of the agent's. The fields that name the
package's version and evaluator name ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.rules.output import write_json
from trajudge.rules.reading import read_bytes
from trajudge.rules.verdict import Assertion, Outcome, conjunction
from trajudge.rules.verified.dataset import AnswerCheck, Check, NetworkCheck, Task
from trajudge.rules.verified.runs.results import TaskResult

RESULT_FILE, RESULTS_FILE = "eval_result.json", "eval_results.json"
_STATUS = {Outcome.PASS: "success", Outcome.FAIL: "failure", Outcome.UNKNOWN: "error"}
_NO_TEMPLATE = -1


class Origin(NamedTuple):
    """What gave the results: the evaluator in words, and the SHA-256 of the task file."""

    evaluator: str
    tasks_digest: str

    @property
    def fields(self) -> dict[str, str]:
        """As the package names them."""
        return {
            "webarena_verified_version": self.evaluator,
            "webarena_verified_evaluator_checksum": f"none: {self.evaluator}",
            "webarena_verified_data_checksum": self.tasks_digest,
        }


def write_package_results(
    out: Path, tasks: Mapping[str, Task], results: Iterable[TaskResult], mode: str, file: Path
) -> int:
    """Write the results of tasks with whole numbers as ids, which the package's are; return how
    many there are. Raises UserError."""
    digest = hashlib.sha256(read_bytes(file)).hexdigest()
    origin = Origin(f"trajudge, {mode} rules", digest)
    written = []
    for result in results:
        if isinstance(result.task_id, int):
            record = package_result(tasks[str(result.task_id)], result, origin)
            write_json(out / str(result.task_id) / RESULT_FILE, record)
            written.append(record)
    if written:
        now = datetime.now(UTC).isoformat()
        summary = {"timestamp": now, **origin.fields, "summary": package_summary(written)}
        write_json(out / RESULTS_FILE, summary)
    return len(written)


def package_result(task: Task, result: TaskResult, origin: Origin) -> dict[str, Any]:
    """Return one result as the package writes it, one entry for each of the task's checks."""
    template = task.intent_template_id
    networks = iter(range(1, len(task.eval) + 1))
    states = iter(range(1, len(task.eval) + 1))
    checks = []
    for check in task.eval:
        starts = _starts(check, networks, states)
        own = [one for one in result.assertions if f"{one.name}.".startswith(starts)]
        if own:  # of a run that ended with an error, the others were not compared
            checks.append(_checked(check, own))
    unknown = result.outcome is Outcome.UNKNOWN
    return {
        "task_id": task.task_id,
        "intent_template_id": template if isinstance(template, int) else _NO_TEMPLATE,
        "sites": task.sites,
        "task_revision": task.revision,
        "status": _status(result.outcome, result.assertions),
        "score": result.score,
        "evaluators_results": checks,
        **({"error_msg": "; ".join(result.reasons)} if unknown else {}),
        **origin.fields,
    }


def _starts(check: Check, networks: Iterator[int], states: Iterator[int]) -> tuple[str, ...]:
    """Return how the names of a check's assertions begin; what belongs to none, such as the
    activity that was asked for, stands with the answer."""
    if isinstance(check, AnswerCheck):
        return ("answer.", "parse_failure.", "error.", "activity.")
    if isinstance(check, NetworkCheck):
        return (f"network.{next(networks)}.",)
    return (f"backend.{next(states)}.",)


def _status(outcome: Outcome, assertions: Sequence[Assertion]) -> str:
    is_error = any(one.name.partition(".")[0] == "error" for one in assertions)
    return "error" if is_error and outcome is not Outcome.PASS else _STATUS[outcome]


def _checked(check: Check, own: Sequence[Assertion]) -> dict[str, Any]:
    """Return one evaluator's result; of its comparisons only those that do not hold are listed."""
    outcome = conjunction(one.outcome for one in own)
    missed = [one for one in own if one.outcome is not Outcome.PASS]
    unsure = "; ".join(one.reason for one in own if one.outcome is Outcome.UNKNOWN)
    status = _status(outcome, own)
    return {
        "evaluator_name": type(check).__struct_config__.tag,
        "status": status,
        "score": float(outcome is Outcome.PASS),
        "actual": {one.name: one.found for one in own} or None,
        "actual_normalized": {one.name: one.found_normalised for one in own} or None,
        "expected": {one.name: one.expected for one in own} or None,
        "assertions": [_missed(one) for one in missed] or None,
        "error_msg": (unsure or missed[0].reason) if status == "error" else None,
        "should_not_exist": check.should_not_exist if isinstance(check, NetworkCheck) else None,
    }


def _missed(assertion: Assertion) -> dict[str, Any]:
    status = _status(assertion.outcome, [assertion])
    return {
        "assertion_name": assertion.name,
        "status": status,
        "assertion_msgs": [assertion.reason],
        **({"error_msg": assertion.reason} if status == "error" else {}),
    }


_COUNTED = {"success": "success", "failure": "failed", "error": "error"}


def package_summary(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the package's summary: counts over all tasks, counts and ids by site or sites."""
    overall, per_site = _counts(), dict[str, dict[str, Any]]()
    for result in results:
        own = per_site.setdefault("-".join(sorted(result["sites"])), {**_counts(), **_ids()})
        own[f"{_COUNTED[result['status']]}_task_ids"].append(result["task_id"])
        for counts in (overall, own):
            counts["total"] += 1
            counts[f"{result['status']}_count"] += 1
            counts["failed_or_error_count"] += result["status"] != "success"
    return {"overall": overall, "per_site": per_site}


def _counts() -> dict[str, Any]:
    names = ("success_count", "failure_count", "error_count", "failed_or_error_count")
    return dict.fromkeys(("total", *names), 0)


def _ids() -> dict[str, list[int]]:
    return {f"{name}_task_ids": [] for name in _COUNTED.values()}
