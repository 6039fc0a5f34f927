"""How judges ask for their labels: by a schema where the server takes one, in text elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.eval.judge_command import model, statuses
from tests.eval.judge_replies import reply
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments, read_manifest
from trajudge.judges.answers import AnswerOptions
from trajudge.judges.registry import JUDGES

pytestmark = pytest.mark.usefixtures("own_folder")

ASKING = [name for name, entry in JUDGES.items() if entry.needs_model]
# Reads the probabilities of one word; asks in JSON mode, as its source does.
OTHERS = {"logprob", "universal-verifier"}
BY_SCHEMA = [name for name in ASKING if name not in OTHERS]
# Stages whose answer is plain text.
IN_TEXT = {"caption", "describe", "key_points"}
LIMIT = ("--limit", "2", "--yes", "--repair", "0")


def filled(schema: dict[str, Any], name: str = "") -> Any:
    """What a model writes that is held to a schema and understands nothing."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            assert schema["required"] == list(schema["properties"])
            assert schema["additionalProperties"] is False
            return {key: filled(one, key) for key, one in schema["properties"].items()}
        case "array":
            return [filled(schema["items"])]
        case "string":
            return "" if name in ("at", "quote") else "Words."
        case kind:
            return {"boolean": False, "integer": 1, "number": 0.5}[kind]


def held_to_the_schema(incoming: Incoming) -> str:
    sent = incoming.payload.get("response_format")
    if sent is None:
        return "Plain words."
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["strict"] is True
    return json.dumps(filled(sent["json_schema"]["schema"]))


def test_every_judge_that_asks_for_labels_has_the_option() -> None:
    have = {n for n in ASKING if "answer" in JUDGES[n].options_class.model_fields}
    assert have == set(BY_SCHEMA)
    shared = {n for n in have if issubclass(JUDGES[n].options_class, AnswerOptions)}
    assert shared == have - {"simplified"}  # whose text form is called tags


@pytest.mark.parametrize("name", BY_SCHEMA)
def test_a_model_held_to_the_schema_gives_a_verdict(name: str) -> None:
    with LlmServer(text=held_to_the_schema) as server:
        assert model(server, "--judge", name, *LIMIT, name="small") == 0
    judgments = read_judgments(Path("run"))
    assert [(j.status, j.success) for j in judgments] in (
        [("ok", False)] * 2,
        [("ok", True)] * 2,  # of a status or score, "success" or the threshold stands first
    )
    stages = {call.stage for judgment in judgments for call in judgment.calls}
    free = [one for one in server.seen if "response_format" not in one.payload]
    assert bool(free) == bool(stages & IN_TEXT)
    options = read_manifest(Path("run"))["options"]
    assert (options["answer"], options["structured"]) == ("auto", True)


@pytest.mark.parametrize("name", BY_SCHEMA)
def test_a_server_that_refuses_schemas_is_asked_without(name: str) -> None:
    def refuses(incoming: Incoming) -> str | None:
        return "no-response-format" if "response_format" in incoming.payload else None

    with LlmServer(text=reply, script=refuses) as server:
        assert model(server, "--judge", name, *LIMIT, name="small") == 0
        assert "response_format" not in server.seen[-1].payload
    assert statuses() == ["ok"] * 2


@pytest.mark.parametrize("name", BY_SCHEMA)
def test_text_is_asked_for_where_it_is_named(name: str) -> None:
    text = "tags" if name == "simplified" else "text"
    with LlmServer(text=reply) as server:
        words = ("--judge", name, "--judge-option", f"answer={text}")
        assert model(server, *words, *LIMIT, name="small") == 0
        assert not any("response_format" in one.payload for one in server.seen)
    assert statuses() == ["ok"] * 2


def test_a_model_that_takes_no_schema_is_asked_in_text() -> None:
    """The table of models says so of Claude 3.7, which has no structured output."""
    with LlmServer(text=reply) as server:
        words = ["--data", "sample", "--model", "claude-3-7-sonnet", "--adapter", "anthropic"]
        words += ["--base-url", server.url, "--judge", "webvoyager", *LIMIT, "--out", "run"]
        assert main(words) == 0
        [system] = server.seen[0].payload["system"]
    assert "output_config" not in server.seen[0].payload
    assert system["text"].endswith('Status: "success" or "failure"')


def test_the_canary_is_a_field_of_the_schema() -> None:
    def obedient(incoming: Incoming) -> str:
        schema = incoming.payload["response_format"]["json_schema"]["schema"]
        words = str(incoming.payload["messages"]).partition("Check: ")[2]
        return json.dumps({**filled(schema), "check": words[:8]})

    with LlmServer(text=obedient) as server:
        words = ("--judge", "rubric", "--representation", "none", "--judge-option", "canary=1")
        assert model(server, *words, *LIMIT, name="small") == 0
        for one in server.seen:
            schema = one.payload["response_format"]["json_schema"]["schema"]
            assert list(schema["properties"])[-1] == schema["required"][-1] == "check"
    assert statuses() == ["ok"] * 2
