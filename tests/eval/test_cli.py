"""The console script: commands answer at once, and old or wrong ones are said."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest

import trajudge
from tests.screens import one_screen
from trajudge.eval.cli import COMMANDS, CommandGroup, every_command, main

SLOW = (
    *("openai", "anthropic", "litellm", "datasets", "sklearn", "scipy", "numpy"),
    *("asyncio", "rich", "msgspec", "matplotlib"),
)
PATHS = [tuple(name.split()) for name in every_command()]
GROUPS = [name for name, entry in COMMANDS.items() if isinstance(entry, CommandGroup)]
HELPED = [(), *((name,) for name in GROUPS), *PATHS]


# Asks each command for its help in a process of its own, which has imported what finds it.
HELP = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from trajudge.eval.cli import main

paths, slow = json.loads(sys.argv[1])
told = []
for path in paths:
    reading, writing = os.pipe()
    if os.fork() == 0:
        with redirect_stdout(io.StringIO()) as shown, redirect_stderr(io.StringIO()) as errors:
            try: code = main([*path, "--help"])
            except SystemExit as end: code = end.code
        loaded = [name for name in slow if name in sys.modules]
        result = [code, shown.getvalue(), errors.getvalue(), loaded]
        os.write(writing, json.dumps(result).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told.append(json.loads(pipe.read()))
    os.wait()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def helps() -> dict[tuple[str, ...], list[Any]]:
    """By command the exit code of ``--help``, what it shows, and the slow libraries it imports."""
    words = [sys.executable, "-c", HELP, json.dumps([HELPED, SLOW])]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    return dict(zip(HELPED, json.loads(run.stdout), strict=True))


@pytest.mark.parametrize("path", HELPED, ids=" ".join)
def test_help_needs_no_slow_library(
    path: tuple[str, ...], helps: dict[tuple[str, ...], list[Any]]
) -> None:
    code, shown, errors, loaded = helps[path]
    assert (code, errors, loaded) == (0, "", [])
    assert shown.startswith(" ".join(("usage: trajudge", *path)) + " ")


def test_the_usage_names_every_command_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "more"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for path in PATHS for name in path)
    assert len(shown.splitlines()) <= 40
    assert max(map(len, shown.splitlines())) <= 80
    assert len(COMMANDS) <= 17


def test_the_first_help_lists_the_usual_work_in_its_order_a_line_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for words in ([], ["help"], ["-h"]):
        assert main(words) == 0
        assert capsys.readouterr().out == shown
    commands = [line.split()[0] for line in shown.splitlines() if line.startswith("  ")]
    assert len(commands) <= 16
    assert max(map(len, shown.splitlines())) <= 80
    order = ["data", "label", "judges", "judge", "score", "select", "accept", "audit"]
    assert [name for name in commands if name in order] == order
    assert "trajudge help more" in " ".join(shown.split())
    left_out = {*COMMANDS} - {*commands}
    assert left_out == {"run", "env", "proxy"}


@pytest.mark.parametrize("words", [["score"], ["rules"], ["label", "build"]])
def test_help_of_a_command_is_its_own(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*words: str) -> str:
        with suppress(SystemExit):
            assert main(words) == 0
        return capsys.readouterr().out

    own = shown(*words, "--help")
    assert own.startswith(f"usage: trajudge {' '.join(words)} ")
    assert shown("help", *words) == own


def test_every_command_that_ends_by_itself_shows_progress() -> None:
    own = {"judge", "robust", "proxy run", "run batch"}  # bars of judgments, an agent's terminal
    serve = {"serve", "label serve", "inspect", "proxy serve", "env serve", "env play"}
    tables = {"data sources", "judges list", "judges show", "judges fidelity", "label people"}
    silent = {name for name, command in every_command().items() if not command.doing}
    assert silent == own | serve | tables | {"proxy plan"}


@pytest.mark.parametrize("columns", [100, 80, 60])
def test_the_lists_of_commands_fit_the_screen(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in ([], *([name] for name in GROUPS)):
        assert main(words) == 0
        one_screen(capsys.readouterr().out, columns)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["juge"], "'juge', did you mean 'judge'? use one of data, label, judges, judge"),
        (["rules", "lnt"], "'rules lnt', did you mean 'lint'? use one of"),
        (["xyz"], "'xyz': use one of"),
    ],
)
def test_an_unknown_command_is_said(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_the_package_runs_as_a_module_and_says_its_version() -> None:
    words = [sys.executable, "-m", "trajudge", "--version"]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.stdout == f"trajudge {trajudge.__version__}\n"
