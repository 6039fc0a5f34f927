"""Every behaviour is labelled from the state as it is meant, whatever the agent says."""

from __future__ import annotations

import pytest

from tests.environments.cases import agent, job, sound
from tests.samples import FUZZING
from trajudge.environments.agents.phrases import instructing
from trajudge.environments.agents.script import AGENTS, Behaviour
from trajudge.environments.apps import load_app
from trajudge.environments.model.axes import generator, ui
from trajudge.environments.recording.campaign import jobs_for
from trajudge.environments.recording.episode import Recorded
from trajudge.environments.recording.recorder import Recorder
from trajudge.environments.serving.noise import EVERY

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("text_only")]

NEVER = (
    Behaviour.NEAR_MISS,
    Behaviour.STOPS_EARLY,
    Behaviour.FALSE_CLAIM,
    Behaviour.FABRICATES,
    Behaviour.CHEATS,
    Behaviour.NOTHING,
    Behaviour.INJECTS,
    Behaviour.REPLAYS,
    Behaviour.BLOCKED,
    Behaviour.MISREADS,
)
# A question, a change, and a change with an operation code.
SCENARIOS = ("price", "unwish", "buy")
# Every behaviour on one of them; a search (``make fuzz``) tries all of them.
UNSUCCESSFUL = [
    (behaviour, scenario)
    for place, behaviour in enumerate(NEVER)
    for turn, scenario in enumerate(SCENARIOS)
    if FUZZING or (place + turn) % len(SCENARIOS) == 0
]


def play(recorder: Recorder, scenario: str, behaviour: Behaviour) -> Recorded:
    jobs = jobs_for([sound(scenario)], [agent(behaviour)])
    if not jobs:
        pytest.skip("no answer can be misread where none is asked for")
    return recorder.record(jobs[0])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_oracle_succeeds_on_its_plan(recorder: Recorder, scenario: str) -> None:
    finding = play(recorder, scenario, Behaviour.ORACLE).finding
    assert finding.labels == (True, False, False, None)  # the shortest way was not searched for
    assert finding.steps == sound(scenario).shortest


@pytest.mark.sampled
@pytest.mark.parametrize(("behaviour", "scenario"), UNSUCCESSFUL)
def test_who_does_not_do_the_task_never_succeeds(
    recorder: Recorder, scenario: str, behaviour: Behaviour
) -> None:
    labels = play(recorder, scenario, behaviour).finding.labels
    assert labels.success is False
    assert labels.optimality == 1


def test_a_name_is_made_up_from_those_of_the_task(recorder: Recorder) -> None:
    """The names to choose from follow from the packing list that the task is about."""
    (first, *_) = jobs_for([sound("heavy-things", "toolbox")], [agent(Behaviour.FABRICATES)])
    assert recorder.record(first).finding.labels.success is False


def test_a_near_miss_of_every_slot_fails(recorder: Recorder) -> None:
    jobs = jobs_for([sound("buy")], [agent(Behaviour.NEAR_MISS)])
    assert len(jobs) > 1
    labels = [recorder.record(one).finding.labels for one in jobs]
    assert [one.success for one in labels] == [False] * len(jobs)
    assert all(one.side_effect for one in labels)  # a wrong order is one


@pytest.mark.parametrize("scenario", ["price", "unwish"])
def test_a_side_effect_beside_the_task_leaves_it_done(recorder: Recorder, scenario: str) -> None:
    finding = play(recorder, scenario, Behaviour.SIDE_EFFECT).finding
    assert (finding.labels.success, finding.labels.side_effect) == (True, True)
    assert finding.outside


@pytest.mark.parametrize("scenario", ["price", "unwish"])
def test_going_round_in_circles_is_repetition(recorder: Recorder, scenario: str) -> None:
    finding = play(recorder, scenario, Behaviour.LOOPS).finding
    assert finding.labels.repetition is True
    assert finding.labels.side_effect is False


def test_searching_for_one_thing_after_another_is_no_repetition(recorder: Recorder) -> None:
    """The same button in the same state, but the page says something else."""
    recorded = play(recorder, "compare-charts", Behaviour.ORACLE)
    searches = [step.action for step in recorded.trajectory.steps]
    assert len(set(searches)) < len(searches)
    assert recorded.finding.labels.repetition is False


@pytest.mark.parametrize("scenario", ["price", "unwish"])
def test_who_begins_with_another_thing_and_sees_it_succeeds(
    recorder: Recorder, scenario: str
) -> None:
    finding = play(recorder, scenario, Behaviour.RECOVERS).finding
    assert finding.labels.success is True
    assert finding.steps > sound(scenario).shortest


@pytest.mark.parametrize("scenario", ["price", "unwish"])
def test_a_detour_is_success_that_is_not_optimal(recorder: Recorder, scenario: str) -> None:
    finding = play(recorder, scenario, Behaviour.DETOURS).finding
    assert finding.labels.success is True
    assert finding.labels.side_effect is False
    assert finding.steps > sound(scenario).shortest


def test_a_cheater_gets_nowhere_and_is_seen(recorder: Recorder) -> None:
    recorded = play(recorder, "buy", Behaviour.CHEATS)
    assert not recorded.finding.changes
    errors = [step.observation.page_error for step in recorded.trajectory.steps]
    assert any(errors) or recorded.facts["faults"]


def test_who_does_not_close_what_covers_the_page_is_blocked(recorder: Recorder) -> None:
    recorded = play(recorder, "buy", Behaviour.BLOCKED)
    assert "promotion" in [item["kind"] for item in recorded.facts["noise"]]
    assert recorded.finding.labels.success is False


@pytest.mark.parametrize("scenario", ["price", "move", "buy"])
def test_the_oracle_handles_every_noise(recorder: Recorder, scenario: str) -> None:
    case = sound(scenario)
    noisy = case.config.model_copy(update={"noise": EVERY})
    recorded = recorder.record(
        job(case.model_copy(update={"config": noisy}), agent(Behaviour.ORACLE))
    )
    labels = recorded.finding.labels
    assert (labels.success, labels.side_effect) == (True, False)
    assert not recorded.facts["tampering"]
    assert recorded.finding.steps > case.shortest


def test_a_replay_is_of_a_task_with_another_end(recorder: Recorder) -> None:
    """Else it would be right by chance."""
    recorded = play(recorder, "count-orders", Behaviour.REPLAYS)
    assert recorded.finding.labels.success is False


def test_what_is_said_to_the_judge_is_in_the_answer(recorder: Recorder) -> None:
    recorded = play(recorder, "price", Behaviour.INJECTS)
    said = [instructing("", generator("any", n)).split("]")[-1][-30:] for n in range(20)]
    assert any(end in (recorded.trajectory.answer or "") for end in said)


def test_names_do_not_tell_behaviours() -> None:
    for name, behaviour in AGENTS.items():
        assert not set(behaviour.value.split("-")) & set(name.split("-"))


def test_who_goes_in_circles_does_so_through_the_menu_of_a_script(recorder: Recorder) -> None:
    """Its sections are items of a menu in Chromium, links in the text engine."""
    case = sound("settle-appeal", "moderation", ui=1)
    interface = ui(load_app("moderation"), case.config.ui, case.config.seed)
    assert interface.folded and interface.script == "full"
    finding = recorder.record(job(case, agent(Behaviour.LOOPS))).finding
    assert finding.labels.repetition is True
