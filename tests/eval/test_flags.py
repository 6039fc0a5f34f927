"""A flag means one thing, whichever command takes it."""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from tests.eval.parsers import TABLE, parser_of, parsers
from tests.screens import LINES
from trajudge.eval.accept.settings import AcceptConfig
from trajudge.eval.cli import named
from trajudge.eval.labelling.settings import BuildConfig, EstimateConfig
from trajudge.eval.resilience.settings import ResilienceConfig
from trajudge.eval.runs.settings import RunRequest
from trajudge.eval.select.settings import SelectConfig
from trajudge.eval.settings import (
    AuditConfig,
    CheckConfig,
    ScoreConfig,
    TelemetryConfig,
)
from trajudge.util import settings
from trajudge.util.errors import UserError

# One file is what these commands write.
WRITES_A_FILE = {"trajudge report"}


def meaning(action: argparse.Action) -> str:
    """Its placeholder, ``choice`` or ``switch``."""
    if action.nargs == 0:
        return "switch"
    if choices_of(action) and action.metavar != "POLICY":
        return "choice"
    return str(action.metavar)


def choices_of(action: argparse.Action) -> list[str]:
    """The words that the option takes; none where it takes any."""
    if str(action.metavar).startswith("{"):
        return str(action.metavar).strip("{}").split(",")
    return [*map(str, action.choices or ())]


def flags() -> dict[str, dict[str, str]]:
    """Flag -> command -> its meaning there."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for name, made in parsers():
        for action in made._actions:
            for flag in action.option_strings:
                found[flag][name] = meaning(action)
    return found


def test_a_flag_of_several_commands_has_one_meaning() -> None:
    """``--out`` of a command that writes one file is checked by itself; ``judges show`` prints the
    ``--prompt`` that others take."""
    wrong = {flag: uses for flag, uses in flags().items() if len(_meanings(flag, uses)) > 1}
    assert not wrong


def _meanings(flag: str, uses: dict[str, str]) -> set[str]:
    files = WRITES_A_FILE & uses.keys() if flag == "--out" else set[str]()
    assert all(uses[name] == "FILE" for name in files)
    prints = {"trajudge judges show"} if flag == "--prompt" else set[str]()
    assert all(uses[name] == "switch" for name in prints)
    return {meant for name, meant in uses.items() if name not in files | prints}


def test_a_long_help_begins_with_the_ten_options_that_most_calls_need() -> None:
    """After what is no option; nothing of it is shown twice."""
    for name, made in parsers():
        options = [action for action in made._actions if action.option_strings]
        groups = [group for group in made._action_groups if group._group_actions]
        first = next(g for g in groups if g is not made._positionals)
        if len(options) > 15:
            assert first.title == "the options that most calls need", name
            assert len(first._group_actions) == 10, name
            shown = [action.dest for group in groups for action in group._group_actions]
            assert sorted(shown) == sorted(action.dest for action in made._actions), name
            assert len(made.format_usage()) < 80, name


@pytest.mark.parametrize("width", [100, 80, 60], indirect=True)
@pytest.mark.parametrize("name", TABLE)
def test_a_help_takes_a_screen_and_names_every_option(
    name: str, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    made = parser_of(name)
    options = [action for action in made._actions if action.option_strings]
    shown = made.format_help()
    named = set(re.findall(r"--[a-z][a-z-]*", shown))
    assert {action.option_strings[-1] for action in options} <= named
    lines = shown.splitlines()
    assert len(lines) <= LINES or width < 80
    assert max(map(len, lines)) <= width, max(lines, key=len)
    if len(options) > 15:
        with pytest.raises(SystemExit) as end:
            made.parse_args(["--help-all"])
        assert end.value.code == 0
        whole = capsys.readouterr().out
        assert len(whole.splitlines()) > len(lines)
        assert max(map(len, whole.splitlines())) <= width
        assert all(re.search(rf"^  (-h, )?{a.option_strings[-1]}\b", whole, re.M) for a in options)


@pytest.mark.parametrize("name", TABLE)
def test_an_example_is_one_command_on_a_narrow_screen(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is continued on the next line is what a wide screen has on one."""
    shown = []
    for columns in (100, 60):
        monkeypatch.setenv("COLUMNS", str(columns))
        joined = re.sub(r" \\\n +", " ", parser_of(name).format_help())
        lines = joined.splitlines()
        shown.append([x.partition(" # ")[0].rstrip() for x in lines if x.startswith("  trajudge ")])
    assert shown[0] == shown[1]


@pytest.mark.parametrize("name", TABLE)
def test_every_flag_says_what_it_is_for(name: str) -> None:
    assert all(action.help for action in parser_of(name)._actions)


@pytest.mark.parametrize("name", TABLE)
def test_a_help_names_the_default(name: str) -> None:
    """The one that the field has."""
    for one in settings.options_of(named(TABLE[name].settings)):
        default = one.default
        if isinstance(default, str | int | float | Path) and default and not one.is_switch:
            assert "default" in one.help, one.flag
            number = re.search(r"\(default: ([\d.]+)", one.help)
            if number and isinstance(default, int | float):
                assert float(number[1]) == default, one.flag


# The numbers that count where an option is left out; every switch is off then.
DEFAULTS: dict[type[settings.Settings], dict[str, float]] = {
    AcceptConfig: {"--test-share": 0, "--seed": 0},
    AuditConfig: {},
    BuildConfig: {"--budget": 100, "--double": 0.2, "--seed": 0, "--gold-share": 0.05},
    CheckConfig: {"--confidence": 0.95},
    EstimateConfig: {},
    ResilienceConfig: {},
    RunRequest: {
        **{"--temperature": 0, "--seed": 0, "--concurrency": 32, "--timeout": 300},
        **{"--samples": 1, "--max-failures": 0},
    },
    ScoreConfig: {"--seed": 0},
    SelectConfig: {"--confidence": 0.95, "--seed": 0, "--margin": 0.1, "--training-price": 0},
    TelemetryConfig: {"--folds": 5, "--seed": 0, "--target-precision": 0.85},
}


@pytest.mark.parametrize("record", DEFAULTS)
def test_an_option_that_is_left_out_has_its_default(record: type[settings.Settings]) -> None:
    numbers = {
        one.flag: one.default
        for one in settings.options_of(record)
        if isinstance(one.default, int | float) and one.default is not False
    }
    assert numbers == DEFAULTS[record]


def _two_values(action: argparse.Action) -> tuple[str, str]:
    """Two different values that the option takes."""
    if choices := choices_of(action):
        first, *others = choices
        return first, next(iter(others), "another")
    return ("5", "6") if action.type not in (None, str, Path) else ("a", "b")


@pytest.mark.parametrize(("name", "made"), [pytest.param(*each, id=each[0]) for each in parsers()])
def test_two_values_of_an_option_that_takes_one_are_refused(
    name: str, made: argparse.ArgumentParser
) -> None:
    """Both spellings, and never a list; the same value twice loses nothing."""
    for action in made._actions:
        if not isinstance(action, argparse._StoreAction) or not action.option_strings:
            continue
        flag, (first, second) = action.option_strings[-1], _two_values(action)
        count = action.nargs if isinstance(action.nargs, int) else 1
        words = [flag, *[first] * count, flag, *[second] * count]
        with pytest.raises(UserError, match=f"{flag} is given twice, as '{first}.*' and '{second}"):
            made.parse_args(words)
        if count == 1:
            with pytest.raises(UserError, match=f"{flag} is given twice"):
                made.parse_args([f"{flag}={first}", f"{flag}={second}"])
        with suppress(UserError):  # of what the command needs beside it
            made.parse_args([flag, *[first] * count, flag, *[first] * count])


def test_a_value_that_is_empty_is_refused() -> None:
    """As of a shell's variable that is not set: a path would be that of the folder at hand."""
    for command in TABLE.values():
        record = named(command.settings)
        for one in settings.options_of(record):
            if not one.is_switch:
                value = ["", ""] if one.words == 2 else [""] if one.is_repeated else ""
                with pytest.raises(UserError, match=f"{one.flag} is empty: give a value, or leave"):
                    settings.make(record, {one.name: value})
    with pytest.raises(UserError, match="RUN is empty: give a value"):
        settings.parse(ScoreConfig, "trajudge score", ["run", ""])
