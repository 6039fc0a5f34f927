"""A judge after InSTA (Trabucco et al., 2025): the last pages and actions as text, three scores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from pydantic import Field

from trajudge.judges.answers import NUMBER, STRING, SourcedAnswerOptions, answer_schema
from trajudge.judges.model import Message, Model, Text, Verdict
from trajudge.judges.prompting import (
    TruncatedPrompt,
    ask_with_truncation,
    conversation,
    prompt_tokens,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import number_in, parse_json, parse_reply
from trajudge.prompts.published import CHANGES
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.trajectories.represent import MissingObservation
from trajudge.trajectories.thoughts import without_thoughts
from trajudge.trajectories.tokens import fits
from trajudge.trajectories.truncate import TruncationLevel, cut_middle, largest

_SCORES = ("success", "efficiency", "self_correction")
SCHEMA = answer_schema("scores", {"analysis": STRING, **dict.fromkeys(_SCORES, NUMBER)})
_SMALLEST_PAGE, _SMALLEST_TEXT = 60, 40
_FENCE = re.compile(r"```\w*\s*\Z")
_ASSUMED = "The criteria of success for this task are met, as the last page shows. " * 24


class InstaOptions(SourcedAnswerOptions):
    """The last ``observations`` pages are shown, each up to ``page_tokens`` from its beginning, and
    the last ``actions``; success is a score of ``threshold`` or more."""

    sources: ClassVar[tuple[str, ...]] = ("insta",)

    observations: int = Field(default=5, ge=1, le=50)
    actions: int = Field(default=5, ge=1, le=50)
    page_tokens: int = Field(default=2048, ge=_SMALLEST_PAGE)
    threshold: float = Field(default=0.5, ge=0, le=1)
    max_prompt_tokens: int = 120_000

    @property
    def needs(self) -> Needs:
        """A short run has fewer pages than ``observations``. The published prompts leave out a page
        without an action, which may be the last one, and show no answer."""
        pages = self.observations + self.is_published
        return Needs(trees=last(pages), answer=not self.is_published, requires=("tree",))


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


class _OwnForm:
    """``prompts/insta``."""

    def __init__(self, options: InstaOptions) -> None:
        self._prompt = load_prompt("insta")
        self.hash, self.text_hash = self._prompt.hash, ""
        self.system = self._prompt.render("system", answer=options.form)
        self.steps, self.shortened = last_steps, InstaStep.cut

    def user(self, goal: str, steps: Sequence[InstaStep], answer: str | None) -> str:
        """Render the user's text."""
        return self._prompt.render("user", goal=goal, steps=steps, answer=answer)


class _SourceForm:
    """InSTA's own words, with the methods of an ``_OwnForm``: a page and the action on it come one
    after the other, and a cut page has no mark."""

    def __init__(self, options: InstaOptions) -> None:
        self.texts = options.texts("insta")
        self.hash, self.text_hash = self.texts.hash, self.texts.text_hash
        self.system = self.texts.fill("system")
        self.steps = acting_steps

    @staticmethod
    def shortened(step: InstaStep, page_tokens: int, text_tokens: int) -> InstaStep:
        """Return the step with the beginning of its page."""
        cut = step.cut(page_tokens, text_tokens)
        return cut._replace(page=step.page and beginning(step.page, page_tokens))

    def user(self, goal: str, steps: Sequence[InstaStep], answer: str | None) -> str:
        written = []
        for step in steps:
            is_last = step is steps[-1]
            if step.page is not None:
                heading = "Last" if is_last else "Previous"
                written.append(self._heading("page", heading, step.page))
            if step.action is not None:
                heading = "Next" if is_last else "Previous"
                output = "\n\n".join(filter(None, (step.reasoning, step.action)))
                written.append(self._heading("action", heading, output))
        summary = "\n\n".join(written)
        return self.texts.fill("user", instruction=self.texts.shown(goal), summary=summary)

    def _heading(self, name: str, heading: str, text: str) -> str:
        return self.texts.fill(name, **{"0": heading, "1": self.texts.shown(text)})


@register_judge(
    "insta",
    InstaOptions,
    summary="the last pages as text; a confidence from 0 to 1 (InSTA)",
    id_options=("observations", "threshold", "prompts", "untrusted"),
    representations=("axtree",),
    answer_option="prompts=trajudge",
)
class Insta:
    """One call."""

    def __init__(self, options: InstaOptions) -> None:
        """Load the prompts. Raises UserError if the published ones cannot be read."""
        self._options = options
        self._form = _SourceForm(options) if options.is_published else _OwnForm(options)
        self.prompt_hash, self.text_hash = self._form.hash, self._form.text_hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, CallFailed and ParseFailure."""
        options, form = self._options, self._form
        steps = form.steps(trajectory, options.observations, options.actions)
        pages = sum(step.page is not None for step in steps)
        whole = [
            form.shortened(step, options.page_tokens, options.max_prompt_tokens) for step in steps
        ]

        def messages(shown: Sequence[InstaStep], text_tokens: int) -> list[Message]:
            answer = trajectory.answer and cut_middle(trajectory.answer, text_tokens)
            text = form.user(cut_middle(trajectory.goal, text_tokens), shown, answer)
            return conversation(form.system, [Text(text=text)])

        async def make(budget: int) -> TruncatedPrompt | None:
            """Cut nothing but pages where that does; else texts to a share of a third, and the
            pages to an equal share of the rest."""
            prompt = messages(whole, budget)
            if prompt_tokens(prompt) <= budget:
                return TruncatedPrompt(TruncationLevel.FULL.label, prompt)
            texts = max(_SMALLEST_TEXT, budget // (3 * (2 * options.actions + 2)))
            bare = [form.shortened(step, _SMALLEST_PAGE, texts) for step in steps]
            room = budget - prompt_tokens(messages(bare, texts))
            if room < 0:
                return None
            share = min(options.page_tokens, _SMALLEST_PAGE + room // pages)
            cut = [form.shortened(step, share, texts) for step in steps]
            return TruncatedPrompt(TruncationLevel.CUT.label, messages(cut, texts))

        limit, how = options.max_prompt_tokens, options.answer_format(SCHEMA)
        reply = await ask_with_truncation(ask, make, limit=limit, assume=_ASSUMED, **how)
        verdict = parse_reply(reply, self._verdict)
        if isinstance(form, _OwnForm):
            return verdict
        written = [trajectory.goal, *(text for step in steps for text in step[1:])]
        scores = {**verdict.scores, CHANGES: float(form.texts.changes(written))}
        return verdict.model_copy(update={"scores": scores})

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


def beginning(text: str, tokens: int) -> str:
    """Return as much of the beginning of a text as takes at most so many tokens."""
    return text[: largest(len(text), lambda end: fits(text[:end], tokens))]


def acting_steps(trajectory: Trajectory, observations: int, actions: int) -> list[InstaStep]:
    """List the steps that hold the last ``observations`` pages or the last ``actions``, of those
    with an action alone, as the source pairs them. Raises MissingObservation if no page is left."""
    acted = [(n, step) for n, step in enumerate(trajectory.steps, 1) if step.action is not None]
    shown = []
    for after, (number, step) in reversed([*enumerate(reversed(acted))]):
        if after < max(observations, actions):
            page = step.observation.axtree_pruned or step.observation.axtree
            spoken = (step.reasoning, step.action) if after < actions else (None, None)
            shown.append(InstaStep(number, page if after < observations else None, *spoken))
    if not any(step.page for step in shown):
        raise MissingObservation(f"{trajectory.key}: no step with an action has a tree")
    return shown


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
