"""The paper's simplified judge (AgentRewardBench section 4 and A.3): one call, four questions; the
built-in prompt or the published one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from trajudge.judges.answers import BOOLEAN, STRING, AgentRewardBenchOptions, answer_schema
from trajudge.judges.model import Message, Model, Part, Picture, Text, Verdict
from trajudge.judges.prompting import (
    EMPTY_VIEW,
    ImageLimits,
    Shot,
    StepForm,
    ask_down_the_views,
    conversation,
    evenly_spaced,
    picture,
    picture_tokens,
    prompt_tokens,
    rendered_steps,
    source_views,
    step_texts,
    template_variables,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import (
    ParseFailure,
    flag,
    parse_json,
    parse_reply,
    parse_tags,
    whole_number_in,
)
from trajudge.prompts.own import OwnPrompt, check_own_prompt
from trajudge.prompts.published import CHANGES, Untrusted, load_texts
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import ImageRef, Trajectory, checked
from trajudge.trajectories.needs import Needs, Shown, page_needs
from trajudge.trajectories.represent import Representation, StepLine
from trajudge.trajectories.tokens import count_tokens
from trajudge.trajectories.truncate import Elision, TruncatedView, views

Wording = Literal["usual", "swapped", "terse", "formal"]

# Where the built-in system prompt says how to answer, and what its user's turn has without a step:
# no goal can hold that, for its tags are neutralised.
_HOW = "# How to answer\n"
_NO_STEPS = "<steps>\nNo step was recorded.\n"


class BuiltinPrompt:
    """``prompts/simplified``: the pictures, then one text.

    ``tokens`` is what the prompt takes by itself, without the view and the pictures. The rendering
    of the steps and the wording of the instructions may be others (``prompts/simplified-forms``),
    for what a verdict owes to either.
    """

    text_hash = ""

    def __init__(
        self,
        representation: Representation,
        success: str,
        *,
        answer: str = "tags",
        frames: int = 1,
        steps: StepForm = "tags",
        wording: Wording = "usual",
        own: OwnPrompt | None = None,
    ) -> None:
        self._prompt, self._steps = own.load(NAME) if own else load_prompt(NAME), steps
        self._forms = load_prompt("simplified-forms")
        self.prompt_hash = self._prompt.hash
        if steps != "tags" or wording != "usual":
            both = f"{self._prompt.hash}\0{self._forms.hash}"
            self.prompt_hash = sha256(both.encode()).hexdigest()
        values = {"representation": representation.value, "success": success}
        self._system = self._prompt.render("system", answer=answer, frames=frames, **values)
        if wording == "swapped":
            before, _, _ = self._system.partition(_HOW)
            self._system = before + self._forms.render("how_swapped", success=success)
        elif wording != "usual":
            self._system = self._forms.render(f"system_{wording}", **values)
        self.tokens = prompt_tokens(self.messages(EMPTY_VIEW, ()))

    def messages(
        self,
        view: TruncatedView,
        pictures: Sequence[Picture],
        frames: Sequence[int] = (),
        start_page: str | None = None,
    ) -> list[Message]:
        """Build the messages; ``frames`` are the numbers of the steps that the last pictures
        show."""
        in_tags = self._steps == "tags" or not view.steps
        text = self._prompt.render(
            "user",
            goal_pictures=len(pictures) - len(frames),
            axtree=view.axtree,
            screenshots=frames,
            start_page=start_page,
            **template_variables(view if in_tags else view._replace(steps=())),
        )
        if not in_tags:
            steps = rendered_steps(self._forms, self._steps, view).strip("\n")
            text = text.replace(_NO_STEPS, f"<steps>\n{steps}\n", 1)
        words = checked(Text, {"kind": "text", "text": text})
        return conversation(self._system, [*pictures, words])


NAME = "simplified"

PROMPT_VARIABLES: Mapping[str, Mapping[str, str]] = {
    "user": {
        "goal": "what the user asked for",
        "start_page": "URL of the first page, none if it was not recorded",
        "steps": "the steps that are shown: number, url, action and reasoning of each (none: not "
        "recorded)",
        "head": "how many steps are shown before those that are left out",
        "elided": "how many steps are left out, 0 if all are shown",
        "answer": "what the agent told the user at the end, none if it was not recorded",
        "axtree": "the accessibility tree of the last page as text, none if it is not shown",
        "screenshots": "numbers of the steps whose screenshots are the last pictures, before the "
        "text",
        "goal_pictures": "how many pictures belong to the goal: the first ones",
    },
    "system": {
        "representation": "what is shown of the last page: axtree, screenshot, both or none",
        "success": "first or last: when success is asked for (--success-last)",
        "answer": "tags or schema: how the verdict is given",
        "frames": "how many screenshots are shown at most",
    },
}
"""What a template of the user's (--prompt) and its system prompt are given."""

# Of a run that shows everything, and of one of which nothing was recorded.
_TRIALS = (
    TruncatedView(
        rung=EMPTY_VIEW.rung,
        goal="goal",
        steps=(StepLine(1, "http://page/", "click()", "reasoning"), StepLine(9)),
        head=1,
        elided=7,
        answer="answer",
        axtree="tree",
    ),
    EMPTY_VIEW._replace(answer=None, axtree=None),
)


def _check_own(own: OwnPrompt, options: SimplifiedOptions) -> None:
    """Refuse a user's prompt with a mistake. Raises UserError."""
    system = {
        "representation": options.representation.value,
        "success": options.success,
        "answer": options.form,
        "frames": options.frames,
    }
    trials: list[tuple[str, Mapping[str, object]]] = [("system", system)]
    for view in _TRIALS:
        shown = [step.number for step in view.steps]
        pages = {"axtree": view.axtree, "screenshots": shown, "goal_pictures": len(shown)}
        start = {"start_page": view.steps[0].url if view.steps else None}
        trials.append(("user", {**template_variables(view), **pages, **start}))
    in_tags = options.form == "tags"
    check_own_prompt(own, PROMPT_VARIABLES, trials, NAME, in_tags=in_tags)


class PaperPrompt:
    """Messages of the published reference: goal, steps, tree, picture and closing words, one part
    each.

    Left out steps, which the reference cannot express, are marked as in the built-in prompt. The
    agent's answer and the goal's pictures are not shown, as in the reference.
    """

    def __init__(
        self,
        representation: Representation,
        success: str,
        untrusted: Untrusted = "neutralised",
    ) -> None:
        """Load the prompts. Raises UserError if the package that holds them is not installed."""
        self.texts = load_texts(NAME, "agentrewardbench", untrusted)
        self.prompt_hash, self.text_hash = self.texts.hash, self.texts.text_hash
        self._system = self.texts.fill(f"system_{success}")
        self.tokens = prompt_tokens(self.messages(EMPTY_VIEW, ()))
        if representation.shows_screenshot:
            self.tokens += count_tokens(self.texts.fill("screenshot"))

    def messages(
        self, view: TruncatedView, pictures: Sequence[Picture], frames: Sequence[int] = ()
    ) -> list[Message]:
        """Build the messages, as ``BuiltinPrompt`` does."""
        texts = self.texts
        parts: list[Part] = [
            Text(text=texts.write("goal", goal=view.goal)),
            Text(text=texts.fill("steps", steps=texts.steps(view))),
        ]
        if view.axtree is not None:
            parts.append(Text(text=texts.write("axtree", axtree=view.axtree)))
        if pictures:
            parts += [Text(text=texts.fill("screenshot")), *pictures]
        return conversation(self._system, [*parts, Text(text=texts.fill("final"))])

    def changes(self, view: TruncatedView) -> int:
        """Count the places of the view that are not sent as they were recorded."""
        return self.texts.changes([view.goal, *step_texts(view), view.axtree])


class SimplifiedOptions(AgentRewardBenchOptions):
    """``success`` is asked first or last; ``answer`` comes in tags, or through the provider's
    structured output (``auto``: where the model takes it, which ``structured`` says, tags
    elsewhere and with a prompt of the user's own); ``frames`` screenshots at most are shown, evenly
    spaced; ``max_prompt_tokens`` is what the model's window leaves for the prompt, pictures
    included. Three are there to measure what a verdict owes
    to them: the rendering of the ``steps``, the place of the ``elision`` of a run that is too long,
    and the ``wording`` of the instructions (``swapped``: the words of each verdict in the other
    order). ``prompt`` is the user's own, in place of the built-in one."""

    representation: Representation = Representation.AXTREE
    success: Literal["first", "last"] = "first"
    answer: Literal["auto", "tags", "schema"] = "auto"
    structured: bool = False
    frames: int = Field(default=1, ge=1, le=50)
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()
    steps: StepForm = "tags"
    elision: Elision = "middle"
    wording: Wording = "usual"
    prompt: OwnPrompt | None = None

    @property
    def form(self) -> Literal["tags", "schema"]:
        """How the answer is asked for."""
        if self.answer != "auto":
            return self.answer
        ours = not self.is_published and self.wording == "usual" and self.prompt is None
        return "schema" if self.structured and ours else "tags"

    @property
    def needs(self) -> Needs:
        """The published prompts show neither the answer nor the goal's pictures."""
        needed, ours = page_needs(self.representation), not self.is_published
        changed: dict[str, Any] = {"answer": ours}
        if self.representation.shows_screenshot:
            changed["goal_images"] = ours
            if self.frames > 1:
                changed["screenshots"] = (Shown(which="spread", count=self.frames),)
        return needed.model_copy(update=changed)

    @field_validator("prompt", mode="before")
    @classmethod
    def _named_by_the_user(cls, value: object) -> object:
        """Refuse a template that the manifest of a run holds: code is run when the user names its
        file."""
        if isinstance(value, Mapping):
            raise ValueError("a template that a manifest holds is not run: name it with --prompt")
        return value

    @model_validator(mode="after")
    def _published_form(self) -> SimplifiedOptions:
        if self.is_published and (self.answer == "schema" or self.frames > 1):
            raise ValueError("the published prompts ask for tags and show one frame")
        other_form = self.steps != "tags" or self.wording != "usual"
        if self.is_published and other_form:
            raise ValueError("the published prompts have one rendering of steps, and one wording")
        if self.prompt and (other_form or self.is_published):
            raise ValueError("a prompt of your own goes with our rendering and wording")
        if self.wording != "usual" and (self.answer == "schema" or self.frames > 1):
            raise ValueError("another wording asks for tags and shows one frame")
        return self


@register_judge(
    NAME,
    SimplifiedOptions,
    summary="success, side effect, optimality, repetition (AgentRewardBench)",
    id_options=(
        "representation",
        "success",
        "answer",
        "frames",
        "prompts",
        "steps",
        "elision",
        "wording",
        "untrusted",
        "ladder",
        "prompt",
    ),
    representations=("axtree", "screenshot", "both", "none"),
    answer_option="prompts=trajudge",
)
class Simplified:
    """One call; moves down the truncation ladder where the model finds the prompt too long."""

    def __init__(self, options: SimplifiedOptions) -> None:
        """Load the prompts. Raises UserError if the published ones are asked for and not
        installed."""
        self.options = options
        self._form: BuiltinPrompt | PaperPrompt
        if options.is_published:
            self._form = PaperPrompt(options.representation, options.success, options.untrusted)
        else:
            if options.prompt:
                _check_own(options.prompt, options)
            self._form = BuiltinPrompt(
                options.representation,
                options.success,
                answer=options.form,
                frames=options.frames,
                steps=options.steps,
                wording=options.wording,
                own=options.prompt,
            )
        self.prompt_hash, self.text_hash = self._form.prompt_hash, self._form.text_hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        options, form = self.options, self._form
        frames: list[Shot] = []
        shown: list[ImageRef] = []
        if options.representation.shows_screenshot:
            frames = evenly_spaced(trajectory, options.frames)
            goal_images = () if isinstance(form, PaperPrompt) else trajectory.goal_images
            shown = [*goal_images, *(frame.image for frame in frames)]
        pictures = [await picture(ref, options.images) for ref in shown]
        numbers = [frame.number for frame in frames]
        around = form.tokens + sum(picture_tokens(image, options.images) for image in pictures)
        limit = options.max_prompt_tokens
        shorter: Iterator[TruncatedView] = source_views(trajectory, options.representation)
        if options.ladder == "trajudge":
            room = limit - around
            shorter = views(trajectory, options.representation, room, elision=options.elision)
        parse: Callable[[str], Verdict] = parse_tags
        parameters: dict[str, Any] = {}
        if options.form == "schema":
            parse = parse_object if options.answer == "schema" else parse_object_or_tags
            parameters["response_format"] = verdict_schema(options.success)
        build: Callable[..., list[Message]] = form.messages
        if isinstance(form, BuiltinPrompt) and options.prompt:
            start = trajectory.steps[0].observation.url if trajectory.steps else None
            around += count_tokens(start or "")
            build = partial(form.messages, start_page=start)
        reply, view = await ask_down_the_views(
            ask,
            shorter,
            lambda view: build(view, pictures, numbers),
            around=around,
            limit=limit,
            **parameters,
        )
        verdict = parse_reply(reply, parse)
        if isinstance(form, PaperPrompt):
            return verdict.model_copy(update={"scores": {CHANGES: float(form.changes(view))}})
        return verdict


def verdict_schema(success: str) -> dict[str, Any]:
    """Build ``response_format`` for the four labels, the reasoning first."""
    labels = {
        "side_effect": BOOLEAN,
        "optimality": {"type": "integer", "enum": [1, 2, 3, 4]},
        "repetition": BOOLEAN,
    }
    first, last = ({"success": BOOLEAN}, {}) if success == "first" else ({}, {"success": BOOLEAN})
    return answer_schema("verdict", {"reasoning": STRING, **first, **labels, **last})


def parse_object_or_tags(text: str) -> Verdict:
    """Parse the verdict of a model that was asked for an object, and may have answered in tags as
    others do. Raises ParseFailure."""
    try:
        return parse_object(text)
    except ParseFailure:
        if "<success>" not in text:
            raise
    return parse_tags(text)


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
