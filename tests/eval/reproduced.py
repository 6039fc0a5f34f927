"""AgentRewardBench's own requests: its code, as installed, asks a server through the real SDK about
a dataset in its layout that is made of stored histories.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import openai
from PIL import Image

JUDGMENTS = "agentrewardbench/judgments"
_STEP = re.compile(r"^\d+\. (.*?)\. Reasoning: (.*?)(?=^\d+\. |\Z)", re.DOTALL | re.MULTILINE)


def stored(folder: Path) -> Iterator[dict[str, Any]]:
    """Goal and steps of every trajectory of which a stored judgment holds them, each once."""
    seen = set()
    for file in sorted((folder / JUDGMENTS).glob("*/*/*/*.json")):
        benchmark, agent, _, name = file.parts[-4:]
        task = re.sub(r" ?\(\d+\)", "", name)  # a second download of the same file
        if (benchmark, agent, task) in seen:
            continue
        seen.add((benchmark, agent, task))
        content = json.loads(file.read_bytes())
        text = content["input_text"]
        steps = [
            {"action": action, "reasoning": reasoning.removesuffix("\n")}
            for action, reasoning in _STEP.findall(text.partition("Action History:\n")[2])
        ]
        yield {"goal": content["goal"], "agent": content["agent"], "steps": steps}


def write_dataset(folder: Path, histories: list[dict[str, Any]]) -> Path:
    """Write the histories in the layout of the published dataset, all of the test split, with
    addresses, trees and screenshots that are made up; the last step has neither action nor
    reasoning, as in the published files."""
    benchmark, experiment = "webarena", "made"
    rows = []
    for number, history in enumerate(histories):
        task, agent = f"webarena.{number}", history["agent"]
        shot = Path("screenshots") / benchmark / agent / task / "screenshot_step_last.png"
        (folder / shot).parent.mkdir(parents=True)
        colour = (number % 256, number // 256, 7)
        Image.new("RGB", (6, 4), colour).save(folder / shot)
        steps = [*history["steps"], {"action": None, "reasoning": None}]
        content = {
            "benchmark": benchmark,
            "goal": history["goal"],
            "agent": agent,
            "model": agent,
            "valid": True,
            "summary_info": {"cum_reward": number % 2, "terminated": True, "truncated": False},
            "steps": [
                {
                    "num": index,
                    "url": f"http://site.test/{index}" if index % 3 else None,
                    "axtree": f"RootWebArea 'run {number} page {index}'\n\t[1] link 'x'",
                    "axtree_pruned": f"RootWebArea 'run {number} page {index}'",
                    "screenshot_path": str(shot) if index == len(steps) - 1 else None,
                    **step,
                }
                for index, step in enumerate(steps)
            ],
        }
        file = folder / "cleaned" / benchmark / agent / experiment / f"{task}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
        rows.append((task, agent, "Successful" if number % 2 else "Unsuccessful"))
    with (folder / "annotations.csv").open("w", newline="") as file_:
        writer = csv.writer(file_)
        writer.writerow(
            (
                *("annotator_name", "benchmark", "task_id", "model_name", "exp_name"),
                *("trajectory_success", "trajectory_side_effect"),
                *("trajectory_optimality", "trajectory_looping"),
            )
        )
        for task, agent, success in rows:
            grade = "4. Completely Optimal"
            writer.writerow(("A", benchmark, task, agent, experiment, success, "No", grade, "No"))
    with (folder / "splits.csv").open("w", newline="") as file_:
        writer = csv.writer(file_)
        writer.writerow(("task_id", "benchmark", "split"))
        writer.writerows((task, benchmark, "test") for task, _, _ in rows)
    return folder


def ask_as_the_package(name: str, dataset: Path, scratch: Path, url: str) -> None:
    """Let the package's own code ask about every trajectory as its judge ``name``, by the calls of
    its script (which the package does not hold)."""
    judge = import_module("agent_reward_bench.judge")
    aer = import_module("agent_reward_bench.judge.existing.aer")
    nnetnav = import_module("agent_reward_bench.judge.existing.nnetnav")
    args = import_module("agent_reward_bench.judge.args")
    own, common = args.judge_args[name], args.default_judge_args
    client = openai.OpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)
    for path in sorted(dataset.glob("cleaned/*/*/*/*.json")):
        run = json.loads(path.read_text())
        if name == "aerc":
            caption = {"screenshot_cache_dir": scratch / "captions"}
            messages = aer.create_aer_chat_messages_from_trajectory(
                run, dataset, path, client, captioner_kwargs=caption
            )
        elif name == "aerv":
            messages = aer.create_aer_chat_messages_from_trajectory_vis(run, dataset, client)
        elif name == "nnetnav":
            described = {"description_cache_dir": scratch / "descriptions"}
            messages = nnetnav.create_nnetnav_chat_messages_from_trajectory(
                run, path, client, delta_lm_kwargs=described, verbose=False
            )
        else:
            messages = judge.create_chat_messages_from_trajectory(
                run, dataset, own["use_screenshot"], own["use_axtree"]
            )
        client.chat.completions.create(
            model=own["model_name"], messages=messages["regular"], **common
        )
    client.close()
