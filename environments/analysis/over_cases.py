"""Run something in the browser on every case, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rich.progress import track

from trajudge.environments.model.case import Case
from trajudge.environments.recording.recorder import Recorder, open_recorder
from trajudge.trajectories.util.terminal import terminal_console

T = TypeVar("T")


def over_cases(
    cases: Sequence[Case], seed: int, doing: str, run: Callable[[Recorder, Case], Iterable[T]]
) -> list[T]:
    """Return what ``run`` yields for the cases, in their order. ``doing`` labels the bar, which is
    on standard error; ``seed`` is the recorder's."""
    console = terminal_console(stderr=True)
    with open_recorder(seed) as recorder:
        listed = track(cases, doing, console=console, transient=True)
        return [outcome for case in listed for outcome in run(recorder, case)]
