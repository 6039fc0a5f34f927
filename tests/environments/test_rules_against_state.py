"""A hundred runs over the applications: what rules say of them, and what their states say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

BY_SHAPE, BY_CODE, WHOLE = (
    "answer, shape of a code",
    "answer with a code",
    "answer + network + state",
)
RELEASE = "release-1.2.3"
LAST = "network, last only"
INSTEAD = "the answer is about what the run did instead"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("rules")
    command = [sys.executable, "-m", "benchmarks.rules_against_state", "--runs", "120"]
    done = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert "Rules against the state" in done.stdout
    read: dict[str, Any] = json.loads((out / "report.json").read_text())
    return read


def rows(content: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["kind"], row["mode"]): row for row in content["agreement"]}


@pytest.mark.parametrize("group", ["scripted", "turns"])
def test_sound_rules_accept_no_failure_and_reject_no_success(
    group: str, found: dict[str, Any]
) -> None:
    """But for an answer about what a run did in place of its task, and unless only the last request
    is looked at."""
    sound = {kind: row for (kind, mode), row in rows(found[group]).items() if mode == "sound"}
    del sound[LAST]
    assert {row["false_accepts"]["hits"] for row in sound.values()} == {0}
    causes = [row for row in found[group]["causes"] if row["kind"] != LAST]
    wrong = [row for row in causes if "sound" in row["runs"]]
    assert {row["because"] for row in wrong} <= {INSTEAD}
    assert min(sound[WHOLE][name]["trials"] for name in ("false_accepts", "false_rejects")) >= 3
    assert {sound[kind]["unknown"] for kind in ("state", WHOLE)} == {0}


def test_a_code_whose_shape_alone_is_known_is_open(found: dict[str, Any]) -> None:
    """What a specification written before the run cannot know, and the released form passes."""
    of = rows(found["scripted"])
    sound, release = of[BY_SHAPE, "sound"], of[BY_SHAPE, RELEASE]
    assert sound["precision"]["trials"] == 0
    assert sound["unknown"] == release["precision"]["trials"] > 0
    assert of[BY_CODE, "sound"]["unknown"] == 0


def test_requests_alone_leave_open_whether_it_stayed_so(found: dict[str, Any]) -> None:
    """The state tells what was done again, spoiled or undone; the released form accepts it."""
    of = rows(found["turns"])
    assert of["network", "sound"]["unknown"] > 0
    assert of["network", RELEASE]["false_accepts"]["hits"] > 0
    assert of["state", "sound"]["unknown"] == 0


def test_the_state_passes_a_side_effect_that_requests_leave_open(found: dict[str, Any]) -> None:
    beside = found["scripted"]["side_effects"] + found["turns"]["side_effects"]
    counted = {(row["kind"], row["mode"]): row for row in beside}
    requests, state = counted["network", "sound"], counted["state", "sound"]
    assert requests["accepted"] < requests["runs"] == state["runs"] == state["accepted"]
