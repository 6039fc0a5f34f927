"""Nothing that can be said without doing the task makes a run a success, in any application."""

from __future__ import annotations

import pytest

from tests.samples import repeats
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.model.axes import instance, open_state
from trajudge.environments.model.binding import bind, parameters
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Config
from trajudge.environments.model.operation_codes import operation_code
from trajudge.environments.model.spec import Bound, Scenario
from trajudge.environments.model.state import AppState
from trajudge.environments.verify import RunEvidence, verify
from trajudge.environments.verify.truth import column

CONSTANTS = (
    None, "", " ", "yes", "no", "0", "1", "N/A", "none", "unknown", "Done.", "I could not find it.",
    "$0.00", "2026-03-02", "null", "{}", '{"answer": null}', '{"answer": ""}', '{"answer": []}',
)  # fmt: skip

DECLARED = {'{"answer": null}'}  # that a task cannot be done


def guesses(scenario: Scenario, bound: Bound, state: AppState, goal: str) -> list[str]:
    """The goal again, every name at once, every code at once."""
    found = [goal, f"Yes, I did it: {goal}"]
    for answer in scenario.answers:
        if answer.among:
            found.append(", ".join(map(str, column(state, answer.among, parameters(bound)))))
        if answer.kind == "code":
            keys = state.dump()[answer.sql]
            codes = (
                operation_code(b"", scenario.id, answer.sql, dict(row)) for row in keys.values()
            )
            found.append(" ".join(codes))
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("name", APPS)
def test_doing_nothing_never_succeeds_whatever_is_said(name: str) -> None:
    """But for a task that cannot be done: there nothing is to be done, and to declare that is
    right. A suite pairs such a task with a twin that can be done, where the same answer fails."""
    app = load_app(name)
    for scenario in app.scenarios:
        for n in range(repeats(1, 2)):
            config = Config(app=name, scenario=scenario.id, instance=n, profile=n)
            case = check(app, config)
            if not isinstance(case, Case):
                continue
            state = open_state(app, config)
            bound = bind(scenario, instance(name, scenario.id, tuple(scenario.slots), n, 0), state)
            before = state.dump()
            refusal = any(answer.kind == "none" for answer in scenario.answers)
            for message in (*CONSTANTS, *guesses(scenario, bound, state, case.goal)):
                found = verify(
                    RunEvidence(
                        scenario=scenario,
                        bound=bound,
                        before=before,
                        after=state,
                        code=lambda *_: "",
                        goal=case.goal,
                        answer=message,
                        shortest=case.shortest,
                    )
                )
                right = refusal and message in DECLARED
                assert (found.labels.success is True) == right, (config.id, message)
                assert found.labels.side_effect is False
            state.close()
