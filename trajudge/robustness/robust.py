"""``trajudge robust``: measure, write and print the robustness of judges."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from trajudge.eval.runs.plan import warn_without_effect
from trajudge.eval.store.run_folder import read_manifest
from trajudge.robustness.cards import CardData, card_data, write_cards, write_cases
from trajudge.robustness.drift import check_drift, freeze
from trajudge.robustness.figures import write_contamination, write_matrix
from trajudge.robustness.judging import JudgedRuns, judge_changed_runs
from trajudge.robustness.perturb import read_variants
from trajudge.robustness.report import ROBUSTNESS_FILE, JudgeRobustness, measured, write_robustness
from trajudge.robustness.screen import (
    DefendedJudgeRow,
    compared,
    comparison_screen,
    screen,
    write_comparison,
)
from trajudge.robustness.settings import RobustConfig
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.files import check_file, refuse_repeated
from trajudge.util.terminal import one_line, progress_bar
from trajudge.util.validation import read_record


def measure(config: RobustConfig) -> int:
    """Perturb and judge if judges are named; measure, write and print. If one of several judges
    fails, the others are shown before its error is raised."""
    request = config.request
    if config.names_judges:
        warn_without_effect(request)
    if config.drift and config.drift.is_file():
        return check_drift(request if config.names_judges else None, config)
    if not config.runs and not config.names_judges:
        raise UserError("RUN is missing: name runs with --attacked DIR, or judges with --judge")
    _check_inputs(config)
    if config.names_judges:
        judged = judge_changed_runs(request, config)
        if judged.code != OK or not judged.folders:
            return judged.code
    elif config.attacked is None:
        raise UserError("--attacked is missing: name the folder that the runs judged")
    else:
        judged = JudgedRuns(OK, (), config.attacked)
    known = {run.resolve() for run in config.runs}
    folders = (*config.runs, *(one for one in judged.folders if one.resolve() not in known))
    _measure(judged._replace(folders=folders), config)
    if judged.failed:
        raise judged.failed
    if config.drift:
        freeze(config.drift, folders, judged.attacked)
    return OK


def _check_inputs(config: RobustConfig) -> None:
    """Check the inputs and outputs of the measurement before a judge is called. Raises
    UserError, also if ``out`` has figures of other settings."""
    _check_figures(config)
    if config.drift is not None:
        check_file(config.drift, "--drift")
    refuse_repeated(config.runs)
    for run in config.runs:
        read_manifest(run)
    if config.attacked is not None:
        read_variants(config.attacked)


class _Figures(BaseModel):
    """The fields of ``robustness.json`` that are read."""

    settings: dict[str, Any] = {}


def _check_figures(config: RobustConfig) -> None:
    file = config.out / ROBUSTNESS_FILE
    if not file.is_file() or config.request.calls.dry_run:
        return
    before = read_record(file, _Figures, "remove it, or name another folder with --out").settings
    now = config.measured
    changed = [name for name in now if name not in before or before[name] != now[name]]
    if changed:
        parts = [f"{name} {before.get(name)!r}, now {now[name]!r}" for name in changed]
        raise UserError(
            f"{file} holds the figures of other settings ({one_line('; '.join(parts))}): name "
            "another folder with --out, or remove that file to replace them"
        )


def _measure(judged: JudgedRuns, config: RobustConfig) -> None:
    """Measure the judged runs, write and print the results: judges with and without defences in
    comparison if there are any, else every judge's attacks. Files that cannot be written are
    reported at the end. Raises UserError."""
    try:
        with progress_bar("measuring"):
            judges = measured(judged.folders, judged.attacked, config.seed)
    except UserError as error:
        # The others cannot be measured without the failed runs, whose error is raised first.
        raise judged.failed or error from error
    judges = [one._replace(adaptive=judged.adaptive.get(one.judge)) for one in judges]
    # New perturbed runs are made from --data.
    is_source = config.attacked is None
    origin = card_data(judged.attacked, config.request.data.data, is_source=is_source)
    rows = compared(judges, judged.folders)
    files: tuple[Path, ...] = ()
    unwritten: UserError | None = None
    try:
        files = _write(judges, rows, origin, judged.attacked, config)
    except UserError as error:
        unwritten = error
    if rows:
        sys.stdout.write(comparison_screen(rows, files))
    if config.full or not rows:
        sys.stdout.write(screen(judges, files, full=config.full))
    if unwritten:
        sys.stdout.flush()
        raise unwritten


def _write(
    judges: Sequence[JudgeRobustness],
    rows: Sequence[DefendedJudgeRow],
    origin: CardData,
    attacked: Path,
    config: RobustConfig,
) -> tuple[Path, ...]:
    """Write all files of a measurement; return their paths, or the folder for files per judge.
    Raises UserError."""
    out = config.out
    many = (*write_cards(judges, rows, origin, out), *write_cases(judges, attacked, out))
    return (
        *write_robustness(judges, out, config.measured),
        *write_matrix(judges, out),
        *write_contamination(judges, out),
        *write_comparison(judges, rows, out),
        *dict.fromkeys(file.parent for file in many),
    )
