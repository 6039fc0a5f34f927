"""Makes files like AgentRewardBench's trajectories: the same fields, and most of the bytes in
those that no judge reads. For the tests (small) and ``benchmarks.load`` (1 to 20 MB).

The shares of a step's bytes are an assumption, from what the fields are: ``axtree_obj`` is the
browser's own tree of which ``axtree`` is the short text; ``chat_messages`` hold one prompt, which
the agents cap; ``extra_element_properties`` and ``bounding_boxes`` have an entry an element.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from numpy.random import Generator

AGENT = "GenericAgent-gpt-4o-2024-11-20"
_WORDS = ("button", "link", "'Cart'", "heading", "textbox", "StaticText", "row", "über", "価格")


def words(rng: Generator, length: int) -> str:
    """About ``length`` characters of something like an accessibility tree."""
    picked = rng.choice(len(_WORDS), size=max(1, length // 9))
    return "\n".join(f"[{i}] {_WORDS[w]}" for i, w in enumerate(picked))[:length]


def element_tree(rng: Generator, nodes: int) -> dict[str, Any]:
    """Like ``axtree_obj``: some 300 bytes of small nested values a node."""
    numbers = rng.integers(0, 2_000, size=(nodes, 4)).tolist()
    return {
        "nodes": [
            {
                "nodeId": str(i),
                "ignored": False,
                "role": {"type": "role", "value": _WORDS[i % len(_WORDS)]},
                "name": {"type": "computedString", "value": f"item {row[0]}"},
                "properties": [{"name": "focusable", "value": {"type": "bool", "value": True}}],
                "childIds": [str(n) for n in row],
                "browsergym_id": f"a{i}",
            }
            for i, row in enumerate(numbers)
        ]
    }


def summary(n_steps: int, **fields: Any) -> dict[str, Any]:
    """``summary_info`` of a run that succeeded."""
    return {
        "n_steps": n_steps,
        "cum_reward": 1.0,
        "cum_raw_reward": 0,
        "err_msg": None,
        "stack_trace": None,
        "stats.cum_steps": n_steps + 1,
        "stats.cum_input_tokens": 1_000 * n_steps,
        "stats.cum_step_elapsed": 1.5 * n_steps,
        "terminated": True,
        "truncated": False,
        **fields,
    }


def step(rng: Generator, num: int, size: int, folder: str, *, last: bool) -> dict[str, Any]:
    """One step of about ``size`` bytes."""
    nodes = max(1, int(size * 0.60 / 290))
    tree = words(rng, int(size * 0.05))
    boxes = rng.random((max(1, int(size * 0.23 / 137)), 4)).round(3).tolist()
    return {
        "num": num,
        "reasoning": None if last else f"I look at item {num}.",
        "action": None if last else f"click('{num}')",
        "screenshot_path": f"{folder}/screenshot_step_{num}.png",
        "url": f"http://shop.example/{num}",
        "open_pages_urls": [f"http://shop.example/{num}"],
        "focused_element": None,
        "last_action_error": "",
        "stats": {"n_token_goal": 8},
        "axtree": tree,
        "axtree_pruned": tree[: len(tree) // 2],
        "axtree_obj": element_tree(rng, nodes),
        "chat_messages": [{"role": "user", "content": words(rng, int(size * 0.10))}],
        "bounding_boxes": boxes,
        "extra_element_properties": {
            f"a{i}": {"visibility": 1.0, "bbox": box, "clickable": True, "set_of_marks": False}
            for i, box in enumerate(boxes)
        },
    }


def trajectory(
    rng: Generator,
    *,
    benchmark: str = "webarena",
    task_id: str = "webarena.1",
    agent: str = AGENT,
    size: int = 40_000,
    n_steps: int = 3,
    **fields: Any,
) -> dict[str, Any]:
    """One trajectory of about ``size`` bytes. ``fields`` replace those of the file."""
    folder = f"trajectories/screenshots/{benchmark}/{agent}/{task_id}"
    return {
        "benchmark": benchmark,
        "goal": "Put the cheapest item into the cart.\n",
        "agent": agent,
        "model": "gpt-4o-2024-11-20",
        "valid": True,
        "experiment": f"{agent}_on_{benchmark}",
        "seed": 0,
        "model_args": {"temperature": 0},
        "flags": {"obs": {"use_ax_tree": True}},
        "summary_info": summary(n_steps - 1),
        "package_version": {"browsergym": "0.13"},
        "steps": [
            step(rng, num, size // n_steps, folder, last=num == n_steps - 1)
            for num in range(n_steps)
        ],
        **fields,
    }


def write(root: Path, record: dict[str, Any], task_id: str = "webarena.1") -> Path:
    """Writes a trajectory where the published dataset has it."""
    benchmark, agent = str(record["benchmark"]), str(record["agent"])
    path = root / "cleaned" / benchmark / agent / f"{agent}_on_{benchmark}" / f"{task_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(record))
    return path
