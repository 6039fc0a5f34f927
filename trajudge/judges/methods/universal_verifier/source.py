"""The source's own prompts (microsoft/fara), filled in as its code fills them.

Its texts are read from a checkout (``prompts.published``); this module orders them. Two of them are
Jinja2 templates, which are rendered in a sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import yaml
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import ValidationError

from trajudge.judges.methods.universal_verifier.model import (
    Items,
    RubricItem,
    UniversalVerifierOptions,
    totals,
)
from trajudge.judges.methods.universal_verifier.replies import CriticalPoint, Evidence
from trajudge.prompts.render import load_prompt, sendable
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError

_NOT_GIVEN = "N/A"
_LEVELS = ("HIGH", "MEDIUM", "LOW")

Values = Mapping[str, Any]


class _PointType(Record):
    description: str = ""
    expected_behavior: str = ""
    examples: tuple[str, ...] = ()


class _PointTypes(Record):
    """``critical_point_types.yaml``."""

    definition: str = ""
    types: dict[str, _PointType]


class SourcePrompt:
    """The source's texts with the ``render`` of ``prompts.render.Prompt``; what stands between them
    (``again``) is our own."""

    def __init__(self, options: UniversalVerifierOptions) -> None:
        """Read the texts. Raises UserError if they cannot be read."""
        self.texts = options.texts("universal-verifier")
        self.hash, self.text_hash = self.texts.hash, self.texts.text_hash
        self._own = load_prompt("universal-verifier")
        self._checkout = options.prompts
        self._point_system = self._classifier(
            "critical_point_system", **self._point_types(), **self._levels()
        )
        self._stages: Mapping[str, Callable[[Values], str]] = {
            "critical_point_system": lambda _: self._point_system,
            "critical_point": self._critical_point,
            "system": lambda _: self.texts.fill("system"),
            "rubric": self._rubric,
            "dependencies": self._dependencies,
            "baseline": self._baseline,
            "relevance": self._relevance,
            "evidence": self._evidence,
            "conditions": self._conditions,
            "reality": self._reality,
            "rescore": self._rescore,
            "side_effects": self._side_effects,
            "outcome": self._outcome,
            "violation": self._violation,
        }
        self._critical_point({"task": "", "init_url": None, "history": "", "simulator": False})

    def render(self, template: str, **values: Any) -> str:
        """Render the text of a stage. Raises KeyError for a stage that the source lacks."""
        if template == "again":
            return self._own.render(template, **values)
        return sendable(self._stages[template](values))

    def error(self, number: int, message: str) -> str:
        """Write the error of an action, which follows its entry in the history."""
        return self._part("error", number, message)

    # The classifier's templates

    def _levels(self) -> dict[str, object]:
        levels = [{"value": name, "description": self.texts.fill(name)} for name in _LEVELS]
        return {"Confidence": levels}

    def _point_types(self) -> dict[str, object]:
        try:
            content = yaml.safe_load(self.texts.fill("critical_point_types"))
            read = _PointTypes.model_validate(content)
        except (yaml.YAMLError, ValidationError, RecursionError, ValueError) as error:
            raise self._unreadable("critical_point_types.yaml", error) from error
        types = {name: kind.model_dump() for name, kind in read.types.items()}
        return {"critical_point_definition": read.definition, "critical_point_types": types}

    def _classifier(self, name: str, **values: object) -> str:
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True
        )
        try:
            return environment.from_string(self.texts.fill(name)).render(values)
        except (TemplateError, TypeError, OverflowError, RecursionError) as error:
            raise self._unreadable(f"template of {name}", error) from error

    def _unreadable(self, part: str, error: Exception) -> UserError:
        return UserError(
            f"--prompts {self._checkout}: the {part} cannot be read as it is known "
            f"({type(error).__name__}): name a checkout of the version that the card names"
        )

    def _critical_point(self, values: Values) -> str:
        return self._classifier(
            "critical_point",
            task_proposal=self.texts.shown(values["task"]),
            url=self.texts.shown(values["init_url"] or _NOT_GIVEN),
            apps=_NOT_GIVEN,
            action_history=self.texts.shown(values["history"]),
            user_simulator_enabled=values["simulator"],
            **self._levels(),
        )

    # What several stages show

    def _part(self, name: str, *values: object) -> str:
        """Fill a piece of text, whose values pages, agents and models wrote."""
        return self.texts.write(name, **{str(n): _written(value) for n, value in enumerate(values)})

    def _task(self, values: Values, name: str = "task_definition") -> dict[str, str]:
        url = values["init_url"]
        shown = self._part("init_url", url) if url else ""
        return {name: self.texts.shown(values["task"]), "init_url_context": shown}

    def _policy(self, values: Values, stage: str) -> dict[str, str]:
        point: CriticalPoint | None = values["point"]
        state = "on" if values["simulator"] else "off"
        policy = self.texts.fill(f"policy_{stage}_{state}")
        return {
            "critical_point_context": self._point(point, state),
            "user_simulator_policy": policy,
        }

    def _point(self, point: CriticalPoint | None, state: str) -> str:
        if point is None:
            return self.texts.fill("point_unknown")
        nothing = self.texts.fill("point_nothing")
        shown = self.texts.shown
        expected = enumerate(point.expected_behavior, start=1)
        return self.texts.fill(
            "point",
            **{
                "0": point.critical_point_type,
                "1": str(point.irreversible_action_present),
                "2": shown(point.irreversible_action_description.strip()) or nothing,
                "3": shown(", ".join(point.missing_user_information)) or nothing,
                "4": shown(", ".join(point.underspecified_aspects)) or nothing,
                "5": self.texts.fill(f"simulator_{state}"),
                "6": "\n".join(self._part("point_expected", n, step) for n, step in expected),
            },
        )

    def _justification(self, item: RubricItem) -> str:
        return item.post_image_justification if item.counts else self.texts.fill("unmet")

    def _scored(self, items: Items, printed: tuple[float, float]) -> str:
        """Write the rubric with the points of all stages so far."""
        lines = []
        for number, item in enumerate(items):
            lines += [
                self._part("scored_name", number, item.criterion),
                self._part("scored_description", item.description),
            ]
            if item.reality_notes:
                lines.append(self._part("scored_notes", item.reality_notes))
            if item.condition:
                lines.append(self._part("scored_condition", item.condition))
                lines.append(self._part("scored_met", item.is_condition_met))
            # Points that the source made a float itself are printed as one.
            final = 0 if item.penalty else str(item.final_points)
            lines += [
                self._part("scored_max", item.max_points),
                self._part("scored_baseline", item.earned_points, item.max_points),
                self._part("scored_final", final, item.max_points),
                self._part("scored_reason", self._justification(item)),
            ]
            if item.penalty:
                lines.append(self.texts.fill("scored_penalty"))
            lines.append("")
        lines.append(self._part("scored_total", str(printed[0]), str(printed[1])))
        return "\n".join(lines)

    def _seen(self, values: Values) -> str:
        """Write the evidence by criterion, in the order of time."""
        lines = []
        for number, item in enumerate(values["items"]):
            lines.append(self._part("seen_name", number, item.criterion))
            analyses: Sequence[Evidence] = values["evidence"].get(number, ())
            if not analyses:
                lines += [self.texts.fill("seen_nothing"), ""]
                continue
            for one in analyses:
                lines.append(self._part("seen_shot", one.screenshot + 1, values["count"]))
                lines += self._analysis("seen", one)
                lines += [self._part("seen_environment", one.environment_issues_confirmed), ""]
            lines.append("")
        return "\n".join(lines)

    def _analysis(self, stage: str, one: Evidence) -> list[str]:
        return [
            self._part(f"{stage}_evidence", one.screenshot_evidence),
            self._part(f"{stage}_analysis", one.criterion_analysis),
            self._part(f"{stage}_discrepancies", one.discrepancies),
        ]

    def _asked(self, values: Values, **more: str) -> dict[str, str]:
        shown = self.texts.shown
        history, answer = shown(values["history"]), shown(values["answer"])
        return {
            **self._task(values),
            "action_history": history,
            "agent_predicted_output": answer,
            **more,
        }

    # The stages

    def _rubric(self, values: Values) -> str:
        task = self._task(values, "task_id")
        return self.texts.fill("rubric", **task, **self._policy(values, "rubric"))

    def _dependencies(self, values: Values) -> str:
        rubric = self.texts.shown(json.dumps(_unscored(values["items"]), indent=2))
        return self.texts.fill("dependencies", **self._task(values, "task_id"), rubric=rubric)

    def _baseline(self, values: Values) -> str:
        return self.texts.fill(
            "baseline",
            **self._task(values),
            **self._policy(values, "rubric"),
            rubric=self.texts.shown(str(_unscored(values["items"]))),
            action_history=self.texts.shown(values["history"]),
            predicted_target=self.texts.shown(values["answer"]),
        )

    def _relevance(self, values: Values) -> str:
        criteria = "".join(
            self._part("relevance_name", number, item.criterion)
            + self._part("relevance_description", item.description)
            for number, item in enumerate(values["items"])
        )
        return self.texts.fill("relevance", **self._task(values), rubric_criteria=criteria)

    def _evidence(self, values: Values) -> str:
        """Ask about the criteria of one screenshot, in another form about a single one."""
        criteria: Sequence[tuple[int, RubricItem]] = values["criteria"]
        kind = "one" if len(criteria) == 1 else "each"
        blocks = [
            self._part(f"{kind}_name", number, item.criterion)
            + self._part(f"{kind}_description", item.description)
            + self._part(f"{kind}_max", item.max_points)
            for number, item in criteria
        ]
        conditions = [
            "" if item.condition is None else self._part(f"{kind}_condition", item.condition)
            for _, item in criteria
        ]
        if kind == "each":
            block = "".join(map("".join, zip(blocks, conditions, strict=True)))
            return self.texts.fill("evidence", **self._asked(values, criteria_info_block=block))
        output = self.texts.fill("one_output") if conditions[0] else ""
        more = {"conditional_check": conditions[0], "conditional_output": output}
        slots = self._asked(values, criterion_info=blocks[0], **more)
        return self.texts.fill("evidence_of_one", **slots)

    def _conditions(self, values: Values) -> str:
        criteria: Sequence[tuple[int, RubricItem]] = values["criteria"]
        parts = []
        for number, item in criteria:
            parts += [
                self._part("condition_name", number, item.criterion),
                self._part("condition_condition", item.condition),
                self._part("condition_description", item.description),
                self._part("condition_max", item.max_points),
            ]
            for one in values["evidence"].get(number, ()):
                parts.append(self._part("condition_shot", one.screenshot + 1))
                parts += self._analysis("condition", one)
                if one.condition_verification is not None:
                    parts.append(self._part("condition_met", one.condition_verification))
        return self.texts.fill(
            "conditions",
            **self._task(values),
            num_conditional=str(len(criteria)),
            conditional_criteria_with_evidence="".join(parts),
        )

    def _reality(self, values: Values) -> str:
        items: Items = values["items"]
        parts = []
        for number, item in enumerate(items):
            parts += [
                self._part("reality_name", number, item.criterion),
                self._part("reality_description", item.description),
                self._part("reality_max", item.max_points),
            ]
            analyses: Sequence[Evidence] = values["evidence"].get(number, ())
            for one in analyses:
                parts.append(self._part("reality_shot", one.screenshot + 1))
                parts += self._analysis("reality", one)
            parts += [] if analyses else [self.texts.fill("reality_nothing")]
        return self.texts.fill(
            "reality",
            **self._task(values),
            num_criteria=str(len(items)),
            last_criterion_idx=str(len(items) - 1),
            criteria_with_evidence="".join(parts),
        )

    def _rescore(self, values: Values) -> str:
        lines = []
        for number, item in enumerate(values["items"]):
            lines.append(self._part("again_name", number, item.criterion))
            lines.append(self._part("again_description", item.description))
            if item.reality_notes:
                lines.append(self._part("again_notes", item.reality_notes))
            if item.condition:
                lines.append(self._part("again_condition", item.condition))
                lines.append(self._part("again_met", item.is_condition_met))
            lines += [
                self._part("again_max", item.max_points),
                self._part("again_baseline", item.earned_points, item.max_points),
                self._part("again_reason", item.justification),
                "",
            ]
        slots = self._asked(
            values,
            full_rubric_with_baselines="\n".join(lines),
            all_screenshot_evidence=self._seen(values),
            num_criteria=str(len(values["items"])),
        )
        return self.texts.fill("rescore", **slots)

    def _side_effects(self, values: Values) -> str:
        items: Items = values["items"]
        parts: list[str] = []
        for number, analyses in values["evidence"].items():
            parts.append(self._part("effects_name", number, items[number].criterion))
            for one in analyses:
                parts += self._analysis("effects", one)
        return self.texts.fill(
            "side_effects",
            **self._task(values),
            action_history=self.texts.shown(values["history"]),
            scored_rubric_summary=self._scored(items, values["printed"]),
            all_concatenated_evidence="".join(parts),
        )

    def _decided(self, values: Values) -> dict[str, str]:
        point: CriticalPoint | None = values["point"]
        items: Items = values["items"]
        return {
            **self._task(values),
            **self._policy(values, "outcome"),
            "cp_decision_rules": self.texts.fill(
                f"rules_{point.rules if point else 'no_permission'}"
            ),
            "action_history": self.texts.shown(values["history"]),
            "rubric_summary": self._scored(items, totals(items)),
            "evidence_summary": self._seen(values),
        }

    def _outcome(self, values: Values) -> str:
        answer = self.texts.shown(values["answer"]) or _NOT_GIVEN
        return self.texts.fill("outcome", **self._decided(values), predicted_output=answer)

    def _violation(self, values: Values) -> str:
        return self.texts.fill("violation", **self._decided(values))


def _written(value: object) -> str:
    """Write a value as Python does; points without a fraction as a whole number, as models give
    them."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _unscored(items: Iterable[RubricItem]) -> dict[str, object]:
    """Build the rubric as the source's form has it, before points are given."""
    listed = []
    for item in items:
        points = int(item.max_points) if item.max_points.is_integer() else item.max_points
        condition = {} if item.condition is None else {"condition": item.condition}
        listed.append(
            {
                "criterion": item.criterion,
                **condition,
                "description": item.description,
                "max_points": points,
                "justification": "",
                "earned_points": "",
            }
        )
    return {"items": listed}
