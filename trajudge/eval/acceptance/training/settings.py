"""The settings of the training data that ``trajudge accept --format`` writes."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from trajudge.eval.acceptance.training.names import FormatName, Per
from trajudge.trajectories.model import Record, Seed
from trajudge.util.commands import make_settings
from trajudge.util.errors import UserError


class TrainingConfig(Record):
    """How the runs become training data.

    ``format`` is the trainer's layout; ``per`` whether a row is a trajectory or a step (None: the
    format's own); ``per_task`` keeps at most so many accepted runs of a task, and as many rejected
    ones, drawn with ``seed``; ``test_share`` of the tasks go to a test file. A run that scores
    below ``rejected_below`` is an example of failure, for formats that learn from both (None: below
    the threshold).
    """

    format: FormatName
    per: Per | None = None
    with_screenshots: bool = False
    per_task: int | None = Field(default=None, ge=1)
    test_share: float = Field(default=0.0, ge=0, lt=1)
    rejected_below: float | None = Field(default=None, ge=0, le=1)
    seed: Seed = 0


def training_settings(values: Mapping[str, object]) -> TrainingConfig | None:
    """Build the settings from the options that were given; None without ``format``.

    Raises UserError for one that has no meaning without a format.
    """
    options = {name: values.get(name) for name in TrainingConfig.model_fields}
    if options["format"] is not None:
        return make_settings(TrainingConfig, options)
    for name, value in options.items():
        if value is not None:
            flag = name.replace("_", "-")
            raise UserError(f"--{flag} is of training data: give --format, too")
    return None
