"""Claims first: the agent's prose becomes checkable items, which are verified without it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pydantic import Field

from trajudge.judges.defences.hide import without
from trajudge.judges.defences.options import PARTS
from trajudge.judges.methods.claims_first.pages import NumberedPage, numbered_pages, record_of
from trajudge.judges.methods.claims_first.replies import (
    ASSUMED_CLAIMS,
    parse_claims,
    parse_findings,
)
from trajudge.judges.model import Message, ModelClient, Text, Verdict
from trajudge.judges.prompting import truncated_prompts
from trajudge.judges.prompting.truncated_prompts import EMPTY_VIEW, TruncatedPrompt, prompt_tokens
from trajudge.judges.replies import error_context, parse_complete_reply, parse_reply
from trajudge.prompts.render import load_prompt
from trajudge.prompts.untrusted import neutralise
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.truncation import PromptTruncator, TruncatedView, TruncationLevel

_PAGES_SHARE = 0.7


class ClaimsFirstOptions(Record):
    """The last ``pages`` are shown, each up to ``page_tokens``."""

    pages: int = Field(default=3, ge=1, le=20)
    page_tokens: int = Field(default=6_000, ge=100)
    max_prompt_tokens: int = 120_000

    @property
    def needs(self) -> Needs:
        return Needs(trees=last(self.pages), answer=True, requires=("tree",))


class ClaimsFirst:
    """Two calls; one where the agent said nothing."""

    def __init__(self, options: ClaimsFirstOptions) -> None:
        self._options = options
        self._prompt = load_prompt("claims-first")
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, CallFailed and ParseFailure."""
        harmless = partial(neutralise, tags=self._prompt.tags)
        pages = numbered_pages(trajectory, self._options.pages, harmless)
        claims = await self._claims(trajectory, ask)
        return await self._verdict(without(trajectory, PARTS), pages, claims, ask)

    async def _claims(self, trajectory: Trajectory, ask: ModelClient) -> list[str]:
        """Ask what the agent says that it did, without a page."""
        if not trajectory.answer and not any(step.reasoning for step in trajectory.steps):
            return []
        truncator = PromptTruncator(trajectory, Representation.NONE)

        def messages(view: TruncatedView) -> list[Message]:
            values = truncated_prompts.template_variables(view)
            text = self._prompt.render("claims_user", **values)
            return truncated_prompts.conversation(self._prompt.render("claims"), [Text(text=text)])

        around = prompt_tokens(messages(EMPTY_VIEW))

        def make(budget: int) -> TruncatedPrompt | None:
            view = truncator.first(budget - around)
            return view and TruncatedPrompt(view.rung.label, messages(view))

        with error_context("claims"):
            reply = await truncated_prompts.ask_with_truncation(
                ask,
                make,
                limit=self._options.max_prompt_tokens,
                stage="claims",
                assume=ASSUMED_CLAIMS,
            )
            return parse_complete_reply(reply, parse_claims)

    async def _verdict(
        self,
        run: Trajectory,
        pages: Sequence[NumberedPage],
        claims: Sequence[str],
        ask: ModelClient,
    ) -> Verdict:
        """Ask for findings on a run without the agent's words, and look their citations up in what
        was shown."""
        truncator = PromptTruncator(run, Representation.NONE)
        shown: list[NumberedPage] = []

        def messages(view: TruncatedView, some: Sequence[NumberedPage]) -> list[Message]:
            values = truncated_prompts.template_variables(view)
            text = self._prompt.render("user", pages=some, claims=claims, **values)
            return truncated_prompts.conversation(self._prompt.render("system"), [Text(text=text)])

        around = prompt_tokens(messages(EMPTY_VIEW, ()))

        def make(budget: int) -> TruncatedPrompt | None:
            room = budget - around
            share = min(self._options.page_tokens, int(room * _PAGES_SHARE) // len(pages))
            shown[:] = [page.within(max(share, 0)) for page in pages]
            view = truncator.first(budget - prompt_tokens(messages(EMPTY_VIEW, shown)))
            whole = shown == list(pages)
            label = view.rung.label if view and whole else TruncationLevel.CUT.label
            return view and TruncatedPrompt(label, messages(view, shown))

        reply = await truncated_prompts.ask_with_truncation(
            ask, make, limit=self._options.max_prompt_tokens
        )
        actions = {number: step.action or "" for number, step in enumerate(run.steps, start=1)}
        record = record_of(shown, actions)
        return parse_reply(reply, partial(parse_findings, claims=len(claims), record=record))
