"""A judge after InSTA (Trabucco et al., 2025): the last pages and actions as text, three scores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import Field

from trajudge.judges.answers import NUMBER, STRING, AnswerOptions, answer_schema
from trajudge.judges.model import Message, Model, Text, Verdict
from trajudge.judges.prompting import (
    TruncatedPrompt,
    ask_with_truncation,
    conversation,
    prompt_tokens,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import number_in, parse_json, parse_reply
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.trajectories.represent import MissingObservation
from trajudge.trajectories.thoughts import without_thoughts
from trajudge.trajectories.truncate import TruncationLevel, cut_middle

_SCORES = ("success", "efficiency", "self_correction")
SCHEMA = answer_schema("scores", {"analysis": STRING, **dict.fromkeys(_SCORES, NUMBER)})
_SMALLEST_PAGE, _SMALLEST_TEXT = 60, 40
_FENCE = re.compile(r"```\w*\s*\Z")
_ASSUMED = "The criteria of success for this task are met, as the last page shows. " * 24


class InstaOptions(AnswerOptions):
    """The last ``observations`` pages are shown, each up to ``page_tokens`` from its beginning, and
    the last ``actions``; success is a score of ``threshold`` or more."""

    observations: int = Field(default=5, ge=1, le=50)
    actions: int = Field(default=5, ge=1, le=50)
    page_tokens: int = Field(default=2048, ge=_SMALLEST_PAGE)
    threshold: float = Field(default=0.5, ge=0, le=1)
    max_prompt_tokens: int = 120_000

    @property
    def needs(self) -> Needs:
        """A short run has fewer pages than ``observations``."""
        return Needs(trees=last(self.observations), answer=True, requires=("tree",))


class InstaStep(NamedTuple):
    """What is shown of a step; None: not shown, or not recorded. ``number`` from 1."""

    number: int
    page: str | None
    reasoning: str | None
    action: str | None

    def cut(self, page_tokens: int, text_tokens: int) -> InstaStep:
        """Return the step with the beginning of its page, and its texts cut in the middle."""
        return InstaStep(
            self.number,
            self.page and cut_middle(self.page, page_tokens, head_share=1),
            self.reasoning and cut_middle(self.reasoning, text_tokens),
            self.action and cut_middle(self.action, text_tokens),
        )


@register_judge(
    "insta",
    InstaOptions,
    summary="the last pages as text; a confidence from 0 to 1 (InSTA)",
    id_options=("observations", "threshold"),
    representations=("axtree",),
)
class Insta:
    """One call."""

    def __init__(self, options: InstaOptions) -> None:
        self._options = options
        self._prompt = load_prompt("insta")
        self._system = self._prompt.render("system", answer=options.form)
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, CallFailed and ParseFailure."""
        options = self._options
        steps = last_steps(trajectory, options.observations, options.actions)
        pages = sum(step.page is not None for step in steps)
        whole = [step.cut(options.page_tokens, options.max_prompt_tokens) for step in steps]

        def messages(shown: Sequence[InstaStep], text_tokens: int) -> list[Message]:
            text = self._prompt.render(
                "user",
                goal=cut_middle(trajectory.goal, text_tokens),
                steps=shown,
                answer=trajectory.answer and cut_middle(trajectory.answer, text_tokens),
            )
            return conversation(self._system, [Text(text=text)])

        def make(budget: int) -> TruncatedPrompt | None:
            """Cut nothing but pages where that does; else texts to a share of a third, and the
            pages to an equal share of the rest."""
            prompt = messages(whole, budget)
            if prompt_tokens(prompt) <= budget:
                return TruncatedPrompt(TruncationLevel.FULL.label, prompt)
            texts = max(_SMALLEST_TEXT, budget // (3 * (2 * options.actions + 2)))
            bare = [step.cut(_SMALLEST_PAGE, texts) for step in steps]
            room = budget - prompt_tokens(messages(bare, texts))
            if room < 0:
                return None
            share = min(options.page_tokens, _SMALLEST_PAGE + room // pages)
            cut = [step.cut(share, texts) for step in steps]
            return TruncatedPrompt(TruncationLevel.CUT.label, messages(cut, texts))

        limit, form = options.max_prompt_tokens, options.answer_format(SCHEMA)
        reply = await ask_with_truncation(ask, make, limit=limit, assume=_ASSUMED, **form)
        return parse_reply(reply, self._verdict)

    def _verdict(self, text: str) -> Verdict:
        scores, reasoning = parse_scores(text)
        success, *others = scores
        return Verdict(
            success=success >= self._options.threshold,
            score=success,
            scores=dict(zip(_SCORES[1:], others, strict=True)),
            reasoning=reasoning,
        )


def parse_scores(text: str) -> tuple[list[float], str]:
    """Parse the three scores in a JSON object, and the analysis in it or before it. Raises
    ParseFailure."""
    fields = parse_json(text, _SCORES).fields
    before = _FENCE.sub("", without_thoughts(text).rpartition("{")[0])
    analysis = str(fields.get("analysis", before)).strip()
    return [number_in(fields, name, 0, 1) for name in _SCORES], analysis


def last_steps(trajectory: Trajectory, observations: int, actions: int) -> list[InstaStep]:
    """List the steps that hold the last ``observations`` pages (the pruned tree where there is one)
    or the last ``actions``, in order. Raises MissingObservation if there is no page."""
    trees = [step.observation.axtree_pruned or step.observation.axtree for step in trajectory.steps]
    pages = [index for index, tree in enumerate(trees) if tree][-observations:]
    if not pages:
        raise MissingObservation(f"{trajectory.key}: no step has an accessibility tree")
    acted = [i for i, step in enumerate(trajectory.steps) if step.action is not None][-actions:]
    shown = []
    for index in sorted({*pages, *acted}):
        step = trajectory.steps[index]
        reasoning, action = (step.reasoning, step.action) if index in acted else (None, None)
        page = trees[index] if index in pages else None
        shown.append(InstaStep(index + 1, page, reasoning, action))
    return shown
