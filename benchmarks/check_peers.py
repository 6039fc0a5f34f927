"""Compare ``trajudge check`` with small tools that check a judge against labels, on the same
tables.

``python -m benchmarks.check_peers --tables DIR --peers DIR`` prints the results of each tool on
every table of a folder; with ``--redraws N`` how often each tool's 95 % limits cover the truth if
runs of tasks are dependent: 60 tasks of 8 runs, success .4, sensitivity .85, false alarms .15,
correlation .5 within a task for each of the three. ``--peers`` has a virtual environment for each
tool, named as the package (``pip install judgekeeper``, ``judgegate``, ``evalproof``,
``truescore``, ``cje-eval``, ``fewhumans``); missing ones are reported. Every tool is called through
its library functions with verdicts, labels and, if it accepts any, tasks; two commands that read
tables themselves (``judgekeeper check``, ``truescore agreement``) also get the file unchanged.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trajudge.eval.check import check
from trajudge.util.errors import UserError
from trajudge.util.foreign_table import read_rows, read_verdict

SUCCESS, SENSITIVITY, ALARMS, CORRELATION = 0.4, 0.85, 0.15, 0.5
ACCEPTED = SUCCESS * SENSITIVITY + (1 - SUCCESS) * ALARMS
AGREEMENT = SUCCESS * SENSITIVITY + (1 - SUCCESS) * (1 - ALARMS)
_CHANCE = ACCEPTED * SUCCESS + (1 - ACCEPTED) * (1 - SUCCESS)
TRUTH: Mapping[str, float] = {
    "precision": SUCCESS * SENSITIVITY / ACCEPTED,
    "recall": SENSITIVITY,
    "agreement": AGREEMENT,
    "base rate": SUCCESS,
    "kappa": (AGREEMENT - _CHANCE) / (1 - _CHANCE),
}
_HEAD = """
import json, math, sys, warnings
warnings.simplefilter("ignore")
def limits(value):
    return [getattr(value, n) for n in names(value)]
def names(value):
    pairs = ("lo", "hi"), ("low", "high"), ("lower", "upper"), ("ci_low", "ci_high")
    return next(pair for pair in pairs if hasattr(value, pair[0]))
"""
_TAIL = """
found = []
for accepted, right, task in json.load(sys.stdin):
    try:
        found.append({k: [float(x) for x in v] for k, v in measure(accepted, right, task).items()})
    except Exception as error:
        found.append({"error": f"{type(error).__name__}: {error}"[:160]})
sys.stdout.write("\\n" + json.dumps(found))
"""
# What each tool has limits of; each is a program for the tool's own environment.
PEERS: Mapping[str, str] = {
    "judgekeeper": """
from judgekeeper.metrics import wilson
def measure(accepted, right, task):
    hits, n = sum(a and r for a, r in zip(accepted, right)), sum(right)
    found = wilson(hits, n)
    return {"recall": [found["lo"], found["hi"]]}
""",
    "judgegate": """
from judgegate.stats.bootstrap import kappa_interval
def measure(accepted, right, task):
    cells = [[0, 0], [0, 0]]
    for a, r in zip(accepted, right):
        cells[r][a] += 1
    return {"kappa": limits(kappa_interval(cells, resamples=2000, seed=0))}
""",
    "evalproof": """
from evalproof.calibration import gold_only_estimate
def measure(accepted, right, task):
    return {"base rate": limits(gold_only_estimate([bool(r) for r in right]))}
""",
    "truescore": """
from truescore.agreement import judge_agreement
from truescore.correct import gold_only_estimate
def measure(accepted, right, task):
    found = judge_agreement(accepted, right, n_bootstrap=200)
    given = {"base rate": limits(gold_only_estimate(right, clusters=task))}
    given["base rate, tasks not given"] = limits(gold_only_estimate(right))
    for name, value in (("precision", found.precision), ("recall", found.sensitivity),
                        ("agreement", found.accuracy), ("kappa", found.cohen_kappa)):
        given[name] = limits(value)
    return given
""",
    "cje-eval": """
import logging
logging.disable(logging.CRITICAL)
from cje import analyze_dataset
def measure(accepted, right, task):
    draws = [{"prompt_id": str(t), "judge_score": float(a), "oracle_label": float(r)}
             for a, r, t in zip(accepted, right, task)]
    for number, draw in enumerate(draws):
        draw["draw_idx"] = number
    found = analyze_dataset(fresh_draws_data={"agent": draws})
    return {"base rate": list(found.ci()[0])}
""",
    "fewhumans": """
from fewhumans.estimators.classical import human_only
def measure(accepted, right, task):
    return {"base rate": limits(human_only([float(r) for r in right]))}
""",
}


class Verdicts(NamedTuple):
    """Whether each run is accepted and right, as 0 or 1, and the index of its task."""

    accepted: list[int]
    right: list[int]
    task: list[int]


# What ``check`` takes beyond the names of columns, by the number that begins a table's name.
OPTIONS: Mapping[str, Mapping[str, object]] = {
    "05": {"columns": "judge=Urteil,label=Mensch,task=Aufgabe"},
    "07": {"threshold": 0.5},
    "08": {"labels_by": "majority"},
}


def draw(rng: np.random.Generator, tasks: int = 60, runs: int = 8) -> Verdicts:
    """Draw a table of the simulation."""
    more = (1 - CORRELATION) / CORRELATION
    success, sensitivity, alarms = (
        rng.beta(rate * more, (1 - rate) * more, tasks)[:, None]
        for rate in (SUCCESS, SENSITIVITY, ALARMS)
    )
    right = rng.random((tasks, runs)) < success
    accepted = rng.random((tasks, runs)) < np.where(right, sensitivity, alarms)
    task = np.repeat(np.arange(tasks), runs)
    return Verdicts(
        accepted.ravel().astype(int).tolist(), right.ravel().astype(int).tolist(), task.tolist()
    )


def ask_peer(folder: Path, name: str, cases: Sequence[Verdicts]) -> list[dict[str, object]]:
    """Return the limits that a tool gives for each case, by rate. Raises OSError if it is not
    installed."""
    python = folder / name / "bin" / "python"
    program = _HEAD + PEERS[name] + _TAIL
    done = subprocess.run(
        [str(python), "-c", program],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return [{"error": done.stderr.strip().rpartition("\n")[2][:160]}] * len(cases)
    found: list[dict[str, object]] = json.loads(done.stdout.rpartition("\n")[2])
    return found


def ask_ours(cases: Sequence[Verdicts], *, with_tasks: bool = True) -> list[dict[str, object]]:
    """Return trajudge's limits in the same form."""
    found: list[dict[str, object]] = []
    for case in cases:
        rows = [
            {"verdict": a, "label": r} | ({"task": t} if with_tasks else {})
            for a, r, t in zip(*case, strict=True)
        ]
        result = check(rows)
        [judge] = result.judges
        rates = {
            "precision": judge.precision,
            "recall": judge.recall,
            "agreement": judge.agreement,
            "base rate": result.base_rate,
        }
        found.append({name: [rate.low, rate.high] for name, rate in rates.items()})
    return found


def coverage(folder: Path, redraws: int, seed: int) -> Iterator[str]:
    """Yield how often the limits of each tool cover the truth."""
    rng = np.random.default_rng(seed)
    cases = [draw(rng) for _ in range(redraws)]
    yield f"{redraws} redraws of 60 tasks of 8 runs; share of 95 % limits that hold the truth"
    answers = {"trajudge": ask_ours(cases)}
    answers["trajudge without the column of tasks"] = ask_ours(cases, with_tasks=False)
    for name in PEERS:
        try:
            answers[name] = ask_peer(folder, name, cases)
        except OSError:
            yield f"{name}: not installed in {folder}"
    for name, found in answers.items():
        for rate in dict.fromkeys(rate for one in found for rate in one):
            if rate == "error":
                errors = [one["error"] for one in found if "error" in one]
                yield f"{name}: {len(errors)} without an answer, such as {errors[0]}"
                continue
            truth = TRUTH[rate.partition(",")[0]]
            ends = [one[rate] for one in found if rate in one]
            held = sum(_holds(one, truth) for one in ends)
            yield f"{name:38} {rate:28} {held / len(ends):.3f}"


def _holds(ends: object, truth: float) -> bool:
    low, high = ends if isinstance(ends, list) else (None, None)
    return low is not None and high is not None and bool(low <= truth <= high)


def tables(folder: Path, peers: Path) -> Iterator[str]:
    """Yield the results of each tool on each table in ``folder``."""
    for file in sorted([*folder.glob("*.csv"), *folder.glob("*.jsonl")]):
        yield f"\n== {file.name}"
        options = OPTIONS.get(file.name[:2], {})
        for given in [{}, options] if options else [{}]:
            try:
                result = check(file, **given)
            except UserError as error:
                yield f"trajudge {given or ''}: {str(error).replace(str(folder), '')[:200]}"
        yield f"trajudge {dict(options) or ''}:\n" + str(result).partition("\n\n")[0]
        for name, column in zip(("judgekeeper", "truescore"), ("--human", "--gold"), strict=True):
            yield f"{name}, the file as it is: {_command(peers, name, column, file)}"
        case = _verdicts(file, result.columns, options)
        yield f"judgekeeper, its own columns: {_converted(peers, case)}"
        for name in PEERS:
            try:
                [found] = ask_peer(peers, name, [case])
            except OSError:
                yield f"{name}: not installed"
                continue
            yield f"{name}, read for it: {'; '.join(map(_shown, found.items()))}"


def _shown(item: tuple[str, object]) -> str:
    name, ends = item
    if not isinstance(ends, list):
        return str(ends)
    return f"{name} [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"


def _command(peers: Path, name: str, label: str, file: Path) -> str:
    """Return the first words of a tool's own command on the file, or its error."""
    columns = check_columns(file)
    words = ["check"] if name == "judgekeeper" else ["agreement"]
    with tempfile.TemporaryDirectory() as out:
        place = ["--out", out] if name == "judgekeeper" else []
        try:
            done = subprocess.run(
                [
                    str(peers / name / "bin" / name),
                    *words,
                    str(file),
                    *("--judge", columns[0], label, columns[1], *place),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError:
            return "not installed"
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("wrote", "open", "loaded"))]
    return f"exit {done.returncode}: {' | '.join(kept[:5])[:420]}".replace(str(file.parent), "")


def _converted(peers: Path, case: Verdicts) -> str:
    """Return the result of ``judgekeeper check`` on the verdicts, with the column names that it
    expects."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.csv"
        words = ("fail", "pass")
        lines = [
            f"{i},{words[a]},{words[r]}" for i, (a, r, _) in enumerate(zip(*case, strict=True))
        ]
        file.write_text("\n".join(["id,verdict,label", *lines]) + "\n")
        return _command(peers, "judgekeeper", "--human", file)


def check_columns(file: Path) -> tuple[str, str]:
    """Return the columns of verdicts and labels."""
    options = OPTIONS.get(file.name[:2], {})
    result = check(file, **options)
    return result.columns["judge"][0], result.columns["label"][0]


def _verdicts(
    file: Path, columns: Mapping[str, tuple[str, ...]], options: Mapping[str, object]
) -> Verdicts:
    """Read the rows that have both; scores are verdicts at or above 0.5, several annotators
    their majority."""
    table = read_rows(file)
    labels = [table.column(name) for name in columns["label"]]
    tasks = table.column(columns["task"][0]) if "task" in columns else [""] * len(table)
    case = Verdicts([], [], [])
    numbers: dict[object, int] = {}
    for row, cell in enumerate(table.column(columns["judge"][0])):
        said = [read_verdict(column[row]).verdict for column in labels]
        yes, no = said.count(True), said.count(False)
        verdict = float(cell) >= 0.5 if "threshold" in options else read_verdict(cell).verdict
        if verdict is None or yes == no:
            continue
        case.accepted.append(int(verdict))
        case.right.append(int(yes > no))
        case.task.append(numbers.setdefault(tasks[row] or row, len(numbers)))
    return case


def main() -> int:
    """Print both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, required=True, help="folder of environments")
    parser.add_argument("--tables", type=Path, help="folder of tables")
    parser.add_argument("--redraws", type=int, default=0, help="of the world with repeated tasks")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.tables:
        for line in tables(given.tables, given.peers):
            sys.stdout.write(line + "\n")
    if given.redraws:
        for line in coverage(given.peers, given.redraws, given.seed):
            sys.stdout.write(line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
