"""More than twenty images for a Claude behind a gateway, whatever it is called there."""

from __future__ import annotations

from base64 import b64decode
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.llm_replies import Incoming, Outgoing, answer, error
from tests.llm_server import LlmServer
from trajudge.judges.calls.handle import single_model
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.model import Message, Request
from trajudge.judges.prompting import picture
from trajudge.trajectories.model import ImageRef

pytestmark = pytest.mark.anyio

# The words of Anthropic's refusal, and its limits as documented: 2,000 pixels a side in a request
# of more than 20 images, 5 MB in base64 for each.
TOO_LARGE = (
    "At least one of the image dimensions exceed max allowed size for many-image requests: "
    "2000 pixels"
)


def claude(incoming: Incoming) -> Outgoing:
    """Answer as Anthropic does behind a gateway that speaks chat completions."""
    urls = [
        part["image_url"]["url"].partition(",")[2]
        for message in incoming.payload["messages"]
        for part in message["content"]
        if part["type"] == "image_url"
    ]
    for url in set(urls):
        with Image.open(BytesIO(b64decode(url))) as image:
            if len(url) > 5 * 2**20 or (len(urls) > 20 and max(image.size) > 2000):
                return error(incoming, 400, TOO_LARGE, kind="invalid_request_error")
    return answer(incoming, "yes")


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("judge", None),
        ("gpt-4o", '{"gpt-4o": {"same_as": "claude-sonnet-4-5"}}'),
    ],
)
async def test_a_claude_under_another_name_gets_images_that_it_takes(
    name: str, models: str | None, tmp_path: Path
) -> None:
    shot = tmp_path / "shot.png"
    Image.effect_noise((2600, 2100), 60).convert("RGB").save(shot)
    with LlmServer(text=claude) as server:
        calls = CallConfig(
            base_url=f"{server.url}/v1", adapter="http", models=models, cache=str(tmp_path / "c")
        )
        handle = single_model(name, calls)
        shown = await picture(ImageRef(path=shot), handle.images)
        messages = (Message(role="user", parts=(shown,) * 21),)
        try:
            sent = await handle.adapter.send(
                Request(endpoint="test", model=handle.model, messages=messages)
            )
        finally:
            await handle.adapter.close()
    assert sent.reply.text == "yes"
    assert max(shown.width, shown.height) >= 1500, "no smaller than it has to be"
    if models:
        assert (handle.pricing, handle.window.tokens) == ("anthropic", 200_000)


@pytest.mark.parametrize(
    "name",
    [
        "sonnet-latest",
        "anthropic/claude-sonnet-4.5",
        "databricks-claude-3-7-sonnet",
        "arn:aws:bedrock:us-east-1:1:application-inference-profile/ab12",
    ],
)
def test_images_of_any_name_behind_a_gateway_are_as_small(name: str, tmp_path: Path) -> None:
    calls = CallConfig(
        base_url="http://127.0.0.1:1/v1", adapter="http", dry_run=True, cache=str(tmp_path)
    )
    limits = single_model(name, calls).images
    assert (limits.max_side <= 2000, limits.max_bytes <= 3_750_000) == (True, True)
