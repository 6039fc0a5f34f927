"""The tasks that a server offers: the cases of a file, or what a seed draws of the applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trajudge.environments.checks.draws import NoSuchTask, draw, held_out, templates
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Split, split_of


class Tasks:
    """Tasks by name. With ``cases`` these are all; without, a name is an application or
    ``application.scenario``, and its seed draws the rest in a split: in the one that is asked for,
    else in the server's own ``split``. The test split is for whoever serves ``with_test``."""

    def __init__(
        self, cases: Sequence[Case] = (), split: Split = "train", *, with_test: bool = False
    ) -> None:
        self._cases = {case.id: case for case in cases}
        self._split, self._with_test = split, with_test

    def listed(self, split: Split | None = None, level: int | None = None) -> list[dict[str, Any]]:
        """Return the tasks; scenarios have no level before they are drawn. Raises NoSuchTask."""
        if self._cases:
            return [
                {"task": case.id, "goal": case.goal, "level": case.level}
                for case in self._cases.values()
                if level in (None, case.level) and split in (None, split_of(case.config.seed))
            ]
        offered, _ = templates("all", self._allowed(split or self._split), pictures=True)
        return [{"task": template.name} for template in offered]

    def find(
        self,
        task: str | None,
        level: int | None,
        seed: int,
        split: Split | None = None,
        *,
        pictures: bool = True,
    ) -> Case:
        """Return the task of a name, or one that is drawn; without ``pictures`` none is drawn whose
        charts must be read. Raises NoSuchTask."""
        rng = np.random.default_rng(seed)
        if not self._cases:
            chosen = self._allowed(split or self._split_of(task or ""))
            offered, named = templates(task or "all", chosen, pictures=pictures)
            return draw(rng, offered, chosen, level=level or named)
        if task is not None:
            if task not in self._cases:
                raise NoSuchTask(f"no task is called {task!r}: GET /v1/tasks lists them")
            return self._cases[task]
        fitting = [
            case
            for case in self._cases.values()
            if level in (None, case.level) and split in (None, split_of(case.config.seed))
        ]
        if not fitting:
            wish = f"level {level}" if level else f"split {split}"
            raise NoSuchTask(f"no task is of {wish}: GET /v1/tasks lists them")
        return fitting[int(rng.integers(len(fitting)))]

    def _split_of(self, task: str) -> Split:
        """Return the split that a task is drawn in where none is asked for."""
        app, _, scenario = task.partition(".")
        alone = self._with_test and bool(scenario) and held_out(app, scenario)
        return "test" if alone else self._split

    def _allowed(self, split: Split) -> Split:
        if split == "test" and not self._with_test:
            raise NoSuchTask("the test split is served with --with-test alone")
        return split
