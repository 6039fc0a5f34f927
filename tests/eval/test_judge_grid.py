"""Several judges and models in one command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.judge_command import run
from tests.llm_server import LlmServer

pytestmark = pytest.mark.usefixtures("own_folder")


def test_a_grid_of_judges_and_models_is_one_table_and_shares_the_cache(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid = [
        "--judge",
        "heuristic",
        "--judge",
        "simplified",
        "--model",
        "gpt-4o",
        "--model",
        "other",
    ]
    with LlmServer() as server:
        words = [*grid, "--base-url", server.url + "/v1", "--limit", "6", "--full"]
        assert run(*words) == 0
        assert server.stats.requests == 12
        shown = capsys.readouterr().out
        assert run(*words) == 0
        assert server.stats.requests == 12
    table = shown.split("\n\n")[0].splitlines()
    assert table[0] == "Judges"
    assert table[1].split()[:2] == ["judge", "precision"]
    judges = [line.split("  ")[0] for line in table[2:]]
    assert judges == [
        "heuristic",
        "simplified-axtree:gpt-4o",
        "simplified-axtree:other",
        "rule-based baseline",
    ]
    assert len(list(Path("run").iterdir())) == 3


def test_an_option_goes_to_the_judges_of_a_grid_that_take_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid = ["--judge", "heuristic", "--judge", "webvoyager", "--judge", "simplified", "--dry-run"]
    words = ["--model", "gpt-4o", "--judge-option", "screenshots=3", "--success-last"]
    assert run(*grid, *words, "--representation", "screenshot") == 0
    assert "simplified-screenshot-success-last:gpt-4o" in capsys.readouterr().out
    assert run(*grid, *words, "--judge-option", "nobody=1") == 2
    assert "nobody" in capsys.readouterr().err


def test_the_same_run_twice_in_a_grid(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--judge", "heuristic", "--judge", "heuristic") == 2
    assert "duplicate run" in capsys.readouterr().err


FAILING = "needs_model = False\n\nasync def judge(trajectory, ask):\n    raise KeyError(1)\n"


def test_a_judge_that_fails_does_not_keep_the_others_from_their_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.py").write_text(FAILING)
    assert run("--judge", "mine.py", "--judge", "heuristic", "--limit", "4") == 2
    shown = capsys.readouterr()
    assert "heuristic" in shown.out
    assert shown.err.splitlines()[-1].startswith(
        "error: 1 of 2 runs failed: mine: judge mine failed on "
    )
    (judged,) = Path("run").glob("heuristic-*/results.json")
    assert judged.is_file()


INTERRUPTING = """
import os, signal
from trajudge import Verdict

needs_model = False
once = iter([signal.SIGINT])

async def judge(trajectory, ask):
    for number in once:
        os.kill(os.getpid(), number)
    return Verdict(success=True)
"""


def test_an_interruption_after_a_failure_ends_with_its_own_code_and_names_the_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine.py").write_text(FAILING)
    Path("other.py").write_text(INTERRUPTING)
    words = ["--judge", "mine.py", "--judge", "other.py", "--judge", "heuristic"]
    assert run(*words, "--limit", "4") == 130
    told = " ".join("".join(capsys.readouterr()).split())
    assert "the same command goes on from there 1 of 3 runs failed: mine: judge mine f" in told
    assert not list(Path("run").glob("heuristic-*"))


def test_judges_that_fail_for_the_same_reason_are_named_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--judge", "simplified", "--judge", "aer-c", "--model", "gpt-4o", "--limit", "4"]
    with LlmServer() as server:
        place = server.url + "/v1"
    assert run(*words, "--base-url", place, "--yes") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    told = shown.err.splitlines()[-1]
    assert told.startswith(
        "error: 2 of 2 runs failed: simplified-axtree:gpt-4o, aer-c-agentrewardbench:gpt-4o: no "
    )
