"""The environments as a class for TRL's ``environment_factory`` (GRPO, TRL 1.x), which is not
imported: each public method of ``BrowserEnv`` is a tool, ``reset`` and ``get_reward`` apart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trajudge.environments.checks.draws import templates
from trajudge.environments.chromium.action_syntax import Argument, write
from trajudge.environments.gym.env import WebEnv
from trajudge.environments.model.config import Split
from trajudge.environments.model.wording import LINE

if TYPE_CHECKING:
    from datasets import Dataset


def tasks(split: Split, level: int | None = None, n: int = 100, seed: int = 0) -> Dataset:
    """Return ``n`` rows for a trainer (``prompt``, ``task``, ``seed``, ``split``). The members of a
    group come from one row: they start alike, in runs of other codes. Raises UserError for a level
    that is none."""
    from datasets import Dataset  # noqa: PLC0415 - slow to import

    task = "all" if level is None else f"level{level}"
    templates(task, split, pictures=False)
    prompt = [{"role": "user", "content": ""}]
    rows = [{"prompt": prompt, "task": task, "seed": seed + k, "split": split} for k in range(n)]
    return Dataset.from_list(rows)


class BrowserEnv:
    """A rollout in a web application, by the text engine. A tool returns the page that it leads to,
    and raises ValueError, which the trainer shows to the model, once the run is over."""

    def __init__(self) -> None:
        self._env: WebEnv | None = None
        self._reward: float | None = 0.0
        self._over = True

    def reset(self, task: str = "all", seed: int = 0, split: Split = "train", **_: Any) -> str:
        """Begin the run of a row and return what the model reads first."""
        if self._env is None or (self._env.tasks, self._env.split) != (task, split):
            self._env = WebEnv(task, split=split, agent="trl")
        seen, _info = self._env.reset(seed=seed)
        self._reward, self._over = 0.0, False
        return f"{seen['goal']}\n\n{seen['axtree']}"

    def get_reward(self) -> float | None:
        """Return the reward of the rollout; None where success is open to argument."""
        return self._reward

    def click(self, element: str) -> str:
        """Click an element of the page.

        Args:
            element: its number, as it stands in brackets
        """
        return self._act("click", element)

    def fill(self, element: str, text: str) -> str:
        """Replace the text of a field.

        Args:
            element: the number of the field
            text: what to write
        """
        return self._act("fill", element, text)

    def select(self, element: str, option: str) -> str:
        """Choose an option of a list.

        Args:
            element: the number of the list
            option: the name of the option
        """
        return self._act("select_option", element, option)

    def press(self, element: str, key: str) -> str:
        """Press a key on an element.

        Args:
            element: the number of the element
            key: the key, such as Enter
        """
        return self._act("press", element, key)

    def goto(self, url: str) -> str:
        """Open an address of the site.

        Args:
            url: the address
        """
        return self._act("goto", url)

    def back(self) -> str:
        """Go back to the page before."""
        return self._act("go_back")

    def answer(self, value: str) -> str:
        """End the task with its answer.

        Args:
            value: what the goal asks for, with semicolons between several things
        """
        return self._act("send_msg_to_user", f"{LINE}{value}")

    def _act(self, name: str, *arguments: Argument) -> str:
        if self._env is None or self._over:
            raise ValueError("the run is over")
        seen, reward, ended, cut_off, _ = self._env.step(write(name, *arguments))
        self._over = ended or cut_off
        if self._over:
            self._reward = None if math.isnan(reward) else reward
            return "The run is over."
        error = seen["last_action_error"]
        return f"{error}\n\n{seen['axtree']}" if error else str(seen["axtree"])
