"""Small requests and adapters for the tests of the adapters."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from trajudge.judges.adapters.base import Adapter
from trajudge.judges.adapters.routing import make_adapter
from trajudge.judges.model import Message, Part, Picture, Request, Text

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
PICTURE = Picture(
    sha256=sha256(PNG).hexdigest(), media_type="image/png", width=1, height=1, data=PNG
)
MODELS = {
    "openai": "gpt-4o",
    "http": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "litellm": "openai/gpt-4o",
}


def request(
    model: str = "gpt-4o", *, image: bool = False, parameters: dict[str, Any] | None = None
) -> Request:
    parts: tuple[Part, ...] = (Text(text="Judge <this>."), Text(text="Second part"))
    return Request(
        endpoint="test",
        model=model,
        messages=(
            Message(role="system", parts=(Text(text="You are a judge."),)),
            Message(role="user", parts=(*parts, PICTURE) if image else parts),
        ),
        parameters=parameters or {},
    )


def adapter_for(name: str, url: str, **options: Any) -> tuple[Adapter, str]:
    """An adapter by name that asks a local server."""
    base_url = url if name == "anthropic" else url + "/v1"
    return make_adapter(MODELS[name], adapter=name, base_url=base_url, **options)
