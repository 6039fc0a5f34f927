"""The environments for verl-agent's rollouts (GiGPO): a manager of many runs, and the projection of
what a model writes to actions. verl-agent is not imported."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajudge.environments.chromium.action_syntax import BadAction, parse
from trajudge.environments.gym.env import WebEnv

Projection = Callable[[Sequence[str]], tuple[list[str], list[int]]]
_ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL)


def projection(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the action in each text's last ``<action>...</action>`` and 1, or the text's end and 0
    where there is none that can be read."""
    actions, valid = [], []
    for text in texts:
        written = _ACTION.findall(text)
        action = written[-1].strip() if written else text[-200:]
        try:
            parse(action)
            valid.append(int(bool(written)))
        except BadAction:
            valid.append(0)
        actions.append(action)
    return actions, valid


class BrowserEnvManager:
    """Runs side by side, as verl-agent's ``EnvironmentManagerBase``. ``group`` neighbours start
    alike: a group of GRPO. The ``anchor`` of an observation is a digest of the tree, by which GiGPO
    groups states."""

    def __init__(
        self,
        envs: Sequence[WebEnv],
        projection_f: Projection = projection,
        config: Any = None,
        *,
        group: int = 1,
        seed: int = 0,
    ) -> None:
        self.envs, self.projection_f, self.config = [*envs], projection_f, config
        self._group, self._episode = group, seed
        self._seen: list[dict[str, Any]] = [{} for _ in envs]
        self._over = [True] * len(envs)

    def reset(self, kwargs: Any = None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Begin a run in each environment; return observations and infos."""
        groups = -(-len(self.envs) // self._group)
        seeds = [self._episode + number // self._group for number in range(len(self.envs))]
        self._episode += groups
        begun = [env.reset(seed=seed) for env, seed in zip(self.envs, seeds, strict=True)]
        self._seen, self._over = [seen for seen, _ in begun], [False] * len(begun)
        return self._observations(), [{**info, "won": False} for _, info in begun]

    def step(
        self, text_actions: Sequence[str]
    ) -> tuple[dict[str, Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Do what each text says; a run that is over stays as it is, at the reward 0."""
        actions, valid = self.projection_f(text_actions)
        rewards, infos = np.zeros(len(self.envs), np.float32), []
        for number, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            info: dict[str, Any] = {}
            if not self._over[number]:
                seen, reward, ended, cut_off, info = env.step(action)
                self._seen[number], self._over[number] = seen, ended or cut_off
                rewards[number] = reward
            won = info.get("success") is True
            infos.append({**info, "won": won, "is_action_valid": np.array(valid[number])})
        return self._observations(), rewards, np.array(self._over), infos

    def build_text_obs(self) -> list[str]:
        """Return the prompts: the goal, the page, what went wrong, and how to answer."""
        how = "Think, then write one action, such as <action>click('12')</action>."
        return [
            "\n\n".join(filter(None, (s["goal"], s["axtree"], s["last_action_error"], how)))
            for s in self._seen
        ]

    def success_evaluator(
        self,
        total_infos: Sequence[Sequence[Mapping[str, Any]]],
        total_batch_list: Sequence[Sequence[Mapping[str, Any]]],
        **_: Any,
    ) -> dict[str, NDArray[np.float64]]:
        """Return whether each run was won, from the last of its steps that was active."""
        won: dict[str, list[float]] = defaultdict(list)
        for infos, batch in zip(total_infos, total_batch_list, strict=True):
            active = [k for k, one in enumerate(batch) if one.get("active_masks", True)]
            won["success_rate"].append(float(bool(active) and infos[active[-1]]["won"]))
        return {name: np.array(values) for name, values in won.items()}

    def _observations(self) -> dict[str, Any]:
        digests = [sha256(seen["axtree"].encode()).hexdigest() for seen in self._seen]
        return {"text": self.build_text_obs(), "image": None, "anchor": digests}
