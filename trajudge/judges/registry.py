"""The judges by name: those of ``judges.toml``, the user's own files and packages, and functions
that a caller passes.

A judge's module is imported when the judge is made, so that listing judges imports none.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, partial, wraps
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from inspect import iscoroutine, iscoroutinefunction, unwrap
from pathlib import Path
from reprlib import repr as short
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any, cast

import orjson
from pydantic import BaseModel

from trajudge.judges.defences import defended, read_defences, with_defended_members, with_room
from trajudge.judges.entry import JudgeEntry
from trajudge.judges.model import Judge, ModelClient, Verdict
from trajudge.judges.options import read_options
from trajudge.judges.prompting import AuxiliaryModel
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey
from trajudge.trajectories.needs import ALL, EVERYTHING, Needs, last, union
from trajudge.trajectories.plugins import PluginPoint, user_code_errors
from trajudge.util.errors import UserError, did_you_mean

DOOR = PluginPoint(group="trajudge.judges", option="--judge")


def module_of(name: str) -> ModuleType | None:
    """Return the module of a user's judge: ``name`` is a path to a ``.py`` file or an entry point;
    None if it is neither. Raises UserError if it cannot be loaded."""
    return DOOR.module(name)


def describe(name: str, module: ModuleType) -> JudgeEntry:
    """Describe a user's judge. Raises UserError if the module holds none."""
    if not callable(getattr(module, "judge", None)):
        raise UserError(f"--judge {name}: must define  async def judge(trajectory, ask) -> Verdict")
    return JudgeEntry(
        module=module.__name__,
        judge="judge",
        options="Options" if hasattr(module, "Options") else "",
        needs_model=_flag(name, module),
        summary=str(getattr(module, "summary", module.__doc__ or "")).strip().split("\n")[0],
        representations=tuple(getattr(module, "representations", ())),
        label=Path(name).stem if name.endswith(".py") else name,
        digest=getattr(module, "__digest__", ""),
        needs=check_needs(name, module.needs) if hasattr(module, "needs") else None,
    )


def _flag(name: str, module: ModuleType) -> bool:
    asks: object = getattr(module, "needs_model", True)
    if not isinstance(asks, bool):
        raise UserError(f"--judge {name}: needs_model = {asks!r}: make it True or False")
    return asks


def is_async(judge: object) -> bool:
    """Tell whether a judge, a function or an instance, is to be awaited."""
    called = (unwrap(judge) if callable(judge) else judge, getattr(judge, "__call__", None))  # noqa: B004
    return any(map(iscoroutinefunction, called))


def check_needs(name: str, declared: object) -> Needs:
    """Return what a judge says that it needs. Raises UserError for what says nothing of the
    kind."""
    if not isinstance(declared, Needs):
        raise UserError(
            f"--judge {name}: needs = {declared!r}: make it a trajectories.needs.Needs, for "
            "instance  Needs(screenshots=last(3))"
        )
    return declared


def checked(name: str, judge: object, *, made: bool) -> Judge:
    """Return the user's judge; ``made``: by its factory ``judge(options)``. Raises UserError if it
    is none that can be awaited."""
    if iscoroutine(judge):  # made by a coroutine function; nobody awaits it
        judge.close()
    if not is_async(judge):
        write = "async def judge(trajectory, ask)"
        if made:
            gave = f"judge(options) gave {type(judge).__name__}"
            raise UserError(f"--judge {name}: {gave}: let  def judge(options)  return an  {write}")
        raise UserError(f"--judge {name}: judge is no coroutine function: write  {write}")
    return cast(Judge, judge)


def explained(name: str, judge: Judge) -> Judge:
    """Return the user's judge with its own mistakes said in one sentence.

    The new judge raises UserError, with the judge's line, where the user's code raises an
    exception that is none of ours; the traceback is logged. Everything else passes.
    """
    mend = "correct the judge; what was judged before is kept"
    logged: set[str] = set()  # of trajectories that are judged at once every one fails

    @wraps(judge)
    async def guarded(trajectory: Trajectory, ask: ModelClient) -> Verdict:
        with user_code_errors(f"judge {name} failed on {trajectory.key}", judge, mend, logged):
            return await judge(trajectory, ask)

    return guarded


# Of this context alone: two calls that run at once may each have a judge of the same name.
_GIVEN: ContextVar[Mapping[str, JudgeEntry]] = ContextVar("given", default=MappingProxyType({}))


def given_entry(name: str) -> JudgeEntry | None:
    """Return the entry of a judge that was handed over, None if there is none of that name."""
    return _GIVEN.get().get(name)


@contextmanager
def given_judges(
    judges: Sequence[Judge], *, needs_model: bool, taken: Collection[str]
) -> Iterator[list[str]]:
    """Let the registry find ``judges`` inside the block, by the names that this yields.

    A judge is named as its function is. Raises UserError for one that is no function, or no ``async
    def``, has a name that is ``taken``, or the name of another.
    """
    entries: dict[str, JudgeEntry] = {}
    for judge in judges:
        if not callable(judge):
            raise UserError(
                f"judge is {short(judge)}: give a judge's name, a function  async def "
                "judge(trajectory, ask)  that returns a Verdict, or leave it out for simplified"
            )
        name = _name(judge)
        if name in taken or name in entries:
            raise UserError(f"the judge function {name!r} has the name of another: rename it")
        entries[name] = _entry(name, judge, needs_model)
    token = _GIVEN.set({**_GIVEN.get(), **entries})
    try:
        yield list(entries)
    finally:
        _GIVEN.reset(token)


def _entry(name: str, judge: Judge, needs_model: bool) -> JudgeEntry:
    if not is_async(judge):
        raise UserError(
            f"the judge {name!r} is no coroutine function: write  async def {name}(trajectory, "
            "ask)  that returns a Verdict"
        )
    declared = getattr(judge, "needs", None)
    return JudgeEntry(
        module="",
        judge=name,
        options="",
        needs_model=needs_model,
        summary=(inspect.getdoc(judge) or "").split("\n")[0],
        label=name,
        digest=digest(judge),
        needs=None if declared is None else check_needs(name, declared),
        function=judge,
    )


def _name(judge: object) -> str:
    inner = judge.func if isinstance(judge, partial) else judge
    name = getattr(inner, "__name__", type(inner).__name__)
    return re.sub(r"\W", "", name) or "judge"


def digest(judge: object) -> str:
    """Return SHA-256 (hexadecimal) over what a function does: its source, the plain values that it
    reads from outside, and the functions of its own module that it calls.

    A run in a folder is known again by it, so a prompt that changed in another cell of a notebook
    is another judge.
    """
    return sha256("\n".join(_content(judge, set())).encode(errors="backslashreplace")).hexdigest()


def _content(thing: object, seen: set[int]) -> Iterator[str]:
    """Yield what makes up a function, class, instance or plain value, each object once."""
    if (plain := _plain(thing)) is not None:
        yield plain
        return
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, partial):
        yield from _content(thing.func, seen)
        for value in (*thing.args, *(thing.keywords[name] for name in sorted(thing.keywords))):
            yield from _content(value, seen)
    elif inspect.ismethod(thing):
        yield from _content(thing.__func__, seen)
        yield from _content(thing.__self__, seen)
    elif isinstance(thing, FunctionType):
        yield _source(thing)
        for value in _read_from_outside(thing):
            yield from _content(value, seen)
    elif inspect.isclass(thing):
        yield _source(thing)
    elif callable(thing) and hasattr(thing, "__dict__"):
        yield from _content(type(thing), seen)
        yield from (f"{k}={p}" for k, v in sorted(vars(thing).items()) if (p := _plain(v)))


def _source(thing: FunctionType | type) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return f"{thing.__qualname__} {_compiled(getattr(thing, '__code__', None))}"


def _compiled(code: CodeType | None) -> str:
    """Return what stands for the source of a function that was typed in."""
    if code is None:
        return ""
    constants = [
        _compiled(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts
    ]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _read_from_outside(function: FunctionType) -> Iterator[object]:
    """Yield defaults, what is closed over, and the globals of the function's own module."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in sorted(_names(function.__code__)):
        value = function.__globals__.get(name)
        if _plain(value) is not None or getattr(value, "__module__", "") == function.__module__:
            yield value


def _names(code: CodeType) -> set[str]:
    nested = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, nested))


def _plain(value: object) -> str | None:
    """Return a value of plain data as text that is the same in every process, None for others."""
    if value is None or isinstance(value, str | bytes | int | float):
        return repr(value)
    if isinstance(value, BaseModel):
        return f"{type(value).__name__} {sorted(value.model_dump().items())!r}"
    if isinstance(value, Mapping):
        parts = [f"{_plain(key)}: {_plain(one)}" for key, one in value.items()]
        return f"{{{', '.join(sorted(parts))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(str(_plain(one)) for one in value)}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(str(_plain(one)) for one in value))}}}"
    return None


_METHODS = "trajudge.judges.methods"


class _Register(Mapping[str, JudgeEntry]):
    """The entries of ``judges.toml``."""

    @cached_property
    def _entries(self) -> dict[str, JudgeEntry]:
        tables = tomllib.loads(files(__package__).joinpath("judges.toml").read_text("utf-8"))
        return {name: _registered_entry(**table) for name, table in tables.items()}

    def __getitem__(self, name: str) -> JudgeEntry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _registered_entry(module: str, judge: str, **fields: Any) -> JudgeEntry:
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    defaults = {"options": f"{judge}Options", "needs_model": True}
    home = module if "." in module else f"{_METHODS}.{module}"
    return JudgeEntry(module=home, judge=judge, **{**defaults, **fields, **lists})


JUDGES: Mapping[str, JudgeEntry] = _Register()


def find_judge(name: str) -> JudgeEntry:
    """Find the entry of a judge: a built-in one, a caller's function, of an installed package, or
    in a file (``path.py``). Raises UserError for an unknown name, and for a built-in judge's that a
    package brings, too."""
    if name in JUDGES:
        DOOR.refuse_namesake(name)
        return JUDGES[name]
    if given := given_entry(name):
        return given
    module = module_of(name)
    if module is None:
        known = DOOR.names(JUDGES)
        close = did_you_mean(name, known)
        raise UserError(f"--judge {name}: no such judge{close or ';'} there are {', '.join(known)}")
    return describe(name, module)


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
        return explained(entry.label, entry.function)
    factory = getattr(import_module(entry.module), entry.judge)
    if not entry.label:
        judge: Judge = factory(options) if entry.options else factory
        return judge
    with user_code_errors(f"--judge {entry.label}: judge(options) failed", factory, "correct it"):
        made = factory(options) if entry.options else factory
    judge = checked(entry.label, made, made=bool(entry.options))
    return explained(entry.label, judge)


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


_LENGTH = 32


def key_hash(key: TrajectoryKey) -> str:
    """Hash a trajectory's key, so that a model file names no benchmark's tasks."""
    return sha256(orjson.dumps(key.order)).hexdigest()[:_LENGTH]


def training_hashes(judge: object) -> frozenset[str] | None:
    """Return the hashes of the judge's training set (of all members of a composed judge); None: it
    was trained on trajectories that it does not name."""
    hashes: frozenset[str] | None = getattr(judge, "training_keys", frozenset())
    return hashes


def combined_hashes(judges: Iterable[object]) -> frozenset[str] | None:
    """Combine the training sets of several judges; None where one of them is not known."""
    each = [training_hashes(judge) for judge in judges]
    known = [hashes for hashes in each if hashes is not None]
    return frozenset().union(*known) if len(known) == len(each) else None
