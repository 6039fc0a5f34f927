"""The settings of ``trajudge select``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trajudge.eval.settings import LabelConfig, Runs, Split, TaskIdOption
from trajudge.util.settings import Option, Output, Seed, Settings

Threat = Literal["agent", "page", "both"]
"""Who attacks."""
Dollars = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(gt=0, lt=1)]


class PlanConfig(Settings):
    """What a plan is made from: the target, the candidates and their prices."""

    exclusive: ClassVar = (("target_precision", "max_false_positives"),)
    sections: ClassVar[Mapping[str, str]] = {"judge": "the plan's candidates and prices"}

    target_precision: Annotated[
        Rate | None, Option("at least this share of the accepted trajectories succeeded", "RATE")
    ] = None
    max_false_positives: Annotated[
        Rate | None, Option("at most this share of the failed trajectories is accepted", "RATE")
    ] = None
    confidence: Annotated[float, Field(gt=0.5, lt=1), Option("of the decision", "LEVEL")] = 0.95
    every_benchmark: Annotated[
        bool, Option("the target has to be met on every benchmark, not only overall")
    ] = False
    threat: Annotated[
        Threat | None,
        Option(
            "the target holds under attacks by the agent, the page or both too (with --robustness)"
        ),
    ] = None
    split: Annotated[Split, Option("of the annotations")] = "all"
    seed: Annotated[Seed, Option("of the draws")] = 0
    margin: Annotated[
        Rate,
        Option(
            "transfer the choice to another benchmark only where no two benchmarks differ by more "
            "than this in their true- and false-positive rates",
            "M",
        ),
    ] = 0.1
    judge: Annotated[tuple[str, ...], Option("only this judge; may be repeated", "NAME")] = ()
    ensembles_only: Annotated[
        bool,
        Option("only the panels and cascades: one score named beforehand is tested more sharply"),
    ] = False
    panel: Annotated[tuple[str, ...], Option("the mean of several judges", "A,B,…")] = ()
    cascade: Annotated[tuple[str, ...], Option("B is asked where A accepts", "A,B,…")] = ()
    thresholds: Annotated[
        tuple[str, ...],
        Option(
            "thresholds on a score (default: 12 at most, spread over the scores from 0.5)",
            "JUDGE=T,T,…",
        ),
    ] = ()
    rollout_price: Annotated[Dollars | None, Option("of one trajectory", "DOLLARS")] = None
    training_price: Annotated[Dollars, Option("of one accepted trajectory", "DOLLARS")] = 0.0
    judgment_price: Annotated[
        tuple[str, ...],
        Option("of one trajectory (default: what the runs paid)", "[JUDGE=]DOLLARS"),
    ] = ()


class SelectConfig(LabelConfig):
    """Choose the judge, and the threshold on its score, that filters trajectories for fine-tuning:
    those candidates that meet a target with the confidence asked for, after correcting for how many
    were tried. The candidates are frozen in a file before a label is read.

      trajudge select runs/a runs/b --target-precision 0.8 --rollout-price 0.05
      trajudge select runs/a runs/b --target-precision 0.8 --freeze --out plan
      trajudge select runs/a runs/b --candidates plan/candidates.json
    """

    epilog: ClassVar[str] = (
        "exit codes: 0 a judge qualifies, 1 none does, 2 a mistake in the call or its files"
    )
    first: ClassVar = (
        *("target_precision", "max_false_positives", "confidence", "judgments", "annotations"),
        *("judge", "out", "freeze", "candidates", "full"),
    )
    sections: ClassVar[Mapping[str, str]] = {
        "annotations": "what is read and written",
        "plan": "the plan",
    }

    runs: Runs = ()
    judgments: Annotated[
        Path | None, Option("judgments in AgentRewardBench's published layout", "DIR")
    ] = None
    task_id: TaskIdOption = "recorded"
    out: Annotated[
        Path | None,
        Output("folder of the decision (default: selections/, named by the plan)", "DIR"),
    ] = None
    freeze: Annotated[bool, Option("only write the plan; no label is read")] = False
    candidates: Annotated[Path | None, Option("a frozen plan, instead of what follows")] = None
    robustness: Annotated[
        tuple[Path, ...], Option("robustness.json of  trajudge robust, for --threat")
    ] = ()
    plot: Annotated[Path | None, Output("precision against yield, .png, .svg or .pdf", "FILE")] = (
        None
    )
    full: Annotated[bool, Option("print decision.txt instead of one screen")] = False
    json_output: Annotated[bool, Option("print decision.json instead of the text", name="json")] = (
        False
    )
    plan: PlanConfig = PlanConfig()
