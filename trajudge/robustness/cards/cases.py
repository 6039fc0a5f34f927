"""The most instructive cases of a judge in Markdown: what it said before and after a change, and
the difference that the change made to what it saw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

from trajudge.robustness.cards.naming import cell, fenced, file_names
from trajudge.robustness.measures.instructive import CaseKind, InstructiveCase
from trajudge.robustness.measures.report import JudgeRobustness, known_perturbation
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Step, Trajectory, TrajectoryKey
from trajudge.util.files import save_bytes

_HEADINGS: Mapping[CaseKind, str] = {
    "fooled": "accepts a failure",
    "not followed": "does not follow a change of the truth",
    "unstable": "changes its verdict under a harmless change",
}
_LINES = 60  # of a difference
_WIDTH = 300  # of a line, in characters
_WORDS = 1_000  # of the judge's reasons, in characters
Runs = Mapping[TrajectoryKey, Trajectory]


def write_cases(judges: Sequence[JudgeRobustness], attacked: Path, folder: Path) -> list[Path]:
    """Write ``cases/JUDGE.md`` for every judge that a change moved, from the folder of changed
    runs. Raises UserError."""
    wanted = {key for judge in judges for case in judge.cases for key in _keys(case)}
    if not wanted:
        return []
    read = store.read(attacked, lambda key: key in wanted)
    runs = {one.key: one for one in read if isinstance(one, Trajectory)}
    files = []
    for judge, name in file_names(judge.judge for judge in judges).items():
        cases = next(one.cases for one in judges if one.judge == judge)
        if cases:
            files.append(folder / "cases" / f"{name}.md")
            save_bytes(files[-1], cases_text(judge, cases, runs).encode())
    return files


def _keys(case: InstructiveCase) -> tuple[TrajectoryKey, TrajectoryKey]:
    changed = f"{case.source.agent}~{case.perturbation}"
    return case.source, case.source.model_copy(update={"agent": changed})


def cases_text(judge: str, cases: Sequence[InstructiveCase], runs: Runs) -> str:
    """Write all cases; of runs that are not among ``runs`` without the difference."""
    lines = [
        f"# What moves {cell(judge)}",
        "",
        "One run for each of the changes that move this judge most. The texts are those of the "
        "runs and of the judge: their licence is that of the data.",
        "",
    ]
    for number, case in enumerate(cases, start=1):
        lines += _case(number, case, runs)
    return "\n".join(lines).rstrip() + "\n"


def _case(number: int, case: InstructiveCase, runs: Runs) -> Iterator[str]:
    known = known_perturbation(case.perturbation)
    yield from (f"## {number}. {cell(case.perturbation)}: {_HEADINGS[case.kind]}", "")
    if known is not None:
        yield from (cell(known.summary), "")
    source, changed = (runs.get(key) for key in _keys(case))
    yield f"- run: {cell(str(case.source))}"
    if source is not None:
        yield f"- goal: {cell(source.goal)}"
    yield f"- truth: {_said(case.truth, None)}"
    yield f"- verdict before: {_said(case.clean, case.clean_score)}"
    yield from (f"- verdict after: {_said(case.perturbed, case.perturbed_score)}", "")
    for name, words in (("before", case.clean_reasoning), ("after", case.perturbed_reasoning)):
        if words:
            short = words if len(words) <= _WORDS else f"{words[:_WORDS]} …"
            yield from (f"The judge {name}:", "", *fenced(short.splitlines(), "text"), "")
    if source is not None and changed is not None:
        yield from ("What the change made of the run:", "")
        yield from (*fenced(difference(source, changed), "diff"), "")


def _said(verdict: bool | None, score: float | None) -> str:
    word = {True: "success", False: "failure", None: "not known"}[verdict]
    return word if score is None else f"{word} (score {score:.3g})"


def difference(before: Trajectory, after: Trajectory) -> list[str]:
    """Return the lines in which two runs differ, with one line around each, cut where they are
    many or long."""
    lines = [
        line if len(line) <= _WIDTH else f"{line[:_WIDTH]} …"
        for line in unified_diff([*_lines(before)], [*_lines(after)], lineterm="", n=1)
        if not line.startswith(("---", "+++"))
    ]
    left = len(lines) - _LINES
    return lines if left <= 0 else [*lines[:_LINES], f"… and {left} more lines"]


def _lines(run: Trajectory) -> Iterator[str]:
    """Write a run, a fact a line; lines of a tree or a thought begin with the step's number."""
    yield f"goal: {run.goal}"
    for step in run.steps:
        yield from _step_lines(step)
    yield from _block("answer", run.answer)


def _step_lines(step: Step) -> Iterator[str]:
    seen = step.observation
    place = f"step {step.index}"
    yield from _block(f"{place}, url", seen.url)
    yield from _block(f"{place}, tree", seen.axtree or seen.axtree_pruned)
    if seen.screenshot is not None:
        yield f"{place}, screenshot: {_picture(seen.screenshot)}"
    yield from _block(f"{place}, error", seen.page_error)
    yield from _block(f"{place}, thought", step.reasoning)
    yield from _block(f"{place}, action", step.action)


def _block(name: str, text: str | None) -> Iterator[str]:
    return (f"{name}: {line}" for line in (text or "").splitlines())


def _picture(ref: ImageRef) -> str:
    return (ref.sha256 or (ref.path.name if ref.path else "not known"))[:12]
