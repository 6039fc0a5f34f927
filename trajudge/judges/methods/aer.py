"""Agent Eval and Refine (AgentRewardBench section 4): steps, and the final page as a screenshot
(AER-V) or as a captioner's description of it (AER-C)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from trajudge.judges.answers import STATUS, AnswerOptions, parse_status
from trajudge.judges.model import Message, Model, Picture, Text, Verdict
from trajudge.judges.prompting import (
    AuxiliaryModel,
    ImageLimits,
    ask_about_steps,
    conversation,
    picture,
    template_variables,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import (
    error_context,
    nonempty_text,
    parse_complete_reply,
    parse_reply,
)
from trajudge.prompts.render import Prompt, load_prompt
from trajudge.trajectories.model import Observation, Trajectory
from trajudge.trajectories.needs import FINAL, Needs
from trajudge.trajectories.represent import final_screenshot
from trajudge.trajectories.truncate import TruncatedView

ASSUMED_CAPTION = "The page shows a list of results, its filters and a confirmation. " * 12


class AerOptions(AnswerOptions):
    """``variant`` agentrewardbench shows url, reasoning and action of every step; original the
    actions alone, and the answer to the user."""

    variant: Literal["agentrewardbench", "original"] = "agentrewardbench"
    max_prompt_tokens: int = 120_000

    @property
    def needs(self) -> Needs:
        return Needs(
            screenshots=FINAL, answer=self.variant == "original", requires=("final screenshot",)
        )


class AerVOptions(AerOptions):
    """``images`` are the limits of the judge's own model."""

    images: ImageLimits = ImageLimits()


class AerCOptions(AerOptions):
    """``captioner`` is shown the screenshot, the judge's own model is not."""

    captioner: AuxiliaryModel = AuxiliaryModel()


@register_judge(
    "aer-v",
    AerVOptions,
    summary="steps and the last screenshot (Agent Eval and Refine)",
    id_options=("variant",),
    representations=("screenshot",),
    pictures="judge",
    prompt="aer",
    answer_option="variant=original",
)
class AerV:
    """One call."""

    def __init__(self, options: AerVOptions) -> None:
        self._images = options.images
        self._form = _Form(options, final="screenshot")
        self.prompt_hash = self._form.prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        shown = picture(final_screenshot(trajectory), self._images)
        return await self._form.verdict(trajectory, ask, [shown], None, self._images)


@register_judge(
    "aer-c",
    AerCOptions,
    summary="steps, a caption of the last screenshot (Agent Eval and Refine)",
    id_options=("variant", "captioner"),
    representations=("screenshot",),
    pictures="captioner",
    prompt="aer",
    answer_option="variant=original",
)
class AerC:
    """Two calls; the caption depends on the screenshot and the captioner alone, so that one
    serves every judgment that ends on this screenshot."""

    def __init__(self, options: AerCOptions) -> None:
        self._captioner = options.captioner
        self._form = _Form(options, final="caption")
        self.prompt_hash = self._form.prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        shown = picture(final_screenshot(trajectory), self._captioner.images)
        caption = await caption_of(shown, ask, self._captioner, self._form.prompt)
        return await self._form.verdict(trajectory, ask, [], caption, None)


async def caption_of(shown: Picture, ask: Model, captioner: AuxiliaryModel, prompt: Prompt) -> str:
    """Ask the captioner for a description of a screenshot."""
    messages = conversation(
        prompt.render("caption"), [Text(text=prompt.render("caption_user")), shown]
    )
    with error_context("caption of the final screenshot"):
        reply = await ask(messages, stage="caption", model=captioner.model, assume=ASSUMED_CAPTION)
        return parse_complete_reply(reply, nonempty_text)


class _Form:
    """The question for the verdict, the same but for how the ``final`` page is shown."""

    def __init__(self, options: AerOptions, final: Literal["caption", "screenshot"]) -> None:
        self.prompt = load_prompt("aer")
        self._options = options
        self._system = self.prompt.render(
            "system", variant=options.variant, final=final, answer=options.form
        )

    async def verdict(
        self,
        trajectory: Trajectory,
        ask: Model,
        pictures: Sequence[Picture],
        caption: str | None,
        images: ImageLimits | None,
    ) -> Verdict:
        variant = self._options.variant
        kept = actions_only(trajectory) if variant == "original" else unanswered(trajectory)

        def messages(view: TruncatedView) -> list[Message]:
            text = self.prompt.render(
                "user", variant=variant, caption=caption, **template_variables(view)
            )
            return conversation(self._system, [Text(text=text), *pictures])

        limit, form = self._options.max_prompt_tokens, self._options.answer_format(STATUS)
        reply = await ask_about_steps(ask, kept, messages, limit=limit, images=images, **form)
        return parse_reply(reply, partial(parse_status, form=self._options.form))


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
