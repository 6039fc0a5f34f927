"""The goal of a configuration in words, and how its answer is declared."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.model.axes import generator
from trajudge.environments.model.binding import filled
from trajudge.environments.model.config import Config
from trajudge.environments.model.spec import AnswerKind, AnswerSpec, Bound, Scenario

_FORMS: dict[AnswerKind, str] = {
    "money": "the amount in dollars",
    "number": "the number",
    "text": "the name as the pages write it",
    "date": "the date as year-month-day",
    "duration": "the duration with its units",
    "texts": "the list of all names",
    "code": "the operation code",
    "none": '"done"',
}
LINE = "Answer: "  # begins the last line of a message that declares its answer
DONE = AnswerSpec("none")  # what a scenario declares that asks for nothing


def answer_form(answer: AnswerSpec) -> str:
    """Return how one answer is written."""
    return f"the number of {answer.unit}" if answer.unit else _FORMS[answer.kind]


def with_answer_form(goal: str, scenario: Scenario, page: str = "") -> str:
    """Return the goal with how to declare what it asks for, or that it is done; ``page`` is where
    an agent that has only a browser declares it."""
    forms = [answer_form(answer) for answer in scenario.answers or (DONE,)]
    value = forms[0] if len(forms) == 1 else f"a list: {', then '.join(forms)}"
    if page:
        return f"{goal} Submit the answer on the page {page}, which asks for {value}."
    listed = " (in a line, with semicolons between them)" if "list" in value else ""
    return (
        f"{goal} End with the action answer(value), or with a message whose last line is "
        f'"{LINE}value". The value is {value}{listed}; it is None if the task is not possible.'
    )


def without_answer_form(goal: str, scenario: Scenario) -> str:
    """Return the goal without how its answer is declared."""
    return goal.removesuffix(with_answer_form("", scenario))


def declared_line(values: Sequence[str]) -> str:
    """Return the last line that declares these values."""
    return LINE + "; ".join(values)


def worded(scenario: Scenario, config: Config, bound: Bound) -> str:
    """Return the goal in one of its wordings, chosen by the instance alone, and how to declare the
    answer. Raises KeyError for a placeholder that names no slot or column."""
    rng = generator("wording", config.app, config.scenario, config.instance, config.seed)
    goal = filled(scenario.goals[int(rng.integers(len(scenario.goals)))], bound)
    return with_answer_form(goal, scenario)
