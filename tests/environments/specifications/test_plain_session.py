"""A run without a browser sends what Chromium sends, and ends in the same state."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.environments.cases import agent, job, sound
from tests.environments.specifications.plain_session import open_plain_session
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.recording.episode import Recorded, play, play_in
from trajudge.environments.recording.recorder import Recorder


def _changes(run: Recorded) -> list[tuple[str, list[tuple[str, str]], int]]:
    """The forms that were sent: where to, with what, and the answer's status."""
    entries: list[dict[str, Any]] = run.har["log"]["entries"]
    return [
        (
            entry["request"]["url"],
            [
                pair
                for pair in parse_qsl(entry["request"]["postData"]["text"])
                if pair[0] != "_nonce"
            ],
            entry["response"]["status"],
        )
        for entry in entries
        if entry["request"]["method"] == "POST"
    ]


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize(
    ("app", "scenario", "behaviour", "axes"),
    [
        ("shop", "buy", Behaviour.ORACLE, {"noise": 1, "theme": 3}),
        ("press", "publish", Behaviour.NEAR_MISS, {"theme": 5, "ui": 4}),
    ],
)
def test_the_same_job_sends_the_same_forms_in_chromium(
    recorder: Recorder, app: str, scenario: str, behaviour: Behaviour, axes: dict[str, int]
) -> None:
    task = job(sound(scenario, app, **axes), agent(behaviour))
    server = recorder.server

    def make(run: Any) -> Scripted:
        return Scripted(run, task.agent, task.attempt, 0)

    real = play(server, recorder.browser, task, make, pictures=False)
    plain = play_in(lambda url: open_plain_session(server.port, url), server, task, make)
    assert _changes(plain) == _changes(real)
    assert plain.finding.labels[:2] == real.finding.labels[:2]
    assert plain.finding.changes == real.finding.changes
    assert plain.trajectory.answer == real.trajectory.answer
