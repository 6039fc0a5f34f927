"""AgentLab's agents and studies over the environments: its GenericAgent runs unchanged.

The package is imported here, and pins versions that trajudge does not: install it and ours in an
environment of their own (docs/gym.md). Written against agentlab 0.4.2 and browsergym-experiments
0.14.3.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas
from agentlab.benchmarks.abstract_env import AbstractEnvArgs
from browsergym.experiments.benchmark import Benchmark, HighLevelActionSetArgs

from trajudge.environments.checks.draws import templates
from trajudge.environments.gym.env import WebEnv
from trajudge.environments.model.config import Engine, Split

SUBSETS = ("chat", "infeas", "bid", "nav", "tab")


class TrajudgeEnv(WebEnv):
    """An episode as AgentLab's loop plays it: BrowserGym's observation, and times in ``info``."""

    def __init__(self, task_seed: int, **keywords: Any) -> None:
        super().__init__(observation="browsergym", open_reward=0.0, **keywords)
        self._task_seed = task_seed

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the run of the task's seed. AgentLab's seeds are 0 to 33, so ours is a digest of
        the seed with what is drawn from."""
        named = f"{self.tasks} {self.split} {self._task_seed if seed is None else seed}"
        drawn = int.from_bytes(sha256(named.encode()).digest()[:4], "big")
        seen, info = super().reset(seed=drawn, options=options)
        return seen, {**info, "task_info": {}}

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Do an action, as text: what an agent's action set makes of it is not run."""
        began = time.time()
        seen, reward, ended, cut_off, info = super().step(action or "noop()")
        labels = {key: value for key, value in info.items() if key != "trajectory"}
        times = {"action_exec_start": began, "action_exec_stop": time.time()}
        return (
            seen,
            reward,
            ended,
            cut_off,
            {**times, "action_exec_timeout": 0.0, "task_info": labels},
        )


@dataclass
class TrajudgeEnvArgs(AbstractEnvArgs):  # type: ignore[misc]
    """What AgentLab stores of a task. ``task_name`` is ``application.scenario``, after
    ``trajudge.``."""

    task_name: str
    task_seed: int
    max_steps: int | None
    split: Split
    engine: Engine

    def make_env(
        self,
        action_mapping: Any,
        exp_dir: Path,
        exp_task_kwargs: Any = None,
        use_raw_page_output: bool = False,
    ) -> TrajudgeEnv:
        """Return the environment. ``action_mapping``, which makes code for Playwright of an action,
        is not needed."""
        return TrajudgeEnv(
            self.task_seed,
            tasks=self.task_name.removeprefix("trajudge."),
            split=self.split,
            engine=self.engine,
            max_steps=self.max_steps,
        )


def benchmark(
    tasks: str = "all",
    split: Split = "test",
    *,
    seeds: Sequence[int] = (0,),
    max_steps: int | None = None,
    engine: Engine = "text",
) -> Benchmark:
    """Return the scenarios of a name (as ``WebEnv``'s ``tasks``; a level names all) as AgentLab's
    benchmark, each with these seeds. Its metadata has the columns ``app`` and
    ``browsergym_split``."""
    offered, _ = templates(tasks, split, pictures=engine == "chromium")
    names = [f"trajudge.{template.name}" for template in offered]
    return Benchmark(
        name="trajudge",
        high_level_action_set_args=HighLevelActionSetArgs(subsets=SUBSETS),
        is_multi_tab=True,
        supports_parallel_seeds=True,
        env_args_list=[
            TrajudgeEnvArgs(name, seed, max_steps, split, engine)
            for name in names
            for seed in seeds
        ],
        backends=[],
        task_metadata=pandas.DataFrame(
            {
                "task_name": names,
                "app": [template.app for template in offered],
                "browsergym_split": [split.replace("validation", "valid")] * len(names),
            }
        ),
    )
