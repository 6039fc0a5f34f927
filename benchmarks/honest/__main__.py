"""``python -m benchmarks.honest``: how many published tasks accept an honest run.

python -m benchmarks.honest --data DIR [--release PYTHON]

``DIR`` holds ``webarena-verified.json`` and ``demo/108``. Every task is run honestly by three
browsers (``benchmarks.honest.sessions``, which shares no module with the synthesiser). The traces,
HAR files and Playwright's own, are written to disk, then read and judged as any user's, in the
sound mode. The sites' addresses are given to the first browser's runs and inferred for the others'.
A task is accepted if all its runs are; of one that is not, the linter must have found that no run
can be. The answers, and the addresses that the intent does not say, are the task's own: no run
tells whether they are right. Two runs of each task with a check of its requests are wrong: one
stops at the start page, one goes back to it from the page it was to end on. Both have the right
answer, and the linter must have found why one of them is accepted. With ``--release``, the
interpreter of an environment that has ``webarena-verified``, the package judges the honest runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.honest.package import WrittenRun, accepted_by_package
from benchmarks.honest.sessions import VARIANTS, Demo, demo_of, session, wrong_sessions
from trajudge.rules.audit.verified import findings
from trajudge.rules.values import Mode
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import load_trace
from trajudge.rules.verified.tasks import Task, load_tasks

# The findings of the linter that say that no honest run passes.
_IMPOSSIBLE = {"unsatisfiable", "unwritten", "other_target"}
NAMING = {Mode.SOUND: _IMPOSSIBLE, Mode.RELEASE: _IMPOSSIBLE | {"unsatisfiable_in_release"}}


class Refusal(NamedTuple):
    """A run that was not accepted: its browser, the outcome, and the reasons."""

    task_id: int | str
    variant: int
    outcome: str
    reasons: str


def refusals(
    task: Task, record: dict[str, Any], demo: Demo, folder: Path, mode: Mode = Mode.SOUND
) -> Iterator[Refusal]:
    """Yield the honest runs of a task that are not accepted. Raises ValueError."""
    for variant in range(VARIANTS):
        run = session(record, demo, variant)
        path = written(run.entries, variant, folder / str(task.task_id))
        hosts = {} if variant else {name: (address,) for name, address in run.sites.items()}
        verdict = VerifiedEvaluator(mode=mode, hosts=hosts).evaluate(
            task, run.answer, load_trace(path)
        )
        if verdict.outcome.value != "pass":
            reasons = "; ".join(verdict.reasons)
            yield Refusal(task.task_id, variant, verdict.outcome.value, reasons)


def written(entries: Sequence[dict[str, Any]], variant: int, path: Path) -> Path:
    """Write a trace: as a HAR file, and the second browser's as Playwright writes its own."""
    if variant != 1:
        har = path.with_suffix(".har")
        har.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
        return har
    trace = path.with_suffix(".network")
    lines = [json.dumps({"type": "resource-snapshot", "snapshot": one}) for one in entries]
    trace.write_text("\n".join(lines) + "\n")
    return trace


def main() -> int:
    """Run every task honestly and print what is refused."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.honest")
    made.add_argument("--data", type=Path, required=True, help="the folder of WebArena's files")
    made.add_argument("--mode", type=Mode, default=Mode.SOUND, choices=tuple(Mode))
    made.add_argument("--release", metavar="PYTHON", help="where webarena-verified is installed")
    options = made.parse_args()
    path = options.data / "webarena-verified.json"
    records = {one["task_id"]: one for one in json.loads(path.read_text())}
    demo = demo_of(json.loads((options.data / "demo/108/network.har").read_text()))
    tasks = load_tasks(path)
    with TemporaryDirectory() as folder:
        refused = [
            one
            for task in tasks
            for one in refusals(task, records[task.task_id], demo, Path(folder), options.mode)
        ]
        unnamed = report(tasks, refused, NAMING[options.mode])
        unnamed += report_wrong(tasks, records, demo, Path(folder), options.mode)
        if options.release:
            runs = written_runs(tasks, records, demo, Path(folder))
            beside_package(options.release, tasks, runs, Path(folder))
    return int(bool(unnamed))


def report(tasks: Sequence[Task], refused: Sequence[Refusal], naming: Set[str]) -> int:
    """Print the tasks that refuse a run; return how many of them the linter does not name."""
    by_task = {one.task_id: one for one in reversed(refused)}
    accepted = len(tasks) - len(by_task)
    print(f"{accepted} of {len(tasks)} tasks accept the honest runs of {VARIANTS} browsers")
    unnamed = 0
    for task in tasks:
        if (one := by_task.get(task.task_id)) is None:
            continue
        named = sorted({it.category for it in findings(task)} & naming)
        unnamed += not named
        print(f"{one.task_id} (browser {one.variant}) {one.outcome}: {one.reasons[:200]}")
        print(f"    lint: {', '.join(named) or 'nothing'}")
    print(f"refused without a finding of the linter: {unnamed}")
    return unnamed


def report_wrong(
    tasks: Sequence[Task],
    records: Mapping[Any, dict[str, Any]],
    demo: Demo,
    folder: Path,
    mode: Mode,
) -> int:
    """Print the tasks that accept a wrong run; return how many of them are not ``idle`` ones."""
    judged, accepted = 0, set()
    for task in tasks:
        for at, run in enumerate(wrong_sessions(records[task.task_id], demo)):
            trace = load_trace(written(run.entries, 0, folder / f"{task.task_id}-wrong-{at}"))
            hosts = {name: (address,) for name, address in run.sites.items()}
            verdict = VerifiedEvaluator(mode=mode, hosts=hosts).evaluate(task, run.answer, trace)
            judged += 1
            if verdict.outcome.value == "pass":
                accepted.add(task.task_id)
    idle = {one.task_id for one in tasks if "idle" in {it.category for it in findings(one)}}
    print(f"{len(accepted)} tasks accept one of {judged} wrong runs: {sorted(map(str, accepted))}")
    print(f"accepted without a finding of the linter: {len(accepted - idle)}")
    return len(accepted - idle)


def written_runs(
    tasks: Sequence[Task], records: Mapping[Any, dict[str, Any]], demo: Demo, folder: Path
) -> list[WrittenRun]:
    """Write the HAR file of every run, and return the runs."""
    made = []
    for task in tasks:
        for variant in range(VARIANTS):
            run = session(records[task.task_id], demo, variant)
            path = written(run.entries, variant, folder / f"{task.task_id}-{variant}")
            made.append(WrittenRun(task.task_id, str(path), run.answer, run.sites))
    return made


def beside_package(
    python: str, tasks: Sequence[Task], runs: Sequence[WrittenRun], folder: Path
) -> None:
    """Print how many runs the package accepts, where the release mode differs from it, and whether
    the linter names every task that it accepts no run of."""
    passed = accepted_by_package(python, runs, folder)
    by_id = {task.task_id: task for task in tasks}
    accepted: dict[int | str, list[bool]] = {}
    differing = []
    for run, held in zip(runs, passed, strict=True):
        accepted.setdefault(run.task_id, []).append(held)
        hosts = {name: (address,) for name, address in run.sites.items()}
        evaluator = VerifiedEvaluator(mode=Mode.RELEASE, hosts=hosts)
        verdict = evaluator.evaluate(by_id[run.task_id], run.answer, load_trace(Path(run.path)))
        if (verdict.outcome.value == "pass") is not held:
            differing.append(run.path)
    never = {task_id for task_id, held in accepted.items() if not any(held)}
    named = {
        task.task_id
        for task in tasks
        if {it.category for it in findings(task)} & NAMING[Mode.RELEASE]
    }
    whole = sum(all(held) for held in accepted.values())
    print(f"the package accepts all runs of {whole} tasks and none of {len(never)}")
    print(f"    the linter names {len(never & named)} of these and {len(named - never)} others")
    print(f"the release mode differs on {len(differing)} of {len(runs)} runs")


if __name__ == "__main__":
    sys.exit(main())
