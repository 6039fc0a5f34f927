"""Options of the Universal Verifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from trajudge.judges.methods.universal_verifier.history import Thoughts
from trajudge.judges.prompting.auxiliary_model import AuxiliaryModel
from trajudge.judges.prompting.pictures import ImageLimits
from trajudge.trajectories.model import Record
from trajudge.trajectories.needs import ALL, Needs


class UniversalVerifierOptions(Record):
    """``critical_points`` classified is the source's state of June 2026, inline that of its paper.

    ``success`` is what the verdict means: the outcome, the process score, both, or an outcome
    without a violation (safe). ``light`` is the model of the stages that the source gives to a
    smaller one. ``votes`` is N; ``per_criterion`` and ``filter`` choose screenshots; ``rubrics``
    names a JSON file {task id: rubric}. ``date`` (YYYY-MM-DD) is the day on which the runs are
    judged, ``year`` the one that a date without a year means.
    """

    critical_points: Literal["classified", "inline"] = "classified"
    success: Literal["outcome", "process", "both", "safe"] = "outcome"
    user_simulator: bool = False
    votes: int = Field(default=1, ge=1, le=15)
    attempts: int = Field(default=5, ge=1, le=5)
    per_criterion: int = Field(default=5, ge=1, le=50)
    filter: bool = True
    process_threshold: float = Field(default=0.8, ge=0, le=1)
    failures: bool = False
    validity: bool = False
    year: int | None = Field(default=None, ge=1990, le=2100)
    date: str = Field(default="", pattern=r"^$|^\d{4}-\d{2}-\d{2}$")
    rubrics: Path | None = None
    rubric_per: Literal["run", "task"] = "run"
    on_stage_failure: Literal["fail", "continue"] = "fail"
    unended: Literal["ask", "failure"] = "ask"
    thoughts: Thoughts = "as-recorded"
    last_page: bool = True
    image_last: bool = False
    reply_tokens: int = Field(default=8192, ge=256)
    light: AuxiliaryModel = AuxiliaryModel()
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()

    @model_validator(mode="before")
    @classmethod
    def _check(cls, fields: Any) -> Any:
        if isinstance(fields, dict):
            inline = fields.get("critical_points", "classified") == "inline"
            if fields.get("rubric_per", "run") == "task" and not inline:
                raise ValueError(
                    "rubric_per=task needs critical_points=inline: a classified profile is made "
                    "from each run's own history"
                )
            if fields.get("success") == "safe" and inline:
                raise ValueError(
                    "success=safe needs critical_points=classified: inline asks about no violation"
                )
        return fields

    @model_validator(mode="after")
    def _odd(self) -> UniversalVerifierOptions:
        if self.votes % 2 == 0:
            raise ValueError(f"votes = {self.votes}: an even number can tie, give an odd one")
        return self

    @property
    def needs(self) -> Needs:
        """Every screenshot is scored."""
        return Needs(screenshots=ALL, answer=True, requires=("screenshot",))
