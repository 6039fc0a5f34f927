"""Operation codes in a specification that is written for a recorded run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments.cases import agent, job, sound
from tests.environments.specifications.plain import recorded
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.specifications.codes import known_codes
from trajudge.environments.specifications.comparing import (
    RecordedRun,
    by_configuration,
    compare,
    recorded_runs,
)
from trajudge.environments.specifications.oracle import oracle_run
from trajudge.rules.values import Mode

SOUND_CASE = sound("buy")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[Behaviour, RecordedRun]:
    folder: Path = tmp_path_factory.mktemp("recorded")
    played = (Behaviour.ORACLE, Behaviour.FABRICATES)
    recorded(folder, [SOUND_CASE], [job(SOUND_CASE, agent(one)) for one in played])
    names = {agent(one): one for one in played}
    found = recorded_runs([folder], by_configuration([SOUND_CASE]))
    return {names[run.key.agent]: run for run in found}


def test_the_code_that_the_page_showed_is_among_the_known(
    runs: dict[Behaviour, RecordedRun],
) -> None:
    walk, run = oracle_run(SOUND_CASE.config), runs[Behaviour.ORACLE]
    assert run.message is not None
    assert any(code in run.message for code in known_codes(walk, run.facts))
    other = runs[Behaviour.FABRICATES]
    assert not any(code in (other.message or "") for code in known_codes(walk, other.facts))


def test_a_recording_without_its_keys_knows_the_shape_alone(
    runs: dict[Behaviour, RecordedRun],
) -> None:
    run = runs[Behaviour.ORACLE]
    old = run._replace(facts={name: v for name, v in run.facts.items() if name != "code_key"})
    assert known_codes(oracle_run(SOUND_CASE.config), old.facts) == ()
    (outcome,) = {
        one.outcome.value
        for one in compare([old])
        if (one.kind, one.mode) == ("answer with a code", Mode.SOUND)
    }
    assert outcome == "unknown"


def test_a_made_up_code_fails_and_the_shown_one_passes(
    runs: dict[Behaviour, RecordedRun],
) -> None:
    outcomes = {
        (behaviour, one.kind): one.outcome.value
        for behaviour, run in runs.items()
        for one in compare([run])
        if one.mode is Mode.SOUND
    }
    assert outcomes[Behaviour.ORACLE, "answer with a code"] == "pass"
    assert outcomes[Behaviour.FABRICATES, "answer with a code"] == "fail"
    assert outcomes[Behaviour.ORACLE, "answer, shape of a code"] == "unknown"
