"""The InSTA-style judge: the last pages as text, three scores."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.judges.http_judging import judged_over_http
from tests.judges.methods.replies import INSTA, SCORES
from tests.judges.runs import StagedAsk, mug_run, seen_run, texts
from tests.llm_server import LlmServer, always, at
from trajudge.judges.methods.insta import Insta, InstaOptions, acting_steps, last_steps
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.represent import MissingObservation
from trajudge.trajectories.tokens import count_tokens

LONG_PAGE = "[1] button 'x'\n" * 4_000


def insta(**options: object) -> Insta:
    return Insta(InstaOptions.model_validate(options))


def test_gives_three_scores_and_a_verdict_by_the_threshold(tmp_path: Path) -> None:
    with LlmServer(text=INSTA) as server:
        judgment = judged_over_http(server, insta(), seen_run(), tmp_path)
        strict = judged_over_http(server, insta(threshold=0.9), seen_run(), tmp_path)
        assert server.stats.requests == 1
    assert (judgment.status, judgment.success, judgment.score) == ("ok", True, 0.8)
    assert judgment.scores == {"efficiency": 0.4, "self_correction": 1.0}
    assert judgment.reasoning == "It searched and bought."
    assert (strict.success, strict.score) == (False, 0.8)


@pytest.mark.parametrize(
    "reply",
    [
        "It bought it.",
        '{"success": 0.8, "efficiency": 0.4}',
        '{"success": 1.8, "efficiency": 0.4, "self_correction": 1}',
        '{"success": true, "efficiency": 0.4, "self_correction": 1}',
        SCORES + SCORES.replace("0.8", "0.1"),
        "Success: 0.8\nEfficiency: 0.4",
        "Success: 1.8\nEfficiency: 0.4\nSelf-correction: 1",
        "Success: 0.8\nSuccess: 0.1\nEfficiency: 0.4\nSelf-correction: 1",
        "Success: yes\nEfficiency: 0.4\nSelf-correction: 1",
    ],
)
def test_a_score_that_is_missing_or_none_is_unparsable(tmp_path: Path, reply: str) -> None:
    with LlmServer(text=reply) as server:
        judgment = judged_over_http(server, insta(), seen_run(), tmp_path)
    assert judgment.status == "unparsable"
    assert judgment.score is None


@pytest.mark.parametrize(
    ("fault", "status"),
    [("refusal", "refused"), ("500", "provider_error"), ("empty-length", "truncated")],
)
def test_trouble_has_its_own_status(tmp_path: Path, fault: str, status: str) -> None:
    with LlmServer(text=INSTA, script=always(fault)) as server:
        judgment = judged_over_http(server, insta(), seen_run(), tmp_path)
    assert judgment.status == status


def test_only_the_end_of_the_run_is_shown_each_page_before_its_action() -> None:
    ask = StagedAsk(verdict=INSTA)
    asyncio.run(insta(observations=2, actions=3)(_acting(6), ask))
    [prompt] = texts(ask.asked[0].messages)[1:]
    steps = re.findall(r'<step number="(\d)">\n(.*?)</step>', prompt, re.DOTALL)
    assert [number for number, _ in steps] == ["4", "5", "6"]
    assert ["<page>" in step for _, step in steps] == [False, True, True]
    assert ["<action>" in step for _, step in steps] == [True, True, True]
    assert steps[1][1].index("<page>") < steps[1][1].index("<action>")


def test_the_source_pairs_the_last_pages_with_the_last_actions() -> None:
    run = _acting(6)
    for observations, actions, pages, acted in (
        (2, 3, [False, True, True], [True, True, True]),
        (3, 2, [True, True, True], [False, True, True]),
    ):
        shown = acting_steps(run, observations, actions)
        assert [step.number for step in shown] == [4, 5, 6]
        assert [step.page is not None for step in shown] == pages
        assert [step.action is not None for step in shown] == acted
        assert shown == last_steps(run, observations, actions)


def test_by_default_five_pages_and_five_actions_as_in_the_source() -> None:
    ask = StagedAsk(verdict=INSTA)
    asyncio.run(insta()(_acting(9), ask))
    prompt = texts(ask.asked[0].messages)[1]
    assert (prompt.count("<page>"), prompt.count("<action>")) == (5, 5)


def test_a_page_is_shown_from_its_beginning_up_to_its_share(tmp_path: Path) -> None:
    run = _with_long_pages(seen_run(3))
    ask = StagedAsk(verdict=INSTA)
    asyncio.run(insta()(run, ask))
    [asked] = ask.asked
    pages = re.findall(r"<page>\n(.*?)\n</page>", texts(asked.messages)[1], re.DOTALL)
    assert len(pages) == 3
    for page in pages:
        kept, _, marker = page.strip().rpartition("\n")
        assert marker.endswith("characters left out ...]")
        assert LONG_PAGE.startswith(kept.strip())
        assert 1_900 < count_tokens(page) <= 2_048
    assert asked.rung == "full"


def test_a_page_that_is_too_long_is_cut_and_a_refused_prompt_gets_shorter(tmp_path: Path) -> None:
    run = _with_long_pages(seen_run(4))
    with LlmServer(text=INSTA, script=at({0: "overflow"})) as server:
        judgment = judged_over_http(server, insta(max_prompt_tokens=6_000), run, tmp_path)
        sizes = [len(incoming.prompt) for incoming in server.seen]
    assert judgment.status == "ok"
    assert judgment.calls[-1].rung == "cut"
    assert sizes[1] < sizes[0] < 40_000


def _acting(steps: int) -> Trajectory:
    """A run with an action at every step."""
    run = seen_run(steps)
    acted = [step.model_copy(update={"action": f"click('{step.index}')"}) for step in run.steps]
    return run.model_copy(update={"steps": tuple(acted)})


def _with_long_pages(run: Trajectory) -> Trajectory:
    steps = [
        step.model_copy(
            update={
                "observation": step.observation.model_copy(
                    update={"axtree": LONG_PAGE, "axtree_pruned": None}
                )
            }
        )
        for step in run.steps
    ]
    return run.model_copy(update={"steps": tuple(steps)})


def test_a_run_without_a_page_is_skipped() -> None:
    with pytest.raises(MissingObservation, match="no step has an accessibility tree"):
        asyncio.run(insta()(mug_run(steps=()), StagedAsk()))
