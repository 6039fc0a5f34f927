"""The last gate: the oracle's plan in real Chromium, at two viewports, with noise and without.

Offline a configuration may be sound and still not be solvable, because a control is covered or its
name is not what the tree says (WebForge section 3.5). A step that fails is tried three times; the
run has at most 50 actions. What fails is rejected with the step, its screenshot and its tree. What
was found is kept on disk case by case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.apps import load_app
from trajudge.environments.checks.guessing import MOST, GuessingFloor, guessing_floors
from trajudge.environments.model.case import Case
from trajudge.environments.recording.episode import Recorded, Viewport, play
from trajudge.environments.recording.recorder import Recorder, for_all
from trajudge.environments.serving.run import ServedRun
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, read_regular, write_bytes
from trajudge.util.tables import Table
from trajudge.util.terminal import progress_bar

Reason = Literal["lost", "wrong", "side effect", "too long", "failed request", "error"]
DESKTOP: Viewport = (1280, 720)
PHONE: Viewport = (390, 844)
NOISE = 1  # the index of the noise that is switched on
MOST_ACTIONS = 50
MUCH_LONGER = 3  # times the actions that were planned


class Check(NamedTuple):
    """One way to look at a configuration."""

    viewport: Viewport
    noise: int


CHECKS = (Check(DESKTOP, 0), Check(PHONE, NOISE))
ALL_CHECKS = (*CHECKS, Check(DESKTOP, NOISE), Check(PHONE, 0))


class Rejection(Record):
    """Reason for rejecting a configuration: in which check, at which step, and what was observed
    there."""

    reason: Reason
    detail: str
    viewport: Viewport
    noise: int
    step: int
    axtree: str = ""
    screenshot: bytes = b""


def validate(recorder: Recorder, job: Job, checks: tuple[Check, ...] = CHECKS) -> Rejection | None:
    """None if the oracle solves the job's configuration in every check."""
    for check in checks:
        config = job.config.model_copy(update={"noise": check.noise})
        tried = job.model_copy(update={"config": config, "agent": ORACLE})
        oracles: list[Scripted] = []

        def make(run: ServedRun, oracles: list[Scripted] = oracles) -> Scripted:
            oracles.append(Scripted(run, ORACLE, 0, recorder.seed))
            return oracles[0]

        recorded = play(recorder.server, recorder.browser, tried, make, viewport=check.viewport)
        fault = _fault(recorded, oracles[0].stuck, job.shortest)
        if fault is not None:
            return _broken(fault, recorded, check)
    return None


class _Fault(NamedTuple):
    reason: Reason
    detail: str


def _fault(recorded: Recorded, stuck: str, shortest: int) -> _Fault | None:
    labels, steps = recorded.finding.labels, len(recorded.trajectory.steps) - 1
    errors = [
        step.observation.page_error for step in recorded.trajectory.steps
        if step.observation.page_error
    ]  # fmt: skip
    if stuck:
        return _Fault("lost", stuck)
    if recorded.facts["faults"]:
        return _Fault("failed request", "; ".join(recorded.facts["faults"]))
    if labels.success is not True:
        return _Fault("wrong", errors[-1] if errors else "the oracle's run was not a success")
    if labels.side_effect is not False:
        return _Fault("side effect", "the oracle's run changed more than was asked for")
    if steps > min(MOST_ACTIONS, MUCH_LONGER * shortest + 3):
        return _Fault("too long", f"{steps} actions for a plan of {shortest}")
    return None


def _broken(fault: _Fault, recorded: Recorded, check: Check) -> Rejection:
    """Return the failed step: the last one with an error, else the last."""
    steps = recorded.trajectory.steps
    failed = [step for step in steps if step.observation.page_error]
    step = (failed or steps)[-1]
    picture = step.observation.screenshot
    return Rejection(
        **fault._asdict(),
        **check._asdict(),
        step=step.index,
        axtree=step.observation.axtree or "",
        screenshot=(picture.data if picture else None) or b"",
    )


# --- many cases ---

CHECKED = "checked.jsonl"
_GUESSED = 8  # scenarios whose floor of guessing is shown


def validate_cases(
    cases: Sequence[Case], out: Path, *, thorough: bool, seed: int, workers: int
) -> dict[str, dict[str, Any] | None]:
    """Return what was found of each case by its id: None if it passed. Raises UserError."""
    try:
        make_folder(out, "--out")
        (out / "rejects").mkdir(exist_ok=True)
        known = _known(out / CHECKED, {"thorough": thorough, "seed": seed})
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror or error})") from error
    missing = [case for case in cases if case.id not in known]
    jobs = [
        Job(config=case.config, agent=ORACLE, goal=case.goal, shortest=case.shortest)
        for case in missing
    ]
    with progress_bar() as show:
        numbers = count(len(cases) - len(jobs) + 1)

        def keep(job: Job, broken: Rejection | None) -> None:
            known[job.config.id] = _kept(out, job.config.id, broken)
            with (out / CHECKED).open("ab") as file:
                file.write(orjson.dumps([job.config.id, known[job.config.id]]) + b"\n")
            show("validating", next(numbers), len(cases))

        work = partial(validate, checks=ALL_CHECKS if thorough else CHECKS)
        failed = for_all(jobs, work, keep, seed=seed, workers=workers)
    for job, reason in failed:  # not kept: the next session tries again
        known[job.config.id] = {"reason": "error", "detail": reason}
    return {case.id: known[case.id] for case in cases}


def _known(path: Path, checks: Mapping[str, Any]) -> dict[str, dict[str, Any] | None]:
    """Return what an earlier session found by the same ``checks``, and begin the file if there is
    none; a line that a kill cut off is left out. Raises UserError for other checks: what they
    found says nothing of these."""
    content = read_regular(path) if path.exists() else b""
    lines = [line for line in content.splitlines(keepends=True) if line.endswith(b"\n")]
    lines = lines or [orjson.dumps(checks) + b"\n"]
    before, *entries = [_entry(path, number, line) for number, line in enumerate(lines, 1)]
    if before != checks:
        kind = "thorough checks" if before["thorough"] else "checks that were not thorough"
        raise UserError(
            f"{path.parent} was validated with {kind} and seed {before['seed']}: choose another "
            "--out, or remove it"
        )
    write_bytes(path, b"".join(lines))
    return dict(entries)


def _entry(path: Path, number: int, line: bytes) -> Any:
    """Read a line: the checks of the file, or what they found of a case. Raises UserError."""
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        entry = None
    match number, entry:
        case 1, {"thorough": bool(), "seed": int()}:
            return entry
        case _, [str(), None] | [str(), {"reason": str()}] if number > 1:
            return entry
    raise UserError(
        f"{path}, line {number}: is damaged: remove the line, and its case is validated again"
    )


def _kept(out: Path, name: str, broken: Rejection | None) -> dict[str, Any] | None:
    """Return a reject as it is written; its tree and its screenshot go into files."""
    if broken is None:
        return None
    for suffix, content in (("png", broken.screenshot), ("txt", broken.axtree.encode())):
        write_bytes(out / "rejects" / f"{name}.{suffix}", content)
    return broken.model_dump(mode="json", exclude={"axtree", "screenshot"})


def summary(cases: Sequence[Case], failures: dict[str, dict[str, Any] | None]) -> dict[str, Any]:
    """Return cases, passes and rejects by reason, for each application."""
    rows: dict[str, Counter[str]] = {}
    for case in cases:
        broken = failures[case.id]
        row = rows.setdefault(case.config.app, Counter())
        row["cases"] += 1
        row["passed" if broken is None else broken["reason"]] += 1
    return {app: dict(row) for app, row in sorted(rows.items())}


def floors_of(cases: Sequence[Case]) -> dict[str, GuessingFloor]:
    """Return the floor of guessing of the cases' scenarios, the highest first."""
    chosen: dict[str, set[str]] = {}
    for case in cases:
        chosen.setdefault(case.config.app, set()).add(case.config.scenario)
    floors: dict[str, GuessingFloor] = {}
    for name, scenarios in chosen.items():
        app = load_app(name)
        guessed = guessing_floors(app, [s for s in app.scenarios if s.id in scenarios])
        floors |= {f"{name}.{scenario}": floor for scenario, floor in guessed.items()}
    return dict(sorted(floors.items(), key=lambda entry: (-entry[1].share, entry[0])))


def floors_table(floors: Mapping[str, GuessingFloor]) -> Table:
    """Lay out the scenarios in which guesses hit most often."""
    rows = [
        (
            name,
            f"{100 * floor.constant:.1f}",
            f"{100 * floor.chosen:.1f}",
            "yes" if floor.share > MOST else "",
        )
        for name, floor in list(floors.items())[:_GUESSED]
        if floor.share
    ]
    head = ("scenario", "one answer", "a name drawn", f"above {100 * MOST:.0f}")
    return Table("Right by a guess without a look at a page (%)", head, rows, names=1)


def summary_table(rows: dict[str, dict[str, int]]) -> Table:
    cells = []
    for app, row in rows.items():
        reasons = ", ".join(f"{n} {r}" for r, n in row.items() if r not in ("cases", "passed"))
        cells.append((app, str(row["cases"]), str(row.get("passed", 0)), reasons))
    head = ("application", "cases", "passed", "rejected for")
    return Table("Validated in Chromium", head, cells, names=1)
