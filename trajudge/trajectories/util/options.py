"""From a command line to a command's settings: argument types, and the one reader of options."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from trajudge.trajectories.util.errors import UserError, did_you_mean
from trajudge.trajectories.util.exits import Output, Parser
from trajudge.trajectories.util.safe_files import read_text

SettingsT = TypeVar("SettingsT")
HIGHEST_PORT = 65535
LARGEST = 2**63 - 1  # what a run's manifest can hold
# More is a slip, and would fit in no machine's memory.
MOST_SAMPLES = 10_000
MOST_WORKERS = 1_000
MOST_CASES = 10_000
MOST_ATTEMPTS = 1_000
MOST_PAGE_LOADS = 10_000  # of a task, that a fault plan may count on

_ANOTHER_SEED = ": for more, run again with another --seed"


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


def samples(text: str) -> int:
    """Read a number of judgments of each trajectory."""
    return _up_to(MOST_SAMPLES, text)


def workers(text: str) -> int:
    """Read a number of processes, or browsers, at once."""
    return _up_to(MOST_WORKERS, text)


def case_count(text: str) -> int:
    """Read a number of generated cases."""
    return _up_to(MOST_CASES, text, _ANOTHER_SEED)


def attempt_count(text: str) -> int:
    """Read a number of runs of each case."""
    return _up_to(MOST_ATTEMPTS, text, _ANOTHER_SEED)


def goal_count(text: str) -> int:
    """Read a number of other goals of a task."""
    return _up_to(MOST_CASES, text)


def _up_to(most: int, text: str, mend: str = "") -> int:
    if (value := count(text)) > most:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {most:,}{mend}")
    return value


def port(text: str) -> int:
    """Read a port to listen on; 0 is any."""
    return _port_from(0, text)


def open_port(text: str) -> int:
    """Read a port at which another program listens."""
    return _port_from(1, text)


def _port_from(least: int, text: str) -> int:
    with suppress(ValueError):
        if least <= (value := int(text)) <= HIGHEST_PORT:
            return value
    raise argparse.ArgumentTypeError(
        f"{text!r} is no port: the lowest is {least}, the highest port is {HIGHEST_PORT}"
    )


def amount(text: str) -> float:
    """Read a finite number of at least 0."""
    with suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")


def positive(text: str) -> float:
    """Read a finite number above 0."""
    with suppress(ValueError):
        if 0 < (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")


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
        self.file(name, about, action=Output, **details)

    def output_folder(self, name: str, about: str, **details: Any) -> None:
        """Add the path of a folder to write, likewise."""
        self.folder(name, about, action=Output, **details)

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

        from trajudge.trajectories.util.validation import refused_value  # noqa: PLC0415

        if not isinstance(error, ValidationError):
            raise
        refused = refused_value(error)
        if not refused.field:  # of several options together
            raise UserError(refused.why) from None
        name = refused.field.partition(".")[0].replace("_", "-")
        why = refused.why[0].lower() + refused.why[1:]
        raise UserError(f"--{name} is {refused.value!r}: {why}") from None


def config_words(made: Parser, argv: Sequence[str]) -> list[str]:
    """Return the entries of the file that ``--config`` names as command-line words, without those
    that the command line names itself.

    Raises UserError for a file that cannot be read, names an option that ``made`` has not, or has
    a value that the option does not take.
    """
    only = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    only.add_argument("--config", type=Path)
    file = only.parse_known_args(list(argv))[0].config
    if file is None:
        return []
    known = {action.option_strings[-1]: action for action in made._actions}
    named = {word.split("=")[0] for word in argv}
    words: list[str] = []
    for name, value in _entries(file).items():
        option = "--" + str(name).replace("_", "-")
        if option not in known or option in ("--config", "--help", "--help-all"):
            close = did_you_mean(str(name), [flag.removeprefix("--") for flag in known])
            raise UserError(f"{file}: no option {name!r}{close or ':'} see  {made.prog} --help")
        if option not in named:
            words += _words(file, option, value, known[option])
    try:
        # The places to write are checked with the whole command line, which may be a dry run.
        made.parse_args(words, argparse.Namespace(dry_run=True))
    except UserError as error:
        raise UserError(f"{file}: {error}") from error
    return words


def _entries(file: Path) -> dict[object, Any]:
    """Read the mapping in a YAML file. Raises UserError."""
    import yaml  # noqa: PLC0415 - only runs with a config file pay for it

    try:
        # BaseLoader leaves every scalar a string: the option `yes` must not turn into True.
        loader = yaml.BaseLoader(read_text(file))
        whole = loader.get_single_node()
        entries = loader.construct_document(whole) if whole else None
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}: name a readable file in --config") from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{file}: not YAML ({reason}): mend the file") from error
    if not isinstance(entries or {}, dict):
        raise UserError(f"{file}: holds no mapping of options: write lines such as  model: gpt-4o")
    nodes = [whole, *(value for _, value in whole.value)] if whole else []
    for node in nodes:
        if isinstance(node, yaml.MappingNode):
            _check_keys(file, [key for key, _ in node.value], are_options=node is whole)
    return entries or {}


def _check_keys(file: Path, keys: Sequence[Any], *, are_options: bool) -> None:
    """Check the nodes of a mapping's keys: of one that comes twice YAML keeps the last value.
    Options have two spellings, names below them one. Raises UserError."""
    seen: set[str] = set()
    for key in keys:
        name = str(key.value).replace("-", "_") if are_options else str(key.value)
        if name in seen:
            line = key.start_mark.line + 1
            raise UserError(f"{file}, line {line}: {key.value!r} comes twice: leave one out")
        seen.add(name)


def _json(file: Path, name: str) -> str:
    """Return the mapping under ``name`` as JSON, its numbers and truth values typed."""
    import yaml  # noqa: PLC0415 - only runs with a config file pay for it

    try:
        entries = yaml.safe_load(read_text(file))
        return json.dumps(entries.get(name, entries.get(name.replace("-", "_"))))
    except (yaml.YAMLError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{file}: {name}: not a mapping of JSON ({reason}): mend it") from None


def _words(file: Path, option: str, value: Any, action: argparse.Action) -> list[str]:
    """Return one entry of the config file as command-line words."""
    if value == "":
        return []
    if isinstance(value, dict):
        return [option, _json(file, option[2:])]
    if action.nargs == 0:
        if value not in ("true", "false"):
            raise UserError(f"{file}: {option[2:]}: {value!r} is neither true nor false")
        return [option] if value == "true" else []
    values = value if isinstance(value, list) else [value]
    if action.nargs == 2:
        return [option, *map(str, values)]
    return [word for entry in values for word in (option, str(entry))]
