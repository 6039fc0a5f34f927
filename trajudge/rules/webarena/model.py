"""A task in WebArena's form as its authors write it, and what is kept of an agent's run.

The parts of the specification (``eval``) refuse keys they do not know: a misspelt check would check
nothing. Keys of other benchmarks beside them are kept and named (``files.load_tasks``); around the
specification they are ignored. Which of the fields are read depends on the task's dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from trajudge.rules.dialects import DIALECTS, Harness
from trajudge.rules.reading import TaskFlaw, template_of

TaskId = int | str
UNACHIEVABLE = "N/A"
Check = Literal["string_match", "url_match", "program_html", "page_image_query"]


class ReferenceAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the answer is held against; all that are given must hold.

    ``fuzzy_match`` is a list of references for a judge model, or "N/A": the task is unachievable.
    """

    exact_match: str | UnsetType = UNSET
    must_include: tuple[str, ...] | UnsetType = UNSET
    must_exclude: tuple[str, ...] | UnsetType = UNSET
    one_of: tuple[str, ...] | UnsetType = UNSET
    required_values: tuple[str, ...] | UnsetType = UNSET
    fuzzy_match: str | tuple[str, ...] | UnsetType = UNSET


class RequiredContents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a page must hold; where several are given, the harness reads the first of them only."""

    exact_match: str | UnsetType = UNSET
    must_include: tuple[str, ...] | UnsetType = UNSET
    must_exclude: tuple[str, ...] | UnsetType = UNSET
    required_values: tuple[str, ...] | UnsetType = UNSET
    fuzzy_match: str | tuple[str, ...] | UnsetType = UNSET

    @property
    def given(self) -> tuple[str, ...]:
        """The names that are given, the one that is read first."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) is not UNSET)


class PageCheck(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"alternatives": "or"}
):
    """One entry of ``program_html``: a page, the part of it to read, what must be there.

    ``url`` is an address, ``last`` or ``func:...``; ``locator`` is blank for the whole page, a
    JavaScript expression, or ``func:...``. Neither is ever executed here.
    """

    url: str
    locator: str
    required_contents: RequiredContents
    prep_actions: tuple[str, ...] | UnsetType = UNSET
    alternatives: tuple[PageCheck, ...] | UnsetType = UNSET


class AddressAlternative(msgspec.Struct, frozen=True):
    """One entry of WebChoreArena's ``eval.or``: another reference address."""

    reference_url: str


class Specification(
    msgspec.Struct,
    frozen=True,
    rename={"answers": "reference_answers", "others": "_others", "alternatives": "or"},
):
    """How a task is judged: every check that ``eval_types`` names must pass.

    ``others`` are the keys of other tools, which no rule reads; ``files`` puts them there.
    """

    eval_types: tuple[Check, ...]
    answers: ReferenceAnswers | Literal[""] | None = None
    reference_url: str | None = ""
    program_html: tuple[PageCheck, ...] = ()
    page_image_query: tuple[dict[str, Any], ...] | UnsetType = UNSET
    string_note: str | UnsetType = UNSET
    url_note: str | UnsetType = UNSET
    annotation_note: str | UnsetType = UNSET
    reference_answer_raw_annotation: str | UnsetType = UNSET
    alternatives: tuple[AddressAlternative, ...] | UnsetType = UNSET
    others: Mapping[str, Any] | UnsetType = UNSET

    @property
    def unread(self) -> tuple[str, ...]:
        """The names of ``others``."""
        return () if self.others is UNSET else tuple(self.others)

    @property
    def reference_answers(self) -> ReferenceAnswers | None:
        """What the answer is held against; some write an empty text for none."""
        return self.answers or None


class Task(msgspec.Struct, frozen=True):
    """A task: what the agent is asked, where, and how its run is judged.

    ``dialect`` and ``flaw`` are set by ``files.load_tasks``: a task with a flaw checks nothing.
    """

    task_id: TaskId
    intent: str
    eval: Specification
    sites: tuple[str, ...] = ()
    start_url: str = ""
    require_login: bool = False
    require_reset: bool = False
    storage_state: str | None = None
    geolocation: Any = None
    intent_template: str = ""
    intent_template_id: TaskId | None = None
    instantiation_dict: dict[str, Any] = {}
    string_note: str | UnsetType = UNSET
    dialect: str = "webarena"
    flaw: TaskFlaw | None = None

    @property
    def harness(self) -> Harness:
        """How the harness of the task's dialect reads it."""
        return DIALECTS[self.dialect].harness

    @property
    def template(self) -> str:
        """What statistics group tasks by."""
        return template_of(self.intent_template_id, self.task_id)

    @property
    def achievable(self) -> bool:
        """Whether the task can be done: the right answer is not "N/A"."""
        references = self.eval.reference_answers
        return references is None or references.fuzzy_match != UNACHIEVABLE


class StoredPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page as it was when the run ended: its html, and the values of locators read in it; None
    for an element that was not there."""

    url: str
    html: str | None = None
    values: dict[str, str | None] = {}


class Trace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a run besides its answer.

    ``url`` is the last page's; ``results`` are what helper functions returned, by their text
    after ``func:``.
    """

    url: str | None = None
    pages: tuple[StoredPage, ...] = ()
    results: dict[str, str | None] = {}


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent's answer to a task, None where it gave none, and the trace of its run."""

    task_id: TaskId
    answer: str | None = None
    trace: Trace | None = None
