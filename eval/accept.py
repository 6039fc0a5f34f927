"""``python -m eval.accept``: keep the trajectories that a judge accepts, for fine-tuning."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trajudge.trajectories.util.exits import DONE, FAILURES, user_errors

if TYPE_CHECKING:
    from trajudge.eval.acceptance.acceptance import Choice
    from trajudge.eval.select.decision import Decision
    from trajudge.eval.select.inputs import Inputs

_DESCRIPTION = """\
Apply a choice of judge and threshold: write the accepted trajectories as conversations for
fine-tuning, with their provenance, and the rejected ones with the reason.

  python -m eval.accept --decision selections/0a1b2c3d --run runs/new --out accepted
  python -m eval.accept --judge webjudge-7b --threshold 1 --judgments DIR --data KIND:PATH
  python -m eval.accept --judge heuristic --threshold 1 --data sample

Without --run and --judgments the judge is asked now: options that are not listed here are those of
python -m eval.judge.
"""
_EPILOG = """\
accepted.jsonl: a line a trajectory, {"messages": [{"role", "content"}, ...], "provenance": {...}};
one system turn, then a step: a user turn (goal, url, page), an assistant turn (<think>, <action>).
rejected.jsonl: {"key", "kind", "reason", "score"}.
acceptance.json: what was applied to what, and how many ended how.
"""


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(
        prog="python -m eval.accept",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--decision", type=Path, metavar="DIR", help="what python -m eval.select wrote")
    add("--judge", metavar="NAME", help="the judge, instead of a decision")
    add("--threshold", type=float, metavar="T", help="accept scores of at least T (a verdict: 1)")
    add("--run", type=Path, action="append", default=[], help="folder of a run; may be repeated")
    add("--judgments", type=Path, metavar="DIR", help="in AgentRewardBench's published layout")
    add("--data", metavar="KIND:PATH", help="the trajectories (default: those of the run)")
    add("--out", type=Path, default=Path("accepted"), metavar="DIR", help="default: accepted")
    add("--dataset", type=Path, metavar="DIR", help="the accepted ones as a datasets dataset, too")
    add("--page", choices=("pruned", "full", "none"), default="pruned", help="accessibility tree")
    add(
        "--without-observations",
        action="store_true",
        help="also export runs with steps whose page was not recorded (their user turns are bare)",
    )
    add("--system", type=Path, metavar="FILE", help="another text of the system turn")
    add(
        "--any-benchmark",
        action="store_true",
        help="also where the decision was not shown to hold",
    )
    add(
        "--agents",
        choices=("same", "any"),
        help="runs of agents that the decision was not made on: same rejects them, any takes them "
        "(default: take them, and ask for a sample to recertify)",
    )
    add(
        "--assume-same-judge",
        action="store_true",
        help="where the decision or the run does not record the judge's settings: they are the "
        "same (what both record is compared all the same)",
    )
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Apply the choice and write; the exit code (1: nothing was accepted)."""
    options, rest = parser().parse_known_args(arguments)
    from trajudge.eval.acceptance.acceptance import ACCEPTED, OK, apply, ruling, write_dataset  # noqa: PLC0415
    from trajudge.eval.acceptance.applying import covered, new_agents  # noqa: PLC0415
    from trajudge.trajectories.loaders import open_source  # noqa: PLC0415

    decision, choice = _choice(options)
    format_: dict[str, Any] = {"page": options.page} | _system(options.system)
    format_["bare_turns"] = options.without_observations
    inputs, choice = _judgments(options, rest, choice)
    cautions: list[str] = []
    if decision is not None:
        choice, cautions = covered(decision, choice, inputs, options)
    data = _data(options)
    agents: Counter[str] = Counter()
    format_["agents"] = agents
    rule = ruling(choice, inputs.judgments)
    found = apply(open_source(data), rule, choice, options.out, **format_)
    if decision is not None:
        cautions += new_agents(decision, agents, options)
    _summarise(options, choice, data, dict(sorted(found.items())), cautions)
    if options.dataset:
        write_dataset(options.out / ACCEPTED, options.dataset)
    return DONE if found[OK] else FAILURES


def _choice(options: argparse.Namespace) -> tuple[Decision | None, Choice]:
    """That of the command line, or of the decision."""
    from trajudge.eval.acceptance.acceptance import Choice  # noqa: PLC0415
    from trajudge.eval.acceptance.applying import choice_of  # noqa: PLC0415
    from trajudge.eval.select.output import read_decision  # noqa: PLC0415
    from trajudge.eval.select.plan import Rule  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    if (options.decision is None) == (options.judge is None):
        raise UserError("give either --decision DIR, or --judge NAME with --threshold T")
    if options.decision is None:
        if options.threshold is None or not 0 < options.threshold <= 1:
            raise UserError(
                f"--judge {options.judge} needs --threshold with a number above 0 and at most 1, "
                f"not {options.threshold}: for a verdict 1"
            )
        rule = Rule(judges=(options.judge,))
        return None, Choice(options.judge, rule, options.threshold)
    if options.threshold is not None:
        raise UserError("--threshold is part of the decision: leave it out, or use --judge")
    decision = read_decision(options.decision)
    return decision, choice_of(decision, options.decision)


def _system(file: Path | None) -> dict[str, str]:
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    if file is None:
        return {}
    try:
        return {"system": file.read_text(encoding="utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--system {file}: cannot be read as text ({error})") from error


def _judgments(
    options: argparse.Namespace, rest: list[str], choice: Choice
) -> tuple[Inputs, Choice]:
    """Those at hand; or the judge is asked now, and its run kept below ``--out``."""
    from trajudge.eval.select.inputs import read_inputs  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    if options.run or options.judgments:
        if rest:
            raise UserError(f"no option {rest[0]!r}: see  python -m eval.accept --help")
        return read_inputs(options.run, options.judgments), choice
    if options.judge is None or options.data is None:
        raise UserError(
            "no judgments to apply it to: give --run RUN or --judgments DIR, or --judge NAME with "
            "--data KIND:PATH to ask the judge now"
        )
    from trajudge.eval import judge  # noqa: PLC0415

    run = options.out / "run"
    split = [] if "--split" in rest else ["--split", "all"]
    wanted = ["--judge", options.judge, "--data", options.data, "--out", str(run), *split, *rest]
    code = judge.main(wanted)
    if code not in (DONE, FAILURES):
        raise UserError(f"{options.judge} could not be asked (exit code {code}): nothing written")
    options.run = [run]
    inputs = read_inputs([run], None)
    asked = sorted({judgment.judge for judgment in inputs.judgments})
    if len(asked) > 1:
        raise UserError(f"one judge is applied at a time, not {', '.join(asked)}: name one --model")
    rule = choice.rule.model_copy(update={"judges": tuple(asked)})
    return inputs, choice._replace(name=asked[0], rule=rule)


def _data(options: argparse.Namespace) -> str:
    """What opens the trajectories: ``--data``, or what the first run was made from."""
    from trajudge.eval.data.inputs import open_spec  # noqa: PLC0415
    from trajudge.eval.data.run_folder import read_manifest  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    if options.data:
        return open_spec(options.data)
    if not options.run:
        raise UserError("published judgments need their trajectories: give --data KIND:PATH")
    data = read_manifest(options.run[0]).get("data")
    if not isinstance(data, str):
        raise UserError(f"{options.run[0]}: its manifest names no data: give --data KIND:PATH")
    return open_spec(data)


def _summarise(
    options: argparse.Namespace,
    choice: Choice,
    data: str,
    counts: dict[str, int],
    cautions: list[str],
) -> None:
    """Write ``acceptance.json`` and say the same."""
    import orjson  # noqa: PLC0415

    from trajudge.eval.acceptance.acceptance import ACCEPTED, OK, REJECTED, SUMMARY  # noqa: PLC0415
    from trajudge.eval.data.manifest import code_version  # noqa: PLC0415
    from trajudge.eval.select.files import write_whole  # noqa: PLC0415

    summary = {
        "judge": choice.name,
        "rule": choice.rule.model_dump(mode="json"),
        "threshold": choice.threshold,
        "decision": choice.decision,
        "benchmarks": sorted(choice.benchmarks) if choice.benchmarks is not None else None,
        "data": options.data or data,
        "runs": [str(run) for run in options.run],
        "judgments": str(options.judgments) if options.judgments else None,
        "counts": counts,
        "cautions": [*cautions, *([choice.caution] if choice.caution else [])],
        "version": code_version(),
    }
    write_whole(options.out / SUMMARY, orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    rejected = {kind: count for kind, count in counts.items() if kind != OK}
    why = ", ".join(f"{count} {kind}" for kind, count in rejected.items()) or "none"
    sys.stdout.write(
        f"{choice.name} at threshold {choice.threshold:.4g}: {counts.get(OK, 0)} accepted "
        f"({options.out / ACCEPTED}), {sum(rejected.values())} rejected: {why} "
        f"({options.out / REJECTED})\n"
    )
    sys.stdout.write("".join(f"{caution}\n" for caution in (*cautions, choice.caution) if caution))


if __name__ == "__main__":
    sys.exit(main())
