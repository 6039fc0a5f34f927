"""Agent Eval and Refine (AgentRewardBench section 4): steps, and the final page as a screenshot
(AER-V) or as a captioner's description of it (AER-C)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, Self

from pydantic import model_validator

from trajudge.judges.answers import (
    STATUS,
    AgentRewardBenchOptions,
    SourcedAnswerOptions,
    parse_status,
)
from trajudge.judges.model import Message, Model, Picture, Text, Verdict
from trajudge.judges.prompting import (
    AuxiliaryModel,
    ImageLimits,
    ask_about_steps,
    conversation,
    picture,
    step_texts,
    template_variables,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import (
    error_context,
    nonempty_text,
    parse_complete_reply,
    parse_reply,
    text_as_it_came,
)
from trajudge.prompts.published import CHANGES
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Observation, Trajectory
from trajudge.trajectories.needs import FINAL, Needs
from trajudge.trajectories.represent import final_screenshot
from trajudge.trajectories.truncate import TruncatedView

ASSUMED_CAPTION = "The page shows a list of results, its filters and a confirmation. " * 12


class AerOptions(AgentRewardBenchOptions, SourcedAnswerOptions):
    """``variant`` agentrewardbench shows url, reasoning and action of every step; original the
    actions alone, and the answer to the user."""

    variant: Literal["agentrewardbench", "original"] = "agentrewardbench"
    max_prompt_tokens: int = 120_000

    @property
    def needs(self) -> Needs:
        return Needs(
            screenshots=FINAL, answer=self.variant == "original", requires=("final screenshot",)
        )

    @model_validator(mode="after")
    def _is_of_the_benchmark(self) -> Self:
        if self.is_published and self.variant == "original":
            raise ValueError("the published prompts are of variant=agentrewardbench")
        return self


class AerVOptions(AerOptions):
    """``images`` are the limits of the judge's own model."""

    images: ImageLimits = ImageLimits()


class AerCOptions(AerOptions):
    """``captioner`` is shown the screenshot, the judge's own model is not."""

    captioner: AuxiliaryModel = AuxiliaryModel()


class _OwnForm:
    """``prompts/aer``: ``final`` is how the last page is shown."""

    def __init__(self, options: AerOptions, final: Literal["caption", "screenshot"]) -> None:
        self._prompt, self._variant = load_prompt("aer"), options.variant
        self.hash, self.text_hash = self._prompt.hash, ""
        self.caption = nonempty_text
        self.system = self._prompt.render(
            "system", variant=options.variant, final=final, answer=options.form
        )

    def captioning(self, shown: Picture) -> list[Message]:
        """Build the question for a caption."""
        text = Text(text=self._prompt.render("caption_user"))
        return conversation(self._prompt.render("caption"), [text, shown])

    def user(self, view: TruncatedView, caption: str | None) -> str:
        """Render the user's text."""
        return self._prompt.render(
            "user", variant=self._variant, caption=caption, **template_variables(view)
        )


class _SourceForm:
    """AgentRewardBench's own words, with the methods of an ``_OwnForm``."""

    def __init__(self, options: AerOptions, final: Literal["caption", "screenshot"]) -> None:
        self.texts, self._final = options.texts("aer"), final
        self.hash, self.text_hash = self.texts.hash, self.texts.text_hash
        self.caption = text_as_it_came
        self.system = self.texts.fill("system")

    def captioning(self, shown: Picture) -> list[Message]:
        """Build the question for a caption, which the source asks without a system turn."""
        parts = (Text(text=self.texts.fill("captioner")), shown)
        return [Message(role="user", parts=parts)]

    def user(self, view: TruncatedView, caption: str | None) -> str:
        """Render the user's text."""
        values = {"intent": view.goal} | ({} if caption is None else {"cap": caption})
        shown = {name: self.texts.shown(text) for name, text in values.items()}
        return self.texts.fill(self._final, last_actions=self.texts.steps(view), **shown)

    def changes(self, view: TruncatedView, caption: str | None) -> dict[str, float]:
        """Count the places that are not sent as they were recorded."""
        return {CHANGES: float(self.texts.changes([view.goal, *step_texts(view), caption]))}


class _Aer:
    """What both judges share; the final page is in the pictures or in the caption."""

    def __init__(
        self, options: AerOptions, final: Literal["caption", "screenshot"], images: ImageLimits
    ) -> None:
        """Load the prompts. Raises UserError if the published ones are asked for and not
        installed."""
        self._options, self._images = options, images
        make = _SourceForm if options.is_published else _OwnForm
        self._form: _OwnForm | _SourceForm = make(options, final)
        self.prompt_hash = self._form.hash
        self.text_hash = self._form.text_hash

    async def _verdict(
        self, trajectory: Trajectory, ask: Model, pictures: Sequence[Picture], caption: str | None
    ) -> Verdict:
        options, form = self._options, self._form
        is_original = options.variant == "original"
        views: list[TruncatedView] = []

        def messages(view: TruncatedView) -> list[Message]:
            views.append(view)
            return conversation(form.system, [Text(text=form.user(view, caption)), *pictures])

        reply = await ask_about_steps(
            ask,
            actions_only(trajectory) if is_original else unanswered(trajectory),
            messages,
            limit=options.max_prompt_tokens,
            images=self._images,
            is_shortened=options.ladder == "trajudge",
            **options.answer_format(STATUS),
        )
        verdict = parse_reply(reply, partial(parse_status, form=options.form))
        if isinstance(form, _SourceForm):
            return verdict.model_copy(update={"scores": form.changes(views[-1], caption)})
        return verdict


@register_judge(
    "aer-v",
    AerVOptions,
    summary="steps and the last screenshot (Agent Eval and Refine)",
    id_options=("variant", "prompts", "untrusted", "ladder"),
    representations=("screenshot",),
    pictures="judge",
    prompt="aer",
    answer_option="variant=original",
)
class AerV(_Aer):
    """One call."""

    def __init__(self, options: AerVOptions) -> None:
        super().__init__(options, "screenshot", options.images)

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        shown = await picture(final_screenshot(trajectory), self._images)
        return await self._verdict(trajectory, ask, [shown], None)


@register_judge(
    "aer-c",
    AerCOptions,
    summary="steps, a caption of the last screenshot (Agent Eval and Refine)",
    id_options=("variant", "captioner", "prompts", "untrusted", "ladder"),
    representations=("screenshot",),
    pictures="captioner",
    prompt="aer",
    answer_option="variant=original",
)
class AerC(_Aer):
    """Two calls; the caption depends on the screenshot and the captioner alone, so that one
    serves every judgment that ends on this screenshot."""

    def __init__(self, options: AerCOptions) -> None:
        super().__init__(options, "caption", options.captioner.images)
        self._captioner = options.captioner

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        captioner = self._captioner
        shown = await picture(final_screenshot(trajectory), captioner.images)
        messages = self._form.captioning(shown)
        with error_context("caption of the final screenshot"):
            reply = await ask(
                messages, stage="caption", model=captioner.model, assume=ASSUMED_CAPTION
            )
            caption = parse_complete_reply(reply, self._form.caption)
        return await self._verdict(trajectory, ask, [], caption)


def actions_only(trajectory: Trajectory) -> Trajectory:
    """Return the same run without observations and reasoning."""
    steps = tuple(
        step.model_copy(update={"observation": Observation(), "reasoning": None})
        for step in trajectory.steps
    )
    return trajectory.model_copy(update={"steps": steps})


def unanswered(trajectory: Trajectory) -> Trajectory:
    """Return the same run without the answer."""
    return trajectory.model_copy(update={"answer": None})
