"""What a terminal shows of a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.made_runs import Task, write_run
from trajudge.eval.cli import main as trajudge


def tasks(accepted: set[int]) -> list[Task]:
    return [Task(str(n), truth=n % 2 == 0, verdict=n in accepted) for n in range(6)]


def test_no_sentence_of_many_judges_is_cut_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, screen_lines: Callable[[], list[str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"a-judge-whose-name-is-long-{number}" for number in range(9)]
    runs = [write_run(Path(name), tasks({n % 6}), judge=name) for n, name in enumerate(names)]
    runs.append(write_run(Path("all"), tasks({*range(6)}), judge="all"))
    assert trajudge(["report", "--baselines", "off", *map(str, runs)]) == 0
    shown = screen_lines()
    assert "10 judges on" in shown[0]
    assert " more" in "\n".join(shown)
    assert "…" not in "\n".join(shown)
