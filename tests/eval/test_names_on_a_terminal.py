"""A model's name is shown as it is on a terminal: markup and emoji codes are rich's, not ours."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from unittest.mock import patch

import pytest
from rich.progress import Progress

from tests.llm_server import LlmServer
from trajudge.environments.recording.campaign import table as table_of_runs
from trajudge.environments.recording.journal import COUNTED
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge
from trajudge.eval.runs.progress import RunProgress
from trajudge.util.terminal import terminal_console

pytestmark = pytest.mark.usefixtures("own_folder")

NAME = "lab/:x:[bold]m[/bold][red]:smile:[/oops]"
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        """What stands there: without colours, and without the breaks of narrow columns."""
        return _CONTROLS.sub("", self.getvalue())


@contextmanager
def on_a_terminal() -> Iterator[Terminal]:
    """Both streams, from within a test: pytest puts its own in place between the phases of one."""
    screen = Terminal()
    size = {"COLUMNS": "400", "TERM": "xterm-256color"}
    with patch.dict(os.environ, size), redirect_stdout(screen), redirect_stderr(screen):
        yield screen


def asked(server: LlmServer, *words: str) -> list[str]:
    return ["--data", "sample", "--base-url", server.url + "/v1", "--yes", *words]


def test_the_commands_that_print_a_model_show_its_name() -> None:
    with LlmServer() as server:
        words = asked(server, "--model", NAME, "--limit", "20")
        commands: list[tuple[Callable[[Sequence[str]], int], list[str]]] = [
            (judge, [*words, "--out", "run"]),
            (judge, [*words, "--out", "dry", "--dry-run"]),
            (judge, [*words, "--out", "grid", "--model", "other"]),
            (main, ["score", "run"]),
            (main, ["audit", "run", "--out", "audit", "--full"]),
        ]
        for command, arguments in commands:
            with on_a_terminal() as terminal:
                command(arguments)
            assert NAME in terminal.shown(), (command, arguments)


def test_progress_and_tables_show_it() -> None:
    with on_a_terminal() as terminal:
        with RunProgress(3, name=NAME):
            pass
        terminal_console().print(table_of_runs({NAME: dict.fromkeys(COUNTED, 1)}))
        terminal_console().print(f"judge them with {NAME}")
    assert terminal.shown().count(NAME) >= 3


def test_bars_still_move() -> None:
    with on_a_terminal() as terminal, Progress(console=terminal_console(stderr=True)) as bar:
        bar.update(bar.add_task("recording", total=2), completed=2)
    assert "recording" in terminal.shown()
    assert "100%" in terminal.shown()
