"""WebVoyager's evaluator (He et al., 2024): the task, the answer and the last screenshots."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Literal

from pydantic import Field

from trajudge.judges.answers import STATUS, SourcedAnswerOptions, parse_status
from trajudge.judges.model import Message, Model, Picture, Text, Verdict
from trajudge.judges.prompting import (
    ImageLimits,
    TruncatedPrompt,
    ask_with_truncation,
    conversation,
    cut_or_full,
    first_that_fit,
    prompt_tokens,
    recorded,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import ParseFailure, parse_reply
from trajudge.prompts.published import CHANGES
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.trajectories.thoughts import without_thoughts
from trajudge.trajectories.truncate import cut_middle

UNANSWERED = "The agent told the user nothing; no model was asked."


class WebVoyagerOptions(SourcedAnswerOptions):
    """``screenshots``: at most so many of the last ones are shown. ``unanswered``: a run that told
    the user nothing is judged all the same, or is a failure without a call, as in the source."""

    sources: ClassVar[tuple[str, ...]] = ("webvoyager",)

    screenshots: int = Field(default=15, ge=1)
    unanswered: Literal["ask", "failure"] = "ask"
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()

    @property
    def needs(self) -> Needs:
        """A short run has fewer than ``screenshots``."""
        return Needs(screenshots=last(self.screenshots), answer=True, requires=("screenshot",))


class _OwnForm:
    """``prompts/webvoyager``."""

    def __init__(self, options: WebVoyagerOptions) -> None:
        self._prompt = load_prompt("webvoyager")
        self.hash, self.text_hash = self._prompt.hash, ""
        self.system = self._prompt.render("system", answer=options.form)
        self.closing = Text(text=self._prompt.render("closing"))

    def user(self, goal: str, answer: str | None, shown: int, recorded: int) -> str:
        """Render the user's text; ``shown`` of the ``recorded`` screenshots follow."""
        return self._prompt.render("user", goal=goal, answer=answer, shown=shown, recorded=recorded)


class _SourceForm:
    """WebVoyager's own words, with the methods of an ``_OwnForm``: they name the number of
    screenshots that was asked for, however many there are."""

    def __init__(self, options: WebVoyagerOptions) -> None:
        self.texts, self._number = options.texts("webvoyager"), str(options.screenshots)
        self.hash, self.text_hash = self.texts.hash, self.texts.text_hash
        self.system = self.texts.fill("system")
        self.closing = Text(text=self.texts.fill("closing"))

    def user(self, goal: str, answer: str | None, shown: int, recorded: int) -> str:
        return self.texts.write("user", task=goal, answer=answer or "", num=self._number)


def parse_source_verdict(text: str) -> Verdict:
    """Parse SUCCESS or NOT SUCCESS, in capitals and anywhere, as the source does: a NOT SUCCESS
    counts before a SUCCESS. Raises ParseFailure if there is neither."""
    answer = without_thoughts(text)
    if "SUCCESS" not in answer:
        raise ParseFailure("the reply says neither SUCCESS nor NOT SUCCESS")
    return Verdict(success="NOT SUCCESS" not in answer, reasoning=answer.strip())


@register_judge(
    "webvoyager",
    WebVoyagerOptions,
    summary="the task, the answer and the last screenshots (WebVoyager)",
    id_options=("screenshots", "unanswered", "prompts", "untrusted"),
    representations=("screenshot",),
    pictures="judge",
)
class WebVoyager:
    """One call; the earliest screenshots are left out where they do not fit."""

    def __init__(self, options: WebVoyagerOptions) -> None:
        """Load the prompts. Raises UserError if the published ones cannot be read."""
        self._options = options
        self._form = _SourceForm(options) if options.is_published else _OwnForm(options)
        self.prompt_hash, self.text_hash = self._form.hash, self._form.text_hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        if self._options.unanswered == "failure" and not (trajectory.answer or "").strip():
            return Verdict(success=False, reasoning=UNANSWERED)
        form = self._form
        limit, limits = self._options.max_prompt_tokens, self._options.images
        shots = recorded(trajectory)
        latest = [shot.image for shot in reversed(shots)][: self._options.screenshots]

        def messages(pictures: list[Picture], answer: str | None) -> list[Message]:
            text = form.user(trajectory.goal, answer, len(pictures), len(shots))
            return conversation(form.system, [Text(text=text), *pictures, form.closing])

        async def make(budget: int) -> TruncatedPrompt | None:
            answer = trajectory.answer and cut_middle(trajectory.answer, budget // 4)
            around = prompt_tokens(messages([], answer))
            shown = await first_that_fit(latest, budget - around, limits)
            if not shown:
                return None
            rung = cut_or_full(trajectory.answer, answer)
            if len(shown) < len(latest):
                rung = "fewer"
            return TruncatedPrompt(rung, messages(shown[::-1], answer))

        how = self._options.answer_format(STATUS)
        reply = await ask_with_truncation(ask, make, limit=limit, images=limits, **how)
        if isinstance(form, _OwnForm):
            return parse_reply(reply, partial(parse_status, form=self._options.form))
        changed = form.texts.changes([trajectory.goal, trajectory.answer])
        verdict = parse_reply(reply, parse_source_verdict)
        return verdict.model_copy(update={"scores": {CHANGES: float(changed)}})
