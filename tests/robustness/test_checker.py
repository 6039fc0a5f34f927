"""The declared relation is what the application's own checker says of the state that was left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.environments.cases import sound
from trajudge.environments.agents.script import AGENTS
from trajudge.environments.recording.campaign import jobs_for
from trajudge.environments.recording.journal import Journal, assemble
from trajudge.environments.recording.recorder import recorded_offline, run_name
from trajudge.eval.cli import main
from trajudge.robustness.catalogue import catalogue

PICTURED = ("pixels", "picture", "screenshot", "sibling-page", "frames")
"""In the names of changes to pictures, which runs without a browser have none of."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every scripted agent on a task that changes something and one that asks, without a browser,
    and what the checkers of other tasks say of each run."""
    folder = tmp_path_factory.mktemp("recording") / "runs"
    journal = Journal(folder, {"test": "declared relations"})
    jobs = jobs_for([sound("buy"), sound("manager-of", "helpdesk")], list(AGENTS))
    for job in jobs:
        journal.add(run_name(job), recorded_offline(job, 0))
    assemble(journal, list(map(run_name, jobs)))
    goals = ["--other-goals", "12", "--save", str(folder / "goals.jsonl")]
    assert main(["env", "verify", str(folder), *goals]) == 0
    return folder


def test_the_checker_agrees_with_every_declared_relation(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of each but the twins and what needs a picture."""
    out = tmp_path / "attacked"
    drawn = (*PICTURED, "foreign", "benign-")
    changes = [
        name for name, one in catalogue().items() if one.grade == "edited" and not one.asking
    ]
    names = [name for name in changes if not any(word in name for word in drawn)]
    words = [word for name in names for word in ("--perturbation", name)]
    given = ["--data", f"trajudge:{recording}", "--limit", "1", "--out", str(out), *words]
    assert main(["data", "perturb", *given]) == 0
    told = capsys.readouterr().out
    assert f"by {len(names)} of {len(names)} perturbations" in told
    assert main(["env", "verify", str(out)]) == 0
    lines = (out / "variants.jsonl").read_text().splitlines()
    runs = len(lines) + len({json.dumps(json.loads(line)["of"]) for line in lines})
    assert f"{runs} of {runs} runs" in capsys.readouterr().out
