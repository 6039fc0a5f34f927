"""Small made-up folders in the formats that the loaders read, written as the real tools do."""

from __future__ import annotations

import gzip
import json
import pickle
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable

PNG = b"\x89PNG\r\n\x1a\n made up"
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
TASK = "0123456789abcdef0123456789abcdef"
Loaded = Iterable[Trajectory | Unreadable]


def split(loaded: Loaded) -> tuple[list[Trajectory], list[Unreadable]]:
    """What could be read, and what could not."""
    results = list(loaded)
    return (
        [result for result in results if isinstance(result, Trajectory)],
        [result for result in results if isinstance(result, Unreadable)],
    )


def only(task_id: str) -> Callable[[TrajectoryKey], bool]:
    return lambda key: key.task_id == task_id


def _save(path: Path, value: object) -> None:
    data = pickle.dumps(value, 4)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def instance(name: str, **attributes: object) -> object:
    """An instance of a class in a module that exists only while it is pickled."""
    module, _, cls = name.rpartition(".")
    kind = type(cls, (), {"__module__": module, "__qualname__": cls})
    for part in [module, *[module.rpartition(".")[0]] * ("." in module)]:
        sys.modules.setdefault(part, ModuleType(part))
    setattr(sys.modules[module], cls, kind)
    made = kind()
    made.__dict__.update(attributes)
    return made


def browsergym(
    folder: Path,
    *,
    task: str = "webarena.3",
    agent: str = "Made/agent",
    steps: int = 12,
    goal: object = ({"type": "text", "text": "Buy tea"},),
    model: str = "made-1",
    seed: int = 5,
    holder: str | None = None,
    told: dict[str, object] | None = None,
    said: tuple[tuple[str, str], ...] = (("assistant", "Bought."),),
    **summary: Any,
) -> Path:
    """An experiment folder: ``steps`` observations, the last one without an action. ``holder``
    names the arguments of the agent that the model's name is in, if not in its own; ``told`` is
    what else each step's file tells, ``said`` the roles and messages of the last observation."""
    folder.mkdir(parents=True)
    named: dict[str, object] = {"model_name": model}
    if holder is not None:
        named = {holder: instance("llm_made.ModelArgs", **named)}
    _save(
        folder / "exp_args.pkl",
        instance(
            "browsergym_made.loop.ExpArgs",
            agent_args=instance("agent_made.Args", agent_name=agent, **named),
            env_args=instance("browsergym_made.loop.EnvArgs", task_name=task, task_seed=seed),
            exp_dir=Path("results"),
        ),
    )
    _save(folder / "goal_object.pkl.gz", goal)
    chat = [{"role": "assistant", "message": "Hi!"}, {"role": "user", "message": "Buy tea"}]
    for index in range(steps):
        last = index == steps - 1
        if last:
            chat = [*chat, *({"role": role, "message": message} for role, message in said)]
        info = {
            "step": index,
            "obs": {
                "chat_messages": chat,
                "open_pages_urls": ("https://a.example", f"https://b.example/{index}"),
                "active_page_index": np.array([1]),
                "axtree_txt": f"RootWebArea {index} \ud800",
                "last_action_error": "TimeoutError: slow" if index == 1 else "",
            },
            "action": None if last else f"click('{index}')",
            "agent_info": instance("agent_made.Info", think=f"thought {index}"),
            **(told or {}),
        }
        _save(folder / f"step_{index}.pkl.gz", instance("browsergym_made.loop.StepInfo", **info))
        (folder / f"screenshot_step_{index}.png").write_bytes(PNG)
    info = {"n_steps": steps - 1, "cum_reward": 1.0, "stats.cum_output_tokens": 7, **summary}
    info = {"err_msg": None, "terminated": True, "truncated": False, **info}
    (folder / "summary_info.json").write_text(json.dumps(info))
    for module in [name for name in sys.modules if name.split(".")[0].endswith("_made")]:
        del sys.modules[module]
    return folder


def webvoyager(folder: Path) -> Path:
    folder.mkdir(parents=True)
    turns = [
        ("system", "Act."),
        (
            "user",
            [
                {
                    "type": "text",
                    "text": "Now given a task: Find\ntea.  Please interact with "
                    "https://tea.example/ and get the answer. \nObservation: [0]",
                },
                {"type": "image_url", "image_url": {"url": "../../../etc/passwd"}},
            ],
        ),
        ("assistant", "Thought: First\n\nI look.\n\nAction: Type [2]; tea"),
        ("user", "Observation"),
        ("assistant", "I forgot the form."),
        ("user", "Observation"),
        ("assistant", "Thought: Found.\nAction: ANSWER; Green tea,\n2 euros."),
    ]
    messages = [{"role": role, "content": content} for role, content in turns]
    (folder / "interact_messages.json").write_text(json.dumps(messages))
    (folder / "screenshot1.png").write_bytes(PNG)
    (folder / "screenshot3.png").write_bytes(LFS_POINTER)
    return folder


def mind2web(folder: Path, *, task_id: str = TASK, numbers: Iterable[int] = (1, 2)) -> Path:
    (folder / "trajectory").mkdir(parents=True)
    result = {
        "task_id": task_id,
        "task": "Find tea.",
        "final_result_response": "Found.",
        "action_history": ["Navigate", "Click"],
        "thoughts": ["", "I see it."],
    }
    (folder / "result.json").write_text(json.dumps(result))
    for number in numbers:
        (folder / "trajectory" / f"{number}_full_screenshot.png").write_bytes(PNG)
    return folder


def judgment(
    root: Path,
    *,
    benchmark: str = "webarena",
    agent: str = "A",
    judge: str = "webjudge-7b",
    name: str = "webarena.1",
    reasoning: str = "why",
    valid: bool = True,
    **summary: Any,
) -> Path:
    folder = root / "judgments" / benchmark / agent / judge
    folder.mkdir(parents=True, exist_ok=True)
    history = f"1. send_msg_to_user('1. tea\\n2. milk'). Reasoning: {reasoning}"
    info = {"n_steps": 1, "cum_reward": 0.5, "stats.cum_cost": 0.25, "err_msg": None, **summary}
    content = {
        "benchmark": benchmark,
        "goal": "Buy tea\n",
        "input_text": f"Action History:\n{history}\n2. None. Reasoning: None",
        "trajectory_info": {
            "valid": valid,
            "model": "made-1",
            "seed": 0,
            "summary_info": {"terminated": True, "truncated": False, **info},
        },
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content))
    return path


def fara(
    folder: Path,
    *,
    actions: Iterable[tuple[str, dict[str, Any]]] = (
        ("left_click", {"thoughts": "The box.", "coordinate": [10, 20]}),
        ("terminate", {"thoughts": "Done.", "status": "success"}),
    ),
    frames: Iterable[str] = ("screenshot0.png", "screenshot1.png", "screenshot2.png"),
    answer: str = "Green tea.",
    aborted: bool = False,
    goal: str | None = "Find tea.",
    rubric: dict[str, Any] | None = None,
    scores: dict[str, int] | None = None,
) -> Path:
    """A task folder as Fara writes it: an event for each action, the screenshots before and after
    them. ``rubric`` is the Universal Verifier's text, ``scores`` those of others by file name."""
    folder.mkdir(parents=True)
    events: list[dict[str, Any]] = [
        {
            "type": "WebSurferEvent",
            "source": "WebSurfer",
            "url": f"https://tea.example/{number}",
            "action": "computer_use",
            "arguments": {"action": name, **arguments},
        }
        for number, (name, arguments) in enumerate(actions)
    ]
    report = {"source": "WebSurfer", "message": "Done", "action": None, "arguments": None}
    (folder / "web_surfer.log").write_text("\n".join(map(json.dumps, [*events, report])))
    names = [*frames]
    for name in names:
        (folder / name).write_bytes(PNG)
    told = {
        "final_answer": answer,
        "screenshots": names,
        "is_aborted": aborted,
        "is_rel_paths": True,
        "token_usage": {
            "a": {"prompt_tokens": 5, "completion_tokens": 2},
            "b": {"prompt_tokens": 7},
        },
    }
    (folder / f"{folder.name}_final_answer.json").write_text(json.dumps(told))
    if goal is not None:
        (folder / "task_data.json").write_text(json.dumps({"task_proposal": goal}))
    (folder / "scores").mkdir()
    texts = {"mmrubric_0.8-5-3": (1, json.dumps(rubric))} if rubric is not None else {}
    texts |= {name: (score, "because") for name, score in (scores or {}).items()}
    for name, (score, reply) in texts.items():
        content = {"score": score, "gpt_response_text": reply}
        (folder / "scores" / f"{name}.json").write_text(json.dumps(content))
    return folder


def rubric(outcome: bool | None = True, earned: float = 8.0) -> dict[str, Any]:
    """A Universal Verifier's reply, of ten points."""
    return {
        "rubric_is_success": int(earned >= 8),
        "outcome_success": outcome,
        "outcome_reasoning": "",
        "rubric_items": [{"criterion": "Find the tea", "max_points": 10, "earned_points": earned}],
        "rubric_total_max_points": 10.0,
        "rubric_total_earned_points": earned,
        "rubric_outcome_verification": {"output_success": outcome, "reasoning": "It is green."},
        "rubric_intermediate_mm_rubric_steps": {"step7_requires_penalty": False},
    }
