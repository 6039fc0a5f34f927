"""Settings of the commands ``trajudge label``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from trajudge.annotations.queue import QUESTIONS, Layout, Question, Role, Stage
from trajudge.eval.settings import LabelConfig, Runs, Split, TableFormat, TaskIdOption
from trajudge.util.settings import Argument, Count, Option, Output, Seed, Settings

Strategy = Literal[
    "random", "stratified", "disagreement", "low-confidence", "ppi", "audit", "cascade"
]
Queue = Annotated[Path, Argument("QUEUE", "folder of a queue")]
StageOption = Annotated[Stage, Option("the labels before, or after, the verdicts were shown")]


class BuildConfig(LabelConfig):
    """Draw a queue of trajectories to label, each with a known inclusion probability, and show
    before it is written how narrow the interval of each judge's precision will be at this budget,
    beside that of a simple random sample.

      trajudge label build runs/* --strategy ppi --budget 150 --out queue
      trajudge label build runs/* --budget 150 --dry-run
    """

    first: ClassVar = (
        *("strategy", "budget", "double", "out", "data", "annotations", "gold", "questions"),
        *("seed", "dry_run"),
    )
    sections: ClassVar[Mapping[str, str]] = {"annotations": "the draw", "out": "the queue"}

    runs: Runs = ()
    strategy: Annotated[
        Strategy,
        Option(
            "what is drawn more often: ppi narrows the judges' intervals most, audit finds errors "
            "of the rule, cascade decides what trajudge select tries"
        ),
    ] = "random"
    candidates: Annotated[
        Path | None, Option("the frozen plan of trajudge select, for --strategy cascade")
    ] = None
    budget: Annotated[Count, Option("trajectories")] = 100
    double: Annotated[
        float,
        Field(ge=0, le=1),
        Option("share that two people label, for the agreement", "SHARE"),
    ] = 0.2
    judgments: Annotated[Path | None, Option("judgments in the published layout", "DIR")] = None
    filter: Annotated[
        str,
        Option(
            "draw only from what a filter of the table of judgments keeps, such as 'wrong:fp'; "
            "estimates then speak of these trajectories alone",
            "TERMS",
        ),
    ] = ""
    seed: Annotated[Seed, Option("of the draw (default: 0)")] = 0
    dry_run: Annotated[bool, Option("show the expected widths and write nothing")] = False
    format: TableFormat = "table"
    out: Annotated[Path, Output("folder of the queue", "DIR")] = Path("queue")
    data: Annotated[
        tuple[str, ...],
        Option("the trajectories (default: those of the runs); may be repeated", "KIND:PATH"),
    ] = ()
    gold: Annotated[
        str | None, Option("known labels, for hidden checks among the items", "KIND:PATH")
    ] = None
    gold_share: Annotated[
        float, Field(gt=0, le=1), Option("hidden checks per drawn trajectory", "SHARE")
    ] = 0.05
    questions: Annotated[
        tuple[Question, ...],
        Field(min_length=1),
        Option(
            "what is asked: success, side_effect, repetition, optimality (default: all)",
            "QUESTION",
            several=True,
        ),
    ] = QUESTIONS
    informed: Annotated[
        bool,
        Option("after each submission show the verdicts and ask again; kept apart from the label"),
    ] = False
    guidelines: Annotated[Path | None, Option("Markdown shown beside the form")] = None


class PeopleConfig(Settings):
    """List the people of a queue, or add some. A token is shown once, when a person is added; the
    queue keeps its hash.

      trajudge label people QUEUE --add Ann --add Bob
      trajudge label people QUEUE --add Joe --role adjudicator
    """

    queue: Queue
    add: Annotated[tuple[str, ...], Option("a new person; may be repeated", "NAME")] = ()
    role: Annotated[Role, Option("of the new people")] = "annotator"


class LabelImportConfig(Settings):
    """Take labels from a file into a queue, as submissions of the people whom it names. Labels of
    trajectories that are not in the queue, or that have all the labels they want, are left out.

      trajudge label import QUEUE --annotations trajudge:labels.jsonl
      trajudge label import QUEUE --layout label-studio --annotations export.json
    """

    queue: Queue
    annotations: Annotated[str, Option("the labels", "KIND:PATH")]
    layout: Annotated[
        Literal["trajudge", "label-studio", "argilla"],
        Option("label-studio, argilla: a JSON export of what label export wrote for them"),
    ] = "trajudge"


class LabelExportConfig(Settings):
    """Write the labels of a queue (labels.jsonl, in trajudge's own format, which --annotations
    reads, with the inclusion probability and the stratum of each), its log (events.jsonl), its
    items (items.jsonl) and which tasks share a goal (goals.jsonl).

      trajudge label export QUEUE --out labels
      trajudge label export QUEUE --out labels --layout agentrewardbench
    """

    queue: Queue
    out: Annotated[Path, Output("folder that is written", "DIR")] = Path("labels")
    stage: StageOption = "blind"
    layout: Annotated[
        Layout,
        Option(
            "also annotations.csv with the columns of AgentRewardBench, without adjudicated "
            "labels; or the items as tasks to label in Label Studio or Argilla"
        ),
    ] = "trajudge"


class EstimateConfig(Settings):
    """Estimate every judge's precision over all trajectories that a queue was drawn from, with 95 %
    limits: from the labels and what the judges say of the rest ("corrected"), and from the labels
    alone. Both weight a label by one over its inclusion probability. The limits hold for these
    trajectories, not for other tasks. Below, how far annotators agree: the share of equal labels,
    Cohen's kappa and Krippendorff's alpha, with 95 % limits over tasks; also of other labels.

      trajudge label estimate QUEUE
      trajudge label estimate --annotations agentrewardbench:DIR --split test
    """

    queue: Annotated[Path | None, Argument("QUEUE", "folder of a queue")] = None
    annotations: Annotated[
        str | None, Option("measure the agreement of these labels instead", "KIND:PATH")
    ] = None
    split: Annotated[Split, Option("of --annotations")] = "all"
    stage: StageOption = "blind"
    task_id: TaskIdOption = "recorded"
    format: TableFormat = "table"
    json_output: Annotated[bool, Option("print JSON instead of tables", name="json")] = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.queue is None) == (self.annotations is None):
            raise ValueError("name the folder of a queue, or labels with --annotations KIND:PATH")
        return self
