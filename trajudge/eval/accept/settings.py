"""The settings of ``trajudge accept``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from trajudge.eval.settings import LabelConfig, TaskIdOption
from trajudge.util.settings import Count, Option, Output, Seed, Settings

FormatName = Literal[
    "trl-messages",
    "trl-prompt-completion",
    "trl-preference",
    "trl-kto",
    "llamafactory",
    "axolotl",
    "verl",
    "openai-sft",
    "hf",
]
Unit = Literal["trajectory", "step"]
Page = Literal["pruned", "full", "none"]


class TrainingConfig(Settings):
    """How the runs become training data."""

    format: Annotated[FormatName | None, Option("also write rows in a trainer's layout")] = None
    per: Annotated[Unit | None, Option("a row is a trajectory or a step")] = None
    with_screenshots: Annotated[bool, Option("rows hold the screenshots of the pages")] = False
    per_task: Annotated[
        Count | None, Option("at most N accepted and N rejected runs of a task")
    ] = None
    test_share: Annotated[
        float, Field(ge=0, lt=1), Option("of the tasks, in a file of their own", "SHARE")
    ] = 0.0
    rejected_below: Annotated[
        Annotated[float, Field(ge=0, le=1)] | None,
        Option("examples of failure score below T (default: the threshold)", "T"),
    ] = None
    seed: Annotated[Seed, Option("of the draws")] = 0

    @model_validator(mode="after")
    def _check_format(self) -> Self:
        for name in sorted(self.model_fields_set - {"format", "seed"}):
            if self.format is None and getattr(self, name) not in (None, False):
                flag = name.replace("_", "-")
                raise ValueError(f"--{flag} is of training data: give --format, too")
        return self


class AcceptConfig(LabelConfig):
    """Apply a choice of judge and threshold: write the accepted trajectories as conversations for
    fine-tuning, and the rejected ones with the reason.

      trajudge accept --decision selections/0a1b2c3d --run runs/new --out accepted
      trajudge accept --judge heuristic --threshold 1 --run runs/new --format hf

    For agents that a decision was not made on draw a sample, label it in its order, and test it, as
    often as labels come:

      trajudge accept --decision selections/0a1b2c3d --run runs/new --recertify DIR
      trajudge accept --recertify DIR --annotations trajudge:labels.jsonl
    """

    epilog: ClassVar[str] = (
        "accepted.jsonl: a line a trajectory, messages and provenance; rejected.jsonl: key, kind, "
        "reason, score; acceptance.json: what was applied to what, and how many ended how. "
        "exit codes: 0 something was accepted, or the target is shown; 1 nothing was, or it is not "
        "(yet); 2 a mistake"
    )
    first: ClassVar = (
        *("decision", "run", "data", "judge", "threshold", "out", "recertify", "annotations"),
        *("format", "per"),
    )
    sections: ClassVar[Mapping[str, str]] = {
        "annotations": "certifying a decision again, by labels of a sample",
        "decision": "what accepts, and what is written",
        "training": "training data",
    }

    recertify: Annotated[
        Path | None, Option("draw a sample to label, or test it by --annotations", "DIR")
    ] = None
    agent: Annotated[
        tuple[str, ...],
        Option(
            "sample runs of this agent (default: those that the decision does not know)", "NAME"
        ),
    ] = ()
    size: Annotated[Count | None, Option("runs to label (default: planned, power 0.8)")] = None
    decision: Annotated[Path | None, Option("what trajudge select wrote", "DIR")] = None
    judge: Annotated[str | None, Option("the judge, instead of a decision", "NAME")] = None
    threshold: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None,
        Option("accept scores of at least T (a verdict: 1)", "T"),
    ] = None
    run: Annotated[tuple[Path, ...], Option("folder of a run; may be repeated", "DIR")] = ()
    judgments: Annotated[
        Path | None, Option("judgments in AgentRewardBench's published layout", "DIR")
    ] = None
    data: Annotated[
        str | None, Option("the trajectories (default: those of the run)", "KIND:PATH")
    ] = None
    task_id: TaskIdOption = "recorded"
    out: Annotated[Path, Output("folder of what is written", "DIR")] = Path("accepted")
    page: Annotated[Page, Option("accessibility tree in the conversations")] = "pruned"
    without_observations: Annotated[
        bool,
        Option(
            "also export runs with steps whose page was not recorded (their user turns are bare)"
        ),
    ] = False
    system: Annotated[Path | None, Option("another text of the system turn")] = None
    any_benchmark: Annotated[bool, Option("also where the decision was not shown to hold")] = False
    agents: Annotated[
        Literal["same", "any"] | None,
        Option(
            "runs of agents that the decision was not made on: same rejects them, any takes them "
            "(default: take them, and ask for a sample to recertify)"
        ),
    ] = None
    assume_same_judge: Annotated[
        bool,
        Option(
            "where the decision or the run does not record the judge's settings: they are the same "
            "(what both record is compared all the same)"
        ),
    ] = False
    held_out: Annotated[
        Path | None, Option("reject runs on the tasks that it lists, one a line")
    ] = None
    training: TrainingConfig = TrainingConfig()
