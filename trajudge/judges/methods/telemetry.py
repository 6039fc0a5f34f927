"""The telemetry judge: a logistic regression over numbers of the run, without a model call.

It sees how the run went (steps, budget, tokens, seconds, errors, the shape of the actions), never
a page and never the official reward. What it says is what a judge that reads the trajectory has to
beat. One way of the reward into these numbers stays: some benchmarks end a run as soon as their
own check passes, so that a run with steps left which said nothing to the user was mostly rewarded
(``ended_by_environment``). Leaving out ``budget_exhausted`` and ``steps`` hides it only in part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from math import exp, isfinite, log1p, nan
from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from trajudge.judges.model import Model, Skipped, Verdict
from trajudge.judges.registry import register_judge
from trajudge.trajectories.actions import message_to_user
from trajudge.trajectories.model import Record, Trajectory
from trajudge.trajectories.needs import Needs
from trajudge.util.errors import UserError
from trajudge.util.files import read_utf8
from trajudge.util.validation import refused_value

# Named one by one: whatever else a loader keeps among the telemetry cannot come in.
_TELEMETRY = {
    "input_tokens": "cum_input_tokens",
    "output_tokens": "cum_output_tokens",
    "page_tokens": "max_n_token_axtree_txt",
    "error_tokens": "cum_n_token_last_action_error",
    "agent_seconds": "cum_agent_elapsed",
    "browser_seconds": "cum_step_elapsed",
    "retries": "cum_n_retry",
}
_KINDS = ("click", "fill", "select_option", "scroll", "goto", "go_back", "tab_focus", "noop")
_MESSAGES, _INFEASIBLE = ("send_msg_to_user", "answer"), "report_infeasible"
FEATURES = (
    *("steps", "budget_exhausted", "crashed"),
    *(f"log_{name}" for name in _TELEMETRY),
    *("distinct_share", "longest_repeat", "kinds"),
    *(f"share_{kind}" for kind in _KINDS),
    *("ends_with_message", "ends_infeasible", "log_message_length"),
)
_NAME = re.compile(r"\s*([A-Za-z_]\w*)")


def features(trajectory: Trajectory) -> list[float]:
    """Compute one number for every name of ``FEATURES``; NaN where the run does not record it.
    Counts and seconds as the logarithm of 1 + x."""
    actions = [step.action.strip() for step in trajectory.steps if step.action]
    kinds = Counter(_kind(action) for action in actions)
    count = max(1, len(actions))
    last = _kind(actions[-1]) if actions else ""
    message = message_to_user(actions[-1]) if actions else None
    truncated = trajectory.truncated
    return [
        log1p(len(actions)),
        nan if truncated is None else float(truncated),
        trajectory.telemetry.get("error", nan),
        *[_told(trajectory, name) for name in _TELEMETRY.values()],
        len(set(actions)) / count,
        log1p(_longest_repeat(actions)),
        float(len(kinds)),
        *[kinds[kind] / count for kind in _KINDS],
        float(last in _MESSAGES),
        float(last == _INFEASIBLE),
        log1p(len(message or "")),
    ]


def _kind(action: str) -> str:
    match = _NAME.match(action)
    return match[1] if match else ""


def _told(trajectory: Trajectory, name: str) -> float:
    value = trajectory.telemetry.get(name, nan)
    return log1p(value) if value >= 0 else nan


def _longest_repeat(actions: Sequence[str]) -> int:
    """Count the consecutive repeats of the most repeated action."""
    best = run = 0
    for position, action in enumerate(actions):
        run = run + 1 if position and action == actions[position - 1] else 1
        best = max(best, run)
    return best


def ended_by_environment(trajectory: Trajectory) -> bool:
    """Return True if the run ended before its budget although the agent's last action ended
    nothing."""
    actions = [step.action.strip() for step in trajectory.steps if step.action]
    return (
        trajectory.truncated is False
        and bool(actions)
        and _kind(actions[-1]) not in (*_MESSAGES, _INFEASIBLE)
    )


class TelemetryModel(Record):
    """A standardised logistic regression as it is kept in a file.

    ``features`` are names of ``FEATURES``; ``means`` and ``scales`` standardise them, a number
    that a run does not tell counts as the mean. A run succeeds from a probability of ``threshold``
    on; it lies above 1 where no threshold reached ``target_precision`` on the training data.
    ``trained_on`` counts trajectories, ``training_keys`` are the hashes of their keys.
    """

    features: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float
    threshold: float = Field(ge=0)
    target_precision: float
    trained_on: int
    training_keys: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> TelemetryModel:
        sizes = {len(self.features), len(self.means), len(self.scales), len(self.weights)}
        unknown = set(self.features) - set(FEATURES)
        numbers = (*self.means, *self.scales, *self.weights, self.intercept, self.threshold)
        if len(sizes) > 1 or unknown or not all(map(isfinite, numbers)) or 0 in self.scales:
            raise ValueError("one mean, scale and weight, finite, for every known feature")
        return self

    def probability(self, values: Sequence[float]) -> float:
        """Compute P(success) from one number for every name of ``FEATURES``, in their order."""
        by_name = dict(zip(FEATURES, values, strict=True))
        logit = self.intercept
        for name, mean, scale, weight in zip(
            self.features, self.means, self.scales, self.weights, strict=True
        ):
            if isfinite(by_name[name]):
                logit += weight * (by_name[name] - mean) / scale
        return 1 / (1 + exp(-logit)) if logit > -700 else 0.0


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


def read_model(path: Path | None) -> TelemetryModel:
    """Read the model in a file. Raises UserError."""
    if path is None:
        raise UserError(
            "--judge telemetry needs --judge-option model=FILE: train one with  "
            "trajudge judges train --data KIND:PATH --save FILE"
        )
    try:
        return TelemetryModel.model_validate_json(read_utf8(path))
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}: name the file of --save of  trajudge judges train"
        ) from error
    except ValidationError as error:
        raise UserError(
            f"{path}: holds no telemetry model ({refused_value(error).why}): train it again with  "
            "trajudge judges train --save FILE"
        ) from error
