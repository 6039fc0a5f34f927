"""The goal of a configuration in words."""

from __future__ import annotations

from trajudge.environments.model.axes import generator
from trajudge.environments.model.binding import filled
from trajudge.environments.model.config import Config
from trajudge.environments.model.spec import AnswerKind, Bound, Scenario

ANSWER_FORMS: dict[AnswerKind, str] = {
    "money": "the amount as text with its currency",
    "number": "the number",
    "text": "the name as text",
    "date": "the date as text, year-month-day",
    "duration": "the duration as text with its units",
    "texts": "a list of the names",
    "code": "the operation code as text",
}


def with_answer_form(goal: str, scenario: Scenario) -> str:
    """Return the goal with how to declare what it asks for; unchanged where it asks for nothing."""
    forms = [ANSWER_FORMS[answer.kind] for answer in scenario.answers]
    if not forms:
        return goal
    value = forms[0] if len(forms) == 1 else f"a list: {', '.join(forms)}"
    return f"{goal} End with the action answer(value), and nothing else in it: {value}."


def worded(scenario: Scenario, config: Config, bound: Bound) -> str:
    """Return the goal in one of its wordings, chosen by the instance alone. Raises KeyError for a
    placeholder that names no slot or column."""
    rng = generator("wording", config.app, config.scenario, config.instance, config.seed)
    return filled(scenario.goals[int(rng.integers(len(scenario.goals)))], bound)
