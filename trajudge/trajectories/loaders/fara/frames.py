"""Which of a Fara run's screenshots each step saw.

The answer file lists them; they go by the number in their names. One a step means that each was
taken before its action; one more, that the last is the final page. Fara writes T + 1 of them from
0, the solver with GPT writes T of them from 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from trajudge.trajectories.loaders.common.pictures import plain_name
from trajudge.trajectories.loaders.fara.events import Turn
from trajudge.trajectories.loaders.files import readable, screenshot
from trajudge.trajectories.model import ImageRef, Observation, Step
from trajudge.trajectories.util.safe_files import DataFolder

_NUMBER = re.compile(r"(\d{1,9})\D*\Z")
_FRAME = re.compile(r"screenshot_?\d{1,9}\.png")


def frames_of(
    folder: Path, listed: Sequence[object] | None, root: DataFolder, warnings: list[str]
) -> list[ImageRef | None]:
    """Return the run's screenshots in the order of their numbers.

    A listed path is the recorder's: its last part is looked for in ``folder``, the rest of it is
    not followed. Without a list, the screenshots in the folder count.
    """
    if listed is None:
        names = [path.name for path in folder.iterdir() if _FRAME.fullmatch(path.name)]
    else:
        names = [*_names(listed, warnings)]
    return [screenshot(folder / name, root, warnings) for name in sorted(names, key=order_of)]


def order_of(name: str) -> tuple[int, str]:
    """Sort by the last number in a name, ``screenshot10.png`` after ``screenshot9.png``."""
    match = _NUMBER.search(name)
    return (int(match[1]) if match else 0, name)


def _names(listed: Sequence[object], warnings: list[str]) -> Sequence[str]:
    names = []
    for each in listed:
        if name := plain_name(each):
            names.append(name)
        else:
            warnings.append(f"The screenshot {readable(str(each))[:80]!r} has no usable name.")
    return names


def steps_of(
    turns: Sequence[Turn], frames: Sequence[ImageRef | None], warnings: list[str]
) -> tuple[Step, ...]:
    """Put each turn beside the screenshot it saw; one that is left over is the final page's, on a
    last step without action."""
    if frames and len(frames) not in (len(turns), len(turns) + 1):
        warnings.append(f"{len(turns)} actions but {len(frames)} screenshots.")
    steps = [
        Step(
            index=index,
            observation=Observation(
                url=turn.url, screenshot=frames[index] if index < len(frames) else None
            ),
            reasoning=turn.reasoning,
            action=turn.action,
        )
        for index, turn in enumerate(turns)
    ]
    if len(frames) > len(turns):
        shown = Observation(screenshot=frames[len(turns)])
        steps.append(Step(index=len(turns), observation=shown))
    return tuple(steps)
