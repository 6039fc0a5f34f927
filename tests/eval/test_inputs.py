"""What commands read: nothing is written there, and no pipe or device in its place is opened."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.eval.inputs import CASES, COMMAND_LINES, made, tree
from tests.eval.output_places import needed
from tests.eval.parsers import TABLE, parsers
from tests.proxy.program import mitmproxy
from trajudge.eval.cli import every_command, main, named
from trajudge.util.commands import USAGE_ERROR
from trajudge.util.settings import Output, options_of

__all__ = ["made", "mitmproxy"]  # fixtures

SCRIPTED = ("--model", "m", "--adapter", "scripted", "--script", "{0}/replies.jsonl", "--yes")
# Those that drive a browser.
IN_CHROMIUM: Sequence[Sequence[str]] = (
    ("env", "validate", *CASES),
    ("env", "record", *CASES, "--agent", "oracle"),
)
UNTRIED: set[tuple[str, ...]] = {
    *(("judges", name) for name in ("list", "show", "fidelity")),
    ("data", "fetch"),
    ("data", "sources"),
    ("inspect",),  # tests/app/runs: serves until it is stopped
    ("env", "generate"),
    ("env", "serve"),  # tests/environments/hosting: serves until it is stopped
    ("env", "play"),  # tests/environments/hosting/test_play.py: until a person is done
    ("run", "batch"),  # tests/eval/test_batches.py: keeps its ledger beside the replies
    ("serve",),  # tests/rewards/server: serves until it is stopped
    # A queue is a database, whose folder holds its write-ahead log while it is open.
    *(tuple(name.split()) for name in every_command() if name.startswith("label ")),
    ("proxy", "results"),  # test_resilience.py: on runs behind a proxy
    ("proxy", "serve"),  # reads what "proxy run" reads, until it is stopped
}


def check(made: Path, words: Sequence[str]) -> None:
    before = tree(made)
    accepted = json.loads((made / "accepted/accepted.jsonl").read_text().splitlines()[0])
    agent = accepted["provenance"]["agent"]
    code = main([word.format(made, agent=agent) for word in words])
    assert code in (0, 1)
    assert tree(made) == before


@pytest.mark.usefixtures("own_folder")
@pytest.mark.slow
@pytest.mark.parametrize("words", COMMAND_LINES, ids=lambda words: " ".join(words[:3]))
def test_a_command_leaves_its_input_as_it_was(
    made: Path, words: Sequence[str], request: pytest.FixtureRequest
) -> None:
    if words[:2] == ("proxy", "run"):
        request.getfixturevalue("mitmproxy")
    check(made, words)


@pytest.mark.usefixtures("own_folder")
@pytest.mark.browser
@pytest.mark.usefixtures("chromium")
@pytest.mark.parametrize("words", IN_CHROMIUM, ids=lambda words: words[1])
def test_a_browser_leaves_the_cases_as_they_were(made: Path, words: Sequence[str]) -> None:
    check(made, words)


@pytest.mark.usefixtures("own_folder")
def test_every_command_that_reads_files_is_tried() -> None:
    commands = {tuple(name.split()) for name in every_command()}
    lines = (*COMMAND_LINES, *IN_CHROMIUM)
    tried = {tuple(words[:size]) for words in lines for size in (1, 2)} & commands
    assert commands - tried == UNTRIED


LEFT_OUT = {".pyc"}
SECONDS = 20  # of the alarm
PATHS = ("FILE", "PATH", "DIR", "RUN", "STORE", "QUEUE", "REPORT", "RECORDED", "IN", "OUT")


# The option, or where it is read before the options are, the file alone.
SAID = re.compile(r"trap(: is not a file \(| is )a (pipe|device|socket)")


class Opened(BaseException):
    """A trap was opened, or a command did not end."""


class Watch:
    """Remembers the files that were opened while ``on``, and ends the opening of a trap."""

    def __init__(self) -> None:
        self.on, self.traps, self.opened = False, set[str](), list[Path]()
        sys.addaudithook(self.hear)

    def hear(self, event: str, details: tuple[Any, ...]) -> None:
        if not self.on or event not in ("open", "sqlite3.connect"):
            return
        name = details[0]
        if not isinstance(name, str | bytes | os.PathLike):
            return
        text = os.fsdecode(name)
        if text.startswith("file:"):
            text = unquote(text[5:].partition("?")[0])
        path = os.path.abspath(text)  # noqa: PTH100 - links are not followed
        if path in self.traps and not (event == "open" and details[2] & os.O_NONBLOCK):
            raise Opened(path)
        self.opened.append(Path(path))


WATCH = Watch()


@contextmanager
def watched(*traps: Path) -> Iterator[Watch]:
    def give_up(*_: object) -> None:
        raise Opened(f"did not end in {SECONDS} seconds")

    earlier = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    WATCH.traps, WATCH.opened, WATCH.on = set(map(str, traps)), [], True
    try:
        yield WATCH
    finally:
        WATCH.on = False
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)


def put_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


TRAPS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "socket": put_socket,
}


def options(name: str, made: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """What takes a path to read."""
    every = options_of(named(TABLE[name].settings))
    written = {one.name for one in every if isinstance(one.option, Output)}
    for action in made._actions:
        words = str(action.metavar or action.dest.upper()).replace("|", "=").replace(":", "=")
        if action.dest not in written and any(word in PATHS for word in words.split("=")):
            yield action


def value(action: argparse.Action, path: Path) -> str:
    before, colon, _ = str(action.metavar).partition(":")
    name, equals, _ = str(action.metavar).partition("=")
    if colon and before == "KIND":
        return f"trajudge:{path}"
    return f"{name.lower()}={path}" if equals else str(path)


@pytest.mark.parametrize("trap", TRAPS)
def test_no_option_of_a_command_opens_a_pipe_or_a_device(
    trap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    TRAPS[trap](path := tmp_path / "trap")
    tried, wrong = 0, []
    for name, parser in parsers():
        for action in options(name, parser):
            flag = action.option_strings[-1] if action.option_strings else str(action.metavar)
            words = [*name.split()[1:], *action.option_strings[-1:], value(action, path)]
            tried += 1
            code: int | str
            try:
                with watched(path):
                    code = main([*words, *needed(name, flag)])
            except BaseException as error:
                code = repr(error)
            shown = capsys.readouterr().err
            if code != USAGE_ERROR or not SAID.search(shown) or shown.count("error:") != 1:
                wrong.append((" ".join(words), code, shown[-200:]))
    assert not wrong, wrong
    assert tried >= 140


def read_files(made: Path, words: Sequence[str]) -> list[Path]:
    """The files of the inputs that a command opens: one of each folder and kind of name."""
    with watched() as watch:
        assert main(list(words)) in (0, 1)
    inside = {p for p in watch.opened if p.is_relative_to(made) and p.is_file()}
    kinds = {(p.parent, re.sub(r"\d+|[0-9a-f]{16,}", "#", p.name)): p for p in sorted(inside)}
    return [p for p in kinds.values() if p.suffix not in LEFT_OUT]


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMAND_LINES, ids=lambda words: " ".join(words[:3]))
def test_no_file_below_an_input_is_opened_as_a_pipe(
    words: Sequence[str],
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if words[:2] == ("proxy", "run"):
        request.getfixturevalue("mitmproxy")
    accepted = json.loads((made / "accepted/accepted.jsonl").read_text().splitlines()[0])
    agent = accepted["provenance"]["agent"]
    words = [word.format(made, agent=agent) for word in words]
    folders = count()

    def fresh() -> None:
        (folder := tmp_path / str(next(folders))).mkdir()
        monkeypatch.chdir(folder)

    fresh()
    files = read_files(made, words)
    wrong = []
    for file in files:
        aside = file.with_name(f"{file.name}.aside")
        file.rename(aside)
        os.mkfifo(file)
        capsys.readouterr()
        fresh()
        code: int | str
        try:
            with watched(file):
                code = main(words)
        except BaseException as error:
            code = repr(error)
        finally:
            file.unlink()
            aside.rename(file)
        shown = "".join(capsys.readouterr())
        if code not in (0, 1, USAGE_ERROR) or (code == USAGE_ERROR and "error: " not in shown):
            wrong.append((str(file.relative_to(made)), code, shown[-300:]))
    assert not wrong, wrong
