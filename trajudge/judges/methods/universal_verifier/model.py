"""What the Universal Verifier reads and computes without a model: options, the run as text, the
rubric's items and totals, the screenshots of a criterion, and the vote over several scorings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from trajudge.judges.answers import SourceOptions
from trajudge.judges.prompting import AuxiliaryModel, ImageLimits, Shot
from trajudge.trajectories.model import Record, Step, Trajectory
from trajudge.trajectories.needs import ALL, Needs

Thoughts = Literal["as-recorded", "shown", "hidden"]

_URL_LENGTH = 150
_CALL = re.compile(r"\s*([A-Za-z_][\w.]*)\((\{.*\})\)\s*", re.DOTALL)
_ENDS = {"stop_execution": "terminate", "stop_and_answer_question": "terminate"}
# Arguments in which agents write what they think or see; the original shows ``thoughts``.
_SCREEN = "screen_description"
_NOT_SHOWN = frozenset({"reasoning", "action", _SCREEN})
_SEARCH_PAGES = frozenset(
    f"{scheme}{host}{end}"
    for scheme in ("https://", "http://", "")
    for host in ("www.bing.com", "bing.com")
    for end in ("", "/")
)


class UniversalVerifierOptions(SourceOptions):
    """``critical_points`` classified is the source's state of June 2026, inline that of its paper.

    ``success`` is what the verdict means: the outcome, the process score, both, or an outcome
    without a violation (safe). ``light`` is the model of the stages that the source gives to a
    smaller one. ``votes`` is N; ``per_criterion`` and ``filter`` choose screenshots; ``rubrics``
    names a JSON file {task id: rubric}. ``date`` (YYYY-MM-DD) is the day on which the runs are
    judged, ``year`` the one that a date without a year means.
    """

    sources: ClassVar[tuple[str, ...]] = ("fara",)

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

    @model_validator(mode="after")
    def _are_published(self) -> UniversalVerifierOptions:
        """Refuse what the texts of ``prompts.published`` lack: they are of June 2026, and without
        the last stages, which the source puts together from a document."""
        if self.is_published:
            if self.critical_points == "inline":
                raise ValueError("the published prompts are of critical_points=classified")
            for name in ("failures", "validity"):
                if getattr(self, name):
                    raise ValueError(
                        f"the published prompts lack the stage of {name}: leave it out"
                    )
        return self

    @model_validator(mode="after")
    def _votes_go_together(self) -> UniversalVerifierOptions:
        if self.rubric_per == "task" and self.critical_points != "inline":
            raise ValueError(
                "rubric_per=task needs critical_points=inline: a classified profile is made "
                "from each run's own history"
            )
        if self.success == "safe" and self.critical_points == "inline":
            raise ValueError(
                "success=safe needs critical_points=classified: inline asks about no violation"
            )
        if self.votes % 2 == 0:
            raise ValueError(f"votes = {self.votes}: an even number can tie, give an odd one")
        return self

    @property
    def needs(self) -> Needs:
        """Every screenshot is scored."""
        return Needs(screenshots=ALL, answer=True, requires=("screenshot",))


class ToolCall(NamedTuple):
    """An action that is recorded as the name of a tool and its arguments."""

    name: str
    arguments: dict[str, Any]


def tool_call(action: str) -> ToolCall | None:
    """Parse ``NAME({...})``; None for an action in another form."""
    match = _CALL.fullmatch(action)
    if match is None:
        return None
    try:
        arguments = json.loads(match[2])
    except (ValueError, RecursionError):
        return None
    return ToolCall(_ENDS.get(match[1], match[1]), arguments)


def acting_steps(trajectory: Trajectory) -> list[Step]:
    """Return the steps that have an action, in order."""
    return [step for step in trajectory.steps if step.action is not None]


def action_history(
    trajectory: Trajectory,
    thoughts: Thoughts = "as-recorded",
    write_error: Callable[[int, str], str] | None = None,
) -> str:
    """Write the run as text: two lines for every action (where, what), those of its error and of
    the agent's thoughts where there are any. Actions are numbered from 1; ``write_error`` writes
    the error of one (default: in our words)."""
    lines: list[str] = []
    for number, step in enumerate(acting_steps(trajectory), start=1):
        action = step.action or ""
        call = tool_call(action)
        seen = str(call.arguments.get(_SCREEN, "")) if call else ""
        lines.append(f"State {number}: {_short(step.observation.url)}, state_description: {seen}")
        if thoughts != "hidden" and step.reasoning is not None:
            lines.append(f"Thought {number}: {step.reasoning}")
        lines.append(f"Action {number}: {_written(call, thoughts) if call else action}")
        following = trajectory.steps[step.index + 1 : step.index + 2]
        if following and (error := following[0].observation.page_error):
            lines.append(write_error(number, error) if write_error else f"Error! {error}")
    return "\n".join(lines)


def _written(call: ToolCall, thoughts: Thoughts) -> str:
    left_out = set(_NOT_SHOWN)
    if thoughts == "shown":
        left_out.discard("reasoning")
    if thoughts == "hidden":
        left_out |= {"thoughts", "state_description"}
    kept = {name: value for name, value in call.arguments.items() if name not in left_out}
    return f"{call.name}({json.dumps(kept, indent=4)})"


def _short(url: str | None) -> str:
    if url is None:
        return "unknown"
    short = re.split(r"[?#]", url, maxsplit=1)[0]
    return short if len(short) <= _URL_LENGTH else f"{short[:_URL_LENGTH]}..."


def screenshots(trajectory: Trajectory, *, last_page: bool) -> tuple[list[Shot], int]:
    """Return the screenshots before the actions in order, and how many steps lack theirs;
    ``last_page`` adds the page after the last action."""
    shown = acting_steps(trajectory)
    if last_page and trajectory.steps and trajectory.steps[-1].action is None:
        shown.append(trajectory.steps[-1])
    shots = [
        Shot(step.index + 1, step.observation.screenshot)
        for step in shown
        if step.observation.screenshot is not None
    ]
    return shots, len(shown) - len(shots)


def answer_of(trajectory: Trajectory) -> str:
    """Return what the agent told the user; the original's word where it is known to have ended
    without, "" where nothing is known."""
    if trajectory.answer is not None:
        return trajectory.answer
    return "<no_answer>" if unended(trajectory) else ""


def unended(trajectory: Trajectory) -> bool:
    """Return True if the agent is known not to have ended its run itself."""
    return trajectory.terminated is False or trajectory.truncated is True


def initial_url(trajectory: Trajectory) -> str | None:
    """Return the address that belongs to the task, None for none and for a search engine's empty
    page. That of the first step is not it."""
    for name in ("init_url", "start_url"):
        url = trajectory.metadata.get(name)
        if isinstance(url, str) and url.strip():
            return None if url.strip().lower() in _SEARCH_PAGES else url.strip()
    return None


class RubricItem(Record):
    """One criterion of a rubric; the fields are filled stage by stage.

    ``earned_points`` and ``justification`` come from the action history alone, the
    ``post_image_`` fields from the screenshots as well (None: not scored yet).
    ``is_condition_met`` is None without a ``condition``. A ``penalty`` earns nothing.
    """

    criterion: str
    description: str
    max_points: float
    condition: str | None = None
    justification: str = ""
    earned_points: float = 0.0
    is_condition_met: bool | None = None
    reality_notes: str = ""
    applicable_evidence: str = ""
    post_image_justification: str = ""
    post_image_earned_points: float | None = None
    penalty: bool = False

    @property
    def counts(self) -> bool:
        """Whether the points count: a criterion whose condition is not met does not."""
        return self.condition is None or self.is_condition_met is True

    @property
    def final_points(self) -> float:
        """The points with the screenshots seen, else those of the action history."""
        scored = self.post_image_earned_points
        return self.earned_points if scored is None else scored


Items = tuple[RubricItem, ...]


class PointTotals(NamedTuple):
    """Points that a rubric offers and those that a run earned."""

    earned: float
    max: float

    @property
    def score(self) -> float:
        """Earned of offered points, 0 where none are offered."""
        return self.earned / self.max if self.max else 0.0


def totals(items: Iterable[RubricItem]) -> PointTotals:
    """Sum the final points over the criteria that count; penalties add to the offered ones only."""
    counted = [item for item in items if item.counts]
    return PointTotals(
        float(sum(item.final_points for item in counted)),
        float(sum(item.max_points for item in counted)),
    )


def baseline_totals(items: Iterable[RubricItem]) -> PointTotals:
    """Sum the points given on the action history alone, without penalties."""
    counted = [item for item in items if item.counts and not item.penalty]
    return PointTotals(
        float(sum(item.earned_points for item in counted)),
        float(sum(item.max_points for item in counted)),
    )


def ranked_screenshots(relevance: Sequence[Sequence[int]], keep: int) -> dict[int, list[int]]:
    """Choose the ``keep`` most relevant screenshots of every criterion, best first.

    ``relevance`` has shape (screenshots, criteria), scores 0-10. Of equal ones the later comes
    first.
    """
    return {
        criterion: sorted(range(len(scores)), key=lambda shot: (scores[shot], shot), reverse=True)[
            :keep
        ]
        for criterion, scores in enumerate(zip(*relevance, strict=True))
    }


# A screenshot of this relevance shows something; where one does, those below WEAK that lie
# further than GAP below the least of them are dropped.
RELEVANT = 6
WEAK = 5
GAP = 2


def relevant_only(
    ranked: Mapping[int, Sequence[int]], relevance: Sequence[Sequence[int]]
) -> dict[int, list[int]]:
    """Drop the screenshots that are clearly less relevant than the relevant ones of a criterion;
    all stay where none is relevant."""
    chosen: dict[int, list[int]] = {}
    for criterion, shots in ranked.items():
        score = {shot: relevance[shot][criterion] for shot in shots}
        least = min((one for one in score.values() if one >= RELEVANT), default=0)
        chosen[criterion] = [
            shot for shot in shots if score[shot] >= WEAK or least - score[shot] <= GAP
        ]
    return chosen


def by_screenshot(chosen: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Invert the choice: the criteria of every distinct screenshot, in their order; screenshots in
    the order in which the criteria name them."""
    inverted: dict[int, list[int]] = {}
    for criterion in sorted(chosen):
        for shot in chosen[criterion]:
            inverted.setdefault(shot, []).append(criterion)
    return inverted


def median_index(scores: Sequence[float]) -> int:
    """Return the index of the scoring with the median score; of equal ones in their order."""
    return sorted(range(len(scores)), key=lambda index: scores[index])[len(scores) // 2]


def majority(votes: Sequence[bool | None]) -> bool | None:
    """Return what more than half of the given votes say, False on a tie; None where fewer than
    half of all were given."""
    cast = [vote for vote in votes if vote is not None]
    if len(cast) < len(votes) // 2 + 1:
        return None
    return sum(cast) > len(cast) / 2
