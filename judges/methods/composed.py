"""Judges made of judges: a panel that votes, and a cascade whose second member is asked only
where the first cannot settle it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Literal, NamedTuple

from pydantic import Field, JsonValue, field_validator

from trajudge.judges import training_set
from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.asked import Asked, Asker
from trajudge.judges.judging import FAILURES
from trajudge.judges.model import Ask, Judge, Reply, Verdict
from trajudge.judges.registry import make_judge, needs_of
from trajudge.judges.replies.parsing import ParseFailure
from trajudge.judges.replies.reading import about, together
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs, union

SECOND_ASKED = "second_asked"
"""In a cascade's ``scores``: 1 if the second member was asked, else 0."""


class Member(Record):
    """A judge by name, the model that it was named with, and its options: ``given`` on the command
    line, and ``options`` that follow from the model and are left out of the run's manifest.
    ``asks`` is the model to give to ``Ask``; None: the run's own."""

    name: str
    model: str | None = None
    asks: str | None = None
    given: dict[str, JsonValue] = Field(default_factory=dict)
    options: dict[str, object] = Field(default_factory=dict, repr=False, exclude=True)

    def __str__(self) -> str:
        return f"{self.name}:{self.model}" if self.model else self.name


class Members(Record):
    """In the order of ``--of``."""

    members: tuple[Member, ...] = ()

    def __str__(self) -> str:
        return "+".join(map(str, self.members))


class ComposedOptions(Record):
    """``of``: two members or more, each of them once."""

    of: Members = Members()

    @property
    def needs(self) -> Needs:
        """What all members need. One that lacks what it requires is absent."""
        return union(needs_of(member.name, member.given) for member in self.of.members)

    @field_validator("of")
    @classmethod
    def _distinct(cls, of: Members) -> Members:
        names = [str(member) for member in of.members]
        if len(set(names)) < max(2, len(names)):
            raise ValueError("name two judges or more, each once:  --of NAME[:MODEL],NAME[:MODEL]")
        return of


class PanelOptions(ComposedOptions):
    """``rule`` decides from the votes of the members that answered (a mean is that of their
    scores, a vote without one counts 0 or 1); fewer than ``quorum`` of them (by default more than
    half) are no verdict; ``tie`` is what half of the votes, or a mean of one half, means."""

    rule: Literal["majority", "unanimous", "mean"] = "majority"
    quorum: int | None = Field(default=None, ge=1)
    tie: Literal["success", "failure"] = "failure"


class CascadeOptions(ComposedOptions):
    """The second member is asked unless the first says no: with a score below ``unsure``, or
    without success where it gives no score."""

    unsure: float = Field(default=0.2, ge=0, le=1)

    @field_validator("of")
    @classmethod
    def _two(cls, of: Members) -> Members:
        if len(of.members) != 2:
            raise ValueError("a cascade has two members, the cheap one first")
        return of


class _Seat(NamedTuple):
    """A member with the judge that it is."""

    label: str
    model: str | None
    judge: Judge

    async def verdict(self, trajectory: Trajectory, ask: Ask) -> Verdict:
        return await self.judge(trajectory, _MemberAsk(ask, self.label, self.model))


class _MemberAsk(Asker):
    """The ``ask`` of a member: its own model, its name before the stage in the ledger."""

    def __init__(self, ask: Ask, label: str, model: str | None) -> None:
        self._ask, self._label, self._model = ask, label, model

    async def answer(self, asked: Asked) -> Reply:
        return await self._ask(
            asked.messages,
            stage=f"{self._label} {asked.stage}",
            rung=asked.rung,
            model=asked.model or self._model,
            assume=asked.assume,
            **asked.parameters,
        )


def _seats(of: Members) -> list[_Seat]:
    """Raises UserError for a member that cannot be made."""
    return [_Seat(str(m), m.asks, make_judge(m.name, m.options | m.given)[1]) for m in of.members]


def _prompts(seats: Sequence[_Seat]) -> str:
    """What a run of the composed judge is identified by: the prompts, or rules, of its members."""
    hashes = (str(getattr(seat.judge, "prompt_hash", None)) for seat in seats)
    return sha256("\n".join(hashes).encode()).hexdigest()


class Panel:
    """All members at once; those that failed count as absent."""

    def __init__(self, options: PanelOptions) -> None:
        self._options = options
        self._seats = _seats(options.of)
        self.prompt_hash = _prompts(self._seats)
        self.training_keys = training_set.together(seat.judge for seat in self._seats)

    async def __call__(self, trajectory: Trajectory, ask: Ask) -> Verdict:
        """Raises the first absent member's failure if the quorum is missed."""

        async def one(seat: _Seat) -> tuple[Verdict, Exception | None]:
            try:
                return await seat.verdict(trajectory, ask), None
            except FAILURES as failure:
                return Verdict(), failure

        said = await together([partial(one, seat) for seat in self._seats])
        present = {
            seat.label: verdict
            for seat, (verdict, _) in zip(self._seats, said, strict=True)
            if verdict.success is not None
        }
        quorum = self._options.quorum or len(self._seats) // 2 + 1
        if len(present) < quorum:
            failures = [failure for _, failure in said if failure is not None]
            _fail(failures, f"{len(present)} of {len(said)} members answered, quorum {quorum}")
        return self._merged(present)

    def _merged(self, present: dict[str, Verdict]) -> Verdict:
        votes = list(present.values())
        scores = {name: _score(verdict) for name, verdict in present.items()}
        mean = sum(scores.values()) / len(scores)
        yes = sum(bool(verdict.success) for verdict in votes)
        share = {"majority": yes / len(votes), "unanimous": float(yes == len(votes)), "mean": mean}
        said = share[self._options.rule]
        return Verdict(
            success=said > 0.5 or (said == 0.5 and self._options.tie == "success"),
            side_effect=_majority([v.side_effect for v in votes]),
            repetition=_majority([v.repetition for v in votes]),
            score=mean,
            scores=scores,
            reasoning="\n".join(f"{name}: {v.reasoning}" for name, v in present.items()),
        )


class Cascade:
    """The first member, and the second where the first is unsure, positive or absent."""

    def __init__(self, options: CascadeOptions) -> None:
        self._options = options
        self._first, self._second = seats = _seats(options.of)
        self.prompt_hash = _prompts(seats)
        self.training_keys = training_set.together(seat.judge for seat in seats)

    async def __call__(self, trajectory: Trajectory, ask: Ask) -> Verdict:
        """Raises what the second member raises."""
        try:
            first = await self._first.verdict(trajectory, ask)
        except FAILURES:
            first = Verdict()
        positive = first.success is not False
        if first.score is not None:
            positive = first.score >= self._options.unsure
        if not positive:
            return first.model_copy(update={"scores": {**first.scores, SECOND_ASKED: 0.0}})
        with about(self._second.label):
            second = await self._second.verdict(trajectory, ask)
        return second.model_copy(update={"scores": {**second.scores, SECOND_ASKED: 1.0}})


def _fail(failures: Sequence[Exception], why: str) -> None:
    """Raise a failure with ``why`` before its own sentence; its status is the panel's. One that
    asking again may mend goes first."""
    asked = (failure for failure in failures if isinstance(failure, CallFailed | ParseFailure))
    with about(why):
        raise next(asked, next(iter(failures), ParseFailure("the others say nothing of success")))


def _score(verdict: Verdict) -> float:
    return float(bool(verdict.success)) if verdict.score is None else verdict.score


def _majority(votes: Sequence[bool | None]) -> bool | None:
    """Of those that answered; a tie is a no. None if nobody did."""
    cast = [vote for vote in votes if vote is not None]
    return 2 * sum(cast) > len(cast) if cast else None
