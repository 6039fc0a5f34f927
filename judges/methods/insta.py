"""A judge after InSTA (Trabucco et al., 2025): the last observations as text, three scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pydantic import Field

from trajudge.judges.model import Message, ModelClient, Text, Verdict
from trajudge.judges.prompting.truncated_prompts import (
    EMPTY_VIEW,
    TruncatedPrompt,
    ask_with_truncation,
    conversation,
    prompt_tokens,
    template_variables,
)
from trajudge.judges.replies.parsing import parse_grade_line
from trajudge.judges.replies.stage_replies import parse_reply
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.trajectories.represent import MissingObservation, Representation
from trajudge.trajectories.truncation import PromptTruncator, TruncatedView, cut_middle

_SCORES = ("success", "efficiency", "self-correction")
_PAGE_OVERHEAD, _SMALLEST_PAGE = 40, 60


class InstaOptions(Record):
    """The pages of the last ``observations`` steps are shown; success is a score of ``threshold``
    or more."""

    observations: int = Field(default=4, ge=1, le=50)
    threshold: float = Field(default=0.5, ge=0, le=1)
    max_prompt_tokens: int = 120_000

    @property
    def needs(self) -> Needs:
        """A short run has fewer pages than ``observations``."""
        return Needs(trees=last(self.observations), answer=True, requires=("tree",))


class Insta:
    """One call."""

    def __init__(self, options: InstaOptions) -> None:
        self._options = options
        self._prompt = load_prompt("insta")
        self._system = self._prompt.render("system")
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, CallFailed and ParseFailure."""
        pages = last_pages(trajectory, self._options.observations)
        truncator = PromptTruncator(trajectory, Representation.NONE)

        def messages(view: TruncatedView, trees: Sequence[str]) -> list[Message]:
            shown = [
                {"number": number, "axtree": tree}
                for (number, _), tree in zip(pages, trees, strict=False)
            ]
            text = self._prompt.render("user", pages=shown, **template_variables(view))
            return conversation(self._system, [Text(text=text)])

        around = prompt_tokens(messages(EMPTY_VIEW, ())) + _PAGE_OVERHEAD * len(pages)

        def make(budget: int) -> TruncatedPrompt | None:
            """Spend at most half of the room on the steps, the rest on the pages."""
            view = truncator.first((budget - around) // 2)
            if view is None:
                return None
            room = budget - prompt_tokens(messages(view, ())) - _PAGE_OVERHEAD * len(pages)
            share = room // len(pages)
            if share < _SMALLEST_PAGE:
                return None
            trees = [cut_middle(tree, share) for _, tree in pages]
            whole = trees == [tree for _, tree in pages]
            rung = view.rung.label if view.rung.label != "full" or whole else "cut"
            return TruncatedPrompt(rung, messages(view, trees))

        return parse_reply(
            await ask_with_truncation(ask, make, limit=self._options.max_prompt_tokens),
            self._verdict,
        )

    def _verdict(self, text: str) -> Verdict:
        grade = partial(parse_grade_line, text, low=0, high=1)
        success, efficiency, correction = (grade(name=name) for name in _SCORES)
        return Verdict(
            success=success.value >= self._options.threshold,
            score=success.value,
            scores={"efficiency": efficiency.value, "self_correction": correction.value},
            reasoning=success.reasoning,
        )


def last_pages(trajectory: Trajectory, count: int) -> list[tuple[int, str]]:
    """List number (from 1) and tree, the pruned one where there is one, of the last ``count`` steps
    that have a tree. Raises MissingObservation if none has."""
    pages = [
        (number, tree)
        for number, step in enumerate(trajectory.steps, start=1)
        if (tree := step.observation.axtree_pruned or step.observation.axtree)
    ]
    if not pages:
        raise MissingObservation(f"{trajectory.key}: no step has an accessibility tree")
    return pages[-count:]
