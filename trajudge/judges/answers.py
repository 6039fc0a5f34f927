"""How a judge asks for its labels: by a JSON schema where the model takes one, in text elsewhere.

A judge whose options are ``AnswerOptions`` adds ``answer_format`` to its calls; what the reply
holds is described once, by the class that reads it (``judges.replies.ReplyFields``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, get_args, get_origin

from pydantic import field_validator, model_validator

from trajudge.judges.model import Verdict
from trajudge.judges.replies import (
    Grade,
    MissingMark,
    ParsedObject,
    ReplyFields,
    number_in,
    parse_grade_line,
    parse_json,
    parse_status_line,
    status_of,
)
from trajudge.prompts.published import OURS, PublishedTexts, Untrusted, check_source, load_texts
from trajudge.trajectories.model import Record

STRING, NUMBER, BOOLEAN = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
_PLAIN = {str: STRING, float: NUMBER, bool: BOOLEAN, int: {"type": "integer"}}

AnswerForm = Literal["schema", "text"]


class AnswerOptions(Record):
    """How a judge's answers are asked for. ``answer``: by a ``schema``, through the provider's
    structured output; as ``text``, in the form that the prompt describes; ``auto``: by a schema
    where the model takes one, which ``structured`` says."""

    answer: Literal["auto", "schema", "text"] = "auto"
    structured: bool = False

    @property
    def form(self) -> AnswerForm:
        """How the answer is asked for."""
        if self.answer == "auto":
            return "schema" if self.structured else "text"
        return self.answer

    def answer_format(self, answer: type[ReplyFields] | Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a call for an answer that holds the fields of a class, or is
        described by a ``response_format``."""
        if self.form == "text":
            return {}
        return {"response_format": answer if isinstance(answer, Mapping) else schema_of(answer)}


class SourceOptions(Record):
    """Whose ``prompts`` a judge asks with: our own, or those of one of its ``sources``, SOURCE or
    SOURCE:PATH. ``untrusted``: whether the source's send what pages and agents wrote neutralised or
    as recorded."""

    sources: ClassVar[tuple[str, ...]] = ()

    prompts: str = OURS
    untrusted: Untrusted = "neutralised"

    @field_validator("prompts")
    @classmethod
    def _known_source(cls, prompts: str) -> str:
        if check_source(prompts) not in (OURS, *cls.sources):
            raise ValueError(f"use {OURS} or {' or '.join(cls.sources)}")
        return prompts

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if not self.is_published and self.untrusted != "neutralised":
            raise ValueError("only the published prompts send text as recorded")
        return self

    @property
    def is_published(self) -> bool:
        """Whether the prompts are a source's own."""
        return self.prompts != OURS

    def texts(self, judge: str) -> PublishedTexts:
        """Load the texts of the source (``prompts.published.EXCERPTS``). Raises UserError."""
        return load_texts(judge, self.prompts, self.untrusted)


class AgentRewardBenchOptions(SourceOptions):
    """Those of AgentRewardBench's judges. ``ladder``: a prompt that is too long is shortened as
    every prompt here, or as in the source, which puts a pruned tree in place of the full one."""

    sources: ClassVar[tuple[str, ...]] = ("agentrewardbench",)

    ladder: Literal["trajudge", "source"] = "trajudge"

    @model_validator(mode="after")
    def _is_of_the_source(self) -> Self:
        if self.ladder == "source" and not self.is_published:
            raise ValueError("ladder=source goes with the published prompts")
        return self


class SourcedAnswerOptions(SourceOptions, AnswerOptions):
    """Those of a judge whose source asks for text: so do its prompts."""

    @model_validator(mode="after")
    def _asks_for_text(self) -> Self:
        if self.is_published and self.answer == "schema":
            raise ValueError("the published prompts ask for text: leave answer=schema out")
        return self

    @property
    def form(self) -> AnswerForm:
        """How the answer is asked for."""
        return "text" if self.is_published else super().form


def answer_schema(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Build ``response_format`` for an object of exactly these properties, in this order."""
    described = {"name": name, "strict": True, "schema": _object(properties)}
    return {"type": "json_schema", "json_schema": described}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def schema_of(kind: type[ReplyFields]) -> dict[str, Any]:
    """Build ``response_format`` for the fields of a class: their names, types and choices, in the
    class's ``order``. Limits are left out, for not every provider takes them: the class checks
    them in the reply."""
    return answer_schema(kind.__name__.strip("_").lower(), _properties(kind))


def _properties(kind: type[ReplyFields]) -> dict[str, Any]:
    fields = kind.model_fields
    return {name: _type_schema(fields[name].annotation) for name in kind.order or fields}


def _type_schema(annotation: Any) -> dict[str, Any]:
    """Describe a plain type, a list, or an object."""
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _type_schema(arguments[0])
    if get_origin(annotation) is list:
        return {"type": "array", "items": _type_schema(arguments[0])}
    return _PLAIN.get(annotation) or _object(_properties(annotation))


def with_field(parameters: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the parameters of a call, a text of this name at the end of the object that they
    describe; unchanged where they describe none."""
    described = parameters.get("response_format", {}).get("json_schema")
    if described is None:
        return parameters
    properties = {**described["schema"]["properties"], name: STRING}
    return {**parameters, "response_format": answer_schema(described["name"], properties)}


STATUS = answer_schema(
    "status", {"thoughts": STRING, "status": {"type": "string", "enum": ["success", "failure"]}}
)
"""Of judges whose text form ends with a line ``Status:``."""


def parse_status(text: str, form: AnswerForm) -> Verdict:
    """Parse the verdict in an object as ``STATUS`` describes it, or in a line ``Status:``, as a
    model may write that was asked for an object. Raises ParseFailure."""
    parsed = _parsed(text, "status", form)
    if parsed is None:
        return parse_status_line(text)
    success = status_of(str(parsed.fields["status"]))
    reasoning = str(parsed.fields.get("thoughts", ""))
    return Verdict(success=success, reasoning=reasoning, fallback=parsed.fallback)


class GradeAnswer(NamedTuple):
    """The answer of a judge whose text form ends with a line such as ``Score: 4``: ``reasoning``
    names the field before the number, which is ``low`` to ``high``."""

    reasoning: str
    name: str
    low: int
    high: int

    @property
    def schema(self) -> dict[str, Any]:
        """The ``response_format``."""
        grade = {"type": "integer", "enum": list(range(self.low, self.high + 1))}
        return answer_schema(self.name, {self.reasoning: STRING, self.name: grade})

    def parse(self, text: str, form: AnswerForm) -> Grade:
        """Parse the number in an object, or in a line. Raises ParseFailure."""
        parsed = _parsed(text, self.name, form)
        if parsed is None:
            return parse_grade_line(text, self.name, self.low, self.high)
        value = number_in(parsed.fields, self.name, self.low, self.high)
        return Grade(value, str(parsed.fields.get(self.reasoning, "")))


def _parsed(text: str, key: str, form: AnswerForm) -> ParsedObject | None:
    """Parse the object of a reply that was asked for by a schema; None where it has none."""
    if form == "schema":
        with suppress(MissingMark):
            return parse_json(text, [key])
    return None
