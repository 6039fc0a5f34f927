"""Contrast cases: for every rule of the Universal Verifier two traces that differ only in what the
rule decides (``contrast.toml``), and what a model makes of them.

Only the stage that decides is of interest: the others answer from a script (``reply``). The
deciding one does so as well in the tests; ``Deciding`` asks a model for it.
"""

from __future__ import annotations

import json
import re
import tomllib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from trajudge.judges.adapters.errors import NoAccess
from trajudge.judges.judging import FAILURES, BaseClient, CallArgs
from trajudge.judges.methods.universal_verifier.judge import Verification, VerifierRecord
from trajudge.judges.methods.universal_verifier.model import RubricItem, UniversalVerifierOptions
from trajudge.judges.methods.universal_verifier.replies import ASSUMED, parse_rubric
from trajudge.judges.model import Model, Reply, Text
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey

FILE = Path(__file__).with_name("contrast.toml")
# The stages in the order of their calls.
ORDER = (
    *("critical_point", "rubric", "dependencies", "baseline", "relevance", "evidence"),
    *("conditions", "reality", "rescore", "side_effects", "outcome", "violation", "failures"),
    *("validity_after", "validity_before"),
)
OPTIONS: dict[str, object] = {"failures": True, "validity": True, "attempts": 1}
CRITERION = ("The task is done as asked", "Full if it is done as asked.", 4)
NO_POINT = "NO_CRITICAL_POINT"
_WIDTH, _LINE = 640, 60


@dataclass(frozen=True)
class Trace:
    """One of the two traces of a case; the fields are those of ``contrast.toml``."""

    verdict: Mapping[str, Any]
    goal: str
    actions: Sequence[str] = ("open the page", "finish")
    answer: str = "I have finished."
    screens: Sequence[str] = ("A page",)
    criteria: Sequence[Sequence[Any]] = (CRITERION,)
    point: str = NO_POINT
    facts: str = ""
    scored: Sequence[float] = ()
    final: Sequence[float] = ()
    penalty: str = ""
    start: str = ""

    @cached_property
    def items(self) -> tuple[RubricItem, ...]:
        """The criteria as a rubric."""
        return tuple(
            RubricItem(
                criterion=name, description=text, max_points=points, condition=(*rest, None)[0]
            )
            for name, text, points, *rest in self.criteria
        )

    def run(self) -> Trajectory:
        """The trace as a trajectory, a drawn screenshot before each of the first actions."""
        steps = tuple(
            Step(
                index=index,
                observation=Observation(
                    url=f"https://site.example/{index}",
                    screenshot=ImageRef(data=drawn(self.screens[index]))
                    if index < len(self.screens)
                    else None,
                ),
                action=action,
            )
            for index, action in enumerate(self.actions)
        )
        return Trajectory(
            key=TrajectoryKey(benchmark="contrast", agent="written", task_id="contrast.1"),
            raw_task_id="contrast.1",
            goal=self.goal,
            steps=steps,
            answer=self.answer,
            terminated=True,
            metadata={"start_url": self.start} if self.start else {},
        )

    def material(self, stage: str) -> set[str]:
        """What of the trace a prompt of ``stage`` may show, text by text."""
        shots = [b64encode(drawn(text)).decode() for text in self.screens]
        seen = (
            shots if stage in ("relevance", "evidence") else map(described, count(), self.screens)
        )
        rubric = [text for item in self.items for text in (item.criterion, item.description)]
        points = [f"Points with the screenshots seen: {number:g}\n" for number in self.final]
        kinds = [f"Type: {self.point}"] if self.point != NO_POINT else []
        texts = [self.goal, self.answer, *self.actions, *seen, *rubric, *points, *kinds]
        return {text for text in (*texts, self.facts, self.penalty, self.start) if text}


@dataclass(frozen=True)
class Contrast:
    """The case of a rule: the ``stage`` that decides, and the two traces."""

    rule: str
    stage: str
    a: Trace
    b: Trace

    def shown(self, prompt: str) -> Trace | None:
        """The trace whose own evidence the prompt of the deciding stage holds; None for neither."""
        mine, other = self.a.material(self.stage), self.b.material(self.stage)
        found = [
            (sum(map(len, own)), trace)
            for trace, own in ((self.a, mine - other), (self.b, other - mine))
            if all(text in prompt for text in own)
        ]
        return max(found, key=lambda one: one[0])[1] if found else None


@cache
def contrasts() -> tuple[Contrast, ...]:
    """All cases, in the order of the stages."""
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return tuple(
        Contrast(
            rule,
            stage,
            *(Trace(**{**shared, **entry[name]}) for name in ("a", "b")),
        )
        for stage, rules in tables.items()
        for rule, entry in rules.items()
        for shared in [{name: entry[name] for name in entry.keys() - {"a", "b"}}]
    )


@cache
def drawn(text: str) -> bytes:
    """A PNG of the text in black on white, line by line."""
    lines = re.findall(r".{1,48}(?:\s|$)", text) or [text]
    image = Image.new("L", (_WIDTH, _LINE * (len(lines) + 1)), 255)
    pen = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        pen.text((20, 20 + _LINE * number), line, fill=0, font_size=24)
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def described(index: int, screen: str) -> str:
    """What the script says that the screenshot ``index`` shows."""
    return f"Page {index + 1} shows: {screen}"


# What the script answers


def reply(trace: Trace, stage: str, prompt: str, *, decides: str) -> str:
    """The script's reply of ``stage`` to a prompt; ``decides`` is the stage that answers by the
    trace's verdict."""
    verdict = trace.verdict if stage == decides else {}
    if stage == "rubric" and verdict:
        return json.dumps(written(verdict))
    if stage == "rubric":
        return json.dumps(unscored(trace.items))
    items = rubric_in_force(trace, decides)
    shot = int(found[1]) if (found := re.search(r"This is screenshot (\d+) of", prompt)) else 1
    made = {
        "critical_point": lambda: _point(trace, verdict),
        "dependencies": lambda: _review(verdict),
        "baseline": lambda: _baseline(trace, items, verdict),
        "relevance": lambda: _relevance(items, verdict),
        "evidence": lambda: _evidence(
            described(shot - 1, trace.screens[shot - 1]), items, prompt, verdict
        ),
        "conditions": lambda: _conditions(items, verdict),
        "reality": lambda: _reality(trace, items, verdict),
        "rescore": lambda: _rescore(trace, items, verdict),
        "side_effects": lambda: _side_effects(trace, verdict),
        "failures": lambda: _failures(verdict),
    }
    if stage in made:
        return made[stage]()
    if stage == "outcome":
        success = verdict.get("success", True)
        return json.dumps({"primary_intent": "p", "reasoning": "r", "output_success": success})
    if stage == "violation":
        crossed = verdict.get("violation", False)
        return json.dumps({"reasoning": "r", "cp_violation": crossed})
    return _validity(verdict)


def _first(alternatives: str) -> str:
    return alternatives.partition("|")[0]


def _middle(limits: Sequence[float]) -> float:
    return limits[1] if limits[1] == int(limits[1]) else sum(limits) / 2


def unscored(items: Sequence[RubricItem]) -> dict[str, Any]:
    """A rubric as a stage writes it."""
    fields = {"criterion", "condition", "description", "max_points"}
    return {
        "items": [
            item.model_dump(include=fields, exclude_none=True)
            | {"justification": "", "earned_points": ""}
            for item in items
        ]
    }


def written(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """A rubric with the number of criteria, the conditions and the words of the verdict."""
    conditions = verdict.get("conditions", 0)
    count = max(conditions, *verdict.get("count", [1]))
    said = _first(verdict.get("says", "done"))
    return unscored(
        [
            RubricItem(
                criterion=f"Criterion number {number} of the rubric",
                description=f"Full: {said}.",
                max_points=2,
                condition=f"only if case {number} holds" if number < conditions else None,
            )
            for number in range(count)
        ]
    )


def rubric_in_force(trace: Trace, decides: str) -> tuple[RubricItem, ...]:
    """The rubric of the stages after the review."""
    rewritten = decides == "rubric" or (decides == "dependencies" and trace.verdict["changed"])
    return parse_rubric(json.dumps(written(trace.verdict))) if rewritten else trace.items


def _point(trace: Trace, verdict: Mapping[str, Any]) -> str:
    kind, named = verdict.get("type", trace.point), verdict.get("missing", "")
    missing = [] if "MISSING" not in kind else ["mail address"]
    missing += [named] if named and named[0] != "!" else []
    return (
        f"```yaml\ncritical_point_type: {kind}\nclassification_reasoning: r\n"
        f"irreversible_action_present: {'false' if kind == NO_POINT else 'true'}\n"
        f"missing_user_information: {json.dumps(missing)}\n"
        f"expected_behavior: [{verdict.get('expects', 'finish')}]\n```"
    )


def _review(verdict: Mapping[str, Any]) -> str:
    changed = verdict.get("changed", False)
    rubric = written(verdict) if changed else {}
    return json.dumps(
        {"reasoning": "r", "needs_reformulation": changed, "reformulated_rubric": rubric}
    )


def _points(items: Sequence[RubricItem], given: Sequence[float]) -> list[float]:
    return list(given) or [item.max_points for item in items]


def _baseline(trace: Trace, items: Sequence[RubricItem], verdict: Mapping[str, Any]) -> str:
    points = _points(items, [_middle(one) for one in verdict.get("points", [])] or trace.scored)
    scored = [
        {
            "criterion": item.criterion,
            "justification": "j",
            "earned_points": earned,
            "is_condition_met": earned > 0,
        }
        for item, earned in zip(items, points, strict=True)
    ]
    return json.dumps({"items": scored})


def _relevance(items: Sequence[RubricItem], verdict: Mapping[str, Any]) -> str:
    limits = verdict.get("relevances") or [verdict.get("relevance", [9, 9])] * len(items)
    return json.dumps({f"criterion_{n}": one[1] for n, one in enumerate(limits)})


def _evidence(
    screen: str, items: Sequence[RubricItem], prompt: str, verdict: Mapping[str, Any]
) -> str:
    indices = [int(n) for n in re.findall(r"^criterion_idx (\d+): ", prompt, re.MULTILINE)]
    said = _first(verdict["says"]) if "says" in verdict else "" if verdict else "none"
    entries = [
        {
            "criterion_idx": index,
            "screenshot_evidence": screen if not verdict else "A page.",
            "criterion_analysis": f"It shows this: {said}",
            "discrepancies": "-",
            "environment_issues_confirmed": verdict.get("blocked", False),
            **({"condition_verification": True} if items[index].condition else {}),
        }
        for index in indices
    ]
    return json.dumps(entries[0] if len(entries) == 1 else {"analyses": entries})


def _conditions(items: Sequence[RubricItem], verdict: Mapping[str, Any]) -> str:
    indices = [n for n, item in enumerate(items) if item.condition]
    listed = [
        {
            "criterion_idx": index,
            "condition": items[index].condition,
            "reasoning": "r",
            "is_condition_met": met,
        }
        for index, met in zip(indices, verdict.get("met", [True] * len(indices)), strict=True)
    ]
    return json.dumps({"disambiguation": listed})


def _reality(trace: Trace, items: Sequence[RubricItem], verdict: Mapping[str, Any]) -> str:
    said = _first(verdict.get("says", "")) or ("noted" if verdict.get("noted") else "")
    note = said if verdict else trace.facts
    listed = [{"criterion_idx": n, "reality_notes": note} for n in range(len(items))]
    return json.dumps({"reality_checks": listed})


def _rescore(trace: Trace, items: Sequence[RubricItem], verdict: Mapping[str, Any]) -> str:
    given = [_middle(one) for one in verdict.get("points", [])] or trace.final or trace.scored
    listed = [
        {
            "criterion_idx": n,
            "applicable_evidence": "e",
            "post_image_justification": "j",
            "post_image_earned_points": earned,
        }
        for n, earned in enumerate(_points(items, given))
    ]
    return json.dumps({"items": listed})


def _side_effects(trace: Trace, verdict: Mapping[str, Any]) -> str:
    wanted = bool(trace.penalty) or verdict.get("penalties", [0])[0] > 0
    penalty = {
        "criterion": trace.penalty or "Penalize what nobody asked for",
        "description": "d",
        "max_points": 2,
        "post_image_justification": "j",
        "post_image_earned_points": 0,
    }
    listed = [penalty] if wanted else []
    return json.dumps({"reasoning": "r", "requires_penalty": wanted, "penalty_criteria": listed})


def _failures(verdict: Mapping[str, Any]) -> str:
    code = verdict.get("code", "")
    point = {
        "step_numbers": "1",
        "error_code": code,
        "error_category": "c",
        "error_type": "t",
        **dict.fromkeys(("what_happened", "agent_reasoning", "evidence", "impact"), "x"),
    }
    points = [point] if code else []
    return json.dumps({"reasoning": "r", "has_failure": bool(code), "failure_points": points})


def _validity(verdict: Mapping[str, Any]) -> str:
    ambiguous, invalid = verdict.get("ambiguous", False), verdict.get("invalid", False)
    code = verdict.get("task_code", "")
    return json.dumps(
        json.loads(ASSUMED["validity"])
        | {
            "is_ambiguous": ambiguous,
            "is_invalid": invalid,
            "ambiguity_codes": [code] if ambiguous and code else [],
            "invalid_task_codes": [code] if invalid and code else [],
        }
    )


# What came out


def satisfied(trace: Trace, stage: str, record: VerifierRecord, wanted: Mapping[str, Any]) -> bool:
    """Whether the record of a judgment on ``trace`` is as ``wanted`` by a verdict on ``stage``."""
    facts = facts_of(trace, stage, record)
    return all(_holds(name, value, facts) for name, value in wanted.items())


def facts_of(trace: Trace, stage: str, record: VerifierRecord) -> dict[str, Any]:
    """What a record says, by the names of the verdicts."""
    items = [item for item in record.items if not item.penalty]
    penalties = [item for item in record.items if item.penalty]
    seen = [one for several in record.evidence.values() for one in several]
    told = {
        "evidence": [
            f"{one.screenshot_evidence} {one.criterion_analysis} {one.discrepancies}"
            for one in seen
        ],
        "reality": [item.reality_notes for item in items],
    }
    rubric = [f"{item.criterion} {item.description}" for item in items]
    point, validity = record.critical_point, getattr(record, stage, None)
    first = record.failures.first if record.failures else None
    was = [(item.criterion, item.description, item.condition) for item in trace.items]
    facts: dict[str, Any] = {
        "type": point and point.critical_point_type,
        "missing": " ".join(point.missing_user_information) if point else "",
        "expects": " ".join(point.expected_behavior) if point else "",
        "count": len(items),
        "conditions": sum(item.condition is not None for item in items),
        "text": " ".join(told.get(stage, rubric)).lower(),
        "changed": was != [(item.criterion, item.description, item.condition) for item in items],
        "points": [
            item.earned_points if stage == "baseline" else item.final_points for item in items
        ],
        "met": [item.is_condition_met for item in items],
        "relevance": record.relevance[0],
        "blocked": any(one.environment_issues_confirmed for one in seen),
        "noted": any(item.reality_notes.strip() for item in items),
        "penalties": len(penalties),
        "weight": sum(item.max_points for item in penalties),
        "success": record.outcome,
        "violation": record.violation and record.violation.cp_violation,
        "code": first.error_code if first else "",
    }
    if stage in ("validity_after", "validity_before") and validity is not None:
        facts |= {
            "ambiguous": validity.is_ambiguous,
            "invalid": validity.is_invalid,
            "task_code": " ".join([*validity.ambiguity_codes, *validity.invalid_task_codes]),
        }
    return facts


def _holds(name: str, value: Any, facts: Mapping[str, Any]) -> bool:
    if name in ("says", "omits"):
        found = any(part in facts["text"] for part in value.split("|"))
        return bool(found == (name == "says"))
    if name in ("missing", "expects", "task_code"):
        found = value.lstrip("!").lower() in str(facts[name]).lower()
        return bool(found != value.startswith("!"))
    if name in ("relevance", "relevances"):
        limits = value if name == "relevances" else [value] * len(facts["relevance"])
        return all(
            low <= n <= high for (low, high), n in zip(limits, facts["relevance"], strict=True)
        )
    if name == "points":
        inside = [
            least <= n <= most for (least, most), n in zip(value, facts["points"], strict=False)
        ]
        return len(value) == len(facts["points"]) and all(inside)
    if name in ("count", "penalties", "weight"):
        return bool(value[0] <= facts[name] <= value[1])
    return bool(facts[name] == value)


# A model that decides


class Deciding(BaseClient):
    """Asks ``model`` for the reply of the deciding stage, without a call's sampling parameters of
    its own; the other stages answer from the script. ``calls`` are none: the script's are not
    recorded. ``replied`` is the model's text, None before it was asked."""

    calls: tuple[()] = ()

    def __init__(self, case: Contrast, trace: Trace, model: Model) -> None:
        self._case, self._trace, self._model = case, trace, model
        self.replied: str | None = None

    async def answer(self, call_args: CallArgs) -> Reply:
        stage = call_args.stage.partition("#")[0]
        if stage == self._case.stage:
            asked = await self._model(
                call_args.messages,
                stage=stage,
                rung=call_args.rung,
                assume=call_args.assume,
                **call_args.parameters,  # type: ignore[arg-type]
            )
            self.replied = asked.text
            return asked
        if ORDER.index(stage) > ORDER.index(self._case.stage):
            return Reply(text=call_args.assume)
        texts = [p.text for m in call_args.messages for p in m.parts if isinstance(p, Text)]
        return Reply(text=reply(self._trace, stage, "\n".join(texts), decides=""))


async def decided_right(
    case: Contrast, trace: Trace, model: Model, options: UniversalVerifierOptions
) -> tuple[bool | None, str]:
    """Whether ``model`` decides a trace as its verdict says, None without a usable reply; and the
    reply, or what went wrong. Raises NoAccess."""
    ask = Deciding(case, trace, model)
    prompt = load_prompt("universal-verifier")
    verification = Verification(ask, options, prompt, trace.run(), None)
    try:
        record = await verification.record()
    except FAILURES as error:
        if isinstance(error, NoAccess):
            raise
        return None, str(error)
    if case.stage in verification.errors:
        return None, str(verification.errors[case.stage])
    return satisfied(trace, case.stage, record, trace.verdict), ask.replied or ""
