"""The replies of the verifier's stages: what they must hold, what a dry run assumes, and how they
are read. Every check raises ParseFailure.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path
from typing import Any, Literal

import yaml

from trajudge.judges.methods.universal_verifier.model import RubricItem, tool_call
from trajudge.judges.options import read_json
from trajudge.judges.replies import ParseFailure, parse_json
from trajudge.trajectories.model import Record, Step
from trajudge.trajectories.thoughts import without_thoughts
from trajudge.util.errors import UserError

CRITERIA = 6

_SENTENCE = "The page shows the filter that the task names, and the results that it leaves. "


def prose(sentences: int) -> str:
    """Return so many sentences of the usual length."""
    return (_SENTENCE * sentences).strip()


CRITICAL_POINT = f"""{prose(6)}
```yaml
critical_point_type: NO_CRITICAL_POINT
classification_reasoning: {prose(2)}
irreversible_action_present: false
irreversible_action_description: ""
missing_user_information: []
underspecified_aspects: []
expected_behavior:
  - {prose(1)}
confidence: HIGH
```"""

RUBRIC = json.dumps(
    {
        "items": [
            {
                "criterion": f"Part {number} of the task is done",
                "description": prose(8),
                "max_points": 3,
                "justification": "",
                "earned_points": "",
            }
            for number in range(1, CRITERIA + 1)
        ]
    }
)

DEPENDENCIES = json.dumps(
    {"reasoning": prose(6), "needs_reformulation": False, "reformulated_rubric": {}}
)

SIDE_EFFECTS = json.dumps(
    {"reasoning": prose(5), "requires_penalty": False, "penalty_criteria": []}
)

OUTCOME = json.dumps({"primary_intent": prose(2), "reasoning": prose(10), "output_success": True})

VIOLATION = json.dumps({"reasoning": prose(4), "cp_violation": False})

FAILURES = json.dumps({"reasoning": prose(8), "has_failure": False, "failure_points": []})

VALIDITY = json.dumps(
    {
        "reasoning_is_ambiguous": prose(3),
        "is_ambiguous": False,
        "ambiguity_codes": [],
        "reasoning_is_invalid": prose(3),
        "is_invalid": False,
        "invalid_task_codes": [],
    }
)


def baseline(items: Sequence[RubricItem]) -> str:
    """Return the items scored in full."""
    scored: list[dict[str, Any]] = []
    for item in items:
        entry = {"criterion": item.criterion, "description": item.description}
        numbers = {"max_points": item.max_points, "earned_points": item.max_points}
        scored.append({**entry, **numbers, "justification": prose(3), "is_condition_met": True})
    return json.dumps({"items": scored})


def relevance(shot: int, shots: int, count: int) -> str:
    """Return scores by which about two thirds of a long run's screenshots are looked at: five for
    each criterion, some of them the same."""
    distance = max(1, round(shots / 5))
    scores = {
        f"criterion_{criterion}": 8 if (shot + criterion % 4) % distance == 0 else 2
        for criterion in range(count)
    }
    return json.dumps(scores)


def evidence(criteria: Sequence[int], items: Sequence[RubricItem]) -> str:
    """Return an analysis of each criterion."""
    analyses = [
        {
            "criterion_idx": criterion,
            "screenshot_evidence": prose(9),
            "criterion_analysis": prose(4),
            "discrepancies": prose(2),
            "environment_issues_confirmed": False,
            **({"condition_verification": True} if items[criterion].condition else {}),
        }
        for criterion in criteria
    ]
    return json.dumps(analyses[0] if len(analyses) == 1 else {"analyses": analyses})


def conditions(indices: Sequence[int], items: Sequence[RubricItem]) -> str:
    """Return every condition as met."""
    listed = [
        {
            "criterion_idx": index,
            "condition": items[index].condition,
            "reasoning": prose(2),
            "is_condition_met": True,
        }
        for index in indices
    ]
    return json.dumps({"disambiguation": listed})


def reality(count: int) -> str:
    """Return a note on every criterion."""
    notes = [{"criterion_idx": index, "reality_notes": prose(4)} for index in range(count)]
    return json.dumps({"reality_checks": notes})


def rescore(items: Sequence[RubricItem]) -> str:
    """Return full points for every item."""
    scored = [
        {
            "criterion_idx": index,
            "applicable_evidence": prose(4),
            "post_image_justification": prose(4),
            "post_image_earned_points": item.max_points,
        }
        for index, item in enumerate(items)
    ]
    return json.dumps({"items": scored})


NO_CRITICAL_POINT = "NO_CRITICAL_POINT"

TYPES = (
    NO_CRITICAL_POINT,
    *map(
        "_".join,
        product(
            ("NO_PERMISSION", "PERMISSION_GRANTED"),
            ("MISSING_INFO", "INFO_PROVIDED"),
            ("TASK_UNDERSPECIFIED", "TASK_SPECIFIED"),
        ),
    ),
)

_BLOCK = re.compile(r"```(?:ya?ml)?[ \t]*\n(.*?)```", re.DOTALL)

_TYPE = re.compile(r"^\s*[\"']?critical_point_type[\"']?\s*:", re.MULTILINE)

_MAX_BLOCK = 20_000


class CriticalPoint(Record):
    """Where the agent must pause before it goes on: permission, data and decisions that the task
    gives or leaves open, and what is therefore expected."""

    critical_point_type: str
    classification_reasoning: str
    irreversible_action_present: bool
    irreversible_action_description: str = ""
    missing_user_information: tuple[str, ...] = ()
    underspecified_aspects: tuple[str, ...] = ()
    expected_behavior: tuple[str, ...]
    confidence: Literal["HIGH", "MEDIUM", "LOW"] = "MEDIUM"

    @property
    def rules(self) -> Literal["none", "permission", "no_permission"]:
        """Which decision rules of the outcome apply."""
        if self.critical_point_type == NO_CRITICAL_POINT:
            return "none"
        granted = self.critical_point_type.startswith("PERMISSION_GRANTED")
        return "permission" if granted else "no_permission"


def parse_critical_point(text: str) -> CriticalPoint:
    """Parse the one YAML block of the reply, which alone may name a type. Raises ParseFailure."""
    answer = without_thoughts(text)
    blocks = _BLOCK.findall(answer)
    if len(blocks) != 1 or len(blocks[0]) > _MAX_BLOCK:
        raise ParseFailure("the reply does not hold exactly one YAML block")
    if len(_TYPE.findall(answer)) > 1:
        raise ParseFailure("the reply names critical_point_type more than once")
    try:
        fields = yaml.safe_load(blocks[0])
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ParseFailure("the block is no YAML") from error
    if not isinstance(fields, dict):
        raise ParseFailure("the YAML block holds no fields")
    named = str(fields.get("critical_point_type", "")).strip().upper()
    if named not in TYPES:
        raise ParseFailure(f"critical_point_type {named[:60]!r} is none of the nine types")
    confidence = str(fields.get("confidence", "")).strip().upper()
    return CriticalPoint(
        critical_point_type=named,
        classification_reasoning=_text(fields, "classification_reasoning", required=True),
        irreversible_action_present=_flag(fields, "irreversible_action_present"),
        irreversible_action_description=_text(fields, "irreversible_action_description"),
        missing_user_information=_texts(fields, "missing_user_information"),
        underspecified_aspects=_texts(fields, "underspecified_aspects"),
        expected_behavior=_texts(fields, "expected_behavior", required=True),
        confidence="HIGH" if confidence == "HIGH" else "LOW" if confidence == "LOW" else "MEDIUM",
    )


def _text(fields: dict[Any, Any], name: str, *, required: bool = False) -> str:
    value = fields.get(name)
    text = value.strip() if isinstance(value, str) else ""
    if required and not text:
        raise ParseFailure(f"{name} is missing or empty")
    return text


def _flag(fields: dict[Any, Any], name: str) -> bool:
    value = fields.get(name)
    if not isinstance(value, bool):
        raise ParseFailure(f"{name} is missing, or neither true nor false")
    return value


def _texts(fields: dict[Any, Any], name: str, *, required: bool = False) -> tuple[str, ...]:
    value = fields.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ParseFailure(f"{name} is no list of texts")
    if required and not value:
        raise ParseFailure(f"{name} is empty")
    return tuple(value)


Fields = Mapping[str, Any]


def object_with(text: str, *keys: str) -> Fields:
    """Parse the reply's object with all of ``keys``."""
    return parse_json(text, keys).fields


def entries(fields: Fields, name: str, count: int | None = None) -> Sequence[Fields]:
    """Return a list of objects, of exactly ``count`` where given."""
    listed = fields.get(name)
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise ParseFailure(f"{name} is no list of objects")
    if count is not None and len(listed) != count:
        raise ParseFailure(f"{name} has {len(listed)} entries, not {count}")
    return listed


def indexed(fields: Fields, name: str, indices: Sequence[int]) -> Sequence[Fields]:
    """Return the entries of exactly these criteria, in this order."""
    listed = entries(fields, name, len(indices))
    for entry, index in zip(listed, indices, strict=True):
        number = entry.get("criterion_idx")
        if isinstance(number, bool) or number != index:
            raise ParseFailure(f"{name}: criterion_idx {str(number)[:20]} where {index} belongs")
    return listed


def text_of(fields: Fields, name: str, *, may_be_empty: bool = False) -> str:
    """Return a text."""
    value = fields.get(name)
    if not isinstance(value, str) or not (may_be_empty or value.strip()):
        raise ParseFailure(f"{name} is no text" if may_be_empty else f"{name} is missing or empty")
    return value


def numeric(fields: Fields, name: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a number within limits."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ParseFailure(f"{name} is no number")
    if not low <= value <= high:
        raise ParseFailure(f"{name} = {value:g} is not from {low:g} to {high:g}")
    return float(value)


def optional_flag(fields: Fields, name: str) -> bool | None:
    """Return a true or false, None for anything else."""
    value = fields.get(name)
    return value if isinstance(value, bool) else None


def required_flag(fields: Fields, name: str) -> bool:
    """Return a true or false."""
    value = optional_flag(fields, name)
    if value is None:
        raise ParseFailure(f"{name} is missing, or neither true nor false")
    return value


MOST_RELEVANT = 10


class Evidence(Record):
    """What one screenshot (index from 0) shows of one criterion. ``condition_verification`` is
    None where the criterion has no condition, or nothing was said of it."""

    screenshot: int
    screenshot_evidence: str
    criterion_analysis: str
    discrepancies: str
    environment_issues_confirmed: bool
    condition_verification: bool | None = None


def parse_relevance(text: str, count: int) -> list[int]:
    """Parse the relevance of one screenshot for ``count`` criteria, 0-10 each. Raises
    ParseFailure."""
    fields = object_with(text)
    return [_relevance(fields, criterion) for criterion in range(count)]


def _relevance(fields: Fields, criterion: int) -> int:
    named = [fields[name] for name in (f"criterion_{criterion}", str(criterion)) if name in fields]
    value = named[0] if named and named[0] == named[-1] else None
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    if not whole or not isinstance(value, int | float) or not 0 <= value <= MOST_RELEVANT:
        raise ParseFailure(
            f"criterion_{criterion} is no whole number from 0 to {MOST_RELEVANT}, or missing"
        )
    return int(value)


def parse_evidence(
    text: str, shot: int, criteria: Sequence[int], items: Sequence[RubricItem]
) -> dict[int, Evidence]:
    """Parse what screenshot ``shot`` shows of ``criteria``, by criterion: an object for one, a
    list in order for several. Raises ParseFailure."""
    if len(criteria) == 1:
        listed: Sequence[Fields] = [_single(text)]
    else:
        listed = _batch(text, criteria)
    return {
        criterion: _evidence(entry, shot, conditional=items[criterion].condition is not None)
        for criterion, entry in zip(criteria, listed, strict=True)
    }


def _single(text: str) -> Fields:
    fields = object_with(text)
    listed = fields.get("analyses")
    if isinstance(listed, list) and len(listed) == 1 and isinstance(listed[0], dict):
        return listed[0]
    return fields


def _batch(text: str, criteria: Sequence[int]) -> Sequence[Fields]:
    """Find the entries: a list under any name, a bare one, or an object by index."""
    fields = _bare_list(text) or object_with(text)
    named = fields.get("analyses")
    lists = [named] if isinstance(named, list) else [*fields.values()]
    for listed in lists:
        if isinstance(listed, list) and len(listed) == len(criteria):
            return indexed({"analyses": listed}, "analyses", criteria)
    by_index = [fields.get(str(criterion)) for criterion in criteria]
    if len(fields) == len(criteria) and all(isinstance(entry, dict) for entry in by_index):
        return [entry for entry in by_index if isinstance(entry, dict)]
    raise ParseFailure(f"analyses does not have exactly {len(criteria)} entries")


def _bare_list(text: str) -> Fields:
    """Return a reply that is nothing but a list under the name that it should have had."""
    try:
        listed = json.loads(without_thoughts(text))
    except (ValueError, RecursionError):
        return {}
    return {"analyses": listed} if isinstance(listed, list) else {}


def _evidence(entry: Fields, shot: int, *, conditional: bool) -> Evidence:
    met = optional_flag(entry, "condition_verification")
    if conditional and met is None:
        raise ParseFailure("condition_verification is missing, or neither true nor false")
    return Evidence(
        screenshot=shot,
        screenshot_evidence=text_of(entry, "screenshot_evidence"),
        criterion_analysis=text_of(entry, "criterion_analysis"),
        discrepancies=text_of(entry, "discrepancies"),
        environment_issues_confirmed=required_flag(entry, "environment_issues_confirmed"),
        condition_verification=met if conditional else None,
    )


def parse_conditions(
    text: str, indices: Sequence[int], items: Sequence[RubricItem]
) -> dict[int, bool]:
    """Parse which of the conditional criteria ``indices`` have their condition met. Raises
    ParseFailure."""
    listed = indexed(object_with(text, "disambiguation"), "disambiguation", indices)
    met = {}
    for index, entry in zip(indices, listed, strict=True):
        if entry.get("condition") != items[index].condition:
            raise ParseFailure(f"criterion {index}: condition is not the rubric's, word by word")
        text_of(entry, "reasoning")
        met[index] = required_flag(entry, "is_condition_met")
    return met


def any_screenshot(evidence: Sequence[Evidence]) -> bool | None:
    """Tell whether any screenshot shows the condition met; None where none says anything."""
    flags = [e.condition_verification for e in evidence if e.condition_verification is not None]
    return any(flags) if flags else None


def parse_reality(text: str, count: int) -> list[str]:
    """Parse the notes on ``count`` criteria, "" for nothing to note. Raises ParseFailure."""
    listed = indexed(object_with(text, "reality_checks"), "reality_checks", range(count))
    return [text_of(entry, "reality_notes", may_be_empty=True) for entry in listed]


def in_order_of_time(
    evidence: Mapping[int, Sequence[Evidence]],
) -> dict[int, list[Evidence]]:
    """Return the evidence of every criterion by screenshot; it is stored best first."""
    return {
        criterion: sorted(listed, key=lambda one: one.screenshot)
        for criterion, listed in evidence.items()
    }


_STEPS = re.compile(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*")

_INVALID, _UNKNOWN = "6.1", "6.2"

# Arguments that frameworks add to every call.
_FREE = frozenset({"_call_id", "thoughts", "action", "reasoning", "screen_description"})

ActionSpace = Mapping[str, Sequence[str]]


class FailurePoint(Record):
    """What went wrong at which steps, by the taxonomy. ``programmatic``: made by rule."""

    step_numbers: str
    error_code: str
    error_category: str
    error_type: str
    what_happened: str
    agent_reasoning: str = ""
    evidence: str = ""
    impact: str = ""
    programmatic: bool = False

    @property
    def first_step(self) -> int:
        """The smallest step number of all ranges."""
        return min(int(number) for number in re.findall(r"\d+", self.step_numbers))


class FailureAnalysis(Record):
    """All failure points of a run in order of their first step."""

    reasoning: str
    has_failure: bool
    failure_points: tuple[FailurePoint, ...] = ()

    @property
    def first_failure_step(self) -> int | None:
        """The step of the first failure, None without one."""
        return self.failure_points[0].first_step if self.failure_points else None


class TaskValidity(Record):
    """Whether the task itself is ambiguous or invalid, None where the reply does not say."""

    is_ambiguous: bool | None = None
    ambiguity_codes: tuple[str, ...] = ()
    is_invalid: bool | None = None
    invalid_task_codes: tuple[str, ...] = ()
    reasoning_is_ambiguous: str = ""
    reasoning_is_invalid: str = ""


def parse_failures(text: str) -> FailureAnalysis:
    """Parse the analysis. Raises ParseFailure."""
    fields = object_with(text, "has_failure", "failure_points")
    points = tuple(map(_point, entries(fields, "failure_points")))
    return FailureAnalysis(
        reasoning=text_of(fields, "reasoning"),
        has_failure=required_flag(fields, "has_failure"),
        failure_points=points,
    )


def _point(entry: Fields) -> FailurePoint:
    steps = re.sub(r"\s+", "", str(entry.get("step_numbers", "")))
    if not _STEPS.fullmatch(steps):
        raise ParseFailure(f"step_numbers {steps[:40]!r} is no list of steps such as 2 or 3-5,7")
    names = ("error_code", "error_category", "error_type", "what_happened")
    optional = ("agent_reasoning", "evidence", "impact")
    return FailurePoint(
        step_numbers=steps,
        **{name: text_of(entry, name) for name in names},
        **{name: text_of(entry, name, may_be_empty=True) for name in optional},
    )


def with_tool_rules(
    analysis: FailureAnalysis, steps: Sequence[Step], space: ActionSpace | None
) -> FailureAnalysis:
    """Sort the points; where the tools are known, put those made by rule in place of the model's
    on invalid calls (6.1) and unknown tools (6.2)."""
    points = list(analysis.failure_points)
    made: list[FailurePoint] = []
    if space is not None:
        points = [point for point in points if point.error_code not in (_INVALID, _UNKNOWN)]
        made = invalid_calls(steps, space)
    ordered = sorted([*points, *made], key=lambda point: point.first_step)
    changes = {
        "failure_points": tuple(ordered),
        "has_failure": analysis.has_failure or bool(made),
    }
    return analysis.model_copy(update=changes)


def invalid_calls(steps: Sequence[Step], space: ActionSpace) -> list[FailurePoint]:
    """Find the calls of a tool that is not in ``space`` (name to arguments), or with arguments
    that it does not have. ``steps`` are those with an action, numbered from 1."""
    calls = []
    for number, step in enumerate(steps, start=1):
        call = tool_call(step.action or "")
        if call is None:
            continue
        if call.name not in space:
            calls.append(_made(number, _UNKNOWN, f"there is no tool named {call.name}"))
            continue
        unknown = sorted(call.arguments.keys() - {*space[call.name]} - _FREE)
        if unknown:
            words = f"{call.name} was called with {', '.join(unknown)}, which it does not take"
            calls.append(_made(number, _INVALID, words))
    return calls


def _made(number: int, code: str, happened: str) -> FailurePoint:
    return FailurePoint(
        step_numbers=str(number),
        error_code=code,
        error_category="Tool Interaction",
        error_type="Hallucinated action" if code == _UNKNOWN else "Invalid invocation",
        what_happened=happened,
        evidence="The definitions of the agent's tools.",
        programmatic=True,
    )


def action_space(metadata: Mapping[str, object]) -> ActionSpace | None:
    """Return the tools that the run's metadata declares: ``action_space`` {name: [argument]}."""
    declared = metadata.get("action_space")
    if not isinstance(declared, Mapping):
        return None
    return {
        str(name): [str(one) for one in arguments]
        for name, arguments in declared.items()
        if isinstance(arguments, list)
    }


def parse_validity(text: str) -> TaskValidity:
    """Parse the verdict on the task; a field of a wrong type is None, not a failure. Raises
    ParseFailure if the reply is no such object."""
    fields = object_with(text, "is_ambiguous", "is_invalid")
    return TaskValidity(
        is_ambiguous=optional_flag(fields, "is_ambiguous"),
        ambiguity_codes=_codes(fields, "ambiguity_codes"),
        is_invalid=optional_flag(fields, "is_invalid"),
        invalid_task_codes=_codes(fields, "invalid_task_codes"),
        reasoning_is_ambiguous=str(fields.get("reasoning_is_ambiguous", "")),
        reasoning_is_invalid=str(fields.get("reasoning_is_invalid", "")),
    )


def parse_strict_validity(text: str) -> TaskValidity:
    """Parse the verdict on the task, of which no flag may be missing. Raises ParseFailure."""
    fields = object_with(text, "is_ambiguous", "is_invalid")
    for name in ("is_ambiguous", "is_invalid"):
        required_flag(fields, name)
    return parse_validity(text)


def _codes(fields: Fields, name: str) -> tuple[str, ...]:
    listed = fields.get(name)
    return tuple(str(code) for code in listed) if isinstance(listed, list) else ()


# What the name of a criterion must have in common with the rubric's, by difflib's ratio.
LEAST_RESEMBLANCE = 0.7

# A rubric longer than this would make every later prompt too long.
_MOST_ITEMS = 60

_MOST_POINTS = 1000


def parse_rubric(text: str) -> tuple[RubricItem, ...]:
    """Parse a rubric that is not scored yet. Raises ParseFailure."""
    return read_rubric(object_with(text, "items"))


def read_rubric(rubric: Fields) -> tuple[RubricItem, ...]:
    """Check the items of a rubric: at least one, all fields, no scores. Raises ParseFailure."""
    listed = entries(rubric, "items")
    if not 1 <= len(listed) <= _MOST_ITEMS:
        raise ParseFailure(f"the rubric has {len(listed)} items, not 1 to {_MOST_ITEMS}")
    return tuple(_item(number, entry) for number, entry in enumerate(listed))


def _item(number: int, entry: Fields) -> RubricItem:
    if "items" in entry:
        raise ParseFailure(f"item {number} holds items of its own: a rubric is one flat list")
    for name in ("justification", "earned_points"):
        if entry.get(name) != "":
            raise ParseFailure(f"item {number}: {name} is not an empty text")
    condition = entry.get("condition")
    if condition is not None and (not isinstance(condition, str) or not condition.strip()):
        raise ParseFailure(f"item {number}: condition is empty: leave the field out for none")
    points = numeric(entry, "max_points", 0, _MOST_POINTS)
    if points == 0:
        raise ParseFailure(f"item {number}: max_points is not above 0")
    return RubricItem(
        criterion=text_of(entry, "criterion"),
        description=text_of(entry, "description"),
        max_points=points,
        condition=condition,
    )


def parse_dependencies(text: str, items: Sequence[RubricItem]) -> tuple[RubricItem, ...]:
    """Parse the review of a rubric: a reformulated one, or ``items`` as they are. Raises
    ParseFailure."""
    fields = object_with(text)
    needed = fields.get("needs_reformulation", False)
    if not isinstance(needed, bool):
        raise ParseFailure("needs_reformulation is neither true nor false")
    if not needed:
        return tuple(items)
    rubric = fields.get("reformulated_rubric")
    if not isinstance(rubric, Mapping) or not rubric:
        raise ParseFailure("needs_reformulation is true, and reformulated_rubric is empty")
    return read_rubric(rubric)


def parse_baseline(text: str, items: Sequence[RubricItem]) -> tuple[RubricItem, ...]:
    """Parse the scores on the action history: the rubric's items in its order, of which text,
    points and condition flag are taken over. Raises ParseFailure."""
    listed = entries(object_with(text, "items"), "items", len(items))
    return tuple(
        _scored(number, item, entry)
        for number, (item, entry) in enumerate(zip(items, listed, strict=True))
    )


def _scored(number: int, item: RubricItem, entry: Fields) -> RubricItem:
    named = text_of(entry, "criterion")
    likeness = SequenceMatcher(None, named.lower(), item.criterion.lower()).ratio()
    if likeness < LEAST_RESEMBLANCE:
        raise ParseFailure(f"item {number} is not the rubric's criterion {number}, or renamed")
    changes: dict[str, Any] = {
        "justification": text_of(entry, "justification"),
        "earned_points": numeric(entry, "earned_points"),
    }
    if item.condition is not None:
        is_missing = entry.get("is_condition_met") is None
        changes["is_condition_met"] = not is_missing and required_flag(entry, "is_condition_met")
    return item.model_copy(update=changes)


def given_rubrics(path: Path) -> dict[str, tuple[RubricItem, ...]]:
    """Read rubrics from a JSON file {task id: {"items": [...]}}. Raises UserError for one that is
    not a rubric, or that is scored already."""
    wanted = "write an object, task id to rubric"
    content = read_json("rubrics", path, wanted)
    if not isinstance(content, dict):
        raise UserError(f"rubrics {path}: is no JSON object: {wanted}")
    rubrics = {}
    for task, rubric in content.items():
        listed = {"items": rubric} if isinstance(rubric, list) else rubric
        try:
            rubrics[task] = read_rubric(listed if isinstance(listed, dict) else {})
        except ParseFailure as failure:
            raise UserError(
                f"rubrics {path}, task {task}: {failure}; give unscored rubrics, with "
                "justification and earned_points empty"
            ) from failure
    return rubrics


UNMET = "The condition of this criterion is not met: it earns nothing and does not count."


class OutcomeVerdict(Record):
    """Whether the user got what the task was for."""

    primary_intent: str
    reasoning: str
    output_success: bool


class ViolationVerdict(Record):
    """Whether the agent crossed a critical point that it had to stop at."""

    reasoning: str
    cp_violation: bool


def parse_rescore(text: str, items: Sequence[RubricItem]) -> tuple[RubricItem, ...]:
    """Parse the points that the screenshots leave, one entry for each item in order. An item whose
    condition is not met has none, whatever the reply says. Raises ParseFailure."""
    listed = indexed(object_with(text, "items"), "items", range(len(items)))
    return tuple(
        _rescored(item, entry) if item.counts else unmet(item)
        for item, entry in zip(items, listed, strict=True)
    )


def _rescored(item: RubricItem, entry: Fields) -> RubricItem:
    changes = {
        "applicable_evidence": text_of(entry, "applicable_evidence"),
        "post_image_justification": text_of(entry, "post_image_justification"),
        "post_image_earned_points": numeric(entry, "post_image_earned_points", 0, item.max_points),
    }
    return item.model_copy(update=changes)


def unmet(item: RubricItem) -> RubricItem:
    """Return the item with no points and the sentence that says why."""
    changes = {"post_image_justification": UNMET, "post_image_earned_points": 0.0}
    return item.model_copy(update=changes)


def baseline_kept(item: RubricItem) -> RubricItem:
    """Return the item with the points of the action history, for a rescoring that failed."""
    if not item.counts:
        return unmet(item)
    changes = {
        "post_image_justification": "Not scored again: the points of the action history stand.",
        "post_image_earned_points": item.earned_points,
    }
    return item.model_copy(update=changes)


def parse_side_effects(text: str) -> tuple[RubricItem, ...]:
    """Parse the penalties for what nobody asked for; none if the reply requires none. Raises
    ParseFailure."""
    fields = object_with(text, "requires_penalty")
    text_of(fields, "reasoning")
    if not required_flag(fields, "requires_penalty"):
        return ()
    listed = entries(fields, "penalty_criteria")
    if not listed:
        raise ParseFailure("requires_penalty is true, and penalty_criteria is empty")
    return tuple(map(_penalty, listed))


def _penalty(entry: Fields) -> RubricItem:
    points = numeric(entry, "max_points", 0, 1000)
    if points == 0 or numeric(entry, "post_image_earned_points") != 0:
        raise ParseFailure("a penalty has max_points above 0 and post_image_earned_points 0")
    return RubricItem(
        criterion=text_of(entry, "criterion"),
        description=text_of(entry, "description"),
        max_points=points,
        post_image_justification=text_of(entry, "post_image_justification"),
        post_image_earned_points=0.0,
        penalty=True,
    )


def parse_outcome(text: str) -> OutcomeVerdict:
    """Parse the verdict on the outcome. Raises ParseFailure."""
    fields = object_with(text, "output_success")
    return OutcomeVerdict(
        primary_intent=text_of(fields, "primary_intent"),
        reasoning=text_of(fields, "reasoning"),
        output_success=required_flag(fields, "output_success"),
    )


def parse_violation(text: str) -> ViolationVerdict:
    """Parse the verdict on the critical point. Raises ParseFailure."""
    fields = object_with(text, "cp_violation")
    return ViolationVerdict(
        reasoning=text_of(fields, "reasoning"),
        cp_violation=required_flag(fields, "cp_violation"),
    )
