"""The console script: every command answers at once, and a wrong one is said."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trajudge.eval.cli import COMMANDS, main

SLOW = ("openai", "anthropic", "litellm", "datasets", "sklearn", "scipy", "pydantic", "numpy")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_needs_no_slow_library(name: str) -> None:
    code = (
        "import sys\n"
        "from eval.cli import main\n"
        f"try: main([{name!r}, '--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        f"print([name for name in {SLOW} if name in sys.modules], file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "usage" in run.stdout
    if name in ("judge", "score"):
        assert run.stderr.strip() == "[]"


def test_the_usage_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_an_unknown_command_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["juge"]) == 2
    assert "no command 'juge'" in capsys.readouterr().err
