"""``check_run``: may this run be compared?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trajudge.eval.checking.configuration import contamination, known_prompts, one_configuration
from trajudge.eval.checking.findings import RunFinding, worst_first
from trajudge.eval.checking.judged_data import known_data, known_labels
from trajudge.eval.checking.recorded import CheckedRun, read_recorded
from trajudge.eval.checking.verdicts import complete, ended, labelled, readable
from trajudge.trajectories.model import Record


class RunCheck(Record):
    """What was found in a run's folder, the gravest first."""

    run: str
    judge: str
    judgments: int
    findings: tuple[RunFinding, ...]

    @property
    def comparable(self) -> bool:
        """Tell whether no error was found."""
        return not any(finding.severity == "error" for finding in self.findings)


def check_run(folder: Path, *, annotations: str | None = None) -> RunCheck:
    """List what speaks against comparing the run in ``folder``.

    ``annotations`` (KIND:PATH) are those that its labels are held to (None: those that the run
    names, where they are at hand). No model is asked and no trajectory is read. Raises UserError
    for a folder that is no run.
    """
    run = read_recorded(folder)
    return RunCheck(
        run=str(folder),
        judge=str(run.manifest.get("judge")),
        judgments=len(run.judgments),
        findings=worst_first(_findings(run, annotations)),
    )


def _findings(run: CheckedRun, annotations: str | None) -> Iterator[RunFinding]:
    yield from complete(run)
    yield from one_configuration(run)
    yield from known_prompts(run)
    yield from readable(run)
    yield from ended(run)
    yield from labelled(run)
    yield from known_data(run)
    yield from known_labels(run, annotations)
    yield from contamination(run)
