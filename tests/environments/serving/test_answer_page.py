"""An agent that has only the browser submits its answer on a page, as ``answer(value)`` does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from tests.environments.cases import job, sound
from trajudge.environments.apps import load_app
from trajudge.environments.model.page import Form
from trajudge.environments.model.spec import Rejected
from trajudge.environments.recording.episode import Recorded, play
from trajudge.environments.recording.recorder import Recorder
from trajudge.environments.serving.answer_page import answer_page, submitted
from trajudge.environments.serving.run import ServedRun
from trajudge.environments.verify import expected

if TYPE_CHECKING:
    from trajudge.environments.chromium import AgentObservation


class Submitting:
    """Opens the page, fills in its fields and presses the button."""

    def __init__(self, run: ServedRun, values: list[str]) -> None:
        self._url, self._values = run.answer_url, list(values)
        self._turn = 0

    @property
    def telemetry(self) -> Mapping[str, float]:
        return {}

    def act(self, view: AgentObservation) -> tuple[str, str]:
        self._turn += 1
        if self._turn == 1:
            return f"goto({self._url!r})", ""
        fields = [one.bid for one in view.elements if "Answer:" in one.name]
        if self._turn - 2 < len(self._values):
            return f"fill({fields[self._turn - 2]!r}, {self._values[self._turn - 2]!r})", ""
        button = next(one.bid for one in view.elements if one.name == "Submit answer")
        return f"click({button!r})", ""


def submitting(recorder: Recorder, scenario: str, right: bool) -> Recorded:
    case = sound(scenario)

    def make(run: ServedRun) -> Submitting:
        return Submitting(run, list(expected(run.evidence())) if right else ["nothing of it"])

    return play(recorder.server, recorder.browser, job(case, f"form {right}"), make)


@pytest.mark.browser
@pytest.mark.parametrize("right", [True, False])
def test_a_submitted_answer_ends_the_run_and_is_compared_by_type(
    recorder: Recorder, right: bool
) -> None:
    recorded = submitting(recorder, "price", right)
    run = recorded.trajectory
    assert [str(step.action).partition("(")[0] for step in run.steps[:-1]] == [
        "goto",
        "fill",
        "click",
    ]
    assert run.terminated and list(json.loads(run.answer or "")) == ["answer"]
    assert recorded.finding.labels.success is right
    assert recorded.finding.labels.side_effect is False
    assert not recorded.facts["tampering"]
    assert "received" in (run.steps[-1].observation.axtree or "")


@pytest.mark.parametrize(
    ("scenario", "sent", "message"),
    [
        ("price", {"value0": " $12.50 "}, '{"answer": "$12.50"}'),
        ("count-orders", {"value0": "3", "value1": "none"}, '{"answer": ["3", "none"]}'),
        ("affordable", {"value0": "Oak Mug\r\n Vase \n"}, '{"answer": ["Oak Mug", "Vase"]}'),
        ("wish", {"value0": "none"}, '{"answer": "none"}'),
    ],
)
def test_what_is_submitted_is_what_the_action_would_declare(
    scenario: str, sent: dict[str, str], message: str
) -> None:
    assert submitted(load_app("shop").scenario(scenario), sent) == message


@pytest.mark.parametrize("scenario", ["price", "wish"])
def test_an_empty_form_is_refused(scenario: str) -> None:
    found = submitted(load_app("shop").scenario(scenario), {"value0": " "})
    assert isinstance(found, Rejected)


@pytest.mark.parametrize(
    ("app", "scenario", "fields"),
    [
        ("shop", "price", [("Answer: the amount in dollars", "text")]),
        ("shop", "wish", [('Answer: "done"', "text")]),
        ("helpdesk", "busy-people", [("Answer: the list of all names, one a line", "long")]),
        (
            *("shop", "cheapest"),
            [
                ("1. Answer: the name as the pages write it", "text"),
                ("2. Answer: the amount in dollars", "text"),
            ],
        ),
    ],
)
def test_the_form_has_a_field_for_each_answer(
    app: str, scenario: str, fields: list[tuple[str, str]]
) -> None:
    (_, form) = answer_page(load_app(app).scenario(scenario)).blocks
    assert isinstance(form, Form)
    assert [(one.name, one.label, one.input) for one in form.fields] == [
        (f"value{number}", *field) for number, field in enumerate(fields)
    ]
