"""Conversations with tools as the three APIs write them, for tests of message logs."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from trajudge.trajectories.loaders import loader
from trajudge.trajectories.model import ImageRef, Trajectory, Unreadable, accept_all

COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


def picture(colour: str) -> str:
    """A small PNG of one colour, base64."""
    file = io.BytesIO()
    Image.new("RGB", (16, 9), COLOURS[colour]).save(file, "png")
    return base64.b64encode(file.getvalue()).decode()


def colour(ref: ImageRef | None) -> str | None:
    """The name of the colour of a picture; the problem of one that cannot be read."""
    if ref is None or ref.problem:
        return ref.problem if ref else None
    content = ref.data if ref.data is not None else ref.path.read_bytes() if ref.path else b""
    pixel = Image.open(io.BytesIO(content)).convert("RGB").getpixel((5, 5))
    return next((name for name, value in COLOURS.items() if value == pixel), str(pixel))


def tool_use(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "computer", "input": arguments}


def tool_result(call_id: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": [*content], **more}


def shown(name: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/jpeg", "data": picture(name)}
    return {"type": "image", "source": source}


def anthropic(goal: str = "Buy a lamp") -> list[dict[str, Any]]:
    """Two turns with a call each, and an answer."""
    return [
        {"role": "user", "content": goal},
        {"role": "assistant", "content": [tool_use("a", action="screenshot")]},
        {"role": "user", "content": [tool_result("a", shown("red"))]},
        {"role": "assistant", "content": [tool_use("b", action="left_click", coordinate=[1, 2])]},
        {"role": "user", "content": [tool_result("b", shown("green"))]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ]


def responses(goal: str = "Buy a lamp") -> list[dict[str, Any]]:
    """The same as items of the Responses API."""
    image = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{picture('red')}"}
    arguments = json.dumps({"url": "http://shop"})
    return [
        {"role": "user", "content": [{"type": "input_text", "text": goal}]},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Look."}]},
        {"type": "computer_call", "id": "1", "call_id": "a", "action": {"type": "screenshot"}},
        {
            "type": "computer_call_output",
            "call_id": "a",
            "output": image,
            "current_url": "http://x",
        },
        {"type": "function_call", "call_id": "b", "name": "goto", "arguments": arguments},
        {"type": "function_call_output", "call_id": "b", "output": "A page"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Yes"}],
        },
    ]


def write(path: Path, value: object) -> Path:
    """Write a JSON file, or JSON Lines of a list."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl" and isinstance(value, list):
        path.write_text("".join(json.dumps(one) + "\n" for one in value))
    else:
        path.write_text(json.dumps(value))
    return path


def load(path: Path, kind: str = "messages") -> list[Trajectory | Unreadable]:
    """Everything that the loader gives of a path."""
    return list(loader(kind).load(path, accept_all))


def load_one(path: Path, kind: str = "messages") -> Trajectory:
    """The one trajectory of a path."""
    [one] = load(path, kind)
    assert isinstance(one, Trajectory), one
    return one


def warnings(run: Trajectory) -> list[str]:
    listed = run.metadata["warnings"]
    assert isinstance(listed, list)
    return [str(sentence) for sentence in listed]


def inline(ref: ImageRef) -> str:
    """The bytes of an inline picture, base64."""
    assert ref.data is not None
    return base64.b64encode(ref.data).decode()
