"""AgentLab's GenericAgent and its Study, unchanged and from the published package, over the text
engine."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.pinned import pinned_python
from trajudge.environments.apps import APPS
from trajudge.util.machine import PinnedPackage

ROOT = Path(__file__).parents[3]
AGENTLAB = PinnedPackage(
    name="agentlab",
    pins=ROOT / "requirements-agentlab.txt",
    module="agentlab",
    variable="TRAJUDGE_AGENTLAB_PYTHON",
)


@pytest.mark.slow
def test_a_study_of_the_generic_agent_solves_a_task_of_every_application(tmp_path: Path) -> None:
    """The model is scripted and reads goal and bids out of the prompt alone; AgentLab builds the
    prompt, parses the reply, steps, and stores what came of it."""
    (tmp_path / "nltk" / "tokenizers" / "punkt_tab").mkdir(parents=True)  # else it is downloaded
    python = pinned_python(AGENTLAB)
    own = {"NLTK_DATA": str(tmp_path / "nltk"), "AGENTLAB_EXP_ROOT": str(tmp_path / "study")}
    done = subprocess.run(
        [python, "-m", "tests.environments.gym.agentlab_study", tmp_path],
        env={**os.environ, **own, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert {task.split(".")[1] for task in told["tasks"]} == {*APPS}
    assert told["errors"] == []
    assert told["rewards"] == [1.0] * len(APPS)
    assert min(told["steps"]) >= 2
    for theirs, ours in told["trees"]:
        assert theirs == re.sub(r", (clickable|visible)(?=,|$)", "", ours, flags=re.M)
