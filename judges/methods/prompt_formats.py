"""Message formats of the simplified judge: the built-in prompt, and the paper's published one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trajudge.judges.model import Message, Part, Picture, Text
from trajudge.judges.prompting.truncated_prompts import EMPTY_VIEW, conversation, prompt_tokens
from trajudge.prompts.published import load_published
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.tokens import count_tokens
from trajudge.trajectories.truncation import TruncatedView


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
        text = self._prompt.render(
            "user",
            goal=view.goal,
            goal_pictures=len(pictures) - len(frames),
            steps=view.steps,
            head=view.head,
            elided=view.elided,
            answer=view.answer,
            axtree=view.axtree,
            screenshots=frames,
        )
        return conversation(self._system, [*pictures, Text(text=text)])


class PaperPrompt:
    """Messages of the published reference: goal, steps, tree, picture and closing words, one part
    each.

    Left out steps, which the reference cannot express, are marked as in the built-in prompt. The
    agent's answer and the goal's pictures are not shown, as in the reference.
    """

    shows_goal_images = False

    def __init__(self, representation: Representation, success: str) -> None:
        """Load the prompts. Raises UserError if the package that holds them is not installed."""
        self._prompt = load_published()
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
