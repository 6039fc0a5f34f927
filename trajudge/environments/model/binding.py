"""Slots bound to a profile's data: the values, their decoys, and texts filled with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trajudge.environments.model.spec import Bound, ChoiceSlot, Derive, Number, Pick, Scenario, Slot
from trajudge.environments.model.state import AppState

_PLACE = re.compile(r"\{(\w+)(?:\[(\w+)\])?(?::(\w+))?\}")


class Infeasible(Exception):
    """The profile has nothing for a slot; the message names the slot and what is missing."""


def bind(scenario: Scenario, places: Mapping[str, float], state: AppState) -> Bound:
    """Return the value of every slot at its place. Raises Infeasible."""
    bound: dict[str, Any] = {}
    for name, slot in scenario.slots.items():
        values = candidates(slot, bound, state)
        if isinstance(slot, Derive):
            bound[name] = _only(name, values)
        elif len(values) < 2:
            reason = "no candidate" if not values else "a single candidate"
            raise Infeasible(f"{name}: {reason}")
        else:
            bound[name] = values[int(places[name] * len(values))]
    return bound


def decoyed(scenario: Scenario, bound: Bound, slot: str, state: AppState, step: int = 1) -> Bound:
    """Return the same binding but that ``slot`` holds a decoy: the candidate ``step`` places on, in
    a ring. Slots that were picked through it keep their values where these are still candidates.
    Raises Infeasible where one of them has none."""
    changed = dict(bound)
    for name, kind in scenario.slots.items():
        values = candidates(kind, changed, state)
        if isinstance(kind, Derive):
            changed[name] = _only(name, values)
        elif name == slot:
            changed[name] = values[(values.index(bound[name]) + step) % len(values)]
        elif bound[name] not in values:
            if not values:
                raise Infeasible(f"{name}: no candidate beside the decoy of {slot}")
            changed[name] = values[0]
    return changed


def _only(name: str, values: Sequence[Any]) -> Any:
    if len(values) != 1:
        raise Infeasible(f"{name}: {'a tie' if values else 'nothing follows'}")
    return values[0]


def candidates(slot: Slot, bound: Bound, state: AppState) -> Sequence[Any]:
    """Return all values that the slot can take."""
    match slot:
        case Pick(sql, _) | Derive(sql):
            return state.records(sql, **parameters(bound))
        case Number(low, high, _):
            return list(range(low, high + 1))
        case ChoiceSlot(values, _):
            return list(values)


def parameters(bound: Bound) -> dict[str, Any]:
    """Return what SQL may name: ``:slot`` (a row's key) and ``:slot_column``."""
    flat: dict[str, Any] = {}
    for name, value in bound.items():
        if isinstance(value, dict):
            flat[name] = next(iter(value.values()))
            flat |= {f"{name}_{column}": entry for column, entry in value.items()}
        else:
            flat[name] = value
    return flat


def filled(template: str, bound: Bound) -> str:
    """Return the text with ``{slot}``, ``{slot[column]}`` and ``{slot[column]:money}`` replaced.
    Raises KeyError for a slot or column that is not there."""
    return _PLACE.sub(lambda place: _shown(bound, *place.groups()), template)


def placeholders(template: str) -> list[str]:
    """Return the slots that the text names."""
    return [place[1] for place in _PLACE.finditer(template)]


def typed(value: str | int, bound: Bound) -> Any:
    """Return a value that is one placeholder as the bound value itself, else the filled text."""
    if isinstance(value, int):
        return value
    whole = _PLACE.fullmatch(value)
    if whole and not whole[3]:
        return _looked_up(bound, whole[1], whole[2])
    return filled(value, bound)


def money(cents: int) -> str:
    """``$1,234.50``."""
    sign = "-" if cents < 0 else ""
    return f"{sign}${abs(cents) // 100:,}.{abs(cents) % 100:02}"


def _looked_up(bound: Bound, slot: str, column: str | None) -> Any:
    value = bound[slot]
    if isinstance(value, dict):
        return value[column] if column else next(iter(value.values()))
    return value


def _shown(bound: Bound, slot: str, column: str | None, form: str | None) -> str:
    value = _looked_up(bound, slot, column)
    return money(value) if form == "money" else str(value)
