"""Questions of the stages: templates rendered into messages in the verifier's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trajudge.judges.methods.universal_verifier.attempts import user_message
from trajudge.judges.methods.universal_verifier.options import UniversalVerifierOptions
from trajudge.judges.methods.universal_verifier.replies.critical_point import CriticalPoint
from trajudge.judges.model import Message, Text
from trajudge.judges.prompting.pictures import picture
from trajudge.judges.prompting.screenshots import Shot
from trajudge.prompts.render import Prompt


@dataclass(frozen=True)
class Questions:
    """Makes the messages of one run's questions.

    ``material`` are the values of every template: the task, the initial url, the answer. The
    rubric's stages have one user turn; later ones a neutral system message before it.
    """

    prompt: Prompt
    options: UniversalVerifierOptions
    material: Mapping[str, Any]
    point: CriticalPoint | None = None
    system: str = "system"

    def text(self, template: str, history: str, **values: object) -> str:
        """Render a template with the run's material."""
        options = self.options
        return self.prompt.render(
            template,
            history=history,
            point=self.point,
            classified=options.critical_points == "classified",
            simulator=options.user_simulator,
            year=options.year or (options.date[:4] if options.date else None),
            date=options.date,
            **{**self.material, **values},
        )

    def plain(self, template: str, **values: object) -> Callable[[str], Sequence[Message]]:
        """Make a question of one user turn and no system message."""

        def messages(history: str) -> Sequence[Message]:
            return [user_message(Text(text=self.text(template, history, **values)))]

        return messages

    def asked(
        self,
        template: str,
        values: Mapping[str, object] | None = None,
        shot: Shot | None = None,
    ) -> Callable[[str], Sequence[Message]]:
        """Make a question with the system message; the picture of ``shot`` stands before the text,
        with the option ``image_last`` after it."""
        system = Message(role="system", parts=(Text(text=self.text(self.system, "")),))

        def messages(history: str) -> Sequence[Message]:
            text = Text(text=self.text(template, history, **(values or {})))
            if shot is None:
                return [system, user_message(text)]
            shown = picture(shot.image, self.options.images, "high")
            last = self.options.image_last
            return [system, user_message(text, shown) if last else user_message(shown, text)]

        return messages
