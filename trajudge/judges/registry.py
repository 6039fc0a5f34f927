"""The judges by name: those of ``judges/methods/``, the user's own files and packages, and
functions that a caller passes.

A judge of this package registers itself where it is written:

    @register_judge("webjudge", WebJudgeOptions, summary="...", representations=("screenshot",))
    class WebJudge: ...

Its module has the judge's name (``claims_first`` for ``claims-first``) or what stands before the
first ``-`` or ``:`` in it (``aer`` for ``aer-c`` and ``aer-v``): looking up one judge imports no
other. Its prompts and card are in ``prompts/NAME/``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial, wraps
from hashlib import sha256
from importlib import import_module
from inspect import iscoroutine, iscoroutinefunction, unwrap
from pathlib import Path
from pkgutil import iter_modules
from reprlib import repr as short
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any, TypeVar, cast

import orjson
from pydantic import BaseModel, ValidationError

from trajudge.judges import methods
from trajudge.judges.defences import (
    OF_EVERY,
    OF_PROMPTS,
    defended,
    own_options,
    read_defences,
    with_room,
)
from trajudge.judges.judging import RepairedJudge
from trajudge.judges.model import REPAIR, Judge, Model, Verdict
from trajudge.judges.prompting import AuxiliaryModel
from trajudge.prompts.render import Card, load_prompt
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import ALL, EVERYTHING, Needs, last, union
from trajudge.trajectories.plugins import PluginPoint, user_code_errors
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import read_utf8
from trajudge.util.validation import refused_value

DOOR = PluginPoint(group="trajudge.judges", option="--judge")

Factory = TypeVar("Factory", bound=Callable[..., Judge])


@dataclass(frozen=True, kw_only=True)
class JudgeEntry:
    """What is registered of a judge.

    ``make`` makes it of its options. ``id_options`` tell variants apart in the judge's id.
    ``representations`` are what it may be shown of a page, the first one by default; none: it
    reads no page. ``pictures`` is whose model must take images whatever the representation: ""
    nobody's, "judge" or one of ``models``. ``composed``: its members, other judges, are named with
    ``--members``. ``logprobs``: the model's endpoint must give token probabilities. ``prompt`` is
    the folder under ``prompts/``. ``answer_option`` is the option with which it is sent the agent's
    answer, where its own options leave it with what the actions hold of it. ``is_own``: it is the
    user's, with the ``digest`` of its code; ``needs`` is what that must see of a run (of ours, the
    options' class says so).
    """

    name: str
    make: Callable[[Any], Judge]
    options_class: type[Record] = Record
    summary: str = ""
    needs_model: bool = True
    id_options: tuple[str, ...] = ()
    representations: tuple[str, ...] = ()
    pictures: str = ""
    composed: bool = False
    logprobs: bool = False
    prompt: str = ""
    answer_option: str = ""
    is_own: bool = False
    digest: str = ""
    needs: Needs | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The options that give it other models than the run's own, as ``captioner`` for
        ``--captioner-model``."""
        fields = self.options_class.model_fields.items()
        return tuple(name for name, field in fields if field.annotation is AuxiliaryModel)

    @property
    def is_repaired(self) -> bool:
        """Whether a corrective turn may follow a reply of its model that cannot be read."""
        return self.needs_model and not self.is_own and not self.logprobs

    @property
    def card(self) -> Card | None:
        """The card with its source, scale and deviations; None for a user's own judge."""
        return None if self.is_own else load_prompt(self.prompt).card.of(self.name)

    def needs_pictures(self, role: str, representation: str | None) -> bool:
        """Return True if the model of ``role`` ("judge" or one of ``models``) is shown screenshots.
        ``representation`` None: the default one."""
        shown = representation or next(iter(self.representations), "none")
        by_representation = self.pictures == "" and shown in ("screenshot", "both")
        return role == self.pictures or (role == "judge" and by_representation)


_REGISTERED: dict[str, JudgeEntry] = {}


def register_judge(
    name: str, options: type[Record], *, prompt: str = "", **facts: Any
) -> Callable[[Factory], Factory]:
    """Register a class or function that makes a judge of its ``options``; ``facts`` are fields of
    ``JudgeEntry``, ``prompt`` the folder of its prompts where that is not named as the judge."""

    def register(make: Factory) -> Factory:
        folder = prompt or name.replace(":", "-")
        _REGISTERED[name] = JudgeEntry(
            name=name, make=make, options_class=options, prompt=folder, **facts
        )
        return make

    return register


@cache
def _modules() -> frozenset[str]:
    return frozenset(module.name for module in iter_modules(methods.__path__))


class _Judges(Mapping[str, JudgeEntry]):
    """The judges of this package. Iterating imports all of their modules, a look-up only one."""

    def __getitem__(self, name: str) -> JudgeEntry:
        for module in (re.sub(r"\W", "_", str(name)), re.split(r"\W", str(name))[0]):
            if module in _modules():
                import_module(f"trajudge.judges.methods.{module}")
        return _REGISTERED[name]

    def __iter__(self) -> Iterator[str]:
        for module in sorted(_modules()):
            import_module(f"trajudge.judges.methods.{module}")
        ours = _REGISTERED.values()
        return iter(
            one.name for one in sorted(ours, key=lambda one: (not one.needs_model, one.name))
        )

    def __len__(self) -> int:
        return len(list(iter(self)))


JUDGES: Mapping[str, JudgeEntry] = _Judges()


def judge_of_id(judge_id: str) -> str | None:
    """Return the name of this package's judge with the id (``simplified`` of
    ``simplified-axtree-success-last``), None for a user's own."""
    words = re.split(r"(?=\W)", judge_id)
    names = ("".join(words[:count]) for count in range(len(words), 0, -1))
    return next((name for name in names if name in JUDGES), None)


def find_judge(name: str) -> JudgeEntry:
    """Find the entry of a judge: a built-in one, a caller's function, of an installed package, or
    in a file (``path.py``). Raises UserError for an unknown name, and for a built-in judge's that a
    package brings, too."""
    if name in JUDGES:
        DOOR.refuse_namesake(name)
        return JUDGES[name]
    if given := _GIVEN.get().get(name):
        return given
    module = DOOR.module(name)
    if module is None:
        known = DOOR.names(JUDGES)
        close = did_you_mean(name, known)
        raise UserError(f"--judge {name}: no such judge{close or ';'} there are {', '.join(known)}")
    return _entry_of_module(name, module)


# Options of a judge, as a command line or a caller gives them


def read_json(option: str, path: Path, wanted: str) -> Any:
    """Read the JSON file that an option names. Raises UserError, which says what is ``wanted``, for
    a file that cannot be read or is not JSON."""
    try:
        return orjson.loads(read_utf8(path))
    except OSError as error:
        raise UserError(f"{option} {path}: cannot be read ({error.strerror})") from error
    except orjson.JSONDecodeError as error:
        raise UserError(f"{option} {path}: is not JSON ({error}); {wanted}") from error


def read_options(name: str, kind: type[Record], options: Mapping[str, Any]) -> Record:
    """Parse ``options`` into the judge's own class; those that every judge takes are left out.

    Raises UserError for an option that the judge does not take."""
    options = own_options(kind, options)
    for option in options:
        if option not in kind.model_fields:
            takes = ", ".join(kind.model_fields) or "none of its own"
            every = ", ".join(OF_EVERY)
            raise UserError(
                f"judge {name}: no option {option!r}; it takes {takes}; every judge takes {every}"
            )
    try:
        return kind.model_validate(options)
    except ValidationError as error:
        option, value, why, missing = refused_value(error)
        if missing:
            raise UserError(f"judge {name}: needs the option {option}=VALUE") from error
        shown = "" if isinstance(value, Mapping | list) else f" = {value!r}"
        what = f"{option}{shown}: " if option else ""  # options that do not go together have none
        raise UserError(f"judge {name}: {what}{why}; mend this option") from error


def split_model(text: str) -> tuple[str, str]:
    """Split ``NAME[:MODEL]`` into judge and model, "" for none; a judge's own name may hold a
    colon."""
    name, _, model = text.partition(":")
    longer, _, rest = model.partition(":")
    if name not in JUDGES and f"{name}:{longer}" in JUDGES:
        return f"{name}:{longer}", rest
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
    on = read_defences(name, entry.options_class, options or {})
    parsed = read_options(name, entry.options_class, options or {})
    judge_id = _id(entry, parsed) + on.suffix
    repair = repair_of(name, options or {})
    if entry.composed:
        whole = _with_defended_members(parsed, on.of_prompts)
        if repair:
            whole = _with_member_options(whole, {REPAIR: repair}, lambda entry: entry.is_repaired)
        judge = entry.make(whole)
        return judge_id, defended(judge, on.model_copy(update=dict.fromkeys(OF_PROMPTS)))
    for defence in on.of_prompts:
        if why := unfit(entry, defence):
            raise UserError(f"judge {name}: {why}: leave {defence} out")
    tags = load_prompt(entry.prompt).tags if on.nonce is not None else frozenset[str]()
    judge = entry.make(with_room(parsed, on))
    return judge_id, defended(RepairedJudge(judge, repair) if repair else judge, on, tags)


MOST_REPAIRS = 3


def repair_of(name: str, options: Mapping[str, Any]) -> int:
    """Return how many corrective turns a judge may take, of the option ``repair`` that every judge
    takes (default: 0). Raises UserError."""
    value = options.get(REPAIR, 0)
    if type(value) is not int or not 0 <= value <= MOST_REPAIRS:
        raise UserError(
            f"judge {name}: {REPAIR} = {value!r}: give a number from 0 to {MOST_REPAIRS}"
        )
    return value


def unfit(entry: JudgeEntry, defence: str) -> str:
    """Return why a judge cannot have a defence, "" if it can; of a composed judge its members have
    it."""
    if defence not in OF_PROMPTS or entry.composed:
        return ""
    if not entry.needs_model:
        return f"asks no model, and {defence} changes prompts"
    if defence == "canary" and entry.logprobs:
        return "answers with one word, which no canary fits"
    if defence == "nonce" and entry.is_own:
        return "which tags its prompts have is not known, and nonce ends them"
    return ""


def _with_defended_members(options: Any, defences: Mapping[str, Any]) -> Any:
    """Return a composed judge's options with ``defences`` for the members that ask a model. Raises
    UserError if there is none."""
    if not defences:
        return options
    if not any(find_judge(member.name).needs_model for member in options.of.members):
        first = next(iter(defences))
        raise UserError(f"{first}: changes prompts, and no member asks a model: leave it out")
    return _with_member_options(options, defences, lambda entry: entry.needs_model)


def _with_member_options(
    options: Any, given: Mapping[str, Any], takes: Callable[[JudgeEntry], bool]
) -> Any:
    """Return a composed judge's options with further ones for the members that take them."""
    members = tuple(
        member.model_copy(update={"given": member.given | given})
        if takes(find_judge(member.name))
        else member
        for member in options.of.members
    )
    return options.model_copy(update={"of": options.of.model_copy(update={"members": members})})


def needs_of(name: str, options: Mapping[str, Any] | None = None) -> Needs:
    """Return what the judge with these options must see of a run: by its entry, else by ``needs``
    of its options, else everything; with more where a defence looks at more. Raises UserError as
    ``make_judge`` does."""
    entry = find_judge(name)
    needs = entry.needs
    if needs is None:
        parsed = read_options(name, entry.options_class, options or {})
        needs = _check_needs(name, getattr(parsed, "needs", EVERYTHING))
    if read_defences(name, entry.options_class, options or {}).cross_modal:
        # It compares every tree, and the pictures around the last action.
        compared = union([needs, Needs(trees=ALL, screenshots=last(2))])
        return compared.model_copy(update={"requires": needs.requires})
    return needs


def answer_options(name: str, options: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return which judges, this one or its members, are not sent an answer that no action holds,
    each with the option that sends it. Raises UserError as ``make_judge`` does."""
    entry, given = find_judge(name), options or {}
    if entry.composed:
        each = [answer_options(one.name, one.options | one.given) for one in _members(entry, given)]
        return {judge: option for member in each for judge, option in member.items()}
    withheld = entry.answer_option and not needs_of(name, given).answer
    return {name: entry.answer_option} if withheld else {}


def versions_of(name: str, options: Mapping[str, Any]) -> dict[str, int]:
    """Return the versions on the cards of a judge and of its members, by name; a user's own judge
    has none. Raises UserError as ``make_judge`` does."""
    entry = find_judge(name)
    versions = {name: entry.card.version} if entry.card else {}
    for member in _members(entry, options):
        versions |= versions_of(member.name, member.options | member.given)
    return versions


def _members(entry: JudgeEntry, options: Mapping[str, Any]) -> Sequence[Any]:
    """Return the members of a composed judge, none of any other."""
    if not entry.composed:
        return ()
    composed: Any = read_options(entry.name, entry.options_class, options)
    members: Sequence[Any] = composed.of.members
    return members


_OF_SOURCES = ("prompts", "untrusted", "ladder")


def _id(entry: JudgeEntry, options: Record) -> str:
    """Build the id: the name; the representation or variant always, other id options where they are
    not the default, other models where there are any. What prompts of a source are asked with is
    told by its values alone (of ``prompts`` the source without its path)."""
    parts = [entry.name]
    for option in entry.id_options:
        value = getattr(options, option)
        if option == "prompts":
            value = value.partition(":")[0]
        default = type(options).model_fields[option].default
        if option in ("representation", "variant"):
            parts.append(f"{value}")
        elif option in _OF_SOURCES:
            parts += [value] if value != default else []
        elif value.model if isinstance(value, AuxiliaryModel) else value != default:
            parts.append(f"{option}-{value}")
    return "-".join(parts)


# Judges of users


def _entry_of_module(name: str, module: ModuleType) -> JudgeEntry:
    """Describe a user's judge: ``judge`` of the module, a factory where that has ``Options``.
    Raises UserError if it holds none."""
    factory = getattr(module, "judge", None)
    if not callable(factory):
        raise UserError(f"--judge {name}: must define  async def judge(trajectory, ask) -> Verdict")
    options = getattr(module, "Options", None)
    asks: object = getattr(module, "needs_model", True)
    if not isinstance(asks, bool):
        raise UserError(f"--judge {name}: needs_model = {asks!r}: make it True or False")
    label = Path(name).stem if name.endswith(".py") else name

    def make(parsed: Record) -> Judge:
        made = factory
        if options is not None:
            with user_code_errors(f"--judge {label}: judge(options) failed", factory, "correct it"):
                made = factory(parsed)
        return _guarded(label, _checked(label, made, by_factory=options is not None))

    return JudgeEntry(
        name=label,
        make=make,
        options_class=options or Record,
        summary=str(getattr(module, "summary", module.__doc__ or "")).strip().split("\n")[0],
        needs_model=asks,
        representations=tuple(getattr(module, "representations", ())),
        is_own=True,
        digest=getattr(module, "__digest__", ""),
        needs=_check_needs(name, module.needs) if hasattr(module, "needs") else None,
    )


def _is_async(judge: object) -> bool:
    """Return True if a judge, a function or an instance, is to be awaited."""
    called = (unwrap(judge) if callable(judge) else judge, getattr(judge, "__call__", None))  # noqa: B004
    return any(map(iscoroutinefunction, called))


def _checked(name: str, judge: object, *, by_factory: bool) -> Judge:
    """Return the user's judge. Raises UserError if it is none that can be awaited."""
    if iscoroutine(judge):  # made by a coroutine function; nobody awaits it
        judge.close()
    if not _is_async(judge):
        write = "async def judge(trajectory, ask)"
        if by_factory:
            gave = f"judge(options) gave {type(judge).__name__}"
            raise UserError(f"--judge {name}: {gave}: let  def judge(options)  return an  {write}")
        raise UserError(f"--judge {name}: judge is no coroutine function: write  {write}")
    return cast(Judge, judge)


def _check_needs(name: str, declared: object) -> Needs:
    """Return what a judge says that it needs. Raises UserError for what says nothing of the
    kind."""
    if not isinstance(declared, Needs):
        raise UserError(
            f"--judge {name}: needs = {declared!r}: make it a trajectories.needs.Needs, for "
            "instance  Needs(screenshots=last(3))"
        )
    return declared


def _guarded(name: str, judge: Judge) -> Judge:
    """Return the user's judge with its own mistakes reported in one sentence.

    The new judge raises UserError, with the judge's line, where the user's code raises an
    exception that is none of ours; the traceback is logged. Everything else passes.
    """
    mend = "correct the judge; what was judged before is kept"
    logged: set[str] = set()  # of trajectories that are judged at once every one fails

    @wraps(judge)
    async def guarded(trajectory: Trajectory, ask: Model) -> Verdict:
        with user_code_errors(f"judge {name} failed on {trajectory.key}", judge, mend, logged):
            return await judge(trajectory, ask)

    return guarded


def _as_it_is(judge: Judge, options: Record) -> Judge:
    return judge


# Of this context alone: two calls that run at once may each have a judge of the same name.
_GIVEN: ContextVar[Mapping[str, JudgeEntry]] = ContextVar("given", default=MappingProxyType({}))


@contextmanager
def given_judges(
    judges: Sequence[Judge], *, needs_model: bool, taken: Collection[str]
) -> Iterator[list[str]]:
    """Let ``find_judge`` find ``judges`` inside the block, by the names that this yields.

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
        inner = judge.func if isinstance(judge, partial) else judge
        name = re.sub(r"\W", "", getattr(inner, "__name__", type(inner).__name__)) or "judge"
        if name in taken or name in entries:
            raise UserError(f"the judge function {name!r} has the name of another: rename it")
        if not _is_async(judge):
            raise UserError(
                f"the judge {name!r} is no coroutine function: write  async def {name}(trajectory, "
                "ask)  that returns a Verdict"
            )
        declared = getattr(judge, "needs", None)
        entries[name] = JudgeEntry(
            name=name,
            make=partial(_as_it_is, _guarded(name, judge)),
            needs_model=needs_model,
            summary=(inspect.getdoc(judge) or "").split("\n")[0],
            is_own=True,
            digest=digest(judge),
            needs=None if declared is None else _check_needs(name, declared),
        )
    token = _GIVEN.set({**_GIVEN.get(), **entries})
    try:
        yield list(entries)
    finally:
        _GIVEN.reset(token)


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
