"""A mistake in a user's file, whatever it raises, is one sentence that names the user's line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tables import table
from trajudge.eval.judge import main
from trajudge.trajectories.loaders import open_source
from trajudge.util.commands import USAGE_ERROR
from trajudge.util.errors import UserError

WORDS = ["--data", "sample", "--limit", "8"]
ADAPTER = """\
def adapter(model, **settings):
    return Mine()

class Mine:
    name = endpoint = "mine"
    async def send(self): ...
    async def close(self): ...
"""
ALL_AT_ONCE = """
import asyncio

needs_model = False
begun = asyncio.Event()
count = 0

async def judge(trajectory, ask):
    global count
    count += 1
    if count == 8:
        begun.set()
    await begun.wait()
    raise KeyError("goal")
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "replies.sqlite"))


def said(capsys: pytest.CaptureFixture[str], content: str, option: str) -> str:
    Path("mine.py").write_text(content)
    words = {
        "--judge": ["--judge", "mine.py"],
        "--adapter": ["--adapter", "mine.py", "--model", "m", "--context", "20000", "--yes"],
    }
    assert main([*WORDS, *words[option]]) == USAGE_ERROR
    return capsys.readouterr().err


@table(
    "statement sentence",
    """
    raise SystemExit       | SystemExit, line 2
    raise SystemExit(0)    | SystemExit: 0, line 2
    import sys; sys.exit() | SystemExit, line 2
    assert 1 > 2           | AssertionError, line 2
    1 / 0                  | ZeroDivisionError: division by zero, line 2
    """,
)
@pytest.mark.parametrize("option", ["--judge", "--adapter"])
def test_while_the_file_is_loaded(
    option: str, statement: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, f"x = 1\n{statement}\n", option)
    assert told == f"error: {option} mine.py: cannot be loaded ({sentence}): correct the file\n"


def test_a_program_that_a_judge_ends(capsys: pytest.CaptureFixture[str]) -> None:
    content = "needs_model = False\n\nasync def judge(trajectory, ask):\n    raise SystemExit(0)\n"
    told = said(capsys, content, "--judge").splitlines()[-1]
    assert re.search(r"^error: judge mine failed on .*: SystemExit: 0 \(.*mine.py:4\): corr", told)


def test_a_program_that_the_maker_of_a_judge_ends(capsys: pytest.CaptureFixture[str]) -> None:
    content = (
        "from trajudge.trajectories.model import Record\n\nneeds_model = False\n\n"
        "class Options(Record): pass\n\ndef judge(options):\n    raise SystemExit(0)\n"
    )
    told = said(capsys, content, "--judge").splitlines()[-1]
    assert "error: --judge mine: judge(options) failed: SystemExit: 0 (" in told
    assert told.endswith("mine.py:8): correct it")


def test_the_interruption_of_the_user_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    content = "raise KeyboardInterrupt"
    Path("mine.py").write_text(content)
    assert main([*WORDS, "--judge", "mine.py"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@table(
    "option content line",
    r"""
    --judge   | needs_model = False\n\nasync def judge(trajectory): ...         | 3
    --adapter | def adapter(model): ...                                         | 1
    --adapter | \nclass adapter:\n    def __init__(self, model): ...            | 2
    --adapter | ADAPTER                                                         | 6
    """,
)
def test_a_wrong_signature_is_the_user_s(
    option: str, content: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = content.replace("\\n", "\n").replace("ADAPTER", ADAPTER)
    told = said(capsys, text, option).splitlines()[-1]
    assert "TypeError: " in told
    assert f"mine.py:{line}): " in told
    assert "plugins.py" not in told


def test_trajectories_that_fail_at_once_log_one_traceback(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, ALL_AT_ONCE, "--judge")
    assert len([record for record in caplog.records if record.exc_info]) == 1


def test_the_traceback_of_a_judge_is_in_the_log_of_the_run() -> None:
    body = "    raise ValueError('red\x1b[31m')"
    Path("mine.py").write_text(
        f"needs_model = False\n\nasync def judge(trajectory, ask):\n{body}\n"
    )
    shown = shown_by("trajudge.eval.judge", *WORDS, "--judge", "mine.py", "--out", "out")
    assert "Traceback" not in shown
    assert re.search(r"^error: judge mine failed on .*mine\.py:4\): correct", shown, re.MULTILINE)
    first, second, *_, last = Path("out/run.log").read_text().splitlines()
    assert re.match(r"\d{4}-.* judge mine failed on ", first)
    assert second == "    Traceback (most recent call last):"
    assert last == "    ValueError: red\\x1b[31m"


def test_the_traceback_of_a_loader_is_not_shown() -> None:
    Path("mine.py").write_text("def load(path, want):\n    return {}[path]\n")
    shown = shown_by("trajudge.eval.judge", "--data", "mine.py:mine.py", "--judge", "heuristic")
    assert re.fullmatch(r"error: --data mine\.py: the loader failed: KeyError: .*\n", shown)


def shown_by(module: str, *words: str) -> str:
    """Return what a command that a mistake ends shows, in a process where nobody listens to
    logs."""
    done = subprocess.run(
        [sys.executable, "-m", module, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == USAGE_ERROR
    return done.stderr


def test_a_loader_that_is_part_of_an_async_function_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no name of its own."""
    monkeypatch.chdir(tmp_path)
    code = "from functools import partial\n\nasync def of(x, path, want): ...\n\n"
    Path("mine.py").write_text(f"{code}load = partial(of, 1)\n")
    with pytest.raises(UserError, match="mine\\.py: it is async: write  def load"):
        list(open_source("mine.py:mine.py"))
