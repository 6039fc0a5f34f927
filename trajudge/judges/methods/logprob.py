"""One Yes/No question, and how sure the model was: P(yes) / (P(yes) + P(no))."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, isfinite
from typing import Any

from pydantic import Field

from trajudge.judges.adapters.errors import BadRequest
from trajudge.judges.model import Message, Model, Picture, Reply, Text, Verdict
from trajudge.judges.prompting import (
    EMPTY_VIEW,
    ImageLimits,
    ask_down_the_views,
    conversation,
    picture,
    prompt_tokens,
    template_variables,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import ParseFailure, check_reply, normalise
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs, page_needs
from trajudge.trajectories.represent import Representation, final_screenshot
from trajudge.trajectories.thoughts import split_thoughts
from trajudge.trajectories.truncate import Elision, TruncatedView, views

# The most that OpenAI gives; a quote or a blank may come before the word.
_ALTERNATIVES, _REPLY_TOKENS = 20, 4


class LogprobOptions(Record):
    """Success is a score of ``threshold`` or more; ``elision`` is where steps of a run that is too
    long are left out. ``prefix`` begins the model's answer for it, as in ``prefix="Answer:"``,
    where the server goes on from a last turn of the assistant (llama.cpp, vLLM, Anthropic)."""

    representation: Representation = Representation.AXTREE
    threshold: float = Field(default=0.5, ge=0, le=1)
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()
    elision: Elision = "middle"
    prefix: str = ""

    @property
    def needs(self) -> Needs:
        return page_needs(self.representation)


@register_judge(
    "logprob",
    LogprobOptions,
    summary="one yes-or-no question; the score is the probability of yes",
    id_options=("representation", "threshold", "elision", "prefix"),
    representations=("axtree", "screenshot", "both", "none"),
    logprobs=True,
)
class Logprob:
    """One call; moves down the truncation ladder where the model finds the prompt too long."""

    def __init__(self, options: LogprobOptions) -> None:
        self._options = options
        self._prompt = load_prompt("logprob")
        shows = options.representation
        self._system = self._prompt.render("system", representation=shows.value)
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed (BadRequest
        where no token probabilities come) and ParseFailure."""
        options, pictures = self._options, list[Picture]()
        if options.representation.shows_screenshot:
            pictures = [await picture(final_screenshot(trajectory), options.images)]
        around = prompt_tokens(self._messages(EMPTY_VIEW, pictures), options.images)
        limit = options.max_prompt_tokens
        shorter = views(trajectory, options.representation, limit - around, elision=options.elision)
        reply, _ = await ask_down_the_views(
            ask,
            shorter,
            lambda view: self._messages(view, pictures),
            around=around,
            limit=limit,
            assume="Yes",
            max_tokens=_REPLY_TOKENS,
            logprobs=True,
            top_logprobs=_ALTERNATIVES,
        )
        score = probability_of_yes(reply)
        return Verdict(success=score >= options.threshold, score=score)

    def _messages(self, view: TruncatedView, pictures: list[Picture]) -> list[Message]:
        text = self._prompt.render(
            "user", axtree=view.axtree, screenshot=bool(pictures), **template_variables(view)
        )
        messages = conversation(self._system, [*pictures, Text(text=text)])
        if self._options.prefix:
            begun = Text(text=self._options.prefix)
            messages.append(Message(role="assistant", parts=(begun,)))
        return messages


def probability_of_yes(reply: Reply) -> float:
    """Compute P(yes) / (P(yes) + P(no)) at the first token that says a word, all spellings of
    either summed, also where another word was sampled; thoughts among the tokens (vLLM gives theirs
    too) are passed over.

    Raises Refused, BadRequest if the reply carries no token probabilities, ParseFailure if neither
    is among the alternatives of that token, or the answer is contradicted by a later word.
    """
    check_reply(reply)
    content = reply.logprobs.get("content") if isinstance(reply.logprobs, dict) else None
    if not isinstance(content, list) or not content:
        raise BadRequest(
            "no token probabilities came with the reply: the logprob judge needs a model and a "
            "server that give logprobs"
        )
    worded = [(word, token) for token in _answer(content) if (word := normalise(_text(token)))]
    shown = f"the model answered {reply.text.strip()[:40]!r}"
    if not worded or not isinstance(worded[0][1], dict):
        raise ParseFailure(f"{shown}, neither Yes nor No")
    if {"yes", "no"} <= {word for word, _ in worded} and worded[0][0] in ("yes", "no"):
        raise ParseFailure(f"{shown}, both Yes and No")
    return _share(worded[0][1], shown)


def _answer(tokens: list[Any]) -> list[Any]:
    """Return the tokens after the thoughts, in whatever wrapper."""
    written = "".join(map(_text, tokens))
    answer = split_thoughts(written).answer
    position, start = 0, written.rfind(answer)
    for index, token in enumerate(tokens):
        if position >= start:
            return tokens[index:] if answer.strip() else []
        position += len(_text(token))
    return []


def _share(token: Mapping[str, Any], shown: str) -> float:
    """Compute the share of Yes among Yes and No. The token itself counts where it is not among the
    alternatives."""
    alternatives = token.get("top_logprobs")
    offered = list(alternatives) if isinstance(alternatives, list) else []
    if _text(token) not in map(_text, offered):
        offered.append(token)
    mass = {"yes": 0.0, "no": 0.0}
    is_offered = False
    for alternative in offered:
        word, logprob = (
            normalise(_text(alternative)),
            alternative.get("logprob") if _text(alternative) else None,
        )
        is_offered |= word in mass
        if word in mass and isinstance(logprob, int | float) and isfinite(logprob):
            mass[word] += exp(min(0.0, logprob))
    if not is_offered:
        raise ParseFailure(f"{shown}, neither Yes nor No, and offered neither")
    if not sum(mass.values()):
        raise ParseFailure("the token probabilities of the answer are no numbers")
    return mass["yes"] / sum(mass.values())


def _text(token: object) -> str:
    text = token.get("token") if isinstance(token, dict) else None
    return text if isinstance(text, str) else ""
