"""``trajudge robust``: what the verdicts of judges survive."""

from __future__ import annotations

from trajudge.eval.runs.plan import warn_without_effect
from trajudge.eval.store.run_folder import read_manifest
from trajudge.robustness.drift.checking import check_drift, freeze
from trajudge.robustness.judging import JudgedRuns, judge_changed_runs
from trajudge.robustness.measures.report import read_variants
from trajudge.robustness.settings import RobustConfig
from trajudge.robustness.showing import show_measured
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.files import check_file, refuse_repeated


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
    """Look at what is read and written at the end before a judge is asked. Raises UserError."""
    if config.drift is not None:
        check_file(config.drift, "--drift")
    refuse_repeated(config.runs)
    for run in config.runs:
        read_manifest(run)
    if config.attacked is not None:
        read_variants(config.attacked)
