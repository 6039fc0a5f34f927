"""A benchmark's answers to the PRISM rubric, and their grades.

Source: Statistical Precipice, section 3 and appendix 20.

A report is a JSON file with the fields of ``Report``. Grades follow from the answers alone; an
answer that was not measured is left out and counts as not given.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, RootModel

from trajudge.trajectories.model import Record
from trajudge.util.files import read_utf8
from trajudge.util.validation import read_record

MEND = (
    "name a benchmark's answers to the rubric, such as those that  trajudge env prism  without a "
    "REPORT writes"
)
Grade = Literal["full", "partial", "none", "not shown"]
Safeguard = Literal["every configuration", "initialisation", "none"]

# How real applications are used; an application suite that is written for a benchmark has to show
# that its own can be used so too.
PATTERNS = (
    "search", "filters", "sort orders", "long lists in parts", "forms of several fields",
    "refused input", "questions before irreversible steps", "irreversible steps without a question",
    "charts", "content written by users", "layouts", "interruptions",
)  # fmt: skip


class Privileged(Record):
    """How many tasks are verified by the state, and how many by a model's judgement."""

    tasks: int = Field(ge=1)
    by_state: int = Field(ge=0)
    by_model: int = Field(default=0, ge=0)


class Realistic(Record):
    """What the applications are, and which patterns of use they show (``PATTERNS``)."""

    applications: Literal["real", "clones", "written for it", "toy"]
    patterns: tuple[str, ...] = ()


class Integrity(Record):
    """Whether every configuration is checked by a program before any agent is evaluated.
    ``checked`` and ``rejected`` are numbers of configurations, where they are known."""

    feasible: Safeguard
    coherent: Safeguard
    nontrivial: Safeguard
    checked: int | None = None
    rejected: int | None = None


class Sandboxed(Record):
    """What lies outside of the benchmark's hands, and whether a reset gives the same state."""

    external_dependencies: tuple[str, ...] = ()
    deterministic_reset: bool


class Multifactorial(Record):
    """The environmental axes and the number of different values each takes; ``independent`` says
    that changing one leaves the others alone."""

    axes: dict[str, int]
    independent: bool


class Report(Record):
    """One benchmark. A part that is missing was not shown."""

    name: str
    privileged: Privileged | None = None
    realistic: Realistic | None = None
    integrity: Integrity | None = None
    sandboxed: Sandboxed | None = None
    multifactorial: Multifactorial | None = None


class GradedReport(Record):
    """A report with the grade of each principle, as the command saves it."""

    report: Report
    grades: dict[str, Grade]


_Saved = RootModel[Annotated[tuple[GradedReport, ...], Field(min_length=1)]]


class Graded(NamedTuple):
    """A grade and the evidence it rests on."""

    principle: str
    grade: Grade
    evidence: str


def read_reports(path: Path) -> list[Report]:
    """Read a report, or those that were saved with their grades. Raises UserError that names the
    file and the field."""
    with suppress(OSError):
        if read_utf8(path).lstrip().startswith(b"["):
            return [one.report for one in read_record(path, _Saved, MEND).root]
    return [read_record(path, Report, MEND)]


def grade(report: Report) -> list[Graded]:
    """Return the five grades in the order of the acronym."""
    return [
        _privileged(report.privileged),
        _realistic(report.realistic),
        _integrity(report.integrity),
        _sandboxed(report.sandboxed),
        _multifactorial(report.multifactorial),
    ]


def satisfied(graded: list[Graded]) -> bool:
    return all(entry.grade == "full" for entry in graded)


def _privileged(known: Privileged | None) -> Graded:
    if known is None:
        return Graded("privileged verification", "not shown", "")
    evidence = (
        f"{known.by_state} of {known.tasks} tasks verified by state, {known.by_model} by model"
    )
    whole = known.by_state >= known.tasks and not known.by_model
    share: Grade = "full" if whole else "partial" if known.by_state else "none"
    return Graded("privileged verification", share, evidence)


def _realistic(known: Realistic | None) -> Graded:
    if known is None:
        return Graded("realistic environments", "not shown", "")
    shown = [pattern for pattern in PATTERNS if pattern in known.patterns]
    evidence = (
        f"applications: {known.applications}; {len(shown)} of {len(PATTERNS)} patterns of use"
    )
    if known.applications in ("real", "clones"):
        return Graded("realistic environments", "full", evidence)
    if known.applications == "toy":
        return Graded("realistic environments", "none", evidence)
    # The paper grades DigiWorld, whose applications were written for it, as full.
    every: Grade = "full" if len(shown) == len(PATTERNS) else "partial"
    return Graded("realistic environments", every, evidence)


def _integrity(known: Integrity | None) -> Graded:
    if known is None:
        return Graded("integrity-checked configurations", "not shown", "")
    safeguards = {known.feasible, known.coherent, known.nontrivial}
    evidence = (
        f"feasible: {known.feasible}; coherent: {known.coherent}; non-trivial: {known.nontrivial}"
    )
    if known.checked is not None:
        evidence += f"; {known.checked} checked, {known.rejected or 0} rejected"
    if safeguards == {"every configuration"}:
        return Graded("integrity-checked configurations", "full", evidence)
    some: Grade = "none" if safeguards == {"none"} else "partial"
    return Graded("integrity-checked configurations", some, evidence)


def _sandboxed(known: Sandboxed | None) -> Graded:
    if known is None:
        return Graded("sandboxed execution", "not shown", "")
    outside = ", ".join(known.external_dependencies) or "none"
    reset = "deterministic" if known.deterministic_reset else "not deterministic"
    evidence = f"external dependencies: {outside}; reset: {reset}"
    if not known.deterministic_reset:
        return Graded("sandboxed execution", "none", evidence)
    alone: Grade = "partial" if known.external_dependencies else "full"
    return Graded("sandboxed execution", alone, evidence)


def _multifactorial(known: Multifactorial | None) -> Graded:
    if known is None:
        return Graded("multifactorial variability", "not shown", "")
    varied = [axis for axis, values in known.axes.items() if values > 1]
    evidence = ", ".join(f"{axis} {values}" for axis, values in known.axes.items())
    evidence += "; independent" if known.independent else "; not shown to be independent"
    several: Grade = "full" if len(varied) >= 2 and known.independent else "partial"
    return Graded("multifactorial variability", several if varied else "none", evidence)
