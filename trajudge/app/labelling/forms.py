"""The answers in a form that was sent, and the questions as a page shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from pydantic import ValidationError

from trajudge.annotations.model import EvidenceMark
from trajudge.annotations.queue import (
    QUESTIONS,
    Choice,
    FormAnswers,
    LabelRefused,
    Question,
    cleaned,
)


class AnswerOption(NamedTuple):
    """A choice of a question; ``key`` chooses it while the question has the focus."""

    value: str
    title: str
    key: str


class FormQuestion(NamedTuple):
    """A question of the form."""

    name: Question
    title: str
    options: tuple[AnswerOption, ...]


_UNSURE = AnswerOption("unsure", "unsure", "u")
_YES_NO = (AnswerOption("yes", "yes", "y"), AnswerOption("no", "no", "n"), _UNSURE)
_ALL = (
    FormQuestion(
        "success",
        "Is the goal reached?",
        (AnswerOption("yes", "success", "s"), AnswerOption("no", "failure", "f"), _UNSURE),
    ),
    FormQuestion("side_effect", "A side effect that the goal did not ask for?", _YES_NO),
    FormQuestion("repetition", "Actions repeated without getting further?", _YES_NO),
    FormQuestion(
        "optimality",
        "How optimal was the way?",
        (
            AnswerOption("1", "1 complete failure", "1"),
            AnswerOption("2", "2 suboptimal", "2"),
            AnswerOption("3", "3 somewhat optimal", "3"),
            AnswerOption("4", "4 completely optimal", "4"),
            _UNSURE,
        ),
    ),
)
MARK_KINDS: tuple[str, ...] = ("screenshot", "axtree", "action", "answer")


def small_number(text: str) -> int | None:
    """Read a number of at most nine digits; None for all else."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def form_questions(names: tuple[Question, ...]) -> list[FormQuestion]:
    """Return the questions of a queue."""
    return [question for question in _ALL if question.name in names]


def read_answers(
    fields: Mapping[str, str], names: tuple[Question, ...], standing: FormAnswers
) -> FormAnswers:
    """Read the answers of a form. Evidence and the version of the guidelines are those that stand.
    Raises LabelRefused for what is no answer."""
    values: dict[str, Any] = {}
    for name in names:
        value = fields.get(name, "")
        if value:
            number = small_number(value) if name == "optimality" else None
            values[name] = value if number is None else number
    why = {name: cleaned(fields.get(f"why_{name}", "")).strip() for name in QUESTIONS}
    seconds = fields.get("seconds", "")
    try:
        return FormAnswers(
            **values,
            unsure_why={name: text for name, text in why.items() if text},
            comment=cleaned(fields.get("comment", "")).strip(),
            confidence=small_number(fields.get("confidence", "")),
            seconds=_seconds(seconds, standing.seconds),
            evidence=standing.evidence,
            guideline_version=standing.guideline_version,
        )
    except ValidationError:
        choices = ", ".join(get_args(Choice))
        raise LabelRefused(f"Not saved: an answer is none of {choices} or 1 to 4.") from None


def marked(answers: FormAnswers, fields: Mapping[str, str]) -> FormAnswers:
    """Add the mark that a form asks for. Raises LabelRefused for one that is none."""
    step, kind = small_number(fields.get("mark_step", "")), fields.get("mark_kind", "")
    if step is None or kind not in MARK_KINDS:
        raise LabelRefused("Not marked: open the step first.")
    mark = EvidenceMark(
        step=step,
        kind=kind,
        note=cleaned(fields.get("mark_note", "")).strip(),
    )
    if mark in answers.evidence:
        return answers
    return answers.model_copy(update={"evidence": (*answers.evidence, mark)[-200:]})


def unmarked(answers: FormAnswers, place: str) -> FormAnswers:
    """Remove a mark by its place."""
    kept = tuple(mark for at, mark in enumerate(answers.evidence) if str(at) != place)
    return answers.model_copy(update={"evidence": kept})


def _seconds(text: str, before: float | None) -> float | None:
    """Read the seconds that the page was visible; never less than before."""
    try:
        value = float(text)
    except ValueError:
        return before
    return max(value, before or 0.0) if 0 <= value < 1e7 else before
