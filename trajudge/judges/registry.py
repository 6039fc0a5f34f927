"""The judges by name: those of ``judges.toml``, and those that other rooms register.

A judge's module is imported when the judge is made, so that ``--help`` needs none of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from typing import Any

from trajudge.judges import plugins
from trajudge.judges.defences.applying import defended, with_defended_members, with_room
from trajudge.judges.defences.options import read_defences
from trajudge.judges.entry import JudgeEntry
from trajudge.judges.functions import given_entry
from trajudge.judges.model import Judge
from trajudge.judges.options import read_options
from trajudge.judges.plugins import check_needs
from trajudge.judges.prompting.auxiliary_model import AuxiliaryModel
from trajudge.judges.providers import PROVIDERS
from trajudge.trajectories.model import Record
from trajudge.trajectories.needs import ALL, EVERYTHING, Needs, last, union
from trajudge.trajectories.plugins import mistakes_said
from trajudge.trajectories.util.errors import UserError, did_you_mean

_METHODS = "trajudge.judges.methods"


class _Register(Mapping[str, JudgeEntry]):
    """The entries of ``judges.toml``, then those of the rooms that bring judges of their own."""

    @cached_property
    def _entries(self) -> dict[str, JudgeEntry]:
        tables = tomllib.loads(files(__package__).joinpath("judges.toml").read_text("utf-8"))
        entries = {name: _entry(**table) for name, table in tables.items()}
        for provide in PROVIDERS:
            entries |= provide()
        return entries

    def __getitem__(self, name: str) -> JudgeEntry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _entry(module: str, judge: str, **fields: Any) -> JudgeEntry:
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    defaults = {"options": f"{judge}Options", "needs_model": True}
    return JudgeEntry(module=f"{_METHODS}.{module}", judge=judge, **{**defaults, **fields, **lists})


JUDGES: Mapping[str, JudgeEntry] = _Register()


def find_judge(name: str) -> JudgeEntry:
    """Find the entry of a judge: a built-in one, a caller's function, of an installed package, or
    in a file (``path.py``). Raises UserError for an unknown name, and for a built-in judge's that a
    package brings, too."""
    if name in JUDGES:
        plugins.DOOR.refuse_namesake(name)
        return JUDGES[name]
    if given := given_entry(name):
        return given
    module = plugins.module_of(name)
    if module is None:
        known = plugins.DOOR.names(JUDGES)
        close = did_you_mean(name, known)
        raise UserError(f"--judge {name}: no such judge{close or ';'} there are {', '.join(known)}")
    return plugins.describe(name, module)


def split_model(text: str) -> tuple[str, str]:
    """Split ``NAME[:MODEL]`` into judge and model, "" for none; a judge's own name may hold a
    colon."""
    for name in JUDGES:
        if text == name or text.startswith(f"{name}:"):
            return name, text[len(name) + 1 :]
    name, _, model = text.partition(":")
    return name, model


def with_model(name: str, model: str | None) -> str:
    """Name a judge with its model, as ``split_model`` reads it."""
    return f"{name}:{model}" if model else name


def check_representation(name: str, representation: str) -> None:
    """Raise UserError if the judge cannot be shown a page that way."""
    takes = find_judge(name).representations
    if representation not in takes:
        reads = f"reads {' or '.join(takes)} only" if takes else "reads no page"
        raise UserError(
            f"--representation {representation}: judge {name} {reads}: leave the option out, "
            "or choose another --judge"
        )


def make_judge(name: str, options: Mapping[str, Any] | None = None) -> tuple[str, Judge]:
    """Make a judge; return its id (such as ``simplified-axtree``) and the judge.

    Raises UserError for an unknown name, an unknown option or a value that it does not take.
    """
    entry = find_judge(name)
    defences = read_defences(name, entry.options_class, options or {})
    parsed = read_options(name, entry.options_class, options or {})
    judge_id = _id(entry.label or name, entry, parsed) + defences.suffix
    if entry.composed:
        parsed = with_defended_members(parsed, defences, _asks)
    judge = _made(entry, with_room(parsed, defences))
    return judge_id, defended(name, entry, judge, defences)


def _asks(name: str) -> bool:
    return find_judge(name).needs_model


def _made(entry: JudgeEntry, options: Record) -> Judge:
    if entry.function is not None:
        return plugins.explained(entry.label, entry.function)
    factory = getattr(import_module(entry.module), entry.judge)
    if not entry.label:
        judge: Judge = factory(options) if entry.options else factory
        return judge
    with mistakes_said(f"--judge {entry.label}: judge(options) failed", factory, "correct it"):
        made = factory(options) if entry.options else factory
    judge = plugins.checked(entry.label, made, made=bool(entry.options))
    return plugins.explained(entry.label, judge)


def needs_of(name: str, options: Mapping[str, Any] | None = None) -> Needs:
    """Return what the judge with these options must see of a run: by its entry, else by ``needs``
    of its options, else everything; with more where a defence looks at more. Raises UserError as
    ``make_judge`` does."""
    entry = find_judge(name)
    needs = entry.needs
    if needs is None:
        kind = read_options(name, entry.options_class, options or {})
        needs = check_needs(name, getattr(kind, "needs", EVERYTHING))
    defences = read_defences(name, entry.options_class, options or {})
    return _with_compared(needs) if defences.cross_modal else needs


def answer_options(name: str, options: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return which judges, this one or its members, are not sent an answer that no action holds,
    each with the option that sends it. Raises UserError as ``make_judge`` does."""
    entry, given = find_judge(name), options or {}
    if entry.composed:
        composed = read_options(name, entry.options_class, given)
        members = getattr(composed, "of").members  # noqa: B009 - any composed judge's
        each = [answer_options(member.name, member.options | member.given) for member in members]
        return {judge: option for member in each for judge, option in member.items()}
    withheld = entry.answer_option and not needs_of(name, given).answer
    return {name: entry.answer_option} if withheld else {}


def _with_compared(needs: Needs) -> Needs:
    """Add what ``cross_modal`` compares: every tree, and the pictures around the last action."""
    compared = union([needs, Needs(trees=ALL, screenshots=last(2))])
    return compared.model_copy(update={"requires": needs.requires})


def _id(name: str, entry: JudgeEntry, options: Record) -> str:
    """Build the id: the name; the representation or variant always, other id options where they are
    not the default, other models where there are any."""
    parts = [name]
    for option in entry.id_options:
        value = getattr(options, option)
        default = type(options).model_fields[option].default
        if option in ("representation", "variant"):
            parts.append(f"{value}")
        elif value.model if isinstance(value, AuxiliaryModel) else value != default:
            parts.append(f"{option}-{value}")
    return "-".join(parts)
