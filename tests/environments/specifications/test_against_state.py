"""Forty runs over the applications: what rules say of them, beside their states."""

from __future__ import annotations

import json
from itertools import cycle
from typing import Any

import pytest

from tests.commands import command
from tests.environments.cases import agent, job, sound
from tests.environments.specifications.plain import recorded
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.model.case import Case

main = command("env rules")

pytestmark = pytest.mark.slow

CASES = 20
BY_SHAPE, BY_CODE = "answer, shape of a code", "answer with a code"
CAUSES = {
    "the last such request was another",
    "the answer is about what the run did instead",
}
DECIDED = ("answer", "answer with a code", "state", "answer + network + state")
PLAYED = (
    *(Behaviour.ORACLE, Behaviour.NEAR_MISS, Behaviour.ORACLE, Behaviour.SIDE_EFFECT),
    *(Behaviour.DETOURS, Behaviour.FABRICATES, Behaviour.STOPS_EARLY, Behaviour.LOOPS),
)


def _cases() -> list[Case]:
    """Cases of all applications in turn, those that change the state before the questions."""
    ranked = {app: sorted(load_app(app).scenarios, key=lambda one: not one.expect) for app in APPS}
    places = [(app, at) for at in range(3) for app in APPS][:CASES]
    return [sound(ranked[app][at * 3].id, app) for app, at in places]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("recorded")
    cases = _cases()
    behaviours = cycle(PLAYED)
    jobs = [job(case, agent(next(behaviours))) for case in cases for _ in range(2)]
    recorded(folder, cases, jobs)
    save = folder / "rules.json"
    assert main([str(folder), "--cases", str(folder / "cases.jsonl"), "--save", str(save)]) == 0
    read: dict[str, Any] = json.loads(save.read_text())
    return read


def test_all_applications_have_runs_of_both_kinds(found: dict[str, Any]) -> None:
    assert (found["runs"], found["applications"]) == (40, 8)
    whole = found["agreement"][-1]
    assert whole["kind"] == "answer + network + state"
    assert min(whole["false_accepts"]["trials"], whole["false_rejects"]["trials"]) >= 10


def test_rules_agree_with_the_state_but_for_what_they_cannot_know(found: dict[str, Any]) -> None:
    """The released form looks at the last request of a kind alone, where two were to be sent; and
    what a run did instead of its task gives it another answer than the oracle's."""
    wrong = {
        (row["kind"], row["mode"]): (row["false_accepts"]["hits"], row["false_rejects"]["hits"])
        for row in found["agreement"]
        if (row["kind"], row["mode"]) != (BY_SHAPE, "release-1.2.3")
    }
    assert {row["because"] for row in found["causes"] if not row["accepts"]} == CAUSES
    instead = {(kind, mode): (0, 1) for kind, mode in wrong if kind in (BY_SHAPE, BY_CODE)}
    last = {("network, last only", "release-1.2.3"): (0, 3)}
    assert wrong == dict.fromkeys(wrong, (0, 0)) | instead | last, found["differences"]
    decided = [row for row in found["agreement"] if row["kind"] in DECIDED]
    assert {row["unknown"] for row in decided} == {0}


def test_a_code_whose_shape_alone_is_known_is_open(found: dict[str, Any]) -> None:
    """What a specification written before the run cannot know, and the released form passes."""
    rows = {(row["kind"], row["mode"]): row for row in found["agreement"]}
    sound, release = rows[BY_SHAPE, "sound"], rows[BY_SHAPE, "release-1.2.3"]
    assert sound["precision"]["trials"] == 0
    assert sound["unknown"] == release["precision"]["trials"] > 0
    assert rows["answer with a code", "sound"]["recall"]["hits"] == release["recall"]["hits"]
    passed = {row["because"] for row in found["causes"] if row["accepts"]}
    assert passed == {"a code is known by its shape alone"}


def test_requests_leave_a_side_effect_open_and_the_state_passes_it(found: dict[str, Any]) -> None:
    rows = {(row["kind"], row["mode"]): row for row in found["side_effects"]}
    requests, state = rows["network", "sound"], rows["state", "sound"]
    assert requests["accepted"] < requests["runs"] == state["runs"] == state["accepted"]
    whole = rows["answer + network + state", "sound"]
    assert whole["runs"] == whole["accepted"] > 0
