"""Message formats of the simplified judge: the built-in prompt, and the paper's published one."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal, Protocol

from trajudge.judges.model import Message, Part, Picture, Text
from trajudge.judges.prompting.step_forms import StepForm, rendered_steps
from trajudge.judges.prompting.truncated_prompts import EMPTY_VIEW, conversation, prompt_tokens
from trajudge.prompts.published import Untrusted, load_published
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import checked
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.tokens import count_tokens
from trajudge.trajectories.truncation import TruncatedView

Wording = Literal["usual", "swapped", "terse", "formal"]
# Where the built-in system prompt says how to answer, and what its user's turn has without a step:
# no goal can hold that, for its tags are neutralised.
_HOW = "# How to answer\n"
_NO_STEPS = "<steps>\nNo step was recorded.\n"


class PromptFormat(Protocol):
    """Turns a view and its pictures into messages.

    ``tokens`` is what the format itself takes, without the view and the pictures;
    ``shows_goal_images``: the goal's own pictures come first.
    """

    prompt_hash: str
    tokens: int
    shows_goal_images: bool

    def messages(
        self, view: TruncatedView, pictures: Sequence[Picture], frames: Sequence[int] = ()
    ) -> list[Message]:
        """Build the messages; ``frames`` are the numbers of the steps that the last pictures
        show."""
        ...


class BuiltinPrompt:
    """``prompts/simplified``: the pictures, then one text."""

    shows_goal_images = True

    def __init__(
        self, representation: Representation, success: str, *, answer: str = "tags", frames: int = 1
    ) -> None:
        self._prompt = load_prompt("simplified")
        self.prompt_hash = self._prompt.hash
        self._system = self._prompt.render(
            "system",
            representation=representation.value,
            success=success,
            answer=answer,
            frames=frames,
        )
        self.tokens = prompt_tokens(self.messages(EMPTY_VIEW, ()))

    def messages(
        self, view: TruncatedView, pictures: Sequence[Picture], frames: Sequence[int] = ()
    ) -> list[Message]:
        text = self._user(view, len(pictures) - len(frames), frames)
        words = checked(Text, {"kind": "text", "text": text})
        return conversation(self._system, [*pictures, words])

    def _user(self, view: TruncatedView, goal_pictures: int, frames: Sequence[int]) -> str:
        return self._prompt.render(
            "user",
            goal=view.goal,
            goal_pictures=goal_pictures,
            steps=view.steps,
            head=view.head,
            elided=view.elided,
            answer=view.answer,
            axtree=view.axtree,
            screenshots=frames,
        )


class OtherForm(BuiltinPrompt):
    """The built-in prompt with its steps in another rendering, or its instructions in other words
    (``prompts/simplified-forms``), for what a verdict owes to either."""

    def __init__(
        self,
        representation: Representation,
        success: str,
        *,
        steps: StepForm,
        wording: Wording,
        answer: str = "tags",
        frames: int = 1,
    ) -> None:
        self._forms, self._steps = load_prompt("simplified-forms"), steps
        super().__init__(representation, success, answer=answer, frames=frames)
        both = f"{self.prompt_hash}\0{self._forms.hash}"
        self.prompt_hash = sha256(both.encode()).hexdigest()
        values = {"representation": representation.value, "success": success}
        if wording == "swapped":
            before, _, _ = self._system.partition(_HOW)
            self._system = before + self._forms.render("how_swapped", success=success)
        elif wording != "usual":
            self._system = self._forms.render(f"system_{wording}", **values)
        self.tokens = prompt_tokens(self.messages(EMPTY_VIEW, ()))

    def _user(self, view: TruncatedView, goal_pictures: int, frames: Sequence[int]) -> str:
        if self._steps == "tags" or not view.steps:
            return super()._user(view, goal_pictures, frames)
        text = super()._user(view._replace(steps=()), goal_pictures, frames)
        steps = rendered_steps(self._forms, self._steps, view).strip("\n")
        return text.replace(_NO_STEPS, f"<steps>\n{steps}\n", 1)


class PaperPrompt:
    """Messages of the published reference: goal, steps, tree, picture and closing words, one part
    each.

    Left out steps, which the reference cannot express, are marked as in the built-in prompt. The
    agent's answer and the goal's pictures are not shown, as in the reference.
    """

    shows_goal_images = False

    def __init__(
        self,
        representation: Representation,
        success: str,
        untrusted: Untrusted = "neutralised",
    ) -> None:
        """Load the prompts. Raises UserError if the package that holds them is not installed."""
        self._prompt = load_published(untrusted)
        self.prompt_hash = self._prompt.hash
        self._system = self._prompt.system(success)
        self.tokens = prompt_tokens(self.messages(EMPTY_VIEW, ()))
        if representation.shows_screenshot:
            self.tokens += count_tokens(self._prompt.screenshot_text)

    def messages(
        self, view: TruncatedView, pictures: Sequence[Picture], frames: Sequence[int] = ()
    ) -> list[Message]:
        steps = [
            self._prompt.step(step.number, step.url, step.action, step.reasoning)
            for step in view.steps
        ]
        if view.elided:
            steps.insert(view.head, f"\n[... {view.elided} steps left out ...]\n")
        texts = self._prompt.before_picture(view.goal, "".join(steps), view.axtree)
        parts: list[Part] = [Text(text=text) for text in texts]
        if pictures:
            parts += [Text(text=self._prompt.screenshot_text), *pictures]
        return conversation(self._system, [*parts, Text(text=self._prompt.final)])

    def changes(self, view: TruncatedView) -> int:
        """Count the places of the view that are not sent as they were recorded."""
        steps = (text for step in view.steps for text in (step.url, step.action, step.reasoning))
        return self._prompt.untrusted.changes([view.goal, *steps, view.axtree])
