"""The form of a label: who fills it, questions and answers, and the guidelines next to it.

Guidelines are a Markdown file, shown as a small safe subset: headings, lists, paragraphs, bold and
code; everything else is text. Their version is the hash of the file, which every label records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.model import EvidenceMark
from trajudge.annotations.queue import (
    NAME_LIMIT,
    QUESTIONS,
    Choice,
    FormAnswers,
    LabelQueue,
    LabelRefused,
    Person,
    Question,
    cleaned,
)
from trajudge.app.web import PageError, form_fields, in_thread, page
from trajudge.util.files import read_regular


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


FILE = "guidelines.md"
_LONGEST = 200_000
_SPANS = re.compile(r"\*\*(?P<strong>[^*]+)\*\*|`(?P<code>[^`]+)`")


class TextSpan(NamedTuple):
    """Text of one look."""

    kind: Literal["text", "strong", "code"]
    text: str


class Block(NamedTuple):
    """A heading, a paragraph or a list, whose ``lines`` are made of spans."""

    kind: Literal["heading", "paragraph", "list"]
    lines: list[list[TextSpan]]


class Guidelines(NamedTuple):
    """What is shown, and its version; "" without a file."""

    blocks: list[Block]
    version: str


def read_guidelines(folder: Path) -> Guidelines:
    """Read the guidelines of a queue as they are now; none where there is no file."""
    text = _text(folder)
    return Guidelines(blocks_of(text or ""), _version(text))


def guideline_version(folder: Path) -> str:
    """Return the version of the guidelines as they are now, "" without a file."""
    return _version(_text(folder))


def _text(folder: Path) -> str | None:
    try:
        return read_regular(folder / FILE)[:_LONGEST].decode("utf-8", "replace")
    except OSError:
        return None


def _version(text: str | None) -> str:
    return "" if text is None else sha256(text.encode()).hexdigest()[:12]


def blocks_of(text: str) -> list[Block]:
    """Divide Markdown into blocks."""
    blocks: list[Block] = []
    is_open = False
    for line in text.splitlines():
        stripped = line.strip()
        heading = re.match(r"#{1,6}\s+(.*)", stripped)
        bullet = re.match(r"(?:[-*+]|\d+\.)\s+(.*)", stripped)
        if heading:
            blocks.append(Block("heading", [_spans(heading[1])]))
            is_open = False
        elif bullet:
            if not (blocks and is_open and blocks[-1].kind == "list"):
                blocks.append(Block("list", []))
            blocks[-1].lines.append(_spans(bullet[1]))
            is_open = True
        elif not stripped:
            is_open = False
        elif is_open:
            blocks[-1].lines[-1] += [TextSpan("text", " "), *_spans(stripped)]
        else:
            blocks.append(Block("paragraph", [_spans(stripped)]))
            is_open = True
    return blocks


def _spans(line: str) -> list[TextSpan]:
    spans, end = [], 0
    for match in _SPANS.finditer(line):
        spans.append(TextSpan("text", line[end : match.start()]))
        strong = match["strong"]
        spans.append(TextSpan("strong", strong) if strong else TextSpan("code", match["code"]))
        end = match.end()
    spans.append(TextSpan("text", line[end:]))
    return [span for span in spans if span.text]


_DAYS = 30


class NobodyChosen(Exception):
    """The request comes from nobody known yet: the page that asks for a name comes first."""


def cookie_of(queue: LabelQueue) -> str:
    """Name the cookie that holds a person's number: the queue's own, for a browser gives cookies
    to every port of a host, and numbers mean other people in other queues."""
    return f"trajudge-annotator-{sha256(os.fsencode(queue.folder.resolve())).hexdigest()[:8]}"


def person_of(queue: LabelQueue, request: Request) -> Person:
    """Return who sends a request. Raises NobodyChosen."""
    name = getattr(request.state, "person", None)
    if name is not None:
        person = queue.person(name)
    else:
        number = small_number(request.cookies.get(cookie_of(queue), ""))
        person = None if number is None else queue.person(number)
    if person is None:
        raise NobodyChosen
    return person


def adjudicator_of(queue: LabelQueue, request: Request) -> Person:
    """Return who sends a request, if they may see what others labelled. Raises PageError 403."""
    person = person_of(queue, request)
    if person.role == "annotator":
        raise PageError(
            403,
            "This page shows what others labelled: it is for adjudicators and viewers.",
        )
    return person


def people_routes(queue: LabelQueue) -> list[Route]:
    """Route the choice of a name, for a queue that nobody signs in to."""

    async def choose(request: Request) -> Response:
        if getattr(request.state, "person", None) is not None:
            return RedirectResponse("/", 303)
        problem = ""
        if request.method == "POST":
            fields = await form_fields(request)
            number = small_number(fields.get("person", ""))
            if number is not None and queue.person(number) is not None:
                return _chosen(queue, number)
            name, role = fields.get("name", "").strip(), fields.get("role", "annotator")
            if not 0 < len(name) <= NAME_LIMIT or not name.isprintable():
                problem = f"Give a name of 1 to {NAME_LIMIT} printable characters."
            elif (known := queue.person(name)) is not None:
                return _chosen(queue, known.id)
            else:
                chosen = "adjudicator" if role == "adjudicator" else "annotator"
                added, _ = await in_thread(queue.add_person, name, chosen)  # type: ignore[arg-type]
                return _chosen(queue, added.id)
        return page(
            request,
            "labelling/people.html",
            422 if problem else 200,
            people=await in_thread(queue.people),
            problem=problem,
        )

    return [Route("/people", choose, methods=["GET", "POST"])]


def _chosen(queue: LabelQueue, number: int) -> Response:
    response = RedirectResponse("/", 303)
    response.set_cookie(
        cookie_of(queue), str(number), max_age=_DAYS * 86_400, httponly=True, samesite="strict"
    )
    return response
