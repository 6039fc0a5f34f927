"""The dialects of task files: each is declared once, here, and recognised from its file.

WebArena's own task format has descendants whose harnesses read the same fields by other rules; a
``Harness`` says which. A file is of the dialect whose own words (keys, checks, markers) it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from trajudge.rules.reading import decode, read_bytes
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder

Form = Literal["webarena", "verified", "real"]

_ANSWERS = frozenset({"exact_match", "must_include", "fuzzy_match"})
_CONTENTS = frozenset({"exact_match", "must_include"})
_CHECKS = frozenset({"string_match", "url_match", "program_html"})
_VISUAL_CONTENTS = _CONTENTS | {"must_exclude", "required_values", "fuzzy_match"}
_VERIFIED_CHECKS = ("AgentResponseEvaluator", "NetworkEventEvaluator", "BackendStateEvaluator")


@dataclass(frozen=True)
class Harness:
    """How a harness of WebArena's family reads a specification.

    ``answers``, ``contents`` and ``checks`` are the names that it reads in ``reference_answers``,
    ``required_contents`` and ``eval_types``. ``alternatives`` joins the alternatives of a
    ``must_include`` of answers, "" where it has none; ``folds_options``: after both are cleaned.
    ``whole_words``: a reference that is one word must be a word of the text ("parts": words joined
    by "/" also count one by one); "lone": only the one reference of a list, of one character, must.
    ``partial``: the score of a list is the
    share that holds. ``strips``: white space around a text does not count. ``joined`` joins the
    references of a fuzzy match to one question, None asks one each. ``exact_urls``: addresses are
    equal, or with the note "GOLD in PRED" part of the last page's, as texts; else the base is part
    of it and the query's values are among it. ``folds_urls``: letter case of addresses does not
    count. ``unescapes``: entities of a page's text are resolved. ``or_entries``: ``or`` lists other
    addresses and page checks.
    """

    answers: frozenset[str] = _ANSWERS
    contents: frozenset[str] = _CONTENTS
    checks: frozenset[str] = _CHECKS
    alternatives: str = ""
    folds_options: bool = False
    whole_words: Literal["lone", "words", "parts"] = "lone"
    partial: bool = False
    strips: bool = True
    joined: str | None = None
    exact_urls: bool = False
    folds_urls: bool = False
    unescapes: bool = True
    or_entries: bool = False


@dataclass(frozen=True)
class Dialect:
    """One dialect. ``form`` is how its records are read; ``words`` are those that no other dialect
    of the form has; ``extends`` names a dialect whose words it may hold too."""

    name: str
    title: str
    form: Form
    words: frozenset[str] = frozenset()
    extends: str = ""
    harness: Harness = Harness()


_VISUAL = Harness(
    answers=_ANSWERS | {"must_exclude", "one_of", "required_values"},
    contents=_VISUAL_CONTENTS,
    checks=_CHECKS | {"page_image_query"},
    alternatives=" |OR| ",
    whole_words="words",
    strips=False,
    exact_urls=True,
    unescapes=False,
)

DIALECTS: Mapping[str, Dialect] = {
    row.name: row
    for row in (
        Dialect("webarena", "WebArena", "webarena"),
        Dialect(
            "webchorearena",
            "WebChoreArena",
            "webarena",
            words=frozenset({"start_url_lite", "required_obs", "type_main", "or", " |or| "}),
            harness=Harness(
                alternatives=" |or| ",
                folds_options=True,
                partial=True,
                joined="; ",
                folds_urls=True,
                or_entries=True,
            ),
        ),
        Dialect(
            "visualwebarena",
            "VisualWebArena",
            "webarena",
            words=frozenset(
                {"visual_difficulty", "page_image_query", "must_exclude", "one_of"}
                | {"required_values", "EXACT"}
            ),
            harness=_VISUAL,
        ),
        Dialect(
            "webarena-lite",
            "WebArena-Lite",
            "webarena",
            words=frozenset({"old_task_id"}),
            extends="visualwebarena",
            harness=Harness(
                answers=_VISUAL.answers,
                contents=_VISUAL.contents,
                checks=_VISUAL.checks,
                alternatives=" |OR| ",
                whole_words="parts",
                strips=False,
                joined=", ",
                exact_urls=True,
                unescapes=False,
            ),
        ),
        Dialect("verified", "WebArena Verified", "verified"),
        Dialect("real", "REAL", "real"),
    )
}


def dialect(name: str) -> Dialect:
    """Return a dialect by its name. Raises UserError for one that there is none of."""
    if name not in DIALECTS:
        raise UserError(f"no dialect {name!r} of task files: use one of {', '.join(DIALECTS)}")
    return DIALECTS[name]


def detected(path: Path) -> Dialect:
    """Return the dialect of a task file, of a folder by its first file.

    Raises UserError if none fits, or several do.
    """
    records = list(_records(path))
    forms = {form for record in records if (form := _form(record))}
    if len(forms) != 1:
        what = f"are of several dialects ({', '.join(sorted(forms))})" if forms else "are of none"
        raise UserError(f"{path}: its tasks {what} of {', '.join(DIALECTS)}: name it by --dialect")
    rows = [row for row in DIALECTS.values() if row.form in forms]
    said = frozenset(word for record in records for word in _words(record))
    met = {row.name: row.words & said for row in rows if row.words & said}
    for row in rows:
        if row.name in met:
            met.pop(row.extends, None)
    if len(met) > 1:
        held = " and ".join(f"{name} ({', '.join(sorted(met[name]))})" for name in met)
        raise UserError(f"{path}: its tasks hold words of {held}: name one by --dialect")
    return DIALECTS[next(iter(met))] if met else rows[0]


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records of the first file that are objects. Raises UserError if there is none."""
    folder = DataFolder(path) if path.is_dir() else None
    file = next(iter(sorted(path.glob("*.json"))), None) if folder else path
    if file is None:
        raise UserError(f"{path}: holds no .json file: name a file of tasks, or a folder of them")
    made = raw_records(read_bytes(file, folder=folder), file)
    if not made:
        raise UserError(f"{file}: holds no task: name a file of tasks (see rules/schema.md)")
    for raw in made:
        record = msgspec.json.decode(raw)
        if isinstance(record, dict):
            yield record


def raw_records(data: bytes, file: Path) -> Sequence[msgspec.Raw]:
    """Return the records of a JSON list, or the one of an object. Raises UserError."""
    if data.lstrip().startswith(b"["):
        listed: list[msgspec.Raw] = decode(data, list[msgspec.Raw], file)
        return listed
    decode(data, dict[str, Any], file)
    return [decode(data, msgspec.Raw, file)]


def _form(record: Mapping[str, Any]) -> Form | None:
    spec = record.get("eval")
    if isinstance(spec, dict) and "eval_types" in spec:
        return "webarena"
    if isinstance(spec, list) and spec:
        named = (check.get("evaluator") for check in spec if isinstance(check, dict))
        return "verified" if any(name in _VERIFIED_CHECKS for name in named) else None
    return "real" if "evals" in record and "goal" in record else None


def _words(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of a task in WebArena's form by which a dialect is known."""
    yield from record
    spec = record.get("eval")
    if not isinstance(spec, dict):
        return
    yield from spec
    yield from _texts([spec.get("eval_types"), spec.get("url_note")])
    answers = spec.get("reference_answers")
    if isinstance(answers, dict):
        yield from answers
        if any(" |or| " in text for text in _texts([answers.get("must_include")])):
            yield " |or| "
    for check in spec.get("program_html") or ():
        if isinstance(check, dict):
            yield from check
            contents = check.get("required_contents")
            yield from contents if isinstance(contents, dict) else ()


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (one for one in value if isinstance(one, str))
