"""The telemetry judge: a logistic regression over numbers of the run, without a model call.

It sees how the run went (steps, budget, tokens, seconds, errors, the shape of the actions), never
a page and never the official reward. What it says is what a judge that reads the trajectory has to
beat. One way of the reward into these numbers stays: some benchmarks end a run as soon as their
own check passes, so that a run with steps left which said nothing to the user was mostly rewarded
(``ended_by_environment``). Leaving out ``budget_exhausted`` and ``steps`` hides it only in part.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from trajudge.judges.model import Model, Skipped, Verdict
from trajudge.judges.registry import register_judge
from trajudge.judges.telemetry import features, read_model
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs


class TelemetryOptions(Record):
    """``model``: a file that ``trajudge judges train`` wrote."""

    model: Path | None = None

    @property
    def needs(self) -> Needs:
        return Needs(requires=("action",))


@register_judge(
    "telemetry",
    TelemetryOptions,
    summary="a regression over numbers of a run (see trajudge judges train)",
    needs_model=False,
)
class Telemetry:
    """Success from the model's probability, which is the score. ``prompt_hash`` is the model's,
    so that a run is not continued with another one. ``training_keys`` are the hashes of the
    trajectories that it was trained on, None where the file does not tell."""

    def __init__(self, options: TelemetryOptions) -> None:
        """Read the model file. Raises UserError if it is missing or holds no model."""
        self._model = read_model(options.model)
        self.prompt_hash = sha256(self._model.model_dump_json().encode()).hexdigest()
        self.training_keys = frozenset(self._model.training_keys) or None

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises Skipped where no action is recorded."""
        if not any(step.action for step in trajectory.steps):
            raise Skipped(f"{trajectory.key}: no action is recorded")
        score = self._model.probability(features(trajectory))
        return Verdict(success=score >= self._model.threshold, score=score)
