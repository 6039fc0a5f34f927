"""The paper's simplified judge (AgentRewardBench section 4 and A.3): one call, four labels."""

from __future__ import annotations

from typing import Literal

from judges.adapters.errors import ContextOverflow
from judges.forms import Form, OwnForm, PublishedForm
from judges.model import Ask, Verdict
from judges.parsing import parse_tags
from judges.pictures import ImageLimits, picture, picture_tokens
from judges.reading import read
from trajectories.ladder import views
from trajectories.model import ImageRef, Record, Trajectory
from trajectories.represent import Representation, final_screenshot


class SimplifiedOptions(Record):
    """``success`` is asked first or last; ``prompts`` are our own or the published ones;
    ``max_prompt_tokens`` is what the model's window leaves for the prompt, pictures included."""

    representation: Representation = Representation.AXTREE
    success: Literal["first", "last"] = "first"
    prompts: Literal["trajudge", "agentrewardbench"] = "trajudge"
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()


class Simplified:
    """One call; moves down the truncation ladder where the model finds the prompt too long."""

    def __init__(self, options: SimplifiedOptions) -> None:
        """Raises UserError if the published prompts are asked for and not installed."""
        self.options = options
        form = PublishedForm if options.prompts == "agentrewardbench" else OwnForm
        self._form: Form = form(options.representation, options.success)
        self.prompt_hash = self._form.prompt_hash

    async def __call__(self, trajectory: Trajectory, ask: Ask) -> Verdict:
        """Raises MissingObservation, ImageUnreadable, CallFailed and ParseFailure."""
        limits, form = self.options.images, self._form
        goal_images: tuple[ImageRef, ...] = ()
        screenshot: tuple[ImageRef, ...] = ()
        if self.options.representation.shows_screenshot:
            screenshot = (final_screenshot(trajectory),)
            goal_images = trajectory.goal_images if form.shows_goal_images else ()
        pictures = [picture(ref, limits) for ref in (*goal_images, *screenshot)]
        around = form.tokens + sum(picture_tokens(shown, limits) for shown in pictures)
        budget = self.options.max_prompt_tokens - around
        overflow = ContextOverflow(
            f"the prompt does not fit {self.options.max_prompt_tokens} tokens however it is cut"
        )
        for view in views(trajectory, self.options.representation, budget):
            try:
                reply = await ask(form.messages(view, pictures), rung=view.rung.label)
            except ContextOverflow as error:
                overflow = error
                continue
            return read(reply, parse_tags)
        raise overflow
