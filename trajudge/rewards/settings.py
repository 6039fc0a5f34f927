"""Settings of ``trajudge serve``: judge, shaping, watch and server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, SecretStr, model_validator

from trajudge.eval.runs.settings import JudgeConfig
from trajudge.judges.calls.settings import CallConfig
from trajudge.util.settings import (
    Count,
    Only,
    Option,
    Output,
    Port,
    Positive,
    Seed,
    Settings,
    options_of,
)

RewardForm = Literal["identity", "verdict", "gate", "logit"]
BOUNDARY = 0.5
_CALLS = Only(*(one.name for one in options_of(CallConfig) if one.name not in ("dry_run", "yes")))
Share = Annotated[float, Field(gt=0, lt=1)]


class RewardShaping(Settings):
    """How a judgment is mapped to a value in [``low``, ``high``].

    ``identity`` is the probability of success; ``verdict`` is 1 at or above ``threshold``, else 0;
    ``gate`` is 1 at or above ``threshold``, 0 below ``reject_below``, and abstains in between;
    ``logit`` is the log-odds, clipped to [-4, 4]. With ``threshold`` None the judge's own verdict
    accepts. ``side_effect`` and ``repetition`` are the shares subtracted for these labels; with
    ``allow_flip`` they are shares of the whole range, so that a success may count less than a
    failure.
    """

    form: Annotated[
        RewardForm,
        Option("probability of success (default), 0 or 1, 0 or 1 or none, or log-odds"),
    ] = "identity"
    threshold: Annotated[
        float | None, Field(ge=0, le=1), Option("accept from this score on", "T")
    ] = None
    reject_below: Annotated[float, Field(ge=0, le=1), Option("of a gate: 0 below this", "T")] = 0.5
    low: float = 0.0
    high: float = 1.0
    side_effect: Annotated[
        float,
        Field(ge=0),
        Option("taken off for a side effect", "SHARE", name="side_effect_penalty"),
    ] = 0.5
    repetition: Annotated[
        float,
        Field(ge=0),
        Option("taken off for going round in circles", "SHARE", name="repetition_penalty"),
    ] = 0.1
    allow_flip: bool = False

    @property
    def boundary(self) -> float:
        """The score from which a trajectory is accepted."""
        return BOUNDARY if self.threshold is None else self.threshold

    @model_validator(mode="after")
    def _keeps_the_order(self) -> Self:
        if not self.low < self.high:
            raise ValueError("low must be below high")
        threshold = 1.0 if self.threshold is None else self.threshold
        if self.form == "gate" and threshold < self.reject_below:
            raise ValueError(
                f"--threshold {self.threshold:g} of a gate is below --reject-below "
                f"{self.reject_below:g}: raise the one or lower the other"
            )
        if self.side_effect + self.repetition >= 1 and not self.allow_flip:
            raise ValueError(
                f"--side-effect-penalty {self.side_effect:g} and --repetition-penalty "
                f"{self.repetition:g} are 1 or more together, so that a success counts less than a "
                "failure: lower them"
            )
        return self


class WatchConfig(Settings):
    """When the watch stops the rewards.

    ``canaries`` are trajectories (KIND:PATH); after every ``every`` rewards one of them is judged
    again without the cache. The verdicts of an unchanged judge differ from the first ones in at
    most ``noise`` of the cases. ``audit_share`` of the rewards are drawn for audits: the mean
    reward may exceed the share of true successes by ``gap``. The judge may fail for ``failures`` of
    the rewards. ``alpha`` is the probability, over all tests together, that rewards within these
    limits are ever stopped; with ``keep_going`` a stop is only reported. ``journal`` is the file of
    events.

    Two signs stop nothing but increase the share of audits tenfold. With ``probes``, half of the
    canaries that the judge rejected are also judged in a doctored version, of which at most
    ``fooled`` may be accepted. The form of accepted runs is compared with the first ``baseline`` of
    them; while it does not change, the mean number of accepted runs between two false signs is at
    least ``run_length``.

    ``reference`` is a second judge (JUDGE[:MODEL], with its default options) that also judges
    ``reference_share`` of the rewards, drawn by ``seed``, within the budget. The curve of both
    judges by training step is only reported.
    """

    canaries: Annotated[
        str | None,
        Option("trajectories that are judged again and again, past the cache", "KIND:PATH"),
    ] = None
    every: Annotated[Count, Option("one after N rewards", name="canary_every")] = 100
    noise: Share = 0.05
    audit_share: Annotated[
        float, Field(ge=0, le=1), Option("of the rewards, listed at /v1/audits", "SHARE")
    ] = 0.005
    gap: Share = 0.1
    failures: Share = 0.2
    probes: bool = True
    fooled: Share = 0.1
    baseline: int = Field(default=200, ge=20)
    run_length: int = Field(default=100_000, ge=100)
    reference: Annotated[
        str | None,
        Option("a second judge for a share of the rewards", "JUDGE[:MODEL]"),
    ] = None
    reference_share: Annotated[
        float, Field(gt=0, le=1), Option("of the rewards, for --reference", "SHARE")
    ] = 0.05
    alpha: Share = 0.01
    keep_going: Annotated[bool, Option("report what would stop the rewards")] = False
    journal: Path | None = None
    seed: Seed = 0


class RewardConfig(Settings):
    """Settings of a reward: judge, model, calibration, decision, shaping, watch."""

    sections: ClassVar[Mapping[str, str]] = {
        "judge": "the judge",
        "calibration": "the value",
        "watch": "the watch",
        "calls": "the calls",
    }

    judge: Annotated[JudgeConfig, Only("judge", "model", "judge_option", "representation")] = (
        JudgeConfig()
    )
    calibration: Annotated[
        Path | None,
        Option(
            "what  trajudge score --calibration-out  wrote of this judge", name="calibration_file"
        ),
    ] = None
    decision: Annotated[Path | None, Option("take the threshold of this selection", "DIR")] = None
    unqualified: Annotated[
        bool, Option("take the nearest candidate of a decision in which no judge qualified")
    ] = False
    assume_same_judge: Annotated[
        bool, Option("what a decision does not record of its judge is as it is here")
    ] = False
    shaping: RewardShaping = RewardShaping()
    deadline: Annotated[
        Positive | None,
        Option("a reward that takes longer abstains; its judge goes on (default: none)", "SECONDS"),
    ] = None
    watch: WatchConfig = WatchConfig()
    calls: Annotated[CallConfig, _CALLS] = CallConfig()


class RewardServerConfig(Settings):
    """Serve a judge's rewards to trainers over HTTP. A judge that fails, is late or may not spend
    more abstains; it never gives a number.

      trajudge serve --model gpt-4o --calibration-file calibration.json --max-cost 50
      trajudge serve --judge heuristic --port 0
    """

    first: ClassVar = (
        *("judge", "model", "base_url", "calibration_file", "decision", "form", "deadline"),
        *("max_cost", "port", "token_file"),
    )
    sections: ClassVar[Mapping[str, str]] = {"host": "the server"}

    reward: RewardConfig = RewardConfig()
    host: Annotated[str, Option("address to listen on", "ADDRESS")] = "127.0.0.1"
    port: Annotated[Port, Option("0: a free one (default: 8377)")] = 8377
    token_file: Annotated[Path | None, Option("file with the token that clients must send")] = None
    token: SecretStr | None = None
    folder: Annotated[
        Path,
        Output("pushed trajectories, their images and payments", "DIR", name="store"),
    ] = Path("rewards")
    queue: Annotated[Count, Option("rewards at work at most")] = 1_000
    neutral_value: Annotated[
        float | None,
        Option("value of an abstention as a number (default: the calibration's)", "VALUE"),
    ] = None
    patience: float = Field(default=0.5, ge=0)  # seconds that an id may be unknown

    @model_validator(mode="after")
    def _is_neutral(self) -> Self:
        value, shaping = self.neutral_value, self.reward.shaping
        if value is not None and not shaping.low <= value <= shaping.high:
            raise ValueError(
                f"--neutral-value {value:g}: rewards go from {shaping.low:g} to {shaping.high:g}: "
                "name a value between these"
            )
        return self
