"""The console script: commands answer at once, and old or wrong ones are said."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

import trajudge
from trajudge.eval.cli import COMMANDS, GROUPS, OLD, main

SLOW = (
    *("openai", "anthropic", "litellm", "datasets", "sklearn", "scipy", "pydantic", "numpy"),
    *("asyncio", "rich", "msgspec", "matplotlib"),
)
PATHS = [
    *((name,) for name in COMMANDS),
    *((group, name) for group in GROUPS for name in GROUPS[group].commands),
]


@pytest.mark.parametrize("path", [(), *((name,) for name in GROUPS), *PATHS], ids=" ".join)
def test_help_needs_no_slow_library(path: Sequence[str]) -> None:
    code = (
        "import sys\n"
        "from trajudge.eval.cli import main\n"
        f"try: main([*{path!r}, '--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        f"print([name for name in {SLOW} if name in sys.modules], file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(" ".join(("usage: trajudge", *path)) + " ")
    assert run.stderr.strip() == "[]"


def test_the_usage_names_every_command_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*COMMANDS, *GROUPS))
    assert all(name in shown for group in GROUPS.values() for name in group.commands)
    lines = shown.splitlines()
    assert len(lines) // 2 <= 30
    assert max(map(len, lines)) <= 80
    assert len(COMMANDS) + len(GROUPS) <= 17


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["juge"], "'juge', did you mean 'judge'?: use one of judge, score"),
        (["rules", "lnt"], "'rules lnt', did you mean 'lint'?: use one of"),
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


@pytest.mark.parametrize("old", OLD)
def test_an_old_command_works_with_a_note(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([old, "--help"])
    said = capsys.readouterr()
    now = " ".join(OLD[old])
    assert said.out.startswith(f"usage: trajudge {now} ")
    assert said.err == f"note: trajudge {old} is now trajudge {now}; the next version refuses it\n"


def test_rules_with_options_were_those_of_evaluate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--tasks", "none.json"]) == 2
    said = capsys.readouterr().err
    assert "trajudge rules is now trajudge rules evaluate" in said
    assert "--runs" in said


@pytest.mark.parametrize("module", ["rules.naive", "eval.naive"])
def test_an_old_module_works_with_a_note(module: str) -> None:
    words = [sys.executable, "-m", module, "--help"]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.stdout.startswith("usage: trajudge rules blind")
    assert run.stderr.startswith("note: this is now  trajudge rules blind")
