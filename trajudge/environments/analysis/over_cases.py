"""Run something in the browser on every case, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from trajudge.environments.agents.protocol import NotPlayed
from trajudge.environments.model.case import Case
from trajudge.environments.recording.recorder import Recorder, open_recorder
from trajudge.util.errors import UserError
from trajudge.util.terminal import progress_bar

T = TypeVar("T")


def over_cases(
    cases: Sequence[Case], seed: int, doing: str, run: Callable[[Recorder, Case], Iterable[T]]
) -> list[T]:
    """Return what ``run`` yields for the cases, in their order. ``doing`` labels the bar, which is
    on standard error; ``seed`` is the recorder's. Raises UserError where a user's application
    fails."""
    outcomes: list[T] = []
    with open_recorder(seed) as recorder, progress_bar() as show:
        for done, case in enumerate(cases, start=1):
            try:
                outcomes += run(recorder, case)
            except NotPlayed as failure:
                raise UserError(str(failure)) from failure
            show(doing, done, len(cases))
    return outcomes
