"""A page beside every application on which an agent that has only the browser submits its answer.

No page links to it, so that nothing else of a site changes: whoever runs such an agent tells it the
address (``ServedRun.answer_url``). What is submitted ends the run as ``answer(value)`` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from trajudge.environments.model.page import Field, Form, Notice, Page, Paragraph
from trajudge.environments.model.spec import Rejected, Scenario
from trajudge.environments.model.wording import DONE, answer_form

ANSWER = "_answer"  # the page and its operation; no application has one of that name
RECEIVED = Page("Answer", (Notice("The answer was received."),))
_REQUEST = 'Submit what the task asks for, or "none" if it is not possible.'


def answer_page(scenario: Scenario) -> Page:
    """Return the form: one field for each thing that is asked for."""
    answers = scenario.answers or (DONE,)
    fields = tuple(
        Field(
            f"value{number}",
            f"{f'{number + 1}. ' if len(answers) > 1 else ''}Answer: {answer_form(answer)}"
            f"{', one a line' if answer.kind == 'texts' else ''}",
            "long" if answer.kind == "texts" else "text",
        )
        for number, answer in enumerate(answers)
    )
    form = Form("Submit answer", fields, operation=ANSWER)
    return Page("Answer", (Paragraph(_REQUEST), form))


def submitted(scenario: Scenario, sent: Mapping[str, str]) -> str | Rejected:
    """Return the last message that a submitted form comes to: a declared answer as
    ``action_syntax.spoken`` gives it."""
    values: list[str | list[str]] = []
    for number, answer in enumerate(scenario.answers or (DONE,)):
        text = sent.get(f"value{number}", "").strip()
        if not text:
            return Rejected("Nothing may be left empty.")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        values.append(lines if answer.kind == "texts" else text)
    return json.dumps({"answer": values if len(values) > 1 else values[0]}, ensure_ascii=False)
