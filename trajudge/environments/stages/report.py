"""What was generated: counts for a file, tables, and what else the user should know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from trajudge.environments.model.case import Vector, write_cases
from trajudge.environments.specifications.tasks import write_tasks
from trajudge.environments.stages import GenerationPlan, Produced, SuiteSpecification
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes
from trajudge.util.tables import Table
from trajudge.util.terminal import count_of

_OF_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
NEAREST = 5  # vectors that are named where the wanted one does not exist


_MOST_SHOWN = 12  # lines of a table


def nearest(specification: SuiteSpecification, produced: Produced) -> list[tuple[int, Vector, str]]:
    """Return the vectors nearest to the wanted one: how far (sum over the dimensions), and a
    scenario that has it."""
    wanted = specification.vector or ()
    closest: dict[Vector, tuple[int, str]] = {}
    for have, app, scenario in sorted(produced.tally.vectors):
        distance = sum(abs(a - b) for a, b in zip(wanted, have, strict=True))
        closest.setdefault(have, (distance, f"{app} {scenario}"))
    ranked = sorted((distance, have, where) for have, (distance, where) in closest.items())
    return ranked[:NEAREST]


def summary(
    specification: SuiteSpecification, plan: GenerationPlan, produced: Produced
) -> dict[str, Any]:
    """Return all that was counted, for a file."""
    cases, tally = produced
    accepted = Counter((case.config.app, case.config.scenario) for case in cases)
    return {
        "specification": specification.model_dump(mode="json"),
        "accepted": len(cases),
        "tried": tally.tried.total(),
        "other_difficulty": tally.other.total(),
        "rejects": [
            {"reason": reason, "detail": detail, "count": count}
            for (reason, detail), count in _ranked(tally.rejects)
        ],
        "levels": {str(key): n for key, n in sorted(Counter(c.level for c in cases).items())},
        "vectors": {_shown(key): n for key, n in _ranked(Counter(c.vector for c in cases))},
        "scenarios": {
            f"{app} {scenario}": {
                "tried": tally.tried[app, scenario],
                "accepted": accepted[app, scenario],
            }
            for app, scenario in sorted(tally.tried)
        },
        "dropped_proposals": [proposal.model_dump() for proposal in plan.dropped],
    }


def _ranked(counts: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _shown(vector: Sequence[int]) -> str:
    return ",".join(map(str, vector))


def tables(counted: dict[str, Any]) -> list[Table]:
    """Return what was accepted and what was rejected, to be shown."""
    levels = [(key, "", str(count)) for key, count in counted["levels"].items()]
    vectors = [("", key, str(count)) for key, count in counted["vectors"].items()]
    rejects = [
        (entry["reason"], entry["detail"], str(entry["count"]))
        for entry in counted["rejects"][:_MOST_SHOWN]
    ]
    if more := counted["rejects"][_MOST_SHOWN:]:
        rejects.append(("others", "", str(sum(entry["count"] for entry in more))))
    if counted["other_difficulty"]:
        other = str(counted["other_difficulty"])
        rejects.append(("difficulty", "another one was asked for", other))
    tried = f"{count_of(counted['tried'], 'configuration')} tried"
    accepted = f"{count_of(counted['accepted'], 'case')} of {tried}"
    cases = Table(accepted, ("level", "vector", "cases"), [*levels, *vectors[:_MOST_SHOWN]])
    rejected = Table(f"Rejects of {tried}", ("reason", "detail", "count"), rejects)
    return [cases, rejected] if rejects else [cases]


def remarks(
    specification: SuiteSpecification, plan: GenerationPlan, produced: Produced
) -> list[str]:
    """Return what the user should know beside the tables."""
    lines = []
    short = len(produced.cases) < specification.count
    if short and specification.vector is not None:
        near = "; ".join(
            f"{_shown(v)} ({where})" for _, v, where in nearest(specification, produced)
        )
        lines.append(
            f"{len(produced.cases)} cases have the vector {_shown(specification.vector)}; "
            f"the nearest that were found: {near}"
        )
    elif short:
        lines.append(
            f"no more than {len(produced.cases)} of {specification.count} cases were found"
        )
    lines += [
        f"dropped of {drop.app}{drop.scenario and ' ' + drop.scenario}: {drop.reason}"
        + (f" ({drop.text})" if drop.text else "")
        for drop in plan.dropped
    ]
    return lines


def check_place(out: Path) -> None:
    """Look at where the report is to be written, before the work. Raises UserError."""
    # /dev/stdout that goes to a file is one, too; /dev/shm is a folder for files.
    is_stream = out.absolute().parent in _OF_STREAMS
    if (out.exists() and not out.is_file()) or is_stream:
        raise UserError(
            f"--save {out}: is a device or a pipe, and other files stand beside the cases: name a "
            "file"
        )


def write_report(out: Path, counted: dict[str, Any], produced: Produced) -> None:
    """Write the cases and, beside them, their tasks in WebArena Verified's form and what was
    counted. Raises UserError."""
    if produced.cases:
        write_cases(out, produced.cases)
        write_tasks(out.with_suffix(".tasks.json"), produced.cases)
    beside = out.with_suffix(".summary.json")
    save_bytes(beside, orjson.dumps(counted, option=orjson.OPT_INDENT_2) + b"\n")
