"""How a command reads its options and how it ends: argument types, exit codes, a user's mistake as
one sentence.
"""

from __future__ import annotations

import argparse
import errno
import functools
import inspect
import os
import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, ParamSpec, Protocol, Self, TypeVar

from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import UnsafeFile, special_kind
from trajudge.util.masking import without_known
from trajudge.util.terminal import (
    LINES,
    HelpFormatter,
    ParagraphFormatter,
    fitted,
    help_width,
    one_line,
    option_index,
    terminal_width,
)

OK = 0

FAILURES = 1

USAGE_ERROR = 2

INTERRUPTED = 130

BROKEN_PIPE = 141  # as a shell says of a program that SIGPIPE ended

# Errors of the system that any reading or writing may meet, and what the user can do.
_MENDS = {
    errno.ENOSPC: "cannot be written ({}): make room and start the same command again",
    errno.ENAMETOOLONG: "{}: give a shorter path",
    **dict.fromkeys(
        (errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENOTDIR, errno.EIO, errno.ENXIO),
        "cannot be read or written ({}): name another file",
    ),
}

_NOT_REGULAR = "{}: name a regular file"

# Metavars of what is read, besides the options whose type is Path.
_PATHS = re.compile(r"\b(FILE|PATH|DIR|IN|STORE)\b")

P = ParamSpec("P")

Work = Callable[[argparse.Namespace], int]  # what a command does with its options


class Main(Protocol):
    """A command: takes its arguments (default: the process's own), gives the exit code."""

    def __call__(self, arguments: Sequence[str] | None = None) -> int: ...


class Parser(argparse.ArgumentParser):
    """A parser that complains in one sentence (UserError).

    Abbreviated flags are refused: the next version could give them another meaning. So are two
    values of an option that keeps one.
    ``--help`` of a parser with many options explains those that ``show_first`` names, and
    ``--help-all`` all.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        usual = {"allow_abbrev": False, "formatter_class": HelpFormatter}
        super().__init__(*args, **{**usual, **options})
        self._first: Any = None
        self._given: dict[argparse.Action, list[str]] = {}

    def parse_known_args(  # type: ignore[override]  # typeshed has it overloaded
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        words = sys.argv[1:] if args is None else args
        self._given.clear()
        known = super().parse_known_args(words, namespace)
        self._check_outputs(vars(known[0]))
        return known

    def _check_outputs(self, options: Mapping[str, Any]) -> None:
        """Refuse a place that cannot be written before the work. Raises UserError."""
        outputs = [action for action in self._actions if isinstance(action, OutputAction)]
        if not outputs or options.get("dry_run"):
            return
        from trajudge.util.files import check_file, check_folder  # noqa: PLC0415 - --help needs none of it

        for action in outputs:
            check = check_folder if action.metavar == "DIR" else check_file
            if (path := options.get(action.dest)) is not None:
                check(path, action.option_strings[-1])

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Read the values of an option. Raises UserError where it has others already, and for one
        that is empty (a shell's variable that is not set): a path would be that of the folder where
        the command was started, other options would be as if they were not there."""
        if "" in arg_strings and (action.option_strings or action.type is Path):
            name = action.option_strings[-1] if action.option_strings else action.metavar
            self.error(f"{name} is empty: give a value, or leave it out")
        self._check_inputs(action, arg_strings)
        if action.option_strings and isinstance(action, argparse._StoreAction):
            earlier = self._given.setdefault(action, arg_strings)
            if earlier != arg_strings:
                both = " and ".join(repr(" ".join(words)) for words in (earlier, arg_strings))
                name = action.option_strings[-1]
                self.error(f"{name} is given twice, as {both}: give it once")
        return super()._get_values(action, arg_strings)

    def _check_inputs(self, action: argparse.Action, words: Sequence[str]) -> None:
        """Refuse a pipe, a device or a socket where a path to read is given, before the work.
        Raises UserError."""
        metavar = str(action.metavar)
        if isinstance(action, OutputAction) or not (action.type is Path or _PATHS.search(metavar)):
            return
        for word in words:
            for path in {word, word.partition(":")[2], word.partition("=")[2]}:
                if path and (kind := special_kind(path)):
                    named = action.option_strings[-1] if action.option_strings else metavar
                    self.error(f"{named} {word}: {path} is {kind}: name a regular file or a folder")

    def show_first(self, *names: str) -> Self:
        """Explain these options (named without dashes) in ``--help``, all others after them in
        ``--help-all``, and show arguments alone in the usage line; return this parser. To be
        called when all options are there."""
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
        """Explain the first options, and name the others; without first ones explain all. The
        epilog is left to ``format_all`` where it would not fit the screen."""
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


class OutputAction(argparse._StoreAction):
    """Stores the path of a file, or of a folder (DIR), to write. ``Parser`` refuses one that cannot
    be written."""


class _AllHelp(argparse.Action):
    """Prints the help of all options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **options)

    def __call__(self, parser: Any, *_: object) -> None:
        sys.stdout.write(parser.format_all())
        parser.exit()


class TextParser(Parser):
    """A parser whose help keeps the indented lines of its description and epilog."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=ParagraphFormatter, **options)


def user_errors(command: Callable[P, int]) -> Callable[P, int]:
    """Wrap a command that returns its exit code: UserError is printed to stderr and gives 2,
    Ctrl-C gives 130, a reader of the output that has gone (``| head``) 141, a full disk and a
    path that cannot be used 2. Everything else is a defect and keeps its traceback. What a command
    puts in place of standard error ends with it."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> int:
        outer = sys.stderr
        try:
            code = command(*args, **kwargs)
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            return INTERRUPTED
        except BrokenPipeError:
            if not _output_is_closed():
                raise
            return BROKEN_PIPE
        except OSError as error:
            unsafe = isinstance(error, UnsafeFile)
            mend = _NOT_REGULAR if unsafe else _MENDS.get(error.errno or 0)
            if mend is None or (error.filename is None and error.errno != errno.ENOSPC):
                raise
            if error.errno == errno.ENOSPC:
                _give_up_full_output()
            place = error.filename or "the output"
            sys.stderr.write(f"error: {one_line(f'{place}: {mend.format(error.strerror)}')}\n")
            return USAGE_ERROR
        except UserError as error:
            sys.stderr.write(f"error: {one_line(without_known(str(error)))}\n")
            return USAGE_ERROR
        finally:
            sys.stderr = outer

    return guarded


def command(parser: Callable[[], argparse.ArgumentParser]) -> Callable[[Work], Main]:
    """Decorate what a command does with the options that this parser reads from its arguments.
    Errors as in ``user_errors``."""

    def decorate(work: Work) -> Main:
        @user_errors
        @functools.wraps(work)
        def main(arguments: Sequence[str] | None = None) -> int:
            return work(parser().parse_args(arguments))

        return main

    return decorate


@contextmanager
def saved_behind_output() -> Iterator[Callable[..., None]]:
    """Print a result and save it, so that neither is lost where the other fails.

    The block calls what it is given with each function that saves, and its arguments, and prints.
    They run behind it, in their order, also where nobody reads the output to its end, its place is
    full, or an earlier one of them fails; what failed is raised then.
    """
    saves: list[Callable[[], object]] = []

    def save(work: Callable[..., object], *details: Any, **options: Any) -> None:
        saves.append(functools.partial(work, *details, **options))

    try:
        yield save
        sys.stdout.flush()
    finally:
        with ExitStack() as stack:
            for work in reversed(saves):
                stack.callback(work)


def _output_is_closed() -> bool:
    """Tell whether nobody reads standard output any more; if so, what is left of it goes nowhere,
    or the interpreter would complain at its end."""
    waiting = select.poll()
    waiting.register(sys.stdout.fileno(), 0)
    if not any(event & select.POLLERR for _, event in waiting.poll(0)):
        return False
    _discard_output()
    return True


def _give_up_full_output() -> None:
    """Write what standard output still holds; where it has no room, it goes nowhere, as above."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


SettingsT = TypeVar("SettingsT")

HIGHEST_PORT = 65535

LARGEST = 2**63 - 1  # what a run's manifest can hold

# More is a slip, and would fit in no machine's memory.
MOST_SAMPLES = 10_000

MOST_CASES = 10_000

MOST_PAGE_LOADS = 10_000  # of a task, that a fault plan may count on


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    return _from(1, text)


def whole(text: str) -> int:
    """Read a whole number of at least 0."""
    return _from(0, text)


def _from(least: int, text: str) -> int:
    with suppress(ValueError):
        value = int(text)
        if value > LARGEST:
            raise argparse.ArgumentTypeError(f"{text!r} is more than {LARGEST}")
        if value >= least:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")


class OptionAdder(NamedTuple):
    """Adds options of the recurring kinds to a parser or one of its groups; a call adds any other.

    ``details`` are those of ``add_argument``, such as a default, which the help names.
    """

    group: Any

    def __call__(self, *names: str, **details: Any) -> None:
        default, about = details.get("default"), details.get("help", "")
        if isinstance(default, str | int | float | Path) and default and "default" not in about:
            details["help"] = f"{about} (default: {default})"
        self.group.add_argument(*names, **details)

    def switch(self, name: str, about: str, **details: Any) -> None:
        """Add an option without a value."""
        self(name, action="store_true", help=about, **details)

    def value(self, name: str, metavar: str, about: str, **details: Any) -> None:
        """Add an option with a value: text, or what its ``type`` reads."""
        self(name, metavar=metavar, help=about, **details)

    def labels(self, about: str) -> None:
        """Add the two options that say which labels count."""
        self.value("--annotations", "KIND:PATH", about)
        self.choice(
            "--labels-by",
            ("primary", "majority", "unanimous", "any"),  # as LabelsBy, which is slow to import
            "primary, majority, unanimous or any: of several annotators' labels (default: refuse "
            "those that differ)",
            metavar="POLICY",
        )

    def task_id(self) -> None:
        """Add the option that says what a task is."""
        self.choice(
            "--task-id",
            ("recorded", "goal"),
            "goal: runs of one goal and start page are of one task, whatever their task ids",
            default="recorded",
        )

    def number(
        self, name: str, about: str, read: Callable[[str], int] = count, **details: Any
    ) -> None:
        """Add a whole number: of at least 1, or as ``read`` takes it."""
        self.value(name, "N", about, type=read, **details)

    def file(self, name: str, about: str, **details: Any) -> None:
        """Add the path of a file."""
        self.value(name, "FILE", about, type=Path, **details)

    def folder(self, name: str, about: str, **details: Any) -> None:
        """Add the path of a folder."""
        self.value(name, "DIR", about, type=Path, **details)

    def output_file(self, name: str, about: str, **details: Any) -> None:
        """Add the path of a file to write: one that cannot be is refused before the work."""
        self.file(name, about, action=OutputAction, **details)

    def output_folder(self, name: str, about: str, **details: Any) -> None:
        """Add the path of a folder to write, likewise."""
        self.folder(name, about, action=OutputAction, **details)

    def folders(self, name: str, metavar: str, about: str, nargs: str = "*") -> None:
        """Add the paths of folders, which stand on the command line without an option's name."""
        self.value(name, metavar, about, type=Path, nargs=nargs)

    def runs(self) -> None:
        """Add the folders of any number of runs, as ``runs``."""
        self.folders("runs", "RUN", "folder of a run")

    def choice(self, name: str, values: Iterable[object], about: str, **details: Any) -> None:
        """Add an option that takes one of these values."""
        self(name, choices=values, help=about, **details)

    def repeated(self, name: str, metavar: str, about: str, **details: Any) -> None:
        """Add an option that may be given several times."""
        self.value(name, metavar, about, action="append", **details)


def read_settings(
    settings: Callable[..., SettingsT], options: argparse.Namespace, /, **others: object
) -> SettingsT:
    """Build a record of settings from the options that are named as its fields.

    ``others`` are fields that are no options. Raises UserError as ``make_settings`` does.
    """
    return make_settings(settings, vars(options) | others)


def make_settings(settings: Callable[..., SettingsT], values: Mapping[str, object]) -> SettingsT:
    """Build a record of settings from the values of its fields; None keeps a field's default.

    Raises UserError naming the first option whose value its field refuses.
    """
    names = inspect.signature(settings).parameters
    present = {name: values[name] for name in names if values.get(name) is not None}
    try:
        return settings(**present)
    except ValueError as error:
        from pydantic import ValidationError  # noqa: PLC0415 - --help needs none of it

        from trajudge.util.validation import refused_value  # noqa: PLC0415

        if not isinstance(error, ValidationError):
            raise
        refused = refused_value(error)
        if not refused.field:  # of several options together
            raise UserError(refused.why) from None
        name = refused.field.partition(".")[0].replace("_", "-")
        why = refused.why[0].lower() + refused.why[1:]
        raise UserError(f"--{name} is {refused.value!r}: {why}") from None
