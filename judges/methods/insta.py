"""A judge after InSTA (Trabucco et al., 2025): the last observations as text, three scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pydantic import Field

from trajudge.judges.model import Ask, Message, Text, Verdict
from trajudge.judges.prompting.fitting import (
    NOTHING,
    Fitted,
    ask_down,
    conversation,
    prompt_tokens,
    words,
)
from trajudge.judges.replies.parsing import parse_grade_line
from trajudge.judges.replies.reading import read
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.ladder import Ladder, View, cut_middle
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.trajectories.represent import MissingObservation, Representation

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

    async def __call__(self, trajectory: Trajectory, ask: Ask) -> Verdict:
        """Raises MissingObservation, CallFailed and ParseFailure."""
        pages = last_pages(trajectory, self._options.observations)
        ladder = Ladder(trajectory, Representation.NONE)

        def messages(view: View, trees: Sequence[str]) -> list[Message]:
            shown = [
                {"number": number, "axtree": tree}
                for (number, _), tree in zip(pages, trees, strict=False)
            ]
            text = self._prompt.render("user", pages=shown, **words(view))
            return conversation(self._system, [Text(text=text)])

        around = prompt_tokens(messages(NOTHING, ())) + _PAGE_OVERHEAD * len(pages)

        def make(budget: int) -> Fitted | None:
            """At most half of the room for the steps, the rest for the pages."""
            view = ladder.first((budget - around) // 2)
            if view is None:
                return None
            room = budget - prompt_tokens(messages(view, ())) - _PAGE_OVERHEAD * len(pages)
            share = room // len(pages)
            if share < _SMALLEST_PAGE:
                return None
            trees = [cut_middle(tree, share) for _, tree in pages]
            whole = trees == [tree for _, tree in pages]
            rung = view.rung.label if view.rung.label != "full" or whole else "cut"
            return Fitted(rung, messages(view, trees))

        return read(await ask_down(ask, make, limit=self._options.max_prompt_tokens), self._verdict)

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
    """Number (from 1) and tree, the pruned one where there is one, of the last ``count`` steps
    that have a tree. Raises MissingObservation if none has."""
    pages = [
        (number, tree)
        for number, step in enumerate(trajectory.steps, start=1)
        if (tree := step.observation.axtree_pruned or step.observation.axtree)
    ]
    if not pages:
        raise MissingObservation(f"{trajectory.key}: no step has an accessibility tree")
    return pages[-count:]
