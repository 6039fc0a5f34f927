"""The papers' judges end to end: engine, cache and the openai SDK against a server on loopback.

What goes wrong at one stage gives the judgment its status; what was answered is kept, and asked
for again is only what failed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.judges.http_judging import stage_of
from tests.judges.runs import png, seen_run
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.tables import table
from trajudge.eval.runs.jobs import to_refresh
from trajudge.judges.adapters.openai import OpenAIAdapter
from trajudge.judges.engine.budget import Budget
from trajudge.judges.engine.cache import Cache
from trajudge.judges.engine.engine import EngineClient, Engines, ModelRoute
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.engine.retry import Retry
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.model import Judgment, Status, Usage
from trajudge.judges.prompting import AuxiliaryModel
from trajudge.judges.registry import make_judge
from trajudge.trajectories.model import Trajectory

CAPTIONER = "gpt-4o-mini"
OPTIONS: dict[str, dict[str, object]] = {
    "aer-c": {"captioner": AuxiliaryModel(model=CAPTIONER)},
    "nnetnav": {"describer": AuxiliaryModel(model=CAPTIONER)},
}
GOOD = {
    "caption": "A cart with one red mug.",
    "describe": "The cart opened and holds one red mug.",
    "key_points": "1. One red mug is in the cart.",
    "screenshot": "Reasoning: it shows the cart.\nScore: 5",
    "verdict": "Thoughts: the cart holds it.\nStatus: success\nReward: 5",
}
CALLS = {
    "aer-c": {"caption": 1, "verdict": 1},
    "aer-v": {"verdict": 1},
    "nnetnav": {"describe": 3, "verdict": 1},
    "webvoyager": {"verdict": 1},
    "webjudge": {"key_points": 1, "screenshot": 4, "verdict": 1},
}
RUN = seen_run(4)


def shows(incoming: Incoming, index: int) -> bool:
    """Whether the request holds the screenshot of the step ``index``, or begins with its tree."""
    if stage_of(incoming) == "describe":
        return f"<before>\n{RUN.steps[index].observation.axtree}\n" in incoming.prompt
    return width_of(index) in incoming.prompt


def width_of(index: int) -> str:
    """The beginning of the encoded screenshot of a step, which holds its size."""
    from base64 import b64encode

    data = png(8 + index).data
    assert data
    return b64encode(data).decode()[:40]


class Model:
    """Answers every stage well, but for ``bad`` requests of one stage: with ``text``, or with a
    fault."""

    def __init__(self, stage: str = "", index: int | None = None, **bad: str) -> None:
        self.stage = stage
        self.index = index
        self.bad = bad
        self.asked: Counter[str] = Counter()

    def _is_bad(self, incoming: Incoming) -> bool:
        return stage_of(incoming) == self.stage and (
            self.index is None or shows(incoming, self.index)
        )

    def text(self, incoming: Incoming) -> str:
        self.asked[stage_of(incoming)] += 1
        if "text" in self.bad and self._is_bad(incoming):
            return self.bad["text"]
        return GOOD[stage_of(incoming)]

    def script(self, incoming: Incoming) -> str | None:
        if "fault" in self.bad and self._is_bad(incoming):
            return self.bad["fault"]
        return None


def judged(
    server: LlmServer,
    name: str,
    cache: Path,
    *,
    trajectory: Trajectory = RUN,
    earlier: Judgment | None = None,
    options: dict[str, object] | None = None,
) -> Judgment:
    """One session with one judgment."""

    async def session() -> Judgment:
        adapters = {
            model: OpenAIAdapter(model, base_url=server.url, timeout=0.5)
            for model in ("gpt-4o", CAPTIONER)
        }
        engines = Engines(
            adapters,
            cache=Cache(cache),
            limiter=lambda _: Limiter(concurrency=8),
            retry=Retry(np.random.default_rng(0), attempts=2, first=0.01),
            budget=Budget(lambda model, usage: usage.input * (1.0 if model == "gpt-4o" else 0.1)),
        )
        own, other = (
            ModelRoute(
                adapter.endpoint, model, {"max_tokens": 200}, lambda _: Usage(input=9, output=9)
            )
            for model, adapter in adapters.items()
        )
        ask = EngineClient(engines, own, [other], refresh=to_refresh(earlier))
        judge_id, judge = make_judge(name, OPTIONS.get(name, {}) | (options or {}))
        try:
            return await judge_trajectory(judge_id, judge, trajectory, ask)
        finally:
            await engines.close()

    return asyncio.run(session())


def stages(judgment: Judgment) -> dict[str, int]:
    return dict(Counter(call.stage for call in judgment.calls))


@pytest.mark.parametrize("name", CALLS)
def test_a_judgment_and_the_same_again_without_a_call(name: str, tmp_path: Path) -> None:
    model = Model()
    with LlmServer(text=model.text) as server:
        judgment = judged(server, name, tmp_path / "cache")
        assert (judgment.status, judgment.success) == (Status.OK, True)
        assert judgment.score == (1.0 if name == "nnetnav" else None)
        assert judgment.reasoning.startswith("the cart holds it.")
        assert stages(judgment) == CALLS[name] == model.asked
        again = judged(server, name, tmp_path / "cache")
        assert server.stats.requests == sum(CALLS[name].values())
    assert all(call.cached for call in again.calls)
    without = {"calls": {"__all__": {"cached", "seconds"}}}
    assert again.model_dump(exclude=without) == judgment.model_dump(exclude=without)


@pytest.mark.parametrize(("name", "stage"), [("aer-c", "caption"), ("nnetnav", "describe")])
def test_a_stage_of_another_model_goes_to_that_model_at_its_price(
    name: str, stage: str, tmp_path: Path
) -> None:
    with LlmServer(text=Model().text) as server:
        judgment = judged(server, name, tmp_path / "cache")
        models = {stage_of(seen): seen.payload["model"] for seen in server.seen}
    assert models == {stage: CAPTIONER, "verdict": "gpt-4o"}
    for call in judgment.calls:
        price = 0.1 if call.stage == stage else 1.0
        assert call.usage is not None
        assert call.cost == pytest.approx(call.usage.input * price)


@pytest.mark.parametrize(
    ("line", "success", "score", "optimality"),
    [
        ("Reward: 1", False, 0.0, 1),
        ("Reward: 2", False, 0.25, 1),
        ("Reward: 3", False, 0.5, 2),
        ("Reward: 4", True, 0.75, 3),
        ("Reward: 5", True, 1.0, 4),
        ("Reward: 4.5", True, 0.875, None),
    ],
)
def test_nnetnav_takes_four_for_success_and_keeps_the_scale(
    line: str, success: bool, score: float, optimality: int | None, tmp_path: Path
) -> None:
    model = Model("verdict", text=f"Thoughts: so so.\n{line}")
    with LlmServer(text=model.text) as server:
        judgment = judged(server, "nnetnav", tmp_path / "cache")
    assert (judgment.success, judgment.score) == (success, score)
    assert judgment.optimality == optimality


NAMED = {
    "caption": "caption of the final screenshot: ",
    "describe": "change of step ",
    "key_points": "key points: ",
    "screenshot": "screenshot of step ",
}


@table(
    "name stage index key value status",
    """
    aer-c      | caption    |   | fault | image-refused      | provider_error
    aer-c      | caption    |   | fault | refusal            | refused
    aer-c      | caption    |   | fault | length             | truncated
    aer-c      | caption    |   | text  | <think>hm</think>  | unparsable
    aer-c      | verdict    |   | text  | I cannot tell.     | unparsable
    aer-v      | verdict    |   | fault | hang               | provider_error
    aer-v      | verdict    |   | fault | overflow           | context_overflow
    nnetnav    | describe   | 1 | fault | hang               | provider_error
    nnetnav    | describe   | 0 | fault | refusal            | refused
    nnetnav    | describe   | 1 | fault | length             | truncated
    nnetnav    | describe   | 1 | fault | empty              | unparsable
    nnetnav    | verdict    |   | text  | Reward: 6          | unparsable
    webvoyager | verdict    |   | fault | image-refused      | provider_error
    webvoyager | verdict    |   | text  | Status: unknown    | unparsable
    webjudge   | key_points |   | fault | empty              | unparsable
    webjudge   | key_points |   | fault | length             | truncated
    webjudge   | screenshot | 2 | fault | image-refused      | provider_error
    webjudge   | screenshot | 0 | fault | hang               | provider_error
    webjudge   | screenshot | 1 | fault | content-policy     | refused
    webjudge   | verdict    |   | fault | length             | truncated
    """,
)
def test_what_fails_gives_its_status_and_is_all_that_is_asked_again(
    name: str, stage: str, index: str, key: str, value: str, status: str, tmp_path: Path
) -> None:
    model = Model(stage, int(index) if index else None, **{key: value})
    with LlmServer(text=model.text, script=model.script) as server:
        failed = judged(server, name, tmp_path / "cache")
        assert (failed.status, failed.success, failed.score) == (status, None, None)
        place = NAMED.get(stage, "") + (str(int(index) + 1) if index else "")
        assert failed.detail.startswith(place)
        before = set(CALLS[name])
        later = list(CALLS[name])[list(CALLS[name]).index(stage) + 1 :]
        assert set(stages(failed)) <= before - set(later)
        kept = {call.request for call in failed.calls if call.finish == "stop"}
        asked, server.script = server.stats.requests, None
        model.bad = {}
        mended = judged(server, name, tmp_path / "cache", earlier=failed)
        assert (mended.status, mended.success) == (Status.OK, True)
        assert stages(mended) == CALLS[name]
        assert kept <= {call.request for call in mended.calls if call.cached}
        assert server.stats.requests - asked == sum(not call.cached for call in mended.calls)
        missing = sum(CALLS[name].values()) - len(kept)
        assert server.stats.requests - asked == missing


def test_of_several_failures_the_first_in_order_is_told_and_all_else_is_kept(
    tmp_path: Path,
) -> None:
    """The last of the screenshots fails at once, an earlier one much later."""
    late, early = 1, 3

    def script(incoming: Incoming) -> str | None:
        if stage_of(incoming) != "screenshot":
            return None
        return {True: "hang"}.get(shows(incoming, late)) or (
            "refusal" if shows(incoming, early) else None
        )

    with LlmServer(text=Model().text, script=script) as server:
        judgment = judged(server, "webjudge", tmp_path / "cache")
    assert judgment.status is Status.PROVIDER_ERROR
    assert judgment.detail.startswith("screenshot of step 2: ")
    assert [call.finish for call in judgment.calls] == ["stop", "stop", "stop", "refused"]


def test_captions_and_key_points_are_made_once_for_all_that_share_them(tmp_path: Path) -> None:
    model = Model()
    other = RUN.model_copy(
        update={"goal": "Leave the cart empty.", "key": RUN.key.model_copy(update={"attempt": 1})}
    )
    agent = RUN.model_copy(
        update={"steps": seen_run(3).steps, "key": RUN.key.model_copy(update={"agent": "b"})}
    )
    with LlmServer(text=model.text) as server:
        for trajectory in (RUN, other):
            judged(server, "aer-c", tmp_path / "cache", trajectory=trajectory)
        assert model.asked == {"caption": 1, "verdict": 2}
        judged(server, "aer-c", tmp_path / "cache", options={"variant": "original"})
        assert model.asked == {"caption": 1, "verdict": 3}
        model.asked.clear()
        for trajectory in (RUN, agent):
            judged(server, "webjudge", tmp_path / "cache", trajectory=trajectory)
        assert model.asked == {"key_points": 1, "screenshot": 4, "verdict": 2}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_the_same_for_all_runs_comes_first(name: str, tmp_path: Path) -> None:
    """So that a provider's prompt cache serves it: the whole system prompt of every stage."""
    other = seen_run(4, goal="Buy a green lamp.", answer="Bought.")
    with LlmServer(text=Model().text) as server:
        judged(server, name, tmp_path / "a")
        judged(server, name, tmp_path / "b", trajectory=other)
        first: dict[str, set[str]] = {}
        for seen in server.seen:
            message = seen.payload["messages"][0]
            assert message["role"] == "system"
            first.setdefault(stage_of(seen), set()).add(str(message["content"]))
    assert set(first) == set(CALLS[name])
    assert all(len(prompts) == 1 for prompts in first.values())


def test_the_screenshots_of_a_run_share_all_but_the_picture(tmp_path: Path) -> None:
    with LlmServer(text=Model().text) as server:
        judged(server, "webjudge", tmp_path / "cache")
        contents = [
            seen.payload["messages"][1]["content"]
            for seen in server.seen
            if stage_of(seen) == "screenshot"
        ]
    assert len({str(parts[:-1]) for parts in contents}) == 1
    assert len({str(parts[-1]) for parts in contents}) == 4


def test_only_the_screenshots_that_matter_are_shown_for_the_verdict(tmp_path: Path) -> None:
    model = Model("screenshot", 2, text="Reasoning: nothing here.\nScore: 2")
    with LlmServer(text=model.text) as server:
        judgment = judged(server, "webjudge", tmp_path / "cache")
        [verdict] = [seen for seen in server.seen if stage_of(seen) == "verdict"]
        assert judgment.status is Status.OK
        assert [shows(verdict, index) for index in range(4)] == [True, True, False, True]
        assert "nothing here" not in verdict.prompt
        judged(server, "webjudge", tmp_path / "cache", options={"screenshots": 2})
        verdict = [seen for seen in server.seen if stage_of(seen) == "verdict"][-1]
        assert [shows(verdict, index) for index in range(4)] == [False, True, False, True]


def test_without_a_screenshot_that_matters_the_history_decides(tmp_path: Path) -> None:
    model = Model("screenshot", text="Reasoning: no.\nScore: 1")
    with LlmServer(text=model.text) as server:
        judgment = judged(server, "webjudge", tmp_path / "cache")
        [verdict] = [seen for seen in server.seen if stage_of(seen) == "verdict"]
    assert judgment.status is Status.OK
    assert "</notes>" not in verdict.prompt
    assert "image_url" not in verdict.body.decode()
