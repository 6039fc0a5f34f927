"""What ``trajudge robust --drift FILE`` does: freeze where there is no such file, else ask."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from trajudge.eval.runs.settings import RunRequest
from trajudge.robustness.drift.asking import asked_again
from trajudge.robustness.drift.canaries import frozen, read_canaries, write_canaries
from trajudge.robustness.drift.measuring import drift_lines, drifts, write_drift
from trajudge.robustness.settings import RobustConfig
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError
from trajudge.util.tables import all_folded
from trajudge.util.terminal import count_of


def freeze(file: Path, folders: Sequence[Path], attacked: Path) -> None:
    """Write the canaries of the runs' judges and say so. Raises UserError."""
    canaries = frozen(folders, attacked)
    write_canaries(file, canaries)
    judges = len({one.judge for one in canaries})
    frozen_of = f"{count_of(len(canaries), 'canary')} of {count_of(judges, 'judge')}"
    _say([f"{frozen_of} frozen in {file}: the same command asks again"])


def _say(lines: Sequence[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in all_folded(lines))


def check_drift(request: RunRequest | None, config: RobustConfig, day: date | None = None) -> int:
    """Ask the canaries again and say whether the judges answer as they did: exit code 1 where one
    does not, or cannot be compared. ``request`` None: no judge is named; ``day``: today, by UTC.
    Raises UserError."""
    if request is None:
        raise UserError(
            f"--drift {config.drift}: is there already, and no judge to ask: name one with "
            "--judge, or another file"
        )
    canaries = read_canaries(config.drift or Path())
    asked = asked_again(request, config, canaries, day or datetime.now(UTC).date())
    if asked.code != OK or not asked.folders:
        return asked.code
    found = drifts(asked, config.seed)
    file = write_drift(found, asked.asked.parent / "drift.json")
    _say([*drift_lines(found), f"written to {file}"])
    return FAILURES if any(one.has_drifted or not one.compared for one in found) else OK
