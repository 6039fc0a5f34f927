"""What is wrong with a task's specification, found by building runs and changing them.

* ``unreadable``: a field cannot be read: all other tasks of the file are linted;
* ``unsatisfiable``: no run passes (in the sound mode);
* ``unwritten``: an address holds the name of a value instead of the value;
* ``other_target``: the checks are about another repository than the intent;
* ``idle``: the request that is asked for has been made by opening the start page;
* ``unsatisfiable_in_release``: the released package accepts no honest run;
* ``vacuous``: a named field may hold anything;
* ``open_ended``: an address may go on with anything;
* ``host_unbound``: a request to any host passes;
* ``unfilled``: a place of the template (``{{name}}``) was left in the published specification;
* ``one_sided``: a negative look-ahead behind ``.*``, which never excludes anything;
* ``unanswered``: the response that is asked for is none that a server sends;
* ``no_evidence``: nothing but the answer is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from trajudge.rules.audit.findings import Finding, Severities, Severity, unreadable_finding
from trajudge.rules.audit.verified.examples import refused
from trajudge.rules.audit.verified.mutants import mutants
from trajudge.rules.audit.verified.synthesis import Synthesis, synthesise
from trajudge.rules.audit.verified.texts import text_findings
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.dataset import Task
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network.checks import is_final_page
from trajudge.rules.verified.network.kinds import declared
from trajudge.rules.verified.network.patterns import is_pattern

CATEGORIES: Severities = {
    "unreadable": Severity.ERROR,
    "unsatisfiable": Severity.ERROR,
    "unwritten": Severity.ERROR,
    "other_target": Severity.ERROR,
    "idle": Severity.ERROR,
    "unsatisfiable_in_release": Severity.WARNING,
    "vacuous": Severity.WARNING,
    "open_ended": Severity.WARNING,
    "host_unbound": Severity.WARNING,
    "unfilled": Severity.WARNING,
    "one_sided": Severity.WARNING,
    "unanswered": Severity.NOTE,
    "no_evidence": Severity.NOTE,
}
UNIONS = {"not_bound_to_the_task": ("vacuous", "open_ended", "host_unbound", "idle")}


def lint(tasks: Sequence[Task]) -> Iterator[Finding]:
    """Yield the findings on all tasks, in the order of the tasks."""
    for task in tasks:
        if task.flaw:
            yield unreadable_finding(task.task_id, task.flaw)
        else:
            yield from findings(task)


def findings(task: Task) -> Iterator[Finding]:
    """Yield the findings on one task."""
    sound = synthesise(task)
    if sound.satisfiable:
        yield from _survivors(task, sound)
    else:
        yield _unsatisfiable(task, "unsatisfiable", sound)
    release = synthesise(task, Mode.RELEASE)
    if not release.satisfiable:
        yield _unsatisfiable(task, "unsatisfiable_in_release", release)
    yield from text_findings(task)
    if not task.network_checks and not task.backend_checks:
        yield _finding(
            task,
            "no_evidence",
            "eval",
            None,
            problem="only the answer is checked: a run that never visited the site can pass",
            mend="add a NetworkEventEvaluator; with --require-activity the run must at least have "
            "opened a page of the site",
        )


def _finding(
    task: Task, category: str, field: str, value: Any, *, problem: str, mend: str
) -> Finding:
    return Finding(task.task_id, category, field, value, problem, mend)


def _unsatisfiable(task: Task, category: str, synthesis: Synthesis) -> Finding:
    """Return the failing assertion of the best run there is."""
    whose = "no run" if category == "unsatisfiable" else "no honest run"
    if category != "unsatisfiable" and (reason := _unseen_by_release(task)):
        synthesis = msgspec.structs.replace(synthesis, reason=reason)
    why = "one that has all that is asked for fails" if synthesis.run else "none can be built"
    return _finding(
        task,
        category,
        "eval",
        None,
        problem=f"{whose} passes, for {why}: {synthesis.reason[:500]}",
        mend="make the checks agree with what one run can do",
    )


def _unseen_by_release(task: Task) -> str:
    """Tell which page the release never sees, for a script asks for it; "" if it sees all."""
    for check in task.network_checks:
        known = declared(check.expected.http_method, check.expected.urls[0])
        if known is not None and known.scripted and is_final_page(task, check):
            return f"the release waits for the load of a page, and a script asks. {known.reason}"
    return ""


class _Change(NamedTuple):
    category: str
    problem: str
    mend: str


_CHANGES = {
    "host": _Change(
        "host_unbound",
        "the address may be on any host",
        "begin the pattern with the site's placeholder",
    ),
    "path": _Change(
        "open_ended",
        "the address may go on with anything",
        "end the pattern where the address ends",
    ),
    "left": _Change(
        "idle",
        "opening the start page is enough",
        "ask for a request that only the task itself brings about",
    ),
}
_CHANGES["method"] = _CHANGES["left"]
_ANYTHING = _Change("vacuous", "the field may hold anything", "write the value that must be there")


def _survivors(task: Task, synthesis: Synthesis) -> Iterator[Finding]:
    """Fields whose change the evaluator does not notice; each kind once."""
    if synthesis.run is None:
        return
    evaluator = VerifiedEvaluator(hosts=synthesis.run.hosts)
    seen = set()
    for mutant in mutants(task, synthesis.run):
        verdict = evaluator.evaluate(task, mutant.run.answer, mutant.run.trace)
        if verdict.outcome is Outcome.FAIL:
            continue
        words = mutant.change.split(" ")
        change = _CHANGES.get(words[2] if len(words) > 2 else "", _ANYTHING)
        key = (change.category, change.problem, "" if change in _CHANGES.values() else words[-1])
        value = _specified(task, mutant.change)
        if change is _ANYTHING and is_pattern(value) and refused(value) is not None:
            continue
        if key not in seen:
            seen.add(key)
            yield _finding(
                task,
                change.category,
                mutant.change,
                value,
                problem=change.problem,
                mend=change.mend,
            )


def _specified(task: Task, change: str) -> Any:
    """Return the specification's value that a change was about, where it is easy to find."""
    key = change.rsplit(" ", maxsplit=1)[-1]
    for check in task.network_checks:
        for fields in (check.expected.post_data, check.expected.headers):
            if fields and key in fields:
                return fields[key]
    patterns = [
        url for check in task.network_checks for url in check.expected.urls if is_pattern(url)
    ]
    return patterns[0] if patterns else None
