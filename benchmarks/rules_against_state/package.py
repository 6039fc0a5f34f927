"""The released package on a sample of recorded runs: can it read their tasks, and does it agree?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rules_against_state.comparing import KINDS, RecordedRun, only, site_of
from benchmarks.rules_against_state.responses import response_text
from trajudge.environments.specification import specification, write_tasks
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import load_trace

_WORKER = Path(__file__).with_name("worker.py")


class PackageReply(NamedTuple):
    """The package's result on one run, and that of the release mode."""

    run: RecordedRun
    status: str
    score: int | None
    ours: int
    reasons: tuple[str, ...]


def asked(python: Path, runs: Sequence[RecordedRun], folder: Path) -> list[PackageReply]:
    """Run the package on recorded runs; ``folder`` gets the task file that it reads."""
    tasks = folder / "package.tasks.json"
    write_tasks(tasks, {run.case.id: run.case for run in runs}.values(), published=True)
    cases, ours = [], []
    for run in runs:
        case, score = _case(run, tasks)
        cases.append(case)
        ours.append(score)
    command = [str(python), "-P", "-W", "ignore", str(_WORKER)]
    sent = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(command, input=sent, capture_output=True, text=True, check=True)
    replies = map(json.loads, done.stdout.splitlines())
    return [
        PackageReply(run, reply["status"], reply["score"], score, tuple(reply["reasons"]))
        for run, score, reply in zip(runs, ours, replies, strict=True)
    ]


def _case(run: RecordedRun, tasks: Path) -> tuple[dict[str, Any], int]:
    """Return the input of the package, and the result of the release mode on it."""
    task = only(specification(run.case), KINDS["answer + network"])
    trace = load_trace(run.trace)
    hosts, answer = site_of(trace), response_text(task, run.message)
    verdict = VerifiedEvaluator(Mode.RELEASE, hosts).evaluate(task, answer, trace)
    ((site, (url,)),) = hosts.items()
    case = {
        "tasks": str(tasks),
        "task_id": task.task_id,
        "site": site,
        "url": url,
        "answer": answer,
        "trace": str(run.trace),
    }
    return case, int(verdict.outcome is Outcome.PASS)
