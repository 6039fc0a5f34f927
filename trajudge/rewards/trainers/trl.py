"""TRL's GRPO and RLOO: an asynchronous reward function that leaves abstentions out.

TRL takes None for "no reward": it is left out of its group's mean, and its advantage is 0. That
holds only where every reward function of the row returns None. Beside a second function the
default aggregation sums a None as 0, so that an abstention counts as a failure: use ``combine``.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Sized
from inspect import isawaitable
from typing import Any

from trajudge.rewards.reward import Reward
from trajudge.rewards.rewarder import Rewarder
from trajudge.trajectories.model import Trajectory

TrajectoryOf = Callable[[Mapping[str, Any]], Trajectory | None]
"""Finds a row's trajectory, from its ``prompt``, its ``completion`` and the data set's columns;
None or KeyError: it was not recorded."""
RewardColumn = Callable[..., Any]
"""A reward function as TRL calls it: values for completions, or None, at once or awaited."""
_OURS = ("trainer_state", "log_extra", "log_metric")  # what TRL gives a function once, not by row


def trajudge_reward(
    rewarder: Rewarder, trajectory_of: TrajectoryOf
) -> Callable[..., Awaitable[list[float | None]]]:
    """Make the reward function of ``GRPOTrainer(reward_funcs=...)``.

    A completion without a trajectory has no reward. A keyword that is no column (a value for each
    completion) is left out of the rows, with a note, once. Where TRL offers it, the mean
    probability and cost and the share of abstentions are logged beside the reward, and why each
    abstained.
    """

    noted: set[str] = set()

    async def trajudge(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        by_row = _columns(columns, len(completions), noted)
        found = [
            _found(trajectory_of, {"prompt": prompt, "completion": completion, **row})
            for prompt, completion, row in zip(
                prompts, completions, _rows(by_row, len(completions)), strict=True
            )
        ]
        rewards = iter(await rewarder.group([one for one in found if one is not None]))
        rows = [None if one is None else next(rewards) for one in found]
        _log(rows, columns.get("log_metric"), columns.get("log_extra"))
        return [None if row is None else row.value for row in rows]

    return trajudge


def _columns(given: Mapping[str, Any], count: int, noted: set[str]) -> Mapping[str, Any]:
    """Return the keywords that hold a value for each of ``count`` completions; note others the
    first time."""
    columns = {}
    for name, column in given.items():
        if column is None or name in _OURS:
            continue
        if _is_column(column, count):
            columns[name] = column
        elif name not in noted:
            noted.add(name)
            sys.stderr.write(
                f"note: {name} of the trainer is no column of {count} values: it is not passed "
                "to trajectory_of\n"
            )
    return columns


def _is_column(value: object, count: int) -> bool:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__getitem__"):
        return False
    return isinstance(value, Sized) and len(value) == count


def _rows(columns: Mapping[str, Any], count: int) -> Iterator[Mapping[str, Any]]:
    for place in range(count):
        yield {name: column[place] for name, column in columns.items()}


def combine(
    judge: RewardColumn, *others: RewardColumn, weights: Sequence[float] | None = None
) -> Callable[..., Awaitable[list[float | None]]]:
    """Make one reward function of several: the weighted sum, None where any has no value.

    ``weights`` are those of ``judge`` and the others, in order (None: 1 each). Raises ValueError
    for another number of them.
    """
    functions = (judge, *others)
    shares = [1.0] * len(functions) if weights is None else list(weights)
    if len(shares) != len(functions):
        raise ValueError(f"{len(functions)} reward functions take as many weights")

    async def combined(**given: Any) -> list[float | None]:
        columns = []
        for function in functions:
            values = function(**given)
            columns.append(await values if isawaitable(values) else values)
        return [
            None
            if any(value is None for value in row)
            else sum(share * value for share, value in zip(shares, row, strict=True))
            for row in zip(*columns, strict=True)
        ]

    return combined


def _found(trajectory_of: TrajectoryOf, row: Mapping[str, Any]) -> Trajectory | None:
    try:
        return trajectory_of(row)
    except KeyError:
        return None


def _log(
    rows: Sequence[Reward | None],
    metric: Callable[[str, float], Any] | None,
    extra: Callable[[str, list[Any]], Any] | None,
) -> None:
    if metric is not None and rows:
        for name, value in _means(rows).items():
            metric(f"trajudge/{name}", value)
    if extra is not None:
        extra("trajudge_abstained", ["lost" if row is None else row.abstained for row in rows])
        extra("trajudge_detail", ["" if row is None else row.detail for row in rows])


def _means(rows: Sequence[Reward | None]) -> Mapping[str, float]:
    columns = {
        "abstained": [float(row is None or row.value is None) for row in rows],
        "probability": [row.probability for row in rows if row and row.probability is not None],
        "cost": [row.cost for row in rows if row and row.cost is not None],
    }
    return {name: sum(values) / len(values) for name, values in columns.items() if values}


def stop_on_drift(rewarder: Rewarder) -> Any:
    """Make a callback of TRL's trainers that ends the training once the watch stops the rewards."""
    from transformers import TrainerCallback  # noqa: PLC0415 - the trainer's own

    class StopOnDrift(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            control.should_training_stop |= rewarder.watch.monitor.stopped
            return control

    return StopOnDrift()
