"""The shortest way is found by search, and no way that does the task is shorter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from tests.environments.cases import agent, job, sound
from trajudge.annotations import store as annotation_store
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.checks.shortest import shortest
from trajudge.environments.kit.reading import texts
from trajudge.environments.model.case import Case, read_cases
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Word
from trajudge.environments.recording.recorder import recorded_offline
from trajudge.environments.serving.run import open_run
from trajudge.environments.text import TextSession
from trajudge.environments.verify import expected, verify
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.sample import sample_path


class SuccessfulRun(NamedTuple):
    """A run that did its task and nothing else, and its actions, the last message included."""

    key: TrajectoryKey
    case: Case
    steps: int


def quiet(config: Config) -> Config:
    """The configuration without its noise, which an agent's runs may have of their own."""
    return config.model_copy(update={"noise": 0})


def successful_runs(folder: Path) -> Iterator[SuccessfulRun]:
    """Yield the runs of a recording that succeeded without a side effect. Raises UserError."""
    cases = {quiet(case.config): case for case in read_cases(folder / "cases.jsonl")}
    labels = {one.key: one for one in annotation_store.load(folder / "labels.jsonl")}
    for line in (folder / "facts.jsonl").read_bytes().splitlines():
        fact = orjson.loads(line)
        label = labels[TrajectoryKey.model_validate(fact["key"])]
        if label.success and not label.side_effect:
            case = cases[quiet(Config.model_validate(fact["config"]))]
            yield SuccessfulRun(label.key, case, fact["steps"])


def played(scenario: str, app: str, labels: list[tuple[str, str, str]], answer: str) -> int:
    """Do (role, name, text) one after another by hand; gives the actions of a success."""
    case = sound(scenario, app)
    run = open_run(case.config, b"k", goal=case.goal)
    session = TextSession(run)
    for role, name, text in labels:
        wanted = run.words.get(name, name)
        found = next(e for e in session.observe().elements if (e.role, e.name) == (role, wanted))
        verb = f"fill({found.bid!r}, {text!r})" if text else f"click({found.bid!r})"
        assert session.act(verb) is None
    finding = verify(run.evidence(answer))
    run.state.close()
    assert finding.labels.success is True
    return len(labels) + 1


def test_a_product_is_opened_from_the_list_where_it_stands_there() -> None:
    """Four actions and the answer are the oracle's way: it searches for what can be seen."""
    case = sound("wish")
    name = next(
        str(s.text) for s in open_run(case.config, b"k").scenario.plan(_bound("wish")) if s.text
    )
    hands = [("link", "products", ""), ("link", name, ""), ("button", "wish", "")]
    took = played("wish", "shop", hands, "It is on the list.")
    found = shortest(case)
    assert took < case.shortest
    assert found == (took, True)


def _bound(scenario: str) -> dict[str, object]:
    return dict(open_run(sound(scenario).config, b"k").bound)


@pytest.mark.parametrize(
    ("app", "scenario"), [("shop", "buy"), ("shop", "count-orders"), ("toolbox", "run-job")]
)
def test_no_agent_does_a_task_in_fewer_actions(app: str, scenario: str) -> None:
    case = sound(scenario, app)
    found = shortest(case)
    assert found.actions <= case.shortest
    for behaviour in (Behaviour.ORACLE, Behaviour.FORGETS, Behaviour.DETOURS, Behaviour.RECOVERS):
        finding = recorded_offline(job(case, agent(behaviour)), 0).finding
        if finding.labels.success:
            assert finding.steps >= found.actions


def test_where_the_budget_ends_the_oracles_length_is_a_bound() -> None:
    case = sound("buy")
    assert shortest(case, budget=2) == (case.shortest, False)


def test_a_question_needs_its_pages() -> None:
    """Every row that could change the answer is looked at: the whole list of orders."""
    case = sound("count-orders", ui=0)
    run = open_run(case.config, b"k")
    assert Word("orders") in [link.label for link in run.app.navigation]
    run.state.close()
    assert shortest(case).actions >= 2


@pytest.mark.parametrize(
    ("app", "scenario", "planned", "fewest"),
    [
        ("shop", "price", 5, 2),  # the catalogue says the price; the plan searches and opens
        ("shop", "wish", 6, 4),  # the product is in the list: no search
        ("shop", "cancel", 5, 5),
        ("toolbox", "bench", 2, 1),  # the first page says it
    ],
)
def test_the_two_lengths_of_known_cases(app: str, scenario: str, planned: int, fewest: int) -> None:
    case = sound(scenario, app, ui=0)
    assert (case.shortest, shortest(case)) == (planned, (fewest, True))


@pytest.mark.parametrize("scenario", ["convert", "lowest-total"])
def test_nobody_has_to_reckon_by_head(scenario: str) -> None:
    """The converter's and the calculator's pages are part of the way."""
    case = sound(scenario, "toolbox")
    found = shortest(case)
    assert found == (case.shortest, True)


def test_a_fee_that_a_list_shows_takes_the_list_alone() -> None:
    """The oracle searches for the picture; it stands on the first page of the list."""
    case = sound("image-fee", "press", ui=0)
    run = open_run(case.config, b"k", goal=case.goal)
    shown = " ".join(texts(run.site.get("images", {})))
    answer = next(iter(expected(run.evidence(None))))
    run.state.close()
    assert (answer in shown) is (shortest(case).actions == 2)


def test_no_recorded_run_of_the_sample_is_shorter() -> None:
    runs = list(successful_runs(sample_path()))
    assert len(runs) > 20
    assert all(run.steps >= (run.case.fewest or 0) for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize("profile", [0, 1])
def test_every_report_whose_cost_is_added_up_is_opened(profile: int) -> None:
    """A cost stands on the report's own page: two actions once were enough for the search, since
    the topics of all reports left no room for the costs of two."""
    app = load_app("almanac")
    config = Config(
        app="almanac", scenario="study-costs", instance=profile, profile=profile, ui=profile
    )
    case = check(app, config)
    assert isinstance(case, Case)
    run = open_run(config, b"k")
    studies = run.bound["studies"]
    assert isinstance(studies, dict)
    wanted = (studies["topic"], f"{studies['year']}-%")
    asked = "SELECT count(*) FROM report WHERE topic = ? AND published LIKE ?"
    (added_up,) = run.state.db.execute(asked, wanted).fetchone()
    run.state.close()
    found = shortest(case)
    opened = 1 + added_up  # the list and each of them
    assert opened + 1 <= found.actions <= case.shortest
