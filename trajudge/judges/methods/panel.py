"""Judges made of judges: their members, and a panel that votes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field, JsonValue, ValidationInfo, field_validator

from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.judging import FAILURES, CallArgs, ChangedClient
from trajudge.judges.model import Judge, Model, Verdict
from trajudge.judges.registry import make_judge, needs_of, register_judge, with_model
from trajudge.judges.replies import ParseFailure, error_context, gather_bounded
from trajudge.judges.training import combined_hashes
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs, union
from trajudge.util.errors import UserError

log = logging.getLogger(__name__)


class Member(Record):
    """A judge by name, its model and its options.

    ``given`` are the options of the command line, ``options`` those that follow from the model; the
    run's manifest has both. ``asks`` is the model to pass to the ``Model``; None: the run's own.
    """

    name: str
    model: str | None = None
    asks: str | None = None
    given: dict[str, JsonValue] = Field(default_factory=dict)
    options: dict[str, object] = Field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return with_model(self.name, self.model)


class Members(Record):
    """Members in the order of ``--members``."""

    members: tuple[Member, ...] = ()

    def __str__(self) -> str:
        return "+".join(map(str, self.members))


class ComposedOptions(Record):
    """Options of a composed judge. ``of``: two members or more, each once; ``wanted`` tells a user
    so."""

    wanted: ClassVar[str] = (
        "name two judges or more, each once:  --members NAME[:MODEL],NAME[:MODEL]"
    )
    of: Members = Members()

    @property
    def needs(self) -> Needs:
        """Needs of all members together. A member that lacks what it requires is absent."""
        return union(needs_of(member.name, member.given) for member in self.of.members)

    @field_validator("of")
    @classmethod
    def _distinct(cls, of: Members) -> Members:
        names = [str(member) for member in of.members]
        if len(set(names)) < max(2, len(names)):
            raise UserError(f"--members {','.join(names)}: {cls.wanted}")
        return of


class PanelOptions(ComposedOptions):
    """Options of a panel.

    ``rule`` combines the votes of the members that answered (a mean is that of their scores; a vote
    without a score counts 0 or 1). Fewer than ``quorum`` answers (default: more than half) give no
    verdict. ``tie`` is the verdict of a tied vote, or of a mean of one half.
    """

    rule: Literal["majority", "unanimous", "mean"] = "majority"
    quorum: int | None = Field(default=None, ge=1)
    tie: Literal["success", "failure"] = "failure"

    @field_validator("quorum")
    @classmethod
    def _reachable(cls, quorum: int | None, info: ValidationInfo) -> int | None:
        members = len(info.data["of"].members) if "of" in info.data else 0
        if quorum and members and quorum > members:
            raise ValueError(f"--quorum {quorum} is more than the {members} members: lower it")
        return quorum


class PanelMember(NamedTuple):
    """A member with its judge."""

    label: str
    model: str | None
    judge: Judge

    async def verdict(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Ask the member's own model, with its name before every stage."""
        return await self.judge(trajectory, ChangedClient(ask, self._own_call))

    def _own_call(self, call_args: CallArgs) -> CallArgs:
        return call_args._replace(
            stage=f"{self.label} {call_args.stage}", model=call_args.model or self.model
        )


def panel_members(of: Members) -> list[PanelMember]:
    """Make the members' judges. Raises UserError for a member that cannot be made."""
    return [
        PanelMember(str(m), m.asks, make_judge(m.name, m.options | m.given)[1]) for m in of.members
    ]


def combined_prompt_hash(members: Sequence[PanelMember]) -> str:
    """Hash the prompts, or rules, of all members: the identity of the composed judge."""
    hashes = (str(getattr(member.judge, "prompt_hash", None)) for member in members)
    return sha256("\n".join(hashes).encode()).hexdigest()


@register_judge(
    "panel",
    PanelOptions,
    summary="--members vote: majority, unanimous or the mean of their scores",
    needs_model=False,
    id_options=("rule", "of", "quorum", "tie"),
    composed=True,
)
class Panel:
    """Asks all members at once; those that failed, or say nothing of success, count as absent,
    which is logged.

    A verdict's ``scores`` are those of the members that voted, by their ``member_labels``.
    """

    def __init__(self, options: PanelOptions) -> None:
        self._options = options
        self._members = panel_members(options.of)
        self.prompt_hash = combined_prompt_hash(self._members)
        self.training_keys = combined_hashes(member.judge for member in self._members)

    @property
    def member_labels(self) -> tuple[str, ...]:
        return tuple(member.label for member in self._members)

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises the first absent member's failure if the quorum is
        missed."""

        async def verdict_of(member: PanelMember) -> tuple[Verdict, Exception | None]:
            try:
                verdict = await member.verdict(trajectory, ask)
            except FAILURES as failure:
                log_absent(member, trajectory, failure)
                return Verdict(), failure
            if verdict.success is None:
                log_absent(member, trajectory, "it says nothing of success")
            return verdict, None

        verdicts = await gather_bounded([partial(verdict_of, member) for member in self._members])
        present = {
            member.label: verdict
            for member, (verdict, _) in zip(self._members, verdicts, strict=True)
            if verdict.success is not None
        }
        quorum = self._options.quorum or len(self._members) // 2 + 1
        if len(present) < quorum:
            failures = [failure for _, failure in verdicts if failure is not None]
            _fail(failures, f"{len(present)} of {len(verdicts)} members answered, quorum {quorum}")
        return self._merged(present)

    def _merged(self, present: dict[str, Verdict]) -> Verdict:
        votes = list(present.values())
        scores = {name: _score(verdict) for name, verdict in present.items()}
        mean = sum(scores.values()) / len(scores)
        yes = sum(bool(verdict.success) for verdict in votes)
        shares = {"majority": yes / len(votes), "unanimous": float(yes == len(votes)), "mean": mean}
        share = shares[self._options.rule]
        return Verdict(
            success=share > 0.5 or (share == 0.5 and self._options.tie == "success"),
            side_effect=_majority([v.side_effect for v in votes]),
            repetition=_majority([v.repetition for v in votes]),
            score=mean,
            scores=scores,
            reasoning="\n".join(f"{name}: {v.reasoning}" for name, v in present.items()),
        )


def log_absent(member: PanelMember, trajectory: Trajectory, why: Exception | str) -> None:
    log.info("%s: no verdict of %s: %s", trajectory.key, member.label, why)


def _fail(failures: Sequence[Exception], why: str) -> None:
    """Raise a failure with ``why`` before its message; its status becomes the panel's. Failures of
    calls, which may succeed on a retry, go first."""
    of_calls = (failure for failure in failures if isinstance(failure, CallFailed | ParseFailure))
    with error_context(why):
        raise next(
            of_calls, next(iter(failures), ParseFailure("the others say nothing of success"))
        )


def _score(verdict: Verdict) -> float:
    return float(bool(verdict.success)) if verdict.score is None else verdict.score


def _majority(votes: Sequence[bool | None]) -> bool | None:
    """Return the majority of those that answered; a tie is a no. None if nobody answered."""
    cast = [vote for vote in votes if vote is not None]
    return 2 * sum(cast) > len(cast) if cast else None
