"""A page beside every application on which an agent that has only the browser submits its answer.

No page links to it, so that nothing else of a site changes: whoever runs such an agent tells it the
address (``ServedRun.answer_url``). What is submitted ends the run as ``answer(value)`` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite

from trajudge.environments.model.page import Field, Form, Notice, Page, Paragraph
from trajudge.environments.model.spec import AnswerKind, Rejected, Scenario
from trajudge.environments.model.wording import ANSWER_FORMS

ANSWER = "_answer"  # the page and its operation; no application has one of that name
RECEIVED = Page("Answer", (Notice("The answer was received."),))


def answer_page(scenario: Scenario) -> Page:
    """Return the form: one field for each thing that is asked for, else one for a message."""
    fields = [
        Field(
            f"value{number}",
            _label(number, answer.kind, len(scenario.answers)),
            "long" if answer.kind == "texts" else "text",
        )
        for number, answer in enumerate(scenario.answers)
    ]
    request = "Submit what the task asks for." if fields else "Submit a last message."
    entries = tuple(fields) or (Field("message", "Message", "long"),)
    return Page("Answer", (Paragraph(request), Form("Submit answer", entries, operation=ANSWER)))


def declared(scenario: Scenario, sent: Mapping[str, str]) -> str | Rejected:
    """Return the last message that a submitted form comes to: a declared answer as
    ``action_syntax.spoken`` gives it, or the text where nothing is asked for."""
    if not scenario.answers:
        return sent.get("message", "").strip() or Rejected("The message is empty.")
    values: list[str | float] = []
    for number, answer in enumerate(scenario.answers):
        text = sent.get(f"value{number}", "").strip()
        if not text:
            return Rejected("Nothing may be left empty.")
        values += _values(answer.kind, text)
    listed = len(values) > 1 or scenario.answers[0].kind == "texts"
    return json.dumps({"answer": values if listed else values[0]}, ensure_ascii=False)


def _label(number: int, kind: AnswerKind, of: int) -> str:
    each = ", one a line" if kind == "texts" else ""
    place = f"{number + 1}. " if of > 1 else ""
    return f"{place}Answer: {ANSWER_FORMS[kind]}{each}"


def _values(kind: AnswerKind, text: str) -> list[str | float]:
    if kind == "texts":
        return [line.strip() for line in text.splitlines() if line.strip()]
    if kind == "number":
        try:
            number = float(text)
        except ValueError:
            return [text]
        if isfinite(number):
            return [int(number) if number.is_integer() else number]
    return [text]
