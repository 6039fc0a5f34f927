"""The references of a specification, one by one, with their place in the task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from msgspec import UNSET

from trajudge.rules.webarena.model import PageCheck, Task

Where = Literal["answer", "page"]
How = Literal["exact_match", "must_include", "fuzzy_match"]


class Reference(NamedTuple):
    """One reference: against what it is held, how, its text, and its neighbours in the list."""

    field: str
    where: Where
    how: How
    text: str
    among: tuple[str, ...]

    @property
    def held_to_tokens(self) -> bool:
        """Whether the harness asks that it stands alone (the one-character rule)."""
        alone = self.where == "answer" and len(self.among) == 1
        return self.how == "must_include" and alone and len(self.text.strip()) == 1


def references(task: Task) -> Iterator[Reference]:
    """Yield all references to answers and to pages, in the order of the specification."""
    answers = task.eval.reference_answers
    if answers is not None:
        place = "eval.reference_answers"
        if answers.exact_match is not UNSET:
            yield from _listed(place, "answer", "exact_match", answers.exact_match)
        if answers.must_include is not UNSET:
            yield from _listed(place, "answer", "must_include", answers.must_include)
        if answers.fuzzy_match is not UNSET:
            yield from _listed(place, "answer", "fuzzy_match", answers.fuzzy_match)
    for entry, check in page_checks(task):
        place, required = f"{entry}.required_contents", check.required_contents
        if required.exact_match is not UNSET:
            yield from _listed(place, "page", "exact_match", required.exact_match)
        if required.must_include is not UNSET:
            yield from _listed(place, "page", "must_include", required.must_include)


def page_checks(task: Task) -> Iterator[tuple[str, PageCheck]]:
    """Yield the page checks with their places."""
    for index, check in enumerate(task.eval.program_html):
        yield f"eval.program_html[{index}]", check


def _listed(
    place: str, where: Where, how: How, texts: str | tuple[str, ...]
) -> Iterator[Reference]:
    if isinstance(texts, str):
        yield Reference(f"{place}.{how}", where, how, texts, (texts,))
        return
    for index, text in enumerate(texts):
        yield Reference(f"{place}.{how}[{index}]", where, how, text, texts)
