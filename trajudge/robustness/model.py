"""Perturbations: changes of a trajectory whose effect on the truth is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Literal, NamedTuple

from numpy.random import Generator
from pydantic import Field, JsonValue

from trajudge.trajectories.model import Record, Trajectory

Family = Literal["A", "B", "C", "D", "E", "F", "G"]


class LabelQuestion(StrEnum):
    """A question for a judge and for the labels."""

    SUCCESS = "success"
    SIDE_EFFECT = "side_effect"
    REPETITION = "repetition"


class Relation(StrEnum):
    """The effect of a perturbation on the truth of one question: it keeps it, makes it false or
    true, or (``drops``) may change it from true to false but not back."""

    KEEP = "keep"
    FALSE = "false"
    TRUE = "true"
    DROPS = "drops"


class Channel(StrEnum):
    """A part of a judge's input. ``error`` is the message of a failed action, ``metadata`` is
    everything outside the run's observations and actions, ``prompt`` is only in the judge's own
    prompt."""

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


# The channels of a step; a perturbation that adds, removes or moves steps declares all of them.
STEP_CHANNELS = frozenset(
    {
        *(Channel.URL, Channel.ACTION, Channel.REASONING),
        *(Channel.AXTREE, Channel.SCREENSHOT, Channel.ERROR),
    }
)


class Need(StrEnum):
    """A condition for a perturbation to apply. ``facts``: the truth is based on the
    application's state; ``sibling``: there is a run of the same case with the other outcome;
    ``truth_false`` and ``truth_true``: the run failed, or succeeded."""

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
    """Who could make the change: nobody (harmless or honest), the judged agent, a visited page,
    or the keeper of the records."""

    NONE = "none"
    AGENT = "agent"
    PAGE = "page"
    RECORDER = "recorder"


class Edit(Record):
    """One changed field. ``step`` counts from 0 in the perturbed run (in the source for a
    removed step), None for a field outside of steps; the hashes are those of the field's text or
    image, or of the empty string without one."""

    step: int | None
    field: str
    kind: Literal["changed", "added", "removed"]
    before_sha256: str
    after_sha256: str


class AnswerOutcome(Record):
    """One required part of the last message, in normal form, and whether it is present;
    ``right`` None: debatable."""

    kind: str
    expected: tuple[str, ...]
    found: tuple[str, ...] = ()
    right: bool | None


class GoalOutcome(Record):
    """The goal of another case, and the verdict of that case's checker on the run's final state;
    ``config`` is the case's configuration, for a later check."""

    goal: str
    success: bool | None
    side_effect: bool | None = None
    config: dict[str, JsonValue] = Field(default_factory=dict)


class Sibling(Record):
    """Another run of the same case, with its truth and its facts."""

    trajectory: Trajectory
    success: bool
    side_effect: bool | None = None
    repetition: bool | None = None
    answers: tuple[AnswerOutcome, ...] = ()

    @property
    def answers_wrongly(self) -> bool:
        """Whether it has an answer, and a wrong one."""
        return any(one.right is False and one.found for one in self.answers)


class Facts(Record):
    """Facts about a trajectory's truth.

    ``source`` is the application's final state (``state``) or people (``labels``); ``held`` and
    ``missed`` name the expectations on the state that hold and that do not; ``again`` are
    re-recorded runs by variant. Unknown facts are None or empty.
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


class CallChange(Record):
    """A change of the call to the judge on unchanged runs.

    ``options`` are the judge's options that change (judges without them are skipped),
    ``temperature`` and ``samples`` those of the request; ``dated``: the model is called by the name
    of one of its versions.
    """

    options: dict[str, str] = Field(default_factory=dict)
    temperature: float | None = None
    samples: int = 1
    dated: bool = False


class Perturbed(Record):
    """A perturbed trajectory, its relation to the truth, and its edits.

    ``sample`` is the sample index of the request: 1 for the identity, which repeats the same
    prompt, else 0.
    """

    trajectory: Trajectory
    perturbation: str
    relations: dict[LabelQuestion, Relation]
    edits: tuple[Edit, ...]
    sample: int = 0


class NotApplicable(NamedTuple):
    """Why a perturbation does not apply to a trajectory."""

    reason: str


class Subject(Record):
    """A trajectory to perturb, with its facts."""

    trajectory: Trajectory
    facts: Facts


Transform = Callable[[Subject, Generator], Trajectory | NotApplicable]


class Perturbation(Record):
    """One way to change a trajectory: its channels, its relations, its needs.

    ``change`` is pure: equal source and random state give equal bytes; it changes only
    ``channels``. ``twin`` names the benign perturbation of the same length and position with which
    an attack is compared. ``stackable``: it may be composed with one that shares a channel.
    ``grade``: the record was edited, or the run was recorded with the payload on the page.
    ``sample`` as in ``Perturbed``; ``asking``: a perturbation of the call on unchanged runs;
    ``states_answer``: its text may contain the right answer; ``source``: the reference of the idea.
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
    asking: CallChange | None = None
    states_answer: bool = False
    source: str = ""
    change: Transform = Field(exclude=True, repr=False)


def keeps(success: Relation = Relation.KEEP, **others: Relation) -> dict[LabelQuestion, Relation]:
    """Return the relations of a perturbation that keeps all questions except the given ones."""
    relations = dict.fromkeys(LabelQuestion, Relation.KEEP) | {LabelQuestion.SUCCESS: success}
    return relations | {LabelQuestion(name): relation for name, relation in others.items()}


def truth_after(relation: Relation, truth: bool | None) -> bool | None:
    """Return the truth of a question after a perturbation; None if unknown."""
    if relation is Relation.KEEP:
        return truth
    if relation is Relation.DROPS:
        return False if truth is False else None
    return relation is Relation.TRUE


def combined(relations: Iterable[Relation]) -> Relation | None:
    """Compose relations: false dominates, keep is neutral, and true with false or with drops has
    no relation (None)."""
    present = set(relations) - {Relation.KEEP}
    if Relation.TRUE in present and len(present) > 1:
        return None
    for dominant in (Relation.FALSE, Relation.DROPS, Relation.TRUE):
        if dominant in present:
            return dominant
    return Relation.KEEP
