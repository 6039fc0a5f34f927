"""Generate checked tasks: ``python -m environments.generate --app shop --level 2 --count 50``.

Plans, generates and refines cases until there are as many as were asked for, offline and without a
model; with ``--model`` a model chooses among the scenarios and words their goals anew. Writes the
cases as JSON Lines (never an answer: the verifier asks the state again) and a summary beside them.
The same options give the same bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError
from rich.progress import Progress
from rich.table import Table

from environments.apps import APPS
from environments.checks.difficulty import DIMENSIONS
from environments.model.axes import generator
from environments.model.case import Vector, write_cases
from environments.stages import Plan, Produced, Specification, plan, produce
from trajectories.atomic import write_bytes
from trajectories.errors import UserError
from trajectories.exits import DONE, FAILURES, Parser, user_errors
from trajectories.terminal import one_line, terminal_console

NEAREST = 5  # vectors that are named where the wanted one does not exist
_MOST_SHOWN = 12  # lines of a table


def specified(options: argparse.Namespace) -> Specification:
    """What the options ask for. Raises UserError."""
    apps = tuple(
        name
        for name, domain in APPS.items()
        if options.app in (None, name) and options.domain in (None, domain)
    )
    if not apps:
        known = ", ".join(f"{name} ({domain})" for name, domain in APPS.items())
        asked = f"--app {options.app}" if options.app else f"--domain {options.domain}"
        raise UserError(f"{asked}: there is no such application; choose from {known}")
    try:
        return Specification(
            apps=apps,
            scenario=options.scenario,
            level=options.level,
            vector=_vector(options.vector),
            count=options.count,
            seed=options.seed,
            noise=options.noise,
        )
    except ValidationError as error:
        first = error.errors()[0]
        name = first["loc"][0]
        raise UserError(f"--{name} is {first['input']!r}: {first['msg'].lower()}") from None


def _vector(text: str | None) -> Vector | None:
    if text is None:
        return None
    grades = [int(part) if part in ("1", "2", "3") else 0 for part in text.split(",")]
    if len(grades) != len(DIMENSIONS) or 0 in grades:
        raise UserError(
            f"--vector is {text!r}: give seven numbers from 1 to 3 for {', '.join(DIMENSIONS)}, "
            "such as 3,1,2,3,2,3,2"
        )
    depth, breadth, interaction, visual, information, reasoning, risk = grades
    return (depth, breadth, interaction, visual, information, reasoning, risk)


def planned(specification: Specification, options: argparse.Namespace) -> Plan:
    """The plan, with a model if one is named. Raises UserError for one that cannot be asked."""
    rng = generator("plan", specification.seed)
    if options.model is None:
        return asyncio.run(plan(specification, rng))
    from eval.model_side import single_side  # noqa: PLC0415 - most runs need no model
    from eval.settings import CallConfig  # noqa: PLC0415

    names = ("base_url", "adapter", "cache", "max_tokens")
    calls = {name: value for name in names if (value := getattr(options, name)) is not None}
    side = single_side(options.model, CallConfig(**calls))

    async def run() -> Plan:
        engines = side.open_engines(0.0)
        try:
            return await plan(specification, rng, side.ask(engines, 0, refresh=()))
        finally:
            await engines.close()

    return asyncio.run(run())


def nearest(specification: Specification, produced: Produced) -> list[tuple[int, Vector, str]]:
    """The vectors nearest to the wanted one: how far (sum over the dimensions), and a scenario
    that has it."""
    wanted = specification.vector or ()
    found: dict[Vector, tuple[int, str]] = {}
    for have, app, scenario in sorted(produced.tally.vectors):
        distance = sum(abs(a - b) for a, b in zip(wanted, have, strict=True))
        found.setdefault(have, (distance, f"{app} {scenario}"))
    ranked = sorted((distance, have, where) for have, (distance, where) in found.items())
    return ranked[:NEAREST]


def summary(specification: Specification, plan: Plan, produced: Produced) -> dict[str, Any]:
    """All that was counted, for a file."""
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
    """What was accepted and what was rejected, to be shown."""
    accepted = Table("level", "vector", "cases", title=f"{counted['accepted']} cases")
    for key, count in counted["levels"].items():
        accepted.add_row(key, "", str(count))
    for key, count in list(counted["vectors"].items())[:_MOST_SHOWN]:
        accepted.add_row("", key, str(count))
    title = f"Rejects of {counted['tried']} configurations tried"
    rejected = Table("reason", "detail", "count", title=title)
    for entry in counted["rejects"][:_MOST_SHOWN]:
        rejected.add_row(entry["reason"], one_line(entry["detail"]), str(entry["count"]))
    if more := counted["rejects"][_MOST_SHOWN:]:
        rejected.add_row("others", "", str(sum(entry["count"] for entry in more)))
    if counted["other_difficulty"]:
        rejected.add_row(
            "difficulty", "another one was asked for", str(counted["other_difficulty"])
        )
    return [accepted, rejected]


def remarks(specification: Specification, plan: Plan, produced: Produced) -> list[str]:
    """What the user should know beside the tables."""
    said = []
    short = len(produced.cases) < specification.count
    if short and specification.vector is not None:
        near = "; ".join(
            f"{_shown(v)} ({where})" for _, v, where in nearest(specification, produced)
        )
        said.append(
            f"{len(produced.cases)} cases have the vector {_shown(specification.vector)}; "
            f"the nearest that were found: {near}"
        )
    elif short:
        said.append(f"no more than {len(produced.cases)} of {specification.count} cases were found")
    said += [
        f"dropped of {drop.app}{drop.scenario and ' ' + drop.scenario}: {drop.reason}"
        + (f" ({drop.text})" if drop.text else "")
        for drop in plan.dropped
    ]
    return said


def parser() -> Parser:
    """The command's options."""
    made = Parser(prog="python -m environments.generate", description=__doc__, allow_abbrev=False)
    add = made.add_argument
    where = made.add_mutually_exclusive_group()
    where.add_argument("--domain", metavar="D", help=f"one of {', '.join(APPS.values())}")
    where.add_argument("--app", metavar="A", help=f"one of {', '.join(APPS)}")
    add("--scenario", metavar="S", help="only this scenario")
    which = made.add_mutually_exclusive_group()
    which.add_argument("--level", type=int, choices=(1, 2, 3), help="only cases of this level")
    which.add_argument("--vector", metavar="N,N,...", help="only cases with exactly these grades")
    add("--count", type=int, default=20, metavar="N", help="how many cases (default 20)")
    add("--seed", type=int, default=0, metavar="N", help="of everything that is drawn (default 0)")
    add("--noise", action="store_true", help="cookie bars, promotions, latency, errors to retry")
    add("--out", type=Path, default=Path("cases.jsonl"), metavar="FILE")
    model = made.add_argument_group("a model that words goals (optional)").add_argument
    model("--model", metavar="NAME")
    model("--base-url", metavar="URL", help="a server that speaks the adapter's protocol")
    model("--adapter", choices=("openai", "anthropic", "litellm", "http"))
    model("--cache", metavar="FILE", help="where replies are kept (default: ~/.cache/trajudge)")
    model("--max-tokens", type=int, default=4096, metavar="N", help="of a reply (default 4096)")
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0 with as many cases as were asked for, 1 with fewer."""
    options = parser().parse_args(arguments)
    specification = specified(options)
    steps = planned(specification, options)
    errors = terminal_console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        line = bar.add_task("generating", total=specification.count)
        produced = produce(specification, steps, lambda done: bar.update(line, completed=done))
    counted = summary(specification, steps, produced)
    _write(options.out, counted, produced)
    console = terminal_console()
    for shown in tables(counted):
        console.print(shown)
    for remark in remarks(specification, steps, produced):
        errors.print(one_line(remark), soft_wrap=True)
    if not produced.cases:
        return FAILURES
    console.print(
        f"written to {options.out}; record agents with\n"
        f"  python -m environments.record --configs {options.out}",
        soft_wrap=True,
    )
    return DONE if len(produced.cases) == specification.count else FAILURES


def _write(out: Path, counted: dict[str, Any], produced: Produced) -> None:
    if produced.cases:
        write_cases(out, produced.cases)
    beside = out.with_suffix(".summary.json")
    try:
        beside.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(beside, orjson.dumps(counted, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise UserError(f"{beside}: cannot be written ({error.strerror or error})") from error


if __name__ == "__main__":
    sys.exit(main())
