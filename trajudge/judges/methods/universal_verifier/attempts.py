"""Calls of the verifier's stages: asked until a reply passes the stage's checks.

Every call that fails a check is asked again, with a further user turn that names the failed
check; the bad reply itself is not shown. Calls of one stage go in rounds, so that the ledger has
the same order every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from pydantic import JsonValue

from trajudge.judges.adapters.errors import CallFailed, NoAccess
from trajudge.judges.methods.universal_verifier.options import UniversalVerifierOptions
from trajudge.judges.model import Message, ModelClient, Part, Picture, Text
from trajudge.judges.prompting.pictures import ImageLimits, picture_tokens
from trajudge.judges.prompting.truncated_prompts import (
    TruncatedPrompt,
    ask_with_truncation,
    prompt_tokens,
)
from trajudge.judges.replies import (
    ParseFailure,
    error_context,
    gather_bounded,
    parse_complete_reply,
)
from trajudge.prompts.render import Prompt
from trajudge.trajectories.tokens import most_tokens
from trajudge.trajectories.truncation import cut_middle

T = TypeVar("T")

# Below this many tokens of the action history a prompt makes no sense.
_LEAST_HISTORY = 200
_JSON: JsonValue = {"type": "json_object"}


@dataclass(frozen=True)
class StagePrompt(Generic[T]):
    """One question of a stage.

    ``messages`` takes the action history, whole or cut; ``part`` names the question in an error
    message; ``assume`` is a reply that a dry run goes on with. ``light``: the light model answers.
    ``json``: the reply is asked for as a JSON object. ``nudged``: what failed is named in a further
    turn, else the same messages are sent again. ``seed`` tells equal questions apart.
    """

    stage: str
    messages: Callable[[str], Sequence[Message]]
    parse: Callable[[str], T]
    assume: str
    part: str = ""
    light: bool = False
    json: bool = True
    nudged: bool = True
    seed: int | None = None


@dataclass(frozen=True)
class StageFailure:
    """A question without a usable reply; ``error`` is the last attempt's."""

    error: ParseFailure | CallFailed


@dataclass
class StageRunner:
    """Asks the questions of one run, whose action history is ``history``.

    ``retried`` and ``skipped`` name the stages that were asked again and those that the judgment
    went on without, ``errors`` why.
    """

    ask: ModelClient
    options: UniversalVerifierOptions
    prompt: Prompt
    history: str
    retried: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    errors: dict[str, ParseFailure | CallFailed] = field(default_factory=dict)

    @property
    def continues(self) -> bool:
        """Whether a stage that fails is left out, as the source does."""
        return self.options.on_stage_failure == "continue"

    async def run(self, questions: Sequence[StagePrompt[T]]) -> list[T | StageFailure]:
        """Ask all questions at once, those that fail again, up to ``attempts`` times.

        Returns a reply or a failure for each, in order. Raises CallFailed unless the judge
        continues without stages that fail.
        """
        outcomes: dict[int, T | StageFailure] = {}
        errors: list[list[str]] = [[] for _ in questions]
        pending = list(range(len(questions)))
        for number in range(1, self.options.attempts + 1):
            replies = await gather_bounded(
                [partial(self.attempt, questions[i], number, errors[i]) for i in pending]
            )
            outcomes.update(zip(pending, replies, strict=True))
            pending = [i for i in pending if isinstance(outcomes[i], StageFailure)]
            pending = [i for i in pending if _may_pass(outcomes[i])]
            for i in pending:
                errors[i].append(_reason(outcomes[i]))
            if not pending:
                break
        return [outcomes[i] for i in range(len(questions))]

    async def one(self, question: StagePrompt[T]) -> T | StageFailure:
        """Ask one question as ``run`` does."""
        return (await self.run([question]))[0]

    async def required(self, question: StagePrompt[T]) -> T:
        """Ask a question without which there is no verdict. Raises CallFailed and ParseFailure."""
        outcome = await self.one(question)
        if isinstance(outcome, StageFailure):
            raise outcome.error
        return outcome

    def settle(self, stage: str, outcome: T | StageFailure, fallback: T, *, lenient: bool) -> T:
        """Return the outcome, or ``fallback`` for a failure where the judge goes on: always in a
        ``lenient`` stage. Raises the failure elsewhere."""
        if not isinstance(outcome, StageFailure):
            return outcome
        if not (lenient or self.continues):
            raise outcome.error
        self.errors[stage] = outcome.error
        if stage not in self.skipped:
            self.skipped.append(stage)
        return fallback

    async def attempt(
        self, question: StagePrompt[T], number: int, errors: Sequence[str]
    ) -> T | StageFailure:
        """Ask once, as attempt ``number`` from 1; ``errors`` are those of the attempts before.

        A reply that fails a check is returned as a failure. Raises CallFailed unless the judge
        continues without stages that fail.
        """
        if number > 1 and question.stage not in self.retried:
            self.retried.append(question.stage)
        try:
            with error_context(question.part or question.stage.replace("_", " ")):
                return await self._reply(question, number, errors)
        except ParseFailure as failure:
            return StageFailure(failure)
        except CallFailed as failure:
            if isinstance(failure, NoAccess) or not self.continues:
                raise
            return StageFailure(failure)

    async def _reply(self, question: StagePrompt[T], number: int, errors: Sequence[str]) -> T:
        options = self.options
        model = options.light if question.light else None
        images = model.images if model else options.images
        window = model.max_prompt_tokens if model else options.max_prompt_tokens
        reply_tokens = min(options.reply_tokens, window // 2)
        nudges = [self._nudge(error) for error in errors] if question.nudged else []
        parameters: dict[str, Any] = {"max_tokens": reply_tokens}
        if question.json:
            parameters["response_format"] = _JSON
        if question.seed is not None or (number > 1 and not question.nudged):
            parameters["seed"] = (question.seed or 0) + number - 1

        def make(budget: int) -> TruncatedPrompt | None:
            full = [*question.messages(self.history), *nudges]
            if _fits(full, budget, images):
                return TruncatedPrompt("full", full)
            room = budget - prompt_tokens([*question.messages(""), *nudges], images)
            if room < _LEAST_HISTORY:
                return None
            return TruncatedPrompt(
                "cut", [*question.messages(cut_middle(self.history, room)), *nudges]
            )

        reply = await ask_with_truncation(
            self.ask,
            make,
            limit=window - reply_tokens,
            images=images,
            stage=question.stage if number == 1 else f"{question.stage}#{number}",
            model=model.model if model else None,
            assume=question.assume,
            **parameters,
        )
        return parse_complete_reply(reply, question.parse)

    def _nudge(self, error: str) -> Message:
        return user_message(Text(text=self.prompt.render("again", problem=error)))


def user_message(*parts: Part) -> Message:
    """Build one user turn."""
    return Message(role="user", parts=parts)


def _fits(messages: Sequence[Message], budget: int, images: ImageLimits) -> bool:
    """Tell whether the messages take at most ``budget`` tokens; short ones are not counted."""
    parts = [part for message in messages for part in message.parts]
    pictures = sum(picture_tokens(part, images) for part in parts if isinstance(part, Picture))
    texts = [part.text for part in parts if isinstance(part, Text)]
    if pictures + sum(map(most_tokens, texts)) <= budget:
        return True
    return prompt_tokens(messages, images) <= budget


def _may_pass(outcome: object) -> bool:
    """Tell whether another attempt makes sense: the engine has retried a failed call already."""
    return isinstance(outcome, StageFailure) and isinstance(outcome.error, ParseFailure)


def _reason(outcome: object) -> str:
    return str(outcome.error) if isinstance(outcome, StageFailure) else ""
