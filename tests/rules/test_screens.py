"""What the rules' commands print first takes one screen, the finding before the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import rules_blind as blind
from tests.samples import narrow
from tests.screens import one_screen
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.runs import TaskResult, evaluation_screen, summarise

pytestmark = pytest.mark.usefixtures("width")


@pytest.mark.slow
@pytest.mark.real_data
@narrow
@pytest.mark.parametrize("name", ["test.raw.json", "webarena-verified.json"])
def test_blind_agents_take_one_screen(
    name: str,
    real_data: Path,
    width: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert blind(["--tasks", str(real_data / "webarena" / name)]) == 0
    lines = one_screen(capsys.readouterr().out, width)
    assert "agents that never see a page pass" in " ".join(lines[:2])
    head = next(n for n, line in enumerate(lines) if line.startswith("agent "))
    assert lines[head + 1].startswith("union ")


def test_any_number_of_sites_and_failures_takes_one_screen(width: int) -> None:
    results = [
        TaskResult(
            task_id=n,
            template=str(n % 60),
            sites=(f"a-site-with-a-name-{n % 30}",),
            outcome=Outcome.UNKNOWN if n % 3 else Outcome.FAIL,
            reasons=("no trace was recorded " * 20,),
            failure_modes=(f"answer.check_{n % 25}",),
            notes=tuple(f"site {m} is taken to be http://127.0.0.1:{m}/ " * 4 for m in range(9)),
        )
        for n in range(120)
    ]
    made = summarise("sound", results, missing=3, seconds=1.0)
    lines = one_screen(evaluation_screen(made, results), width)
    assert lines[0].startswith("sound: 0 of 120 runs passed, success 0.0 [0.0, ")
    assert sum(line.endswith(" more: --full") for line in lines) == 2
    assert lines[-1] == "All tables: --full"
    full = evaluation_screen(made, results, full=True, width=width)
    assert all(f"answer.check_{n} " in full for n in range(25))
    assert sum(line.startswith("a-site-") for line in full.splitlines()) == 30
    assert all(f"site {m} is taken to be" in full for m in range(9))
    assert "--full" not in full
