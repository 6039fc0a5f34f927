"""Commands from records of settings: a setting is declared once, as a field.

How to write a command, here ``trajudge greet NAME --times N``::

    class GreetConfig(Settings):                  # in a module that is quick to import
        \"\"\"Greet people.                        # what --help shows, examples indented

          trajudge greet Ada --times 2
        \"\"\"

        name: Annotated[str, Argument("NAME", "who is greeted")]
        times: Annotated[int, Field(ge=1, le=9), Option("greetings", "N")] = 1
        out: Annotated[Path | None, Output("write them", "FILE")] = None

    def greet(config: GreetConfig) -> int: ...    # the work; returns the exit code

and in ``trajudge.eval.cli`` the line
``"greet": Command("room.greet:greet", "greet people", "room.settings:GreetConfig")``.

Derived from the field: the option's name (``--times``), how it is read (``bool``: a switch,
``Literal``: choices, ``tuple[X, ...]`` and ``dict``: repeated, ``tuple[X, Y]``: two words), the
default in its help, the checks of what is read (no pipe) and written (``Output``: before the work),
the key in ``--config FILE`` (for commands with ``first``), the keyword in Python (``make``). Bounds
and types are pydantic's; an error is one sentence that begins ``--times 0: ``. A validator may
raise ValueError or UserError with a sentence of its own. A field without Option is no option; a
field whose type is another Settings is a group of options (``Only`` takes some of them).
Class variables: ``first`` (the options that ``--help`` explains of many), ``sections`` (field ->
title of the group that begins there), ``exclusive`` (fields of which one may be given), ``epilog``.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NoReturn,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from trajudge.util.commands import HIGHEST_PORT, LARGEST
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import check_file, check_folder, read_text, special_kind
from trajudge.util.terminal import (
    LINES,
    ParagraphFormatter,
    fitted,
    help_width,
    option_index,
    terminal_width,
)


@dataclass(frozen=True)
class Option:
    """An option: its help, the placeholder of its value (default: by its type), its name if it
    differs from the field's, and whether it takes several values at once (``--runs A B``)."""

    help: str
    metavar: str = ""
    name: str = ""
    several: bool = False


@dataclass(frozen=True)
class Output(Option):
    """An option for a file, or with the metavar DIR a folder, to write."""


class Argument(Option):
    """A positional argument of the command line."""

    def __init__(self, metavar: str, help: str) -> None:
        super().__init__(help, metavar)


class Only:
    """Include only these options of a group of settings."""

    def __init__(self, *names: str) -> None:
        self.names = names


class Settings(BaseModel):
    """A frozen record of settings; its docstring is the command's description."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    first: ClassVar[tuple[str, ...]] = ()
    sections: ClassVar[Mapping[str, str]] = {}
    exclusive: ClassVar[Sequence[tuple[str, ...]]] = ()
    epilog: ClassVar[str] = ""

    @classmethod
    def prepare(cls, words: Sequence[str]) -> None:
        """Prepare a command before its arguments are parsed."""

    @model_validator(mode="after")
    def _check_exclusive(self) -> Self:
        for names in self.exclusive:
            given = [_flag(type(self), name) for name in names if getattr(self, name)]
            if len(given) > 1:
                raise ValueError(f"{' and '.join(given)} exclude each other: give one of them")
        return self


S = TypeVar("S", bound=Settings)

Seed = Annotated[int, Field(ge=0, le=LARGEST)]
"""The seed of random draws: at most what a file of ours can hold."""

Count = Annotated[int, Field(ge=1, le=LARGEST)]
Positive = Annotated[float, Field(gt=0)]
Port = Annotated[int, Field(ge=0, le=HIGHEST_PORT)]
"""A port to listen on; 0 is any free one."""

Workers = Annotated[int, Field(ge=1, le=1_000)]
"""Processes, or browsers, at once."""


@dataclass(frozen=True)
class Setting:
    """An option of a command: the location of its field, and properties of the field's type.

    ``path`` are the names of the groups above the field; ``inner`` is the type of one value;
    ``words`` is the number of words of a value (0: a switch).
    """

    path: tuple[str, ...]
    field: str
    option: Option
    info: FieldInfo
    default: Any
    section: str

    @property
    def name(self) -> str:
        """The name as a keyword: ``max_cost``."""
        return self.option.name or self.field

    @property
    def flag(self) -> str:
        """The name on the command line: ``--max-cost``, or an argument's metavar."""
        if isinstance(self.option, Argument):
            return self.option.metavar
        return "--" + self.name.replace("_", "-")

    @cached_property
    def kind(self) -> Any:
        """The type without None."""
        return _without_none(self.info.annotation)

    @property
    def is_switch(self) -> bool:
        return self.kind is bool

    @property
    def is_repeated(self) -> bool:
        """Whether it may have any number of values."""
        kind = self.kind
        return get_origin(kind) is dict or (get_origin(kind) is tuple and ... in get_args(kind))

    @cached_property
    def inner(self) -> Any:
        """The type of one value."""
        if get_origin(self.kind) is tuple and self.is_repeated:
            return _without_none(get_args(self.kind)[0])
        return str if get_origin(self.kind) is dict else self.kind

    @property
    def words(self) -> int:
        if self.is_switch:
            return 0
        return len(get_args(self.inner)) if get_origin(self.inner) is tuple else 1

    @property
    def choices(self) -> tuple[Any, ...]:
        return get_args(self.inner) if get_origin(self.inner) is Literal else ()

    @property
    def metavar(self) -> str:
        if self.option.metavar:
            return self.option.metavar
        if self.choices:
            return "{" + ",".join(map(str, self.choices)) + "}"
        return {int: "N", float: "N", Path: "FILE"}.get(self.inner, "NAME")

    @property
    def help(self) -> str:
        """The help text, with the default."""
        text, default = self.option.help, self.default
        if isinstance(default, str | int | float | Path) and default and "default" not in text:
            text += f" (default: {default})"
        return text


def options_of(kind: type[Settings]) -> list[Setting]:
    """Return every option of a command, in the order of the fields."""
    return [one for one in _settings(kind) if one.option is not _KEYWORD]


_KEYWORD = Option("")  # of a field that only Python may give


def _settings(kind: type[Settings]) -> Iterator[Setting]:
    """Yield every field of the record and of its groups."""
    return _below(kind, kind.model_construct(), (), "")


def _below(
    kind: type[Settings], defaults: Settings, path: tuple[str, ...], section: str
) -> Iterator[Setting]:
    for name, info in kind.model_fields.items():
        section = kind.sections.get(name, section)
        group, default = info.annotation, getattr(defaults, name, None)
        if isinstance(group, type) and issubclass(group, Settings):
            only = next((one.names for one in info.metadata if isinstance(one, Only)), None)
            for one in _below(group, default or group.model_construct(), (*path, name), section):
                if only is None or one.name in only:
                    yield one
            continue
        option = next((one for one in info.metadata if isinstance(one, Option)), _KEYWORD)
        yield Setting(path, name, option, info, default, section)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence (UserError); ``make`` checks the values.

    Abbreviated flags are refused, because a later version could give them another meaning, and so
    are repeated values of an option with a single value. ``--help`` of a parser with many options
    explains those of ``show_first``, and ``--help-all`` all.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=ParagraphFormatter, **options)
        self._first: Any = None
        self._given: dict[argparse.Action, list[str]] = {}

    def parse_known_args(  # type: ignore[override]  # typeshed has it overloaded
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self._given.clear()
        return super().parse_known_args(args, namespace)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Parse the values of an option. Raises UserError if it has others already."""
        if action.option_strings and isinstance(action, argparse._StoreAction):
            earlier = self._given.setdefault(action, arg_strings)
            if earlier != arg_strings:
                both = " and ".join(repr(" ".join(words)) for words in (earlier, arg_strings))
                name = action.option_strings[-1]
                self.error(f"{name} is given twice, as {both}: give it once")
        return super()._get_values(action, arg_strings)

    def show_first(self, *names: str) -> Self:
        """Explain these options (named without dashes) in ``--help``, all others after them in
        ``--help-all``, and show only arguments in the usage line; return this parser. Call it
        after all options are added."""
        self.add_argument("--help-all", action=_AllHelp, help="explain all options and exit")
        self._first = first = self.add_argument_group("the options that most calls need")
        for name in names:
            action = self._option_string_actions[f"--{name}"]
            for group in self._action_groups:
                if action in group._group_actions:
                    group._group_actions.remove(action)
            first._group_actions.append(action)
        self._optionals.title = "other options"
        groups = [g for g in self._action_groups if g not in (first, self._optionals)]
        groups.insert(groups.index(self._positionals) + 1, first)
        self._action_groups[:] = [*groups, self._optionals]
        places = [f"[{a.metavar or a.dest} ...]" for a in self._get_positional_actions()]
        self.usage = " ".join(["%(prog)s [options]", *places])
        return self

    def format_help(self) -> str:
        """Explain the first options, and list the others; without first ones explain all. The
        epilog is left to ``format_all`` if it does not fit the screen."""
        if self._first is None:
            return self.format_all()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for group in (self._positionals, self._first):
            formatter.start_section(group.title)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        others = [g for g in self._action_groups if g not in (self._positionals, self._first)]
        index = option_index([g for g in others if g._group_actions], help_width())
        more = f"more options, which  {self.prog} --help-all  explains:"
        whole = fitted("\n".join([formatter.format_help(), more, *index, ""]), terminal_width())
        below = self._get_formatter()
        below.add_text(self.epilog)
        last = f"\n{below.format_help()}" if self.epilog else ""
        return whole + last if (whole + last).count("\n") <= LINES else whole

    def format_all(self) -> str:
        """Explain all options."""
        return fitted(super().format_help(), terminal_width())

    def error(self, message: str) -> NoReturn:
        close, unknown = "", message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            flags = (flag for action in self._actions for flag in action.option_strings)
            close = did_you_mean(unknown.partition(" ")[0].partition("=")[0], flags)
        mistake = message.removeprefix("argument ")
        raise UserError(f"{mistake}{close or ':'} see  {self.prog} --help")


class _AllHelp(argparse.Action):
    """Prints the help of all options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **options)

    def __call__(self, parser: Any, *_: object) -> None:
        sys.stdout.write(parser.format_all())
        parser.exit()


def parser_of(kind: type[Settings], prog: str) -> Parser:
    """Return the parser of a command; omitted options have no attribute."""
    about = re.sub("(?m)^trajudge ", "  trajudge ", inspect.cleandoc(kind.__doc__ or ""))
    parser = Parser(prog=prog, description=about, epilog=kind.epilog or None)
    groups: dict[str, Any] = {"": parser}
    for one in options_of(kind):
        section = "" if isinstance(one.option, Argument) else one.section
        if section not in groups:
            groups[section] = parser.add_argument_group(section)
        add_option(groups[section], one)
    if kind.first:
        group = groups[[*groups][-1]]
        group.add_argument(
            "--config", metavar="FILE", help="options from a YAML file; the command line wins"
        )
        parser.show_first(*(name.replace("_", "-") for name in kind.first))
    return parser


def add_option(group: Any, one: Setting, default: Any = argparse.SUPPRESS) -> None:
    """Add an option to a parser or a group of it."""
    about = one.help.replace("%", "%%")
    if one.is_switch:
        group.add_argument(
            one.flag, dest=one.name, action="store_true", default=default, help=about
        )
        return
    details: dict[str, Any] = {"default": default, "help": about, "metavar": one.metavar}
    if isinstance(one.option, Argument):
        required = one.info.is_required()
        nargs = ("+" if required else "*") if one.is_repeated else (None if required else "?")
        group.add_argument(one.name, nargs=nargs, **details)
        return
    if one.words > 1:
        details |= {"nargs": one.words, "metavar": tuple(one.metavar.split(" "))}
    if one.is_repeated:
        several = {"action": "extend", "nargs": "+"}
        details |= several if one.option.several else {"action": "append"}
    details["required"] = one.info.is_required()
    group.add_argument(one.flag, dest=one.name, **details)


def parse(kind: type[S], prog: str, argv: Sequence[str]) -> S:
    """Parse a command's settings from its arguments, and others from ``--config``. Raises
    UserError."""
    kind.prepare(argv)
    parser = parser_of(kind, prog)
    if any(word.partition("=")[0] == "--config" for word in argv):
        for action in parser._actions:  # the file may name what is required
            action.required = action.required and not action.option_strings
    given = vars(parser.parse_args(argv))
    file = given.pop("config", None)
    read = _read_config(Path(file), kind, prog) if file else {}
    try:
        return make(kind, read | given)
    except UserError as error:
        from_file = {one.flag for one in options_of(kind) if one.name in read.keys() - given.keys()}
        if str(error).split(" ")[0] in from_file:
            raise UserError(f"{file}: {error}") from None
        raise


def keywords_of(kind: type[Settings]) -> dict[str, Setting]:
    """Return the settings by their Python names: those of options, and of fields that have
    another name or are no options."""
    every = list(_settings(kind))
    options = [one for one in every if one.option is not _KEYWORD]
    return {one.field: one for one in every} | {one.name: one for one in options}


def make(kind: type[S], values: Mapping[str, Any]) -> S:
    """Return the record for values by name (``keywords_of``); None keeps a default.

    Raises UserError for an unknown name, a value that a field refuses, and a path that cannot be
    read or written.
    """
    settings = keywords_of(kind)
    defaults = kind.model_construct()
    nested: dict[str, Any] = {}
    for name, value in values.items():
        if name not in settings:
            raise UserError(f"no option {name!r}{did_you_mean(name, settings) or ''}")
        if value is None:
            continue
        one = settings[name]
        _check_value(one, value)
        home, above = nested, defaults
        for part in one.path:
            above = getattr(above, part)
            home = home.setdefault(part, {n: getattr(above, n) for n in above.model_fields_set})
        home[one.field] = _typed(one, value)
    try:
        record = kind.model_validate(nested)
    except ValidationError as error:
        raise UserError(_sentence(kind, error)) from None
    if not values.get("dry_run"):
        _check_outputs(settings.values(), record)
    return record


_PATHS = {"FILE", "PATH", "DIR", "IN", "STORE"}  # placeholders of what is read


def _check_value(one: Setting, value: Any) -> None:
    """Raise UserError for an empty text, a truth value instead of a number, and a path to read
    that is a pipe or a device."""
    several = value if isinstance(value, list | tuple) else [value]
    if "" in [part for part in several if isinstance(part, str)]:
        raise UserError(f"{one.flag} is empty: give a value, or leave it out")
    if isinstance(value, list) and not one.is_repeated and one.words == 1:
        raise UserError(f"{one.flag} takes one value, not {len(value)}: give one")
    if isinstance(value, bool) and one.inner in (int, float):
        raise UserError(f"{one.flag} {value}: must be a number")
    names_path = one.inner is Path or _PATHS & set(re.findall("[A-Z]+", one.metavar))
    if isinstance(one.option, Output) or not names_path:
        return
    for word in map(str, several):
        for path in {word, word.partition(":")[2], word.partition("=")[2]}:
            if path and (what := special_kind(path)):
                raise UserError(
                    f"{one.flag} {word}: {path} is {what}: name a regular file or a folder"
                )


def _typed(one: Setting, value: Any) -> Any:
    """Convert words of a command line or a file for a field: one value to several, NAME=VALUE to
    a mapping, a choice to its number."""
    if get_origin(one.kind) is dict:
        return value if isinstance(value, Mapping) else _named(one.flag, value)
    if one.is_repeated:
        parts = value if isinstance(value, list | tuple) else [value]
        return tuple(_choice(one, part) for part in parts)
    return _choice(one, value)


def _choice(one: Setting, value: Any) -> Any:
    return next((each for each in one.choices if str(each) == value), value)


def _named(flag: str, words: Sequence[str]) -> dict[str, str]:
    """Parse NAME=VALUE words. Raises UserError, also for a repeated name."""
    given: dict[str, str] = {}
    for word in [words] if isinstance(words, str) else words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"{flag} {word}: write it as NAME=VALUE")
        if (earlier := given.setdefault(name.replace("-", "_"), value)) != value:
            raise UserError(
                f"{flag} {name} is given twice, as {earlier!r} and {value!r}: leave one out"
            )
    return given


def _check_outputs(settings: Iterable[Setting], record: Settings) -> None:
    for one in settings:
        if isinstance(one.option, Output):
            home: Any = record
            for part in one.path:
                home = getattr(home, part)
            if (path := getattr(home, one.field)) is not None:
                (check_folder if one.metavar == "DIR" else check_file)(path, one.flag)


# Messages for pydantic's errors, by error type.
_REASONS = {
    "bool_parsing": "must be true or false",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "use {expected}",
}


def _sentence(kind: type[Settings], error: ValidationError) -> str:
    """Describe the first invalid option, its value and the reason."""
    first = error.errors()[0]
    context = {
        name: int(limit) if isinstance(limit, float) and limit.is_integer() else limit
        for name, limit in first.get("ctx", {}).items()
    }
    why = first["msg"].removeprefix("Value error, ")
    flag = _flag_at(kind, first["loc"])
    if not flag:  # of several options together
        return why
    if first["type"] == "missing":
        return f"{flag} is missing: give a value"
    value = first["input"]
    if template := _REASONS.get(first["type"]):
        is_nan = str(value).lower() == "nan"
        why = "must be a number" if is_nan else template.format(**context)
        if first["type"] == "literal_error":
            why += did_you_mean(str(value), re.findall(r"'(.+?)'", str(context["expected"])))
    shown = value if isinstance(value, str | Path) else repr(value)
    return f"{flag} {shown!s:.80}: {why}"


def _flag_at(kind: type[Settings], location: tuple[int | str, ...]) -> str:
    for part in location:
        field = kind.model_fields.get(str(part))
        if field is None:
            return ""
        group = field.annotation
        if not (isinstance(group, type) and issubclass(group, Settings)):
            return _flag(kind, str(part))
        kind = group
    return ""


def _flag(kind: type[Settings], field: str) -> str:
    return next((one.flag for one in _settings(kind) if one.field == field and not one.path), field)


def _without_none(kind: Any) -> Any:
    """Remove Annotated and None from a type."""
    if get_origin(kind) is Annotated:
        return _without_none(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        others = [_without_none(one) for one in get_args(kind) if one is not NoneType]
        return others[0] if len(others) == 1 else Union[tuple(others)]  # noqa: UP007
    return kind


def _read_config(file: Path, kind: type[Settings], prog: str) -> dict[str, Any]:
    """Read the options in a YAML file; values are kept as written, and those of a mapping are
    typed. Raises UserError for a file that cannot be read, and for a name that is not an option."""
    try:
        text = read_text(file)
        entries = _Loader(text).get_single_data() or {}
        typed = yaml.safe_load(text) or {}
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}: name a readable file in --config") from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{file}: not YAML ({reason}): correct the file") from error
    if not isinstance(entries, dict):
        raise UserError(f"{file}: holds no mapping of options: write lines such as  model: gpt-4o")
    known = {one.name: one for one in options_of(kind) if not isinstance(one.option, Argument)}
    values: dict[str, Any] = {}
    for key, value in entries.items():
        name = str(key).replace("-", "_")
        if name not in known:
            close = did_you_mean(name, known)
            raise UserError(f"{file}: no option {key!r}{close or ':'} see  {prog} --help")
        if name in values:
            raise UserError(f"{file}: {name!r} is given twice: remove one")
        if value not in ("", "false") if known[name].is_switch else value != "":
            values[name] = typed[key] if isinstance(value, dict) else value
    return values


class _Loader(yaml.BaseLoader):
    """Reads every scalar as a string (``yes`` is not a truth value), and refuses repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"line {line}: {key.value!r} is given twice: remove one")
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)
