"""How the simplified judge's messages are written: by our own prompts, or by the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trajudge.judges.model import Message, Part, Picture, Text
from trajudge.judges.prompting.fitting import NOTHING, conversation, prompt_tokens
from trajudge.prompts.published import load_published
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.ladder import View
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.tokens import count_tokens


class Form(Protocol):
    """Turns a view and its pictures into messages.

    ``tokens`` is what the form itself takes, the view and the pictures apart;
    ``shows_goal_images`` whether the pictures that belong to the goal come first.
    """

    prompt_hash: str
    tokens: int
    shows_goal_images: bool

    def messages(
        self, view: View, pictures: Sequence[Picture], frames: Sequence[int] = ()
    ) -> list[Message]:
        """``frames`` are the numbers of the steps that the last pictures show."""
        ...


class OwnForm:
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
        self.tokens = prompt_tokens(self.messages(NOTHING, ()))

    def messages(
        self, view: View, pictures: Sequence[Picture], frames: Sequence[int] = ()
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


class PublishedForm:
    """The reference's messages: goal, steps, tree, picture and closing words, one part each.

    What the reference cannot do is marked as ours is: steps left out. The agent's answer and the
    goal's pictures are not shown, as there.
    """

    shows_goal_images = False

    def __init__(self, representation: Representation, success: str) -> None:
        """Raises UserError if the package with the prompts is not installed."""
        self._prompt = load_published()
        self.prompt_hash = self._prompt.hash
        self._system = self._prompt.system(success)
        self.tokens = prompt_tokens(self.messages(NOTHING, ()))
        if representation.shows_screenshot:
            self.tokens += count_tokens(self._prompt.screenshot_text)

    def messages(
        self, view: View, pictures: Sequence[Picture], frames: Sequence[int] = ()
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
