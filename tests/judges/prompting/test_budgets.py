"""The budget after a server's refusal: by its own numbers, and a little below them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.judges.runs import ScriptedAsk, mug_run, png, seen_run
from trajudge.judges.adapters.errors import ContextOverflow
from trajudge.judges.model import Message, Picture, Text
from trajudge.judges.prompting import (
    EMPTY_VIEW,
    AuxiliaryModel,
    ImageLimits,
    Shot,
    TruncatedPrompt,
    ask_about_pictures,
    ask_about_steps,
    ask_down_the_views,
    ask_with_truncation,
    budget_after_overflow,
    conversation,
    cut_or_full,
    first_that_fit,
    fits_budget,
    picture,
    prompt_tokens,
    recorded,
    source_views,
)
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.truncate import PromptTruncator, TruncatedView


@pytest.mark.parametrize(
    ("prompt", "counted", "budget"), [(5000, 5000, 2760), (5000, 4000, 2208), (2000, 4000, 3680)]
)
def test_a_prompt_of_that_budget_fits_the_window_told(
    prompt: int, counted: int, budget: int
) -> None:
    said = (
        "This model's maximum context length is 4000 tokens. However, you requested "
        f"{prompt + 1000} tokens ({prompt} in the messages, 1000 in the completion)."
    )
    assert budget_after_overflow(ContextOverflow(said), counted) == budget


def test_without_a_reply_told_there_is_room_for_one_of_1024_tokens() -> None:
    said = ContextOverflow("This model's maximum context length is 4000 tokens")
    assert budget_after_overflow(said, 9_000) == 4_000 - 1_024
    assert budget_after_overflow(said, 1_000) == 600
    assert budget_after_overflow(ContextOverflow("too long"), 1_000) is None


def test_limits_that_suit_every_provider() -> None:
    limits = ImageLimits()
    assert (limits.max_side, limits.max_pixels, limits.max_bytes) == (2048, 4_000_000, 5_000_000)
    assert AuxiliaryModel().max_prompt_tokens == 120_000


@pytest.mark.parametrize(
    ("budget", "texts", "shown"),
    [(510, (), 2), (509, (), 1), (540, (10, 20, 30), 2), (539, (10, 20, 30), 1), (254, (), 0)],
)
def test_as_many_pictures_are_shown_as_fit(budget: int, texts: tuple[int, ...], shown: int) -> None:
    """A small picture takes 255 tokens by the formula of an unknown provider."""
    loaded = asyncio.run(first_that_fit([png()] * 3, budget, ImageLimits(), texts))
    assert len(loaded) == shown


def test_a_prompt_fits_its_own_tokens() -> None:
    shown = asyncio.run(picture(png(), ImageLimits()))
    messages = conversation("word " * 90, [Text(text="word " * 90), shown])
    tokens = prompt_tokens(messages)
    assert tokens == prompt_tokens(messages[:1]) * 2 + 255
    assert fits_budget(messages, tokens, ImageLimits())
    assert not fits_budget(messages, tokens - 1, ImageLimits())
    assert prompt_tokens(messages, ImageLimits(pricing="anthropic")) == tokens - 255 + 1


def about(view: TruncatedView, *_: object) -> Sequence[Message]:
    """A prompt of a long beginning and the view's words."""
    words = [*view.steps, view.goal, view.answer]
    return conversation("word " * 500, [Text(text=str(words))])


def test_a_prompt_is_made_shorter_six_times() -> None:
    budgets: list[int] = []

    async def make(budget: int) -> TruncatedPrompt | None:
        budgets.append(budget)
        return TruncatedPrompt("full", about(EMPTY_VIEW)) if budget else None

    ask = ScriptedAsk(*[ContextOverflow("too long")] * 9)
    with pytest.raises(ContextOverflow, match=r"^too long$"):
        asyncio.run(ask_with_truncation(ask, make, limit=9_000))
    shorter = int(0.6 * prompt_tokens(about(EMPTY_VIEW)))
    assert budgets == [9_000, *[shorter] * 6]
    with pytest.raises(ContextOverflow, match=r"^the prompt does not fit 0 tokens however it is"):
        asyncio.run(ask_with_truncation(ask, make, limit=0))


def test_steps_are_cut_from_the_first_token_over_the_limit() -> None:
    run, ask = mug_run(), ScriptedAsk("a", "b", "c")
    view = PromptTruncator(run, Representation.NONE).first(10**6)
    assert view
    limit = prompt_tokens(about(EMPTY_VIEW)) + view.tokens
    asyncio.run(ask_about_steps(ask, run, about, limit=limit))
    asyncio.run(ask_about_steps(ask, run, about, limit=limit - 1))
    asyncio.run(ask_about_steps(ask, run, about, limit=0, is_shortened=False))
    assert [call.rung == "full" for call in ask.calls] == [True, False, True]


def test_pictures_take_their_share_of_the_room() -> None:
    run = seen_run(4)
    bare = prompt_tokens(about(EMPTY_VIEW))
    shown: list[list[int]] = []

    def messages(
        view: TruncatedView, sources: Sequence[Shot], pictures: Sequence[Picture]
    ) -> Sequence[Message]:
        shown.append([source.number for source in sources])
        return [*about(view), Message(role="user", parts=tuple(pictures))]

    def asked(extra: int) -> tuple[str, list[int]]:
        ask = ScriptedAsk("ok")
        asyncio.run(
            ask_about_pictures(
                ask,
                run,
                recorded(run)[::-1],
                messages,
                shot_of=lambda shot: shot,
                share=0.5,
                limit=bare + extra,
                images=ImageLimits(),
            )
        )
        return ask.calls[0].rung, shown[-1]

    assert asked(8 * 255) == ("full", [1, 2, 3, 4])
    assert asked(4 * 255) == ("fewer", [3, 4])
    assert asked(4 * 255 - 1) == ("fewer", [4])


def test_views_that_are_all_too_long() -> None:
    def asked(*answers: str | ContextOverflow) -> str:
        views = source_views(mug_run(), Representation.AXTREE)
        ask = ScriptedAsk(*answers)
        reply, view = asyncio.run(ask_down_the_views(ask, views, about, around=9, limit=100))
        return f"{reply.text} {view.rung.label}"

    assert asked("ok") == "ok full"
    assert asked(ContextOverflow("too long"), "ok") == "ok pruned"
    with pytest.raises(ContextOverflow, match=r"^too long$"):
        asked(ContextOverflow("long"), ContextOverflow("too long"))
    with pytest.raises(ContextOverflow, match=r"^the prompt does not fit 100 tokens however it is"):
        asyncio.run(ask_down_the_views(ScriptedAsk(), iter(()), about, around=9, limit=100))


def test_a_text_is_cut_if_it_is_not_shown_as_it_was_recorded() -> None:
    assert [cut_or_full("a", "a"), cut_or_full("ab", "a")] == ["full", "cut"]
