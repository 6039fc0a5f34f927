"""The paper's simplified judge (AgentRewardBench section 4 and A.3): one call, four labels."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from trajudge.judges.adapters.errors import ContextOverflow
from trajudge.judges.methods.prompt_formats import (
    BuiltinPrompt,
    OtherForm,
    PaperPrompt,
    PromptFormat,
    Wording,
)
from trajudge.judges.model import ModelClient, Verdict
from trajudge.judges.prompting.pictures import ImageLimits, picture, picture_tokens
from trajudge.judges.prompting.screenshots import Shot, evenly_spaced
from trajudge.judges.prompting.step_forms import StepForm
from trajudge.judges.prompting.truncated_prompts import budget_after_overflow
from trajudge.judges.replies import (
    answer_schema,
    flag,
    parse_json,
    parse_reply,
    parse_tags,
    whole_number_in,
)
from trajudge.prompts.published import CHANGES, Untrusted
from trajudge.trajectories.added import added
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs, Shown, page_needs
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.truncation import Elision, views


class SimplifiedOptions(Record):
    """``success`` is asked first or last; ``answer`` comes in tags, or through the provider's
    structured output; ``frames`` screenshots at most are shown, evenly spaced; ``prompts`` are our
    own or the published ones; ``max_prompt_tokens`` is what the model's window leaves for the
    prompt, pictures included. Three are there to measure what a verdict owes to them: the rendering
    of the ``steps``, the place of the ``elision`` of a run that is too long, and the ``wording`` of
    the instructions (``swapped``: the words of each verdict in the other order). ``untrusted``:
    whether the published prompts send what pages and agents wrote neutralised or as recorded."""

    representation: Representation = Representation.AXTREE
    success: Literal["first", "last"] = "first"
    answer: Literal["tags", "schema"] = "tags"
    frames: int = Field(default=1, ge=1, le=50)
    prompts: Literal["trajudge", "agentrewardbench"] = "trajudge"
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()
    steps: StepForm = added("tags")
    elision: Elision = added("middle")
    wording: Wording = added("usual")
    untrusted: Untrusted = "neutralised"

    @property
    def needs(self) -> Needs:
        """The published prompts show neither the answer nor the goal's pictures."""
        needed, ours = page_needs(self.representation), self.prompts == "trajudge"
        changed: dict[str, Any] = {"answer": ours}
        if self.representation.shows_screenshot:
            changed["goal_images"] = ours
            if self.frames > 1:
                changed["screenshots"] = (Shown(which="spread", count=self.frames),)
        return needed.model_copy(update=changed)

    @model_validator(mode="after")
    def _published_form(self) -> SimplifiedOptions:
        if self.prompts == "agentrewardbench" and (self.answer != "tags" or self.frames > 1):
            raise ValueError("the published prompts ask for tags and show one frame")
        if self.prompts == "agentrewardbench" and self.is_other_form:
            raise ValueError("the published prompts have one rendering of steps, and one wording")
        if self.prompts == "trajudge" and self.untrusted != "neutralised":
            raise ValueError("only the published prompts send text as recorded")
        if self.wording != "usual" and (self.answer != "tags" or self.frames > 1):
            raise ValueError("another wording asks for tags and shows one frame")
        return self

    @property
    def is_other_form(self) -> bool:
        """Whether it is asked otherwise than by the built-in templates alone."""
        return self.steps != "tags" or self.wording != "usual"


class Simplified:
    """One call; moves down the truncation ladder where the model finds the prompt too long."""

    def __init__(self, options: SimplifiedOptions) -> None:
        """Load the prompts. Raises UserError if the published ones are asked for and not
        installed."""
        self.options = options
        self._form = _form(options)
        self.prompt_hash = self._form.prompt_hash
        self._parse = parse_object if options.answer == "schema" else parse_tags
        self._parameters: dict[str, Any] = {}
        if options.answer == "schema":
            self._parameters["response_format"] = verdict_schema(options.success)

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        limits, form = self.options.images, self._form
        frames: list[Shot] = []
        shown = []
        if self.options.representation.shows_screenshot:
            frames = evenly_spaced(trajectory, self.options.frames)
            goal_images = trajectory.goal_images if form.shows_goal_images else ()
            shown = [*goal_images, *(frame.image for frame in frames)]
        pictures = [picture(ref, limits) for ref in shown]
        numbers = [frame.number for frame in frames]
        around = form.tokens + sum(picture_tokens(image, limits) for image in pictures)
        budget = self.options.max_prompt_tokens - around
        overflow: ContextOverflow | None = None
        shorter = views(
            trajectory, self.options.representation, budget, elision=self.options.elision
        )
        for view in shorter:
            messages = form.messages(view, pictures, numbers)
            try:
                reply = await ask(messages, rung=view.rung.label, **self._parameters)
            except ContextOverflow as error:
                overflow = error
                stated_budget = budget_after_overflow(error, view.tokens + around)
                shorter.room = None if stated_budget is None else stated_budget - around
                continue
            verdict = parse_reply(reply, self._parse)
            if not isinstance(form, PaperPrompt):
                return verdict
            return verdict.model_copy(update={"scores": {CHANGES: float(form.changes(view))}})
        raise overflow or ContextOverflow(
            f"the prompt does not fit {self.options.max_prompt_tokens} tokens however it is cut"
        )


def _form(options: SimplifiedOptions) -> PromptFormat:
    if options.prompts == "agentrewardbench":
        return PaperPrompt(options.representation, options.success, options.untrusted)
    form: Any = {"answer": options.answer, "frames": options.frames}
    if options.is_other_form:
        form |= {"steps": options.steps, "wording": options.wording}
        return OtherForm(options.representation, options.success, **form)
    return BuiltinPrompt(options.representation, options.success, **form)


def verdict_schema(success: str) -> dict[str, Any]:
    """Build ``response_format`` for the four labels, the reasoning first."""
    boolean = {"type": "boolean"}
    labels = {
        "side_effect": boolean,
        "optimality": {"type": "integer", "enum": [1, 2, 3, 4]},
        "repetition": boolean,
    }
    first, last = ({"success": boolean}, {}) if success == "first" else ({}, {"success": boolean})
    return answer_schema("verdict", {"reasoning": {"type": "string"}, **first, **labels, **last})


def parse_object(text: str) -> Verdict:
    """Parse the verdict in a JSON object; a label beside success that is missing is None.

    Raises ParseFailure if there is no success, or a value of a wrong kind.
    """
    parsed = parse_json(text, ["success"])
    fields = parsed.fields
    return Verdict(
        success=flag(fields, "success"),
        side_effect=flag(fields, "side_effect") if "side_effect" in fields else None,
        repetition=flag(fields, "repetition") if "repetition" in fields else None,
        optimality=whole_number_in(fields, "optimality", 1, 4) if "optimality" in fields else None,
        reasoning=str(fields.get("reasoning", "")),
        fallback=parsed.fallback,
    )
