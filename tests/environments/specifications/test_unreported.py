"""A run that did its task and was cut off before it could say so."""

from __future__ import annotations

from pathlib import Path

from tests.environments.cases import agent, job, sound
from tests.environments.specifications.plain import recorded
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.specifications.comparing import (
    by_configuration,
    compare,
    labelled_again,
    recorded_runs,
)
from trajudge.environments.specifications.report import report, screen, tables
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome

CASE = sound("unwish")


def test_the_rules_refuse_it_for_want_of_a_response_and_the_state_cannot_contradict(
    tmp_path: Path,
) -> None:
    recorded(tmp_path, [CASE], [job(CASE, agent(Behaviour.ORACLE))])
    (told,) = recorded_runs([tmp_path], by_configuration([CASE]))
    silent = labelled_again(told._replace(message=None))
    assert silent.success is told.success is True, "the state is as the task asks"
    rows = {one.kind: one for one in compare([silent]) if one.mode is Mode.SOUND}
    for kind in ("answer + network", "answer + network + state"):
        assert rows[kind].outcome is Outcome.FAIL
        assert rows[kind].reasons == ("parse_failure.empty: the agent gave no answer",)
        assert rows[kind].truth is None
    for kind in ("network", "state"):
        assert (rows[kind].outcome, rows[kind].truth) == (Outcome.PASS, True)
    found = report(compare([told, silent._replace(key=told.key.model_copy(update={"attempt": 1}))]))
    assert found["unreported"] == {"runs": 1, "rejected": 1}
    assert not found["differences"]
    shown = " ".join(screen(found, rest="").split())
    assert "1 did it and ended without a message" in shown
    assert "they differ nowhere" in shown
    assert "Where they differ" not in shown
    assert all(table.rows for table in tables(found))
