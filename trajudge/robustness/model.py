"""What a perturbation is: a change of a trajectory whose effect on the truth is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Literal, NamedTuple

from numpy.random import Generator
from pydantic import Field, JsonValue

from trajudge.trajectories.model import Record, Trajectory

Family = Literal["A", "B", "C", "D", "E", "F", "G"]


class LabelQuestion(StrEnum):
    """What is asked of a judge and known of a trajectory."""

    SUCCESS = "success"
    SIDE_EFFECT = "side_effect"
    REPETITION = "repetition"


class Relation(StrEnum):
    """What a perturbation does to the truth of one question: nothing, makes it false or true, or
    (``drops``) may take it from true to false, never the other way."""

    KEEP = "keep"
    FALSE = "false"
    TRUE = "true"
    DROPS = "drops"


class Channel(StrEnum):
    """A part of what a judge may be shown. ``error`` is the message of a failed action,
    ``metadata`` everything that is no part of the run as it was seen, ``prompt`` what only the
    judge's own prompt holds."""

    GOAL = "goal"
    URL = "url"
    ACTION = "action"
    REASONING = "reasoning"
    ANSWER = "answer"
    AXTREE = "axtree"
    SCREENSHOT = "screenshot"
    ERROR = "error"
    METADATA = "metadata"
    PROMPT = "prompt"


# What a step holds: a perturbation that adds, removes or moves steps declares all of them.
STEP_CHANNELS = frozenset(
    {
        *(Channel.URL, Channel.ACTION, Channel.REASONING),
        *(Channel.AXTREE, Channel.SCREENSHOT, Channel.ERROR),
    }
)


class Need(StrEnum):
    """What a trajectory or its facts must hold for a perturbation to apply. ``facts``: its truth
    rests on the state of the application; ``sibling``: there is a run of the same case with the
    other outcome; ``truth_false`` and ``truth_true``: it failed, or succeeded."""

    ANSWER = "answer"
    AXTREE = "axtree"
    SCREENSHOT = "screenshot"
    REASONING = "reasoning"
    ERROR = "error"
    FACTS = "facts"
    SIBLING = "sibling"
    TRUTH_FALSE = "truth_false"
    TRUTH_TRUE = "truth_true"


class Attacker(StrEnum):
    """Who could make the change: nobody (it is harmless or honest), the agent that is judged, the
    page that it visits, or whoever keeps the records."""

    NONE = "none"
    AGENT = "agent"
    PAGE = "page"
    RECORDER = "recorder"


class Edit(Record):
    """One changed field. ``step`` counts from 0 in the perturbed run (in the source for a step that
    was removed), None for what belongs to no step; the hashes are those of the field's text or
    image, of the empty string where it was or is absent."""

    step: int | None
    field: str
    kind: Literal["changed", "added", "removed"]
    before_sha256: str
    after_sha256: str


class AnswerOutcome(Record):
    """One thing that the last message must say, in normal form, and whether it does; ``right``
    None is open to argument."""

    kind: str
    expected: tuple[str, ...]
    found: tuple[str, ...] = ()
    right: bool | None


class GoalOutcome(Record):
    """A goal of another case, and what that case's checker says of the run's final state;
    ``config`` is the case's configuration, for those that ask its checker again."""

    goal: str
    success: bool | None
    side_effect: bool | None = None
    config: dict[str, JsonValue] = Field(default_factory=dict)


class Sibling(Record):
    """Another run of the same case, with its truth and how it came to it."""

    trajectory: Trajectory
    success: bool
    side_effect: bool | None = None
    repetition: bool | None = None
    answers: tuple[AnswerOutcome, ...] = ()

    @property
    def answers_wrongly(self) -> bool:
        """Whether it offers an answer, and the wrong one."""
        return any(one.right is False and one.found for one in self.answers)


class Facts(Record):
    """What is known of a trajectory's truth.

    ``source`` is the state of the application that the run left (``state``) or people
    (``labels``); ``held`` and ``missed`` name the expectations on the state that hold and that do
    not; ``again`` are the runs that were recorded once more, by what was changed. What is not known
    is None or empty.
    """

    source: Literal["state", "labels"] = "labels"
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    answers: tuple[AnswerOutcome, ...] = ()
    held: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    siblings: tuple[Sibling, ...] = ()
    again: dict[str, Sibling] = Field(default_factory=dict)
    goals: tuple[GoalOutcome, ...] = ()


class Asking(Record):
    """How a judge is asked otherwise about runs that stay as they are.

    ``options`` of the judge that differ (a judge without them is not asked), the ``temperature``,
    how many ``samples`` are drawn; ``dated``: the model under the name of one of its versions.
    """

    options: dict[str, str] = Field(default_factory=dict)
    temperature: float | None = None
    samples: int = 1
    dated: bool = False


class Perturbed(Record):
    """A perturbed trajectory, its relation to the truth, and what exactly was changed.

    ``sample`` is the index of the request's sample: 1 for the identity, which asks the same prompt
    again, else 0.
    """

    trajectory: Trajectory
    perturbation: str
    relations: dict[LabelQuestion, Relation]
    edits: tuple[Edit, ...]
    sample: int = 0


class NotApplicable(NamedTuple):
    """Why a perturbation says nothing about a trajectory."""

    reason: str


class Subject(Record):
    """What a perturbation changes, and what it may know."""

    trajectory: Trajectory
    facts: Facts


Transform = Callable[[Subject, Generator], Trajectory | NotApplicable]


class Perturbation(Record):
    """One way to change a trajectory: what it touches, what it means, what it needs.

    ``change`` is pure: equal source and random state give equal bytes, and it leaves what is
    outside of ``channels`` as it was. ``twin`` names the benign perturbation of the same length
    and position that an attack is compared with. ``stackable``: may be composed with one that
    shares a channel. ``grade``: the record was edited, or the payload stood on the page when the
    run was recorded. ``sample`` as in ``Perturbed``; ``asking``: the runs stay, and the judge is
    asked otherwise; ``states_answer``: its text may hold the right answer; ``source``: where the
    idea comes from.
    """

    name: str
    family: Family
    version: int = 1
    channels: frozenset[Channel]
    relations: dict[LabelQuestion, Relation]
    needs: frozenset[Need] = frozenset()
    attacker: Attacker = Attacker.NONE
    grade: Literal["edited", "native"] = "edited"
    twin: str | None = None
    stackable: bool = False
    summary: str
    sample: int = 0
    asking: Asking | None = None
    states_answer: bool = False
    source: str = ""
    change: Transform = Field(exclude=True, repr=False)


def keeps(success: Relation = Relation.KEEP, **others: Relation) -> dict[LabelQuestion, Relation]:
    """Return the relations of a perturbation that keeps whatever is not named."""
    relations = dict.fromkeys(LabelQuestion, Relation.KEEP) | {LabelQuestion.SUCCESS: success}
    return relations | {LabelQuestion(name): relation for name, relation in others.items()}


def truth_after(relation: Relation, truth: bool | None) -> bool | None:
    """Return the truth of a question after a perturbation; None: not known."""
    if relation is Relation.KEEP:
        return truth
    if relation is Relation.DROPS:
        return False if truth is False else None
    return relation is Relation.TRUE


def combined(relations: Iterable[Relation]) -> Relation | None:
    """Compose relations: false dominates, keep is neutral, and true with false or with drops is
    no relation (None)."""
    present = set(relations) - {Relation.KEEP}
    if Relation.TRUE in present and len(present) > 1:
        return None
    for dominant in (Relation.FALSE, Relation.DROPS, Relation.TRUE):
        if dominant in present:
            return dominant
    return Relation.KEEP
