"""A study of AgentLab's GenericAgent over the text engine, run by an interpreter that has AgentLab.

``main`` prints, as JSON, what the study found. The chat model is scripted: it knows an oracle's way
as names of controls, and reads goal and bids out of the prompt alone.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from agentlab.agents.generic_agent.agent_configs import FLAGS_CUSTOM
from agentlab.agents.generic_agent.generic_agent import GenericAgentArgs
from agentlab.experiments.study import Study
from agentlab.llm.base_api import AbstractChatModel, BaseModelArgs
from bgym import Benchmark
from browsergym.utils.obs import flatten_axtree_to_str

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.draws import goals_of
from trajudge.environments.chromium.action_syntax import parse, write
from trajudge.environments.gym.agentlab import benchmark
from trajudge.environments.model.config import SPLITS
from trajudge.environments.model.wording import declared_line
from trajudge.environments.recording.recorder import recorded_offline

LINE = re.compile(r"^\s*\[(\w+)\] (\w+ (?:'[^']*'|\"[^\"]*\"))", re.M)
AS_IT_IS = {"ignored_properties": (), "remove_redundant_static_text": False}
SCRIPTS: dict[str, list[Move]] = {}


class Move(NamedTuple):
    """An action on the ``nth`` control with this role and name; "" where it needs none."""

    name: str
    control: str
    nth: int
    others: tuple[Any, ...]


def text_of(message: Any) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


class ScriptedModel(AbstractChatModel):  # type: ignore[misc]
    """Answers a prompt with the next move of the goal in it, on the bid that the prompt shows."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, messages: Any, **_: Any) -> dict[str, str]:
        prompt = "\n".join(map(text_of, messages))
        script = next(moves for goal, moves in SCRIPTS.items() if goal in prompt)
        move = script[self.done]
        self.done += 1
        arguments = move.others
        if move.control:
            bids = [bid for bid, control in LINE.findall(prompt) if control == move.control]
            arguments = (bids[move.nth], *move.others)
        action = write(move.name, *arguments)
        return {
            "role": "assistant",
            "content": f"<think>Next.</think>\n<action>\n{action}\n</action>",
        }

    def get_stats(self) -> dict[str, float]:
        return {}


@dataclass
class ScriptedArgs(BaseModelArgs):  # type: ignore[misc]
    def make_model(self) -> ScriptedModel:
        return ScriptedModel()


def moves(steps: Any) -> list[Move]:
    """The oracle's way, each bid as role, name and place among its like."""
    way = []
    for step in steps:
        if step.action is None:
            continue
        name, arguments = parse(step.action)
        controls = LINE.findall(step.observation.axtree)
        known = dict(controls)
        bid = arguments[0] if arguments and isinstance(arguments[0], str) else ""
        if name == "answer":  # none of BrowserGym's: the goal names the line that says the same
            line = declared_line(
                list(map(str, arguments[0]))
                if isinstance(arguments[0], list)
                else [str(arguments[0])]
            )
            way.append(Move("send_msg_to_user", "", 0, (line,)))
            continue
        if bid not in known:
            way.append(Move(name, "", 0, tuple(arguments)))
            continue
        like = [one for one, control in controls if control == known[bid]]
        way.append(Move(name, known[bid], like.index(bid), tuple(arguments[1:])))
    return way


def chosen() -> Benchmark:
    """One question an application, in whichever split it is."""
    every = None
    for app in APPS:
        for scenario in load_app(app).scenarios:
            codes = any(answer.kind == "code" for answer in scenario.answers)
            split = next((one for one in SPLITS if goals_of(app, scenario, one)), None)
            if scenario.charts or scenario.expect or codes or split is None:
                continue
            one = benchmark(f"{app}.{scenario.id}", split, seeds=(3,))
            if every is None:
                every = one
            else:
                every.env_args_list += one.env_args_list
                every.task_metadata = type(every.task_metadata)(
                    every.task_metadata.to_dict("records") + one.task_metadata.to_dict("records")
                )
            break
    assert every is not None
    return every


def main(folder: Path) -> None:
    tasks, trees = chosen(), []
    for arguments in tasks.env_args_list:
        env = arguments.make_env(None, folder)
        seen, _ = env.reset()
        job: Job = env._episode.job
        oracle = job.model_copy(update={"agent": ORACLE})
        SCRIPTS[seen["goal"]] = moves(recorded_offline(oracle, 0).trajectory.steps)
        trees += [(seen["axtree_object"], env._episode.view.observation.axtree)]
        env.close()
    model = ScriptedArgs(
        model_name="scripted",
        max_total_tokens=200_000,
        max_input_tokens=190_000,
        max_new_tokens=2_000,
        temperature=0.0,
        vision_support=False,
    )
    agent = GenericAgentArgs(chat_model_args=model, flags=FLAGS_CUSTOM)
    study = Study([agent], tasks, logging_level_stdout=40)
    study.run(n_jobs=1, parallel_backend="sequential", n_relaunch=1)
    results = study.get_results()[0].reset_index()
    told = {
        "rewards": results["cum_reward"].tolist(),
        "tasks": results["env.task_name"].tolist(),
        "trees": [(flatten_axtree_to_str(nodes, **AS_IT_IS), ours) for nodes, ours in trees],
        "steps": results["n_steps"].tolist(),
        "errors": [error for error in results["err_msg"].tolist() if isinstance(error, str)],
        "arguments": [asdict(arguments) for arguments in tasks.env_args_list],
    }
    sys.stdout.write(f"\n{json.dumps(told, default=str)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
