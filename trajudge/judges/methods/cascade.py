"""A cascade: its second member is asked only where the first is unsure or positive."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from trajudge.judges.judging import FAILURES
from trajudge.judges.methods.panel import (
    ComposedOptions,
    Members,
    combined_prompt_hash,
    log_absent,
    panel_members,
)
from trajudge.judges.model import SECOND_ASKED, Model, Verdict
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import error_context
from trajudge.judges.training import combined_hashes
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError


class CascadeOptions(ComposedOptions):
    """Options of a cascade. The second member is asked unless the first says no: with a score below
    ``unsure``, or without success where it gives no score."""

    wanted: ClassVar[str] = (
        "a cascade has two members, the cheap one first:  --members NAME[:MODEL],NAME[:MODEL]"
    )
    unsure: float = Field(default=0.2, ge=0, le=1)

    @field_validator("of")
    @classmethod
    def _two(cls, of: Members) -> Members:
        if len(of.members) != 2:
            raise UserError(f"--members {','.join(map(str, of.members))}: {cls.wanted}")
        return of


@register_judge(
    "cascade",
    CascadeOptions,
    summary="the first of --members, the second where that is no clear no",
    needs_model=False,
    id_options=("of", "unsure"),
    composed=True,
)
class Cascade:
    """Asks the first member, then the second where the first is unsure, positive or absent."""

    def __init__(self, options: CascadeOptions) -> None:
        self._options = options
        self._first, self._second = members = panel_members(options.of)
        self.prompt_hash = combined_prompt_hash(members)
        self.training_keys = combined_hashes(member.judge for member in members)

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises what the second member raises."""
        try:
            first = await self._first.verdict(trajectory, ask)
        except FAILURES as failure:
            log_absent(self._first, trajectory, failure)
            first = Verdict()
        positive = first.success is not False
        if first.score is not None:
            positive = first.score >= self._options.unsure
        if not positive:
            return first.model_copy(update={"scores": {**first.scores, SECOND_ASKED: 0.0}})
        with error_context(self._second.label):
            second = await self._second.verdict(trajectory, ask)
        return second.model_copy(update={"scores": {**second.scores, SECOND_ASKED: 1.0}})
