"""Episodes over OpenEnv's protocol and AgentGym's, and by openenv-core's client where one is."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import aiohttp
import pytest

from tests.environments.cases import job, sound
from tests.environments.hosting.guide import OPENENV
from tests.environments.hosting.served import serving
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.apps import load_app
from trajudge.environments.checks.draws import NoSuchTask, held_out
from trajudge.environments.hosting import openenv
from trajudge.environments.hosting.listeners import port_of
from trajudge.environments.hosting.openenv import OpenEnvServer
from trajudge.environments.hosting.tasks import Tasks
from trajudge.environments.model.config import SPLITS, split_of
from trajudge.environments.recording.episode import play_offline
from trajudge.environments.settings import HostConfig
from trajudge.util.machine import listen

CASES = [sound("price"), sound("wish")]
# BrowserGym's environment in OpenEnv 0.3 names them so.
FIELDS = {
    *("text", "url", "screenshot", "goal", "axtree_txt", "pruned_html", "error"),
    "last_action_error",
}
CLIENT = """
import sys
from openenv.core.generic_client import GenericEnvClient

with GenericEnvClient(sys.argv[1]).sync() as env:
    result = env.reset(seed=3, task=sys.argv[2])
    assert not result.done and result.observation["goal"], result
    for action in sys.argv[3:]:
        result = env.step({"action_str": action})
    print(result.done, result.reward, env.state()["step_count"])
    try:
        env.step({"action_str": "noop()", "other": 1})
    except RuntimeError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ExitStack() as stack:
        address = stack.enter_context(listen("127.0.0.1", 0))
        routes = OpenEnvServer(Tasks(CASES)).application()
        stack.enter_context(serving(more=[(routes, address)]))
        yield f"http://127.0.0.1:{port_of(address)}"


@pytest.fixture(scope="module")
def way() -> list[str]:
    """The oracle's actions on the first case."""
    task = job(CASES[0], ORACLE)
    recorded = play_offline(task, lambda run: Scripted(run, ORACLE, 0, 0), b"")
    return [step.action for step in recorded.trajectory.steps if step.action]


def asked(url: str, ask: Callable[[aiohttp.ClientSession], Any]) -> Any:
    async def within() -> Any:
        async with aiohttp.ClientSession(url) as session:
            return await ask(session)

    return asyncio.run(within())


def over_http(url: str, method: str, path: str, body: object = None, **headers: str) -> Any:
    async def ask(session: aiohttp.ClientSession) -> Any:
        async with session.request(method, path, json=body, headers=headers) as response:
            return response.status, await (response.json() if response.ok else response.text())

    return asked(url, ask)


def over_socket(url: str, *messages: object) -> list[Any]:
    async def ask(session: aiohttp.ClientSession) -> list[Any]:
        async with session.ws_connect("/ws") as socket:
            replies = []
            for message in messages:
                text = message if isinstance(message, str) else json.dumps(message)
                await socket.send_str(text)
                replies.append(await socket.receive_json())
            return replies

    replies: list[Any] = asked(url, ask)
    return replies


def step(action: str) -> dict[str, Any]:
    return {"type": "step", "data": {"action_str": action}}


def test_an_episode_over_a_socket(url: str, way: list[str]) -> None:
    reset = {"type": "reset", "data": {"seed": 1, "episode_id": "mine", "task": CASES[0].id}}
    first, *steps, state = over_socket(url, reset, *map(step, way), {"type": "state"})
    assert first["type"] == "observation" and first["data"].keys() == {
        *("observation", "reward", "done"),
    }
    assert first["data"]["observation"].keys() == FIELDS
    assert first["data"]["observation"]["axtree_txt"].startswith("RootWebArea")
    assert [(reply["data"]["reward"], reply["data"]["done"]) for reply in steps] == [
        *[(0.0, False)] * (len(way) - 1),
        (1.0, True),
    ]
    ended = state["data"]
    assert (ended["episode_id"], ended["task_name"]) == ("mine", "shop.price")
    assert (ended["step_count"], ended["cum_reward"]) == (len(way), 1.0)


def test_a_failed_action_is_an_error_of_the_page_and_a_wrong_answer_earns_nothing(
    url: str,
) -> None:
    reset = {"type": "reset", "data": {"task": CASES[0].id}}
    _, failed, wrong, over = over_socket(
        url, reset, step("click('9999')"), step("answer('$0.01')"), step("noop()")
    )
    seen = failed["data"]["observation"]
    assert seen["last_action_error"] is True and "no element with bid '9999'" in seen["error"]
    assert (wrong["data"]["reward"], wrong["data"]["done"]) == (0.0, True)
    assert over["data"]["code"] == "EXECUTION_ERROR"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "INVALID_JSON"),
        ({"type": "dance"}, "UNKNOWN_TYPE"),
        ({"type": "step", "data": {"action": "noop()"}}, "VALIDATION_ERROR"),
        ({"type": "step", "data": {"action_str": "noop()", "other": 1}}, "VALIDATION_ERROR"),
        ({"type": "reset", "data": {"seed": "x"}}, "VALIDATION_ERROR"),
        ({"type": "reset", "data": {"task": "no.such"}}, "EXECUTION_ERROR"),
        (step("noop()"), "EXECUTION_ERROR"),
    ],
)
def test_what_is_wrong_is_said_and_the_socket_stays_open(
    url: str, message: object, code: str
) -> None:
    reply, state = over_socket(url, message, {"type": "state"})
    assert reply["type"] == "error" and reply["data"]["code"] == code
    assert state["type"] == "state"


def test_sixty_four_episodes_at_once_and_no_more(url: str) -> None:
    async def ask(session: aiohttp.ClientSession) -> tuple[set[str], Any]:
        sockets = [await session.ws_connect("/ws") for _ in range(64)]
        for number, socket in enumerate(sockets):
            await socket.send_json({"type": "reset", "data": {"episode_id": str(number)}})
        for socket in sockets:
            await socket.receive_json()
        for socket in sockets:
            await socket.send_json({"type": "state"})
        names = {(await socket.receive_json())["data"]["episode_id"] for socket in sockets}
        full = await (await session.ws_connect("/ws")).receive_json()
        for socket in sockets:
            await socket.close()
        return names, full

    names, full = asked(url, ask)
    assert names == {str(number) for number in range(64)}
    assert full["data"]["code"] == "CAPACITY_REACHED"


def test_plain_http_keeps_an_episode_by_its_id(url: str, way: list[str]) -> None:
    assert over_http(url, "GET", "/health") == (200, {"status": "healthy"})
    _, schema = over_http(url, "GET", "/schema")
    assert schema["observation"]["properties"].keys() == FIELDS
    assert schema["observation"]["properties"]["last_action_error"]["default"] is False
    assert "action_str" in schema["action"]["required"]
    assert over_http(url, "GET", "/metadata")[1]["name"] == "trajudge"
    assert over_http(url, "POST", "/step", {"action": {"action_str": "noop()"}})[0] == 404
    wish = {"episode_id": "e", "task": CASES[0].id}
    assert over_http(url, "POST", "/reset", wish)[1]["done"] is False
    for action in way:
        body = {"episode_id": "e", "action": {"action_str": action}}
        status, reply = over_http(url, "POST", "/step", body)
        assert status == 200
    assert (reply["reward"], reply["done"]) == (1.0, True)
    assert over_http(url, "GET", "/state?episode_id=e")[1]["step_count"] == len(way)


def test_agentgyms_routes_lead_to_an_episode(url: str, way: list[str]) -> None:
    number = over_http(url, "POST", "/create")[1]["env_idx"]
    wish = {"env_idx": number, "idx": 3, "task": CASES[0].id}
    _, first = over_http(url, "POST", "/reset", wish)
    assert first["observation"].startswith(f"Goal: {CASES[0].goal}")
    assert over_http(url, "GET", f"/observation?env_idx={number}")[1] == {
        "observation": first["observation"]
    }
    for action in way:
        _, reply = over_http(url, "POST", "/step", {"env_idx": number, "action": action})
    assert (reply["reward"], reply["terminated"], reply["truncated"]) == (1.0, True, False)
    assert over_http(url, "POST", "/close", {"env_idx": number})[1] == {"closed": True}
    assert over_http(url, "GET", f"/observation?env_idx={number}")[0] == 404


def test_an_episode_that_nobody_used_for_half_an_hour_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(openenv, "monotonic", lambda: now)
    with listen("127.0.0.1", 0) as address:
        routes = OpenEnvServer(Tasks(CASES), sessions=1).application()
        with serving(more=[(routes, address)]):
            url, statuses = f"http://127.0.0.1:{port_of(address)}", []
            for now, name in ((0, "a"), (1800, "b"), (1801, "b")):  # noqa: B007 - the clock reads it
                wish = {"episode_id": name, "task": CASES[0].id}
                statuses.append(over_http(url, "POST", "/reset", wish)[0])
    assert statuses == [200, 503, 200]


def test_no_task_is_drawn_whose_charts_the_text_engine_cannot_show() -> None:
    tasks = Tasks(with_test=True)
    for name in ("shop.cheapest-month", "press.best-day"):
        assert tasks.find(name, None, 0).config.app == name.partition(".")[0]
        with pytest.raises(NoSuchTask, match="charts must be read"):
            tasks.find(name, None, 0, pictures=False)


def test_a_task_is_drawn_in_the_split_that_is_asked_for() -> None:
    tasks = Tasks(split="validation", with_test=True)
    assert split_of(tasks.find("shop", None, 0).config.seed) == "validation"
    for split in SPLITS:
        assert split_of(tasks.find("shop", None, 0, split).config.seed) == split
    alone = next(s.id for s in load_app("shop").scenarios if held_out("shop", s.id))
    assert split_of(tasks.find(f"shop.{alone}", None, 0).config.seed) == "test"
    names = {split: {one["task"] for one in tasks.listed(split)} for split in SPLITS}
    assert f"shop.{alone}" in names["test"] - names["train"] - names["validation"]


def test_the_test_split_is_for_whoever_serves_it() -> None:
    with pytest.raises(NoSuchTask, match="with --with-test alone"):
        Tasks().find("shop", None, 0, "test")
    with pytest.raises(NoSuchTask, match="with --with-test alone"):
        Tasks().listed("test")
    with pytest.raises(ValueError, match="--split test"):
        HostConfig(split="test")


@pytest.mark.parametrize("headers", [{"Origin": "http://x.example"}, {"Host": "x.example"}])
def test_pages_of_a_browser_are_refused(url: str, headers: dict[str, str]) -> None:
    assert over_http(url, "POST", "/reset", {}, **headers)[0] == 403
    assert over_http(url, "GET", "/ws", **headers)[0] == 403


@pytest.mark.slow
def test_openenv_cores_client_plays_an_episode(url: str, way: list[str]) -> None:
    python = os.environ.get("TRAJUDGE_OPENENV_PYTHON")
    if not python:
        pytest.skip("TRAJUDGE_OPENENV_PYTHON names no interpreter that has openenv-core")
    played = subprocess.run(
        [python, "-c", CLIENT, url, CASES[0].id, *way], capture_output=True, text=True, check=True
    )
    result, refused = played.stdout.splitlines()
    assert result == f"True 1.0 {len(way)}"
    assert "VALIDATION_ERROR" in refused
    example = OPENENV.replace("http://127.0.0.1:8380", url)
    policy = f"actions = iter({way!r})\npolicy = lambda _: next(actions)\n"
    guide = policy + example.replace("seed=0", f"task={CASES[0].id!r}")
    played = subprocess.run([python, "-c", guide], capture_output=True, text=True, check=True)
    assert played.stdout == "1.0\n"
