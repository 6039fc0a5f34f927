"""``RewardClient`` against a server of its own: pictures, a token, too many at once, a kill."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.llm_server import LlmServer
from tests.ports import free_port
from tests.rewards.cases import trajectory
from tests.rewards.server.conftest import Server, serving
from tests.waiting import wait_until
from trajudge.rewards import RewardClient
from trajudge.rewards.client import RewardUnavailable
from trajudge.rewards.reward import Reward
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Trajectory

TOKEN = "a-token-of-this-test"
HEAD = f"Bearer {TOKEN}"
Served = tuple[LlmServer, Server, Path]


def picture(color: str) -> bytes:
    made = BytesIO()
    Image.new("RGB", (64, 48), color).save(made, "PNG")
    return made.getvalue()


def with_pictures(number: int, *shots: ImageRef) -> Trajectory:
    """A run whose last steps show these screenshots."""
    run = trajectory(number)
    steps = [
        step.model_copy(
            update={"observation": step.observation.model_copy(update={"screenshot": shot})}
        )
        for step, shot in zip(run.steps, shots, strict=True)
    ]
    return run.model_copy(update={"steps": tuple(steps)})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A judge that sees the last screenshot; the server takes one reward at a time."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "token").write_text(TOKEN)
    words = ["--model", "mock", "--representation", "screenshot", "--queue", "1"]
    words += ["--token-file", str(folder / "token")]
    with (
        LlmServer(latency=0.2) as model,
        serving(folder, *words, "--base-url", f"{model.url}/v1") as server,
    ):
        yield model, server, folder / "store"


def client_of(served: Served, token: str | None = TOKEN) -> RewardClient:
    return RewardClient(served[1].url, token=token, deadline=60)


def has(served: Served, content: bytes) -> bool:
    path = f"/v1/images/{sha256(content).hexdigest()}"
    return served[1].ask(path, method="HEAD", Authorization=HEAD).status == 204


def test_the_judge_sees_the_pictures_of_a_file_and_of_memory(
    served: Served, tmp_path: Path
) -> None:
    first, last = picture("red"), picture("blue")
    (tmp_path / "first.png").write_bytes(first)
    run = with_pictures(1, ImageRef(path=tmp_path / "first.png"), ImageRef(data=last))
    assert not has(served, first)
    reward = client_of(served).reward_sync(run)
    assert (reward.key, reward.abstained) == (run.key, "")
    assert reward.value is not None
    assert b64encode(last).decode() in json.dumps(served[0].seen[-1].payload)
    assert has(served, first)
    asked = served[0].stats.requests
    assert client_of(served).reward_sync(run).value == reward.value
    assert served[0].stats.requests == asked, "the same run is the same id, and judged once"


def test_a_picture_that_the_server_lost_is_sent_again(served: Served) -> None:
    """The client knows what it sent; the store of a server may be a new one since."""
    client, shot = client_of(served), picture("green")
    asyncio.run(client.push(with_pictures(2, ImageRef(data=shot), ImageRef(data=shot))))
    (served[2] / "images" / f"{sha256(shot).hexdigest()}.png").unlink()
    assert not has(served, shot)
    asyncio.run(client.push(with_pictures(2, ImageRef(data=shot), ImageRef(data=shot))))
    assert has(served, shot)


@pytest.mark.parametrize(
    "shot",
    [ImageRef(problem="git-LFS pointer"), ImageRef(data=b"<svg/>"), ImageRef(path=Path("x"))],
)
def test_a_picture_that_is_none_fails_its_judge_and_no_training(
    served: Served, shot: ImageRef
) -> None:
    reward = client_of(served).reward_sync(with_pictures(3, shot, shot), name=f"lost {shot!r:.40}")
    assert (reward.value, reward.abstained) == (None, "failed")


def test_an_id_that_is_pushed_later_is_asked_for_until_then(served: Served) -> None:
    client, shots = client_of(served), [ImageRef(data=picture("gray"))] * 2

    def was_unknown() -> bool:
        return 'abstained="unknown"' in served[1].ask("/metrics", Authorization=HEAD).content

    async def push_once_asked() -> Reward:
        asking = asyncio.create_task(client.ask("later"))
        await asyncio.to_thread(wait_until, was_unknown, every=0.1)
        await client.push(with_pictures(6, *shots), "later")
        return (await asking).reward

    assert asyncio.run(push_once_asked()).value is not None


def test_a_busy_server_is_asked_again_until_it_answers(served: Served) -> None:
    shots = [ImageRef(data=picture("white"))] * 2
    client = client_of(served)

    async def all_at_once() -> list[Reward]:
        runs = (with_pictures(number, *shots) for number in range(10, 14))
        rewards = await asyncio.gather(*map(client.reward, runs))
        # A loop that runs already, as a notebook's.
        return [*rewards, client.reward_sync(with_pictures(14, *shots))]

    rewards = asyncio.run(all_at_once())
    assert [reward.key.task_id for reward in rewards] == [f"t{n}" for n in range(10, 15)]
    assert all(reward.value is not None for reward in rewards)
    refused = served[1].ask("/metrics", Authorization=HEAD).content
    assert "trajudge_requests_refused_total 0" not in refused, "the queue holds one"


def test_a_wrong_token_is_no_abstention(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting mends it, and a whole training would be without rewards."""
    with pytest.raises(RewardUnavailable, match=r":\d+: the token is missing or wrong: send"):
        client_of(served, "another-token-of-somebody").reward_sync(trajectory(1))
    monkeypatch.setenv("TRAJUDGE_REWARD_URL", served[1].url + "/")
    monkeypatch.setenv("TRAJUDGE_REWARD_TOKEN", TOKEN)
    assert (
        asyncio.run(RewardClient().push(trajectory(1), "by the environment"))
        == "by the environment"
    )
    monkeypatch.delenv("TRAJUDGE_REWARD_URL")
    with pytest.raises(RewardUnavailable, match="no reward server: set TRAJUDGE_REWARD_URL"):
        RewardClient()


def test_a_killed_server_is_an_abstention_and_one_that_comes_back_a_reward(tmp_path: Path) -> None:
    port, run = free_port(), trajectory(1)
    client = RewardClient(f"http://127.0.0.1:{port}", deadline=60)
    with serving(tmp_path, "--judge", "heuristic", port=port) as server:
        before = client.reward_sync(run)
        name = asyncio.run(client.push(run))
        server.process.kill()
        server.process.wait()
    assert before.value is not None
    hurried = RewardClient(client.url, deadline=1.5)
    for lost in (hurried.reward_sync(run), asyncio.run(hurried.ask(name)).reward):
        assert (lost.value, lost.abstained) == (None, "late")
        assert lost.detail.startswith(f"{client.url}: Cannot connect to host 127.0.0.1:{port}")
        assert lost.seconds >= 1

    async def ask_while_it_starts() -> Reward:
        asking = asyncio.create_task(client.ask(name))
        await asyncio.sleep(1)
        with serving(tmp_path, "--judge", "heuristic", port=port):
            return (await asking).reward

    assert asyncio.run(ask_while_it_starts()).value == before.value


def test_a_line_of_ours_is_what_the_server_takes(served: Served, tmp_path: Path) -> None:
    """It is also what stands in trajectories.jsonl."""
    shot = picture("black")
    run = with_pictures(5, ImageRef(data=shot), ImageRef(problem="lost"))
    file = store.write(tmp_path, [run])
    assert file.read_bytes() == run.to_json() + b"\n"
    body = {"id": "by hand", "trajectory": json.loads(run.to_json())}
    pushed = served[1].ask("/v1/trajectories", body, Authorization=HEAD)
    missing = [] if has(served, shot) else [sha256(shot).hexdigest()]
    assert (pushed.status, pushed.content) == (201, {"missing_images": missing})
