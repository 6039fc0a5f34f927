"""``trajudge robust``: what the verdicts of judges survive."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from trajudge.eval.runs.plan import warn_without_effect
from trajudge.eval.store.run_folder import read_manifest
from trajudge.robustness.drift.checking import check_drift, freeze
from trajudge.robustness.judging import JudgedRuns, judge_changed_runs
from trajudge.robustness.measures.report import ROBUSTNESS_FILE, read_variants
from trajudge.robustness.settings import RobustConfig
from trajudge.robustness.showing import show_measured
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.files import check_file, refuse_repeated
from trajudge.util.terminal import one_line
from trajudge.util.validation import read_record


def measure(config: RobustConfig) -> int:
    """Change and judge, where judges are named; measure, write and print. Where one of several
    judges fails, the others are shown before its error is raised."""
    request = config.request
    if config.names_judges:
        warn_without_effect(request)
    if config.drift and config.drift.is_file():
        return check_drift(request if config.names_judges else None, config)
    if not config.runs and not config.names_judges:
        raise UserError("RUN is missing: name runs with --attacked DIR, or judges with --judge")
    _check_places(config)
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
    show_measured(judged._replace(folders=folders), request.data.data, config, full=config.full)
    if judged.failed:
        raise judged.failed
    if config.drift:
        freeze(config.drift, folders, judged.attacked)
    return OK


def _check_places(config: RobustConfig) -> None:
    """Look at what is read and written at the end before a judge is asked. Raises UserError, also
    where ``out`` holds figures of other settings."""
    _check_figures(config)
    if config.drift is not None:
        check_file(config.drift, "--drift")
    refuse_repeated(config.runs)
    for run in config.runs:
        read_manifest(run)
    if config.attacked is not None:
        read_variants(config.attacked)


class _Figures(BaseModel):
    """What is read of ``robustness.json``."""

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
