"""What a leaderboard holds: suites of benchmarks, a table each, a row per judge."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trajudge.eval.scoring.records import Rate, Score
from trajudge.trajectories.model import Record

Question = Literal["success", "fault"]
QUESTIONS: dict[Question, str] = {"success": "success", "fault": "fault in the process"}
RANKED: tuple[Rate, ...] = ("precision", "f1")


class RankRange(Record):
    """Ranks that a judge may hold, 1 the best: ``best`` is 1 plus the judges that are significantly
    better, ``worst`` the number of ranked judges less those that are significantly worse."""

    best: int
    worst: int


class BoardRow(Record):
    """One judge on one benchmark.

    ``score`` counts failed judgments as not accepted; ``labelled`` is the number of trajectories
    that any judge could have been scored on; ``cost`` in US dollars per 1,000 judgments, None if a
    price is not known. ``ranks`` lacks a metric that is undefined; ``common`` is the smallest
    number of trajectories that the judge shares with another one, None where it stands alone.
    """

    judge: str
    score: Score
    labelled: int
    cost: float | None
    ranks: dict[Rate, RankRange] = Field(default_factory=dict)
    common: int | None = None

    @property
    def coverage(self) -> float:
        """Share of the labelled trajectories that the judge gave a verdict on."""
        return (self.score.n - self.score.missing) / self.labelled if self.labelled else 0.0


class BoardTable(Record):
    """The judges on one benchmark, or on all of a suite (``OVERALL``); the best first."""

    benchmark: str
    rows: tuple[BoardRow, ...]


class BoardSuite(Record):
    """Benchmarks whose trajectories are judged together; the table over all of them is the first.

    ``question`` is what the judges were asked; to ``fault`` (in the process) the positive answer is
    that there is one. ``remarks`` weaken the figures.
    """

    name: str
    question: Question = "success"
    tables: tuple[BoardTable, ...]
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The suite with its question, where that is not success."""
        return self.name if self.question == "success" else f"{self.name}, {self.asked}"

    @property
    def asked(self) -> str:
        """The question in words."""
        return QUESTIONS[self.question]


class Board(Record):
    """The whole leaderboard. ``split`` of the annotations is what was scored; ``left_out`` are runs
    that may not be compared, with the reason; ``notes`` name verdicts that no label is known of.
    """

    split: str
    suites: tuple[BoardSuite, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
