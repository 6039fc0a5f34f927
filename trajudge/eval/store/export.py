"""Writes judgments in AgentRewardBench's published layout, which its own scorer reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field, JsonValue

from trajudge.eval.store.run_folder import writing
from trajudge.judges.model import Call, Judgment, Status, Usage
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import without_surrogates

_OPTIMALITY = {
    1: "1. Complete Failure",
    2: "2. Suboptimal",
    3: "3. Somewhat Optimal",
    4: "4. Completely Optimal",
}

_UNSAFE = re.compile(r"[^\w.()+@=,-]|^\.+")


class ExportSettings(Record):
    """What the layout tells of a judge beside its verdicts."""

    model: str
    provider: str
    use_screenshot: bool = False
    use_axtree: bool = False
    invert_sys_prompt: bool = False
    completion_args: dict[str, JsonValue] = Field(default_factory=dict)


def export(
    folder: Path,
    judgments: Iterable[Judgment],
    trajectories: Iterable[Trajectory],
    settings: ExportSettings,
) -> int:
    """Write ``folder/judgments/BENCHMARK/AGENT/JUDGE/TASK_ID.json``; the number of files.

    Trajectories are read one by one; those without a judgment are passed over. The layout has
    room for one sample: the first is written. A failed judgment becomes ``TASK_ID_error.json``.
    Prompts are not kept in a run, so ``chat_messages`` is empty. Raises UserError if two
    judgments would be written to one file, or the folder cannot be written.
    """
    by_key: dict[TrajectoryKey, dict[str, Judgment]] = {}
    for judgment in judgments:
        judges = by_key.setdefault(judgment.key, {})
        known = judges.get(judgment.judge)
        if known is None or judgment.sample < known.sample:
            judges[judgment.judge] = judgment
    written: dict[Path, TrajectoryKey] = {}
    for trajectory in trajectories:
        for judgment in by_key.pop(trajectory.key, {}).values():
            path = _path(folder, trajectory, judgment)
            if path in written:
                raise UserError(
                    f"{path}: the layout has one file for {written[path]} and {trajectory.key}; "
                    "export their runs to folders of their own"
                )
            written[path] = trajectory.key
            content = without_surrogates(_content(trajectory, judgment, settings))
            with writing(folder):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return len(written)


def _path(folder: Path, trajectory: Trajectory, judgment: Judgment) -> Path:
    """Below ``folder`` whatever the names are; a task keeps its raw id as far as files allow."""
    key = trajectory.key
    task = trajectory.raw_task_id + ("" if judgment.status is Status.OK else "_error")
    parts = (key.benchmark, key.agent, judgment.judge, task + ".json")
    return folder.joinpath("judgments", *(_UNSAFE.sub("_", part) or "_" for part in parts))


def _content(
    trajectory: Trajectory, judgment: Judgment, settings: ExportSettings
) -> dict[str, Any]:
    content: dict[str, Any] = {
        "benchmark": trajectory.key.benchmark,
        "goal": trajectory.goal,
        "agent": trajectory.key.agent,
        "judge": judgment.judge,
        "judge_model_name": settings.model,
        "provider": settings.provider,
        "judge_args": settings.model_dump(
            include={"use_screenshot", "use_axtree", "invert_sys_prompt"}
        ),
        "completion_args": settings.completion_args,
        "trajectory_info": {
            "valid": True,
            "summary_info": {
                **trajectory.telemetry,
                "cum_reward": trajectory.official_reward,
                "terminated": trajectory.terminated,
                "truncated": trajectory.truncated,
            },
        },
    }
    if judgment.status is not Status.OK:
        return content | {"error": f"{judgment.status}: {judgment.detail}"}
    return content | {
        "cost": _cost(judgment.calls),
        "response": _response(judgment, settings),
        "chat_messages": {"regular": [], "pruned": []},
    }


def _response(judgment: Judgment, settings: ExportSettings) -> dict[str, Any]:
    usages = [call.usage for call in judgment.calls if call.usage is not None]
    usage = sum(usages, Usage())
    return {
        "id": judgment.calls[-1].request if judgment.calls else "",
        "model": settings.model,
        "choices": [
            {
                "index": 0,
                "finish_reason": judgment.calls[-1].finish if judgment.calls else "stop",
                "message": {"role": "assistant", "content": _tags(judgment)},
            }
        ],
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.output,
            "total_tokens": usage.prompt + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        }
        if len(usages) == len(judgment.calls)
        else None,
    }


def _tags(judgment: Judgment) -> str:
    """Write the verdict in the paper's tags. The reasoning comes last: the paper's scorer takes
    the first tag that it finds, and reasoning may quote one."""
    answers = {
        "success": _word(judgment.success, "Successful", "Unsuccessful"),
        "side": _word(judgment.side_effect, "Yes", "No"),
        "optimal": _OPTIMALITY.get(judgment.optimality or 0),
        "loop": _word(judgment.repetition, "Yes", "No"),
        "reasoning": judgment.reasoning,
    }
    lines = (f"<{tag}>{value}</{tag}>" for tag, value in answers.items() if value is not None)
    return "\n".join(lines)


def _word(flag: bool | None, yes: str, no: str) -> str | None:
    return None if flag is None else yes if flag else no


def _cost(calls: tuple[Call, ...]) -> dict[str, float]:
    """Empty if the price of a call is not known."""
    prices = [call.cost for call in calls if call.cost is not None]
    return {"total_price": sum(prices)} if prices and len(prices) == len(calls) else {}
