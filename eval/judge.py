"""``python -m eval.judge``: judge trajectories, and score the judge against experts and rules."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval.options import parse
from trajectories.errors import UserError
from trajectories.exits import DONE, INTERRUPTED, user_errors

if TYPE_CHECKING:
    from eval.model_side import ModelSide
    from eval.plan import Plan


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; the exit code (``trajectories.exits``)."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    from eval.judge_options import judge_options  # noqa: PLC0415
    from eval.plan import make_plan  # noqa: PLC0415 - --help needs none of these
    from eval.run import Sitting  # noqa: PLC0415
    from judges.registry import find_judge  # noqa: PLC0415

    model = None
    if find_judge(options.judge).needs_model:
        model = _model(options)
        plan = make_plan(options, judge_options(options, model), model.manifest)
    else:
        plan = make_plan(options, judge_options(options, None), {})
    if plan.source.note:
        sys.stderr.write(plan.source.note + "\n")
    if options.dry_run:
        return _dry_run(options, plan, model)
    if model is not None and not _may_spend(options, plan, model):
        return INTERRUPTED
    return Sitting(options, plan, model).execute()


def _model(options: argparse.Namespace) -> ModelSide:
    if options.model is None:
        raise UserError(
            f"--judge {options.judge} asks a model: name it with --model, e.g. --model gpt-4o; "
            "--judge heuristic and --judge rule-based need none"
        )
    from eval.model_side import make_model_side  # noqa: PLC0415

    return make_model_side(options)


def _dry_run(options: argparse.Namespace, plan: Plan, model: ModelSide | None) -> int:
    if model is None:
        sys.stdout.write(f"{len(plan.keys)} judgments without a call: $0\n")
        return DONE
    from eval.pricing import price_run  # noqa: PLC0415

    found = price_run(model, plan, options.samples, strict=options.strict)
    cost = "unknown, for the model's price is not" if found.cost is None else f"${found.cost:.4f}"
    sys.stdout.write(
        f"judgments     {found.judgments}\n"
        f"calls         {found.calls}, {found.cached} of them answered by the cache\n"
        f"input tokens  {found.usage.input:,} (estimated, on the safe side)\n"
        f"output tokens {found.usage.output:,} (assumed)\n"
        f"cost          {cost}\n"
    )
    return DONE


def _may_spend(options: argparse.Namespace, plan: Plan, model: ModelSide) -> bool:
    from eval.pricing import confirm, price_sample  # noqa: PLC0415

    if options.yes or options.max_cost is not None:
        return True
    prediction = price_sample(model, plan, options.samples, options.seed)
    return confirm(prediction, yes=options.yes, max_cost=options.max_cost)


if __name__ == "__main__":
    sys.exit(main())
