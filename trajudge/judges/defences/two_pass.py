"""A verdict with the agent's claims and one without them: the option ``two_pass``.

Where both agree, that is the verdict. Where they differ, the claims decided, and the judgment is
undecided: it ended well, without a verdict of success (never a "no"). It costs the judge's calls
twice, but for stages whose prompts hold no claim: those are answered by the cache.
"""

from __future__ import annotations

from functools import partial

from trajudge.judges.client import BaseClient, CallArgs, pass_on
from trajudge.judges.defences.hide import without
from trajudge.judges.defences.wrapping import DefendedJudge
from trajudge.judges.model import Judge, ModelClient, Reply, Verdict
from trajudge.judges.replies import gather_bounded
from trajudge.trajectories.model import Trajectory

WITH, WITHOUT = "with_claims", "without_claims"
"""In ``scores``: what either pass said of success, its score or 0 or 1."""
_LABELS = (
    *("success", "side_effect", "repetition", "optimality"),
    *("process", "failure_step", "failure_type"),
)


class TwoPassJudge(DefendedJudge):
    """A judge that is asked twice, the second time without some ``parts`` of the agent's words."""

    def __init__(self, judge: Judge, parts: tuple[str, ...]) -> None:
        super().__init__(judge, "two_pass", ",".join(parts))
        self._parts = parts

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge as the judge does, and raise what it raises in either pass; a run without such
        words is judged once."""
        bare = without(trajectory, self._parts)
        if (bare.answer, bare.steps) == (trajectory.answer, trajectory.steps):
            return await self._judge(trajectory, ask)
        passes = [partial(self._judge, trajectory, ask), partial(self._judge, bare, _Second(ask))]
        return _merged(*await gather_bounded(passes))


class _Second(BaseClient):
    """Names the stages of the second pass, so that a recorded run tells the two apart."""

    def __init__(self, ask: ModelClient) -> None:
        self._ask = ask

    async def answer(self, call_args: CallArgs) -> Reply:
        return await pass_on(
            self._ask, call_args._replace(stage=f"without claims: {call_args.stage}")
        )


def _merged(first: Verdict, second: Verdict) -> Verdict:
    """Keep what both say; a label on which they differ is left open."""
    agreed = {name: getattr(first, name) for name in _LABELS}
    agreed = {n: value if getattr(second, n) == value else None for n, value in agreed.items()}
    scores = [score for one in (first, second) if (score := one.score) is not None]
    decided = agreed["success"] is not None and len(scores) == 2
    said = {WITH: _said(first), WITHOUT: _said(second)}
    differ = first.success != second.success
    return first.model_copy(
        update={
            **agreed,
            "score": sum(scores) / 2 if decided else None,
            "scores": {**first.scores, **{n: one for n, one in said.items() if one is not None}},
            "reasoning": _reasoning(first, second, differ=differ),
            "fallback": first.fallback or second.fallback,
        }
    )


def _said(verdict: Verdict) -> float | None:
    if verdict.score is not None or verdict.success is None:
        return verdict.score
    return float(verdict.success)


def _reasoning(first: Verdict, second: Verdict, *, differ: bool) -> str:
    undecided = "Undecided: the verdicts with and without the agent's words differ.\n"
    return (
        f"{undecided if differ else ''}{first.reasoning}\n"
        f"Without the agent's words: {second.reasoning}"
    )
