"""Several judges and models in one go: every ``--judge`` with every ``--model``, one run each.

The runs share the cache, so a stage that several judges have in common (a caption, a description)
is asked for once, and they share the budget of ``--max-cost``.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eval.composed import member_fields, models_of
from eval.judge_options import judge_options
from eval.options import ROLES
from eval.plan import Plan, make_plan
from judges.registry import find_judge
from trajectories.errors import UserError

if TYPE_CHECKING:
    from eval.model_side import ModelSide


@dataclass(frozen=True)
class Cell:
    """One judge with one model (None: it needs none), planned."""

    options: argparse.Namespace
    plan: Plan
    model: ModelSide | None


def make_cells(options: argparse.Namespace) -> list[Cell]:
    """The runs that the command line asks for, in its order. Raises UserError for any that cannot
    work, before the first is begun."""
    wanted = list(_pairs(options))
    cells = [_cell(_for_one(options, judge, model), len(wanted) > 1) for judge, model in wanted]
    folders = [cell.plan.folder for cell in cells]
    for folder in folders:
        if folders.count(folder) > 1:
            raise UserError(f"{folder}: two runs of this grid are the same: name each judge once")
    return cells


def _pairs(options: argparse.Namespace) -> Iterator[tuple[str, str | None]]:
    models: Sequence[str] = options.model
    for judge in options.judge:
        if find_judge(judge).composed:
            one = _for_one(options, judge, None)
            yield from ((judge, model) for model in models_of(one, models))
        elif not find_judge(judge).needs_model:
            yield judge, None
        elif not models:
            raise UserError(
                f"--judge {judge} asks a model: name it with --model, e.g. --model gpt-4o; "
                "--judge heuristic and --judge rule-based need none"
            )
        else:
            yield from ((judge, model) for model in models)


def _for_one(options: argparse.Namespace, judge: str, model: str | None) -> argparse.Namespace:
    """The options of one cell: what only other judges of the grid take is left out."""
    one = copy.copy(options)
    one.judge, one.model = judge, model
    entries = [find_judge(name) for name in options.judge]
    mine = find_judge(judge)
    for role in ROLES:
        if role not in mine.models and any(role in entry.models for entry in entries):
            setattr(one, f"{role}_model", None)
    if not mine.representations and any(entry.representations for entry in entries):
        one.representation = None
    takes = {name for entry in entries for name in entry.options_class.model_fields}
    foreign = takes - set(mine.options_class.model_fields)
    if mine.composed:
        foreign -= member_fields(one)
    one.judge_option = [text for text in options.judge_option if _name(text) not in foreign]
    one.prompts = None if "prompts" in foreign else options.prompts
    one.success_last = options.success_last and "success" not in foreign
    return one


def _name(judge_option: str) -> str:
    return judge_option.partition("=")[0].replace("-", "_")


def _cell(options: argparse.Namespace, is_one_of_many: bool) -> Cell:
    model = None
    if options.model is not None:
        from eval.model_side import make_model_side  # noqa: PLC0415 - baselines need no model

        model = make_model_side(options)
    plan = make_plan(options, judge_options(options, model), model.manifest if model else {})
    if is_one_of_many and options.out:
        plan = plan.below(Path(options.out))
    return Cell(options, plan, model)


def say_sources(cells: Sequence[Cell]) -> None:
    """What was chosen for the user, once."""
    for note in dict.fromkeys(cell.plan.source.note for cell in cells if cell.plan.source.note):
        sys.stderr.write(note + "\n")
