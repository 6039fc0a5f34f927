"""Training examples: what is read, what is learned, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from trajudge.eval.acceptance.conversations import ChatTurn
from trajudge.trajectories.model import ImageRef

SaveScreenshot = Callable[[ImageRef | None], str | None]


class TrainingTurn(NamedTuple):
    """One turn: its text, the file of its screenshot below the folder of the training data, and
    whether the trainer learns to write it."""

    role: str
    text: str
    image: str | None = None
    learned: bool = False


class TrainingExample(NamedTuple):
    """A conversation. ``origin`` goes into the row's column ``trajudge``; ``success`` is the
    judge's answer. In a pair ``turns`` ends with the turn to prefer and ``rejected`` is the other,
    ``margin`` the difference of their scores."""

    turns: tuple[TrainingTurn, ...]
    origin: dict[str, Any]
    success: bool
    rejected: TrainingTurn | None = None
    margin: float = 0.0

    @property
    def images(self) -> list[str]:
        """The screenshots in the order of the turns."""
        return [turn.image for turn in self.turns if turn.image]


def whole_example(
    turns: Sequence[ChatTurn], origin: dict[str, Any], success: bool, save: SaveScreenshot
) -> TrainingExample:
    """Make one example of a trajectory: every turn of the agent is learned."""
    made = []
    for turn in turns:
        image = save(turn.screenshot) if turn.role == "user" else None
        made.append(TrainingTurn(turn.role, turn.content, image, turn.role == "assistant"))
    return TrainingExample(tuple(made), {**origin, "credit": "outcome", "step": None}, success)


def step_examples(
    turns: Sequence[ChatTurn], origin: dict[str, Any], success: bool, save: SaveScreenshot
) -> Iterator[TrainingExample]:
    """Make an example of every action: only it is learned, and of the earlier steps the address
    and the agent's turns are read, but neither their pages nor their screenshots."""
    for last in range(2, len(turns), 2):
        yield step_example(turns, last, origin, success, save)


def step_example(
    turns: Sequence[ChatTurn],
    last: int,
    origin: dict[str, Any],
    success: bool,
    save: SaveScreenshot,
) -> TrainingExample:
    """Make the example whose last turn is ``turns[last]``, one of the agent's."""
    before = [
        TrainingTurn(turn.role, turn.without_page or turn.content) for turn in turns[: last - 1]
    ]
    page, action = turns[last - 1], turns[last]
    now = TrainingTurn(page.role, page.content, save(page.screenshot))
    learned = TrainingTurn(action.role, action.content, learned=True)
    step = {"credit": "outcome", "step": last // 2 - 1}
    return TrainingExample((*before, now, learned), {**origin, **step}, success)
