"""The judges by name: the one place where they are listed.

A judge's module is imported when the judge is made, so that ``--help`` needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pydantic import ValidationError

from judges.model import Judge
from trajectories.errors import UserError
from trajectories.model import Record


@dataclass(frozen=True)
class Entry:
    """``judge`` and ``options`` name a factory (options -> Judge) and its options' class, both in
    ``module``; ``id_options`` those that tell variants apart in the judge's id."""

    module: str
    judge: str
    options: str
    needs_model: bool
    summary: str
    id_options: tuple[str, ...] = ()


JUDGES: Mapping[str, Entry] = {
    "simplified": Entry(
        module="judges.simplified",
        judge="Simplified",
        options="SimplifiedOptions",
        needs_model=True,
        summary="one call: success, side effect, optimality, repetition (AgentRewardBench)",
        id_options=("representation", "success", "prompts"),
    ),
    "rule-based": Entry(
        module="judges.baselines",
        judge="rule_based",
        options="RuleBasedOptions",
        needs_model=False,
        summary="the benchmark's own reward, above 0.5",
    ),
    "heuristic": Entry(
        module="judges.baselines",
        judge="heuristic",
        options="HeuristicOptions",
        needs_model=False,
        summary="documented rules over the steps",
    ),
}


def find_judge(name: str) -> Entry:
    """The entry of a judge. Raises UserError for a name that is not there."""
    if name not in JUDGES:
        raise UserError(f"--judge {name}: no such judge; there are {', '.join(JUDGES)}")
    return JUDGES[name]


def make_judge(name: str, options: Mapping[str, Any] | None = None) -> tuple[str, Judge]:
    """The judge's id (such as ``simplified-axtree``) and the judge.

    Raises UserError for an unknown name, an unknown option or a value that it does not take.
    """
    entry = find_judge(name)
    module = import_module(entry.module)
    made = _options(name, getattr(module, entry.options), options or {})
    factory: Callable[[Record], Judge] = getattr(module, entry.judge)
    return _id(name, entry, made), factory(made)


def _options(name: str, kind: type[Record], options: Mapping[str, Any]) -> Record:
    for option in options:
        if option not in kind.model_fields:
            takes = ", ".join(kind.model_fields) or "none"
            raise UserError(f"judge {name}: no option {option!r}; it takes {takes}")
    try:
        return kind.model_validate(options)
    except ValidationError as error:
        first = error.errors()[0]
        option = ".".join(map(str, first["loc"]))
        raise UserError(
            f"judge {name}: {option} = {first['input']!r}: {first['msg']}; mend this option"
        ) from error


def _id(name: str, entry: Entry, options: Record) -> str:
    """The name, the first of the id options always, the others where they are not the default."""
    parts = [name]
    for position, option in enumerate(entry.id_options):
        value = getattr(options, option)
        if position == 0 or value != type(options).model_fields[option].default:
            parts.append(f"{value}" if position == 0 else f"{option}-{value}")
    return "-".join(parts)
