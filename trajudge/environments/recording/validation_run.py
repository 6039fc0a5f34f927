"""The validation of many cases, kept on disk case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.apps import load_app
from trajudge.environments.checks.guessing import MOST, GuessingFloor, guessing_floors
from trajudge.environments.model.case import Case
from trajudge.environments.recording.pool import for_all
from trajudge.environments.recording.validation import ALL_CHECKS, CHECKS, Rejection, validate
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, read_regular, write_bytes
from trajudge.util.tables import Table
from trajudge.util.terminal import progress_bar

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
    found says nothing of these. The version before did not write which they were: they count as
    not thorough."""
    content = read_regular(path) if path.exists() else b""
    lines = [line for line in content.splitlines(keepends=True) if line.endswith(b"\n")]
    entries = [_entry(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    before = entries.pop(0) if entries and isinstance(entries[0], dict) else {"thorough": False}
    if lines and not checks.items() >= before.items():
        raise UserError(f"{path.parent} {_told(before)}: choose another --out, or remove it")
    header = [] if lines else [orjson.dumps(checks) + b"\n"]
    write_bytes(path, b"".join([*header, *lines]))
    return {entry[0]: entry[1] for entry in entries if isinstance(entry, list)}


def _told(before: Mapping[str, Any]) -> str:
    """Say which checks a folder is of."""
    if "seed" not in before:
        return "was validated by an earlier version, which did not write whether thoroughly"
    options = "thorough checks" if before["thorough"] else "checks that were not thorough"
    return f"was validated with {options} and seed {before['seed']}"


def _entry(line: bytes, place: str) -> Any:
    """Read a line: which checks were made, or what they found of a case. Raises UserError."""
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        entry = None
    match entry:
        case {"thorough": bool(), "seed": int()} | [str(), None] | [str(), {"reason": str()}]:
            return entry
    raise UserError(f"{place}: is damaged: remove the line, and its case is validated again")


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
