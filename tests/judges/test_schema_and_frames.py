"""The simplified judge's other forms: a JSON object, and several screenshots."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from tests.judges.http_judging import judged_over_http
from tests.judges.runs import GOOD, ScriptedAsk, pictures, seen_run
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer, always, at
from trajudge.judges.methods.simplified import Simplified, SimplifiedOptions
from trajudge.judges.prompting import evenly_spaced
from trajudge.judges.registry import make_judge
from trajudge.judges.replies import FALLBACK
from trajudge.util.errors import UserError

OBJECT = (
    '{"reasoning": "Step 2 buys it.", "success": true, "side_effect": false, '
    '"optimality": 3, "repetition": false}'
)


def schema_judge(**options: object) -> Simplified:
    return Simplified(SimplifiedOptions.model_validate({"answer": "schema", **options}))


def test_the_schema_variant_asks_for_structured_output_and_reads_it(tmp_path: Path) -> None:
    with LlmServer(text=OBJECT) as server:
        judgment = judged_over_http(server, schema_judge(), seen_run(), tmp_path)
    assert (judgment.status, judgment.success, judgment.optimality) == ("ok", True, 3)
    assert judgment.fallback == ""
    sent = server.seen[0].payload["response_format"]
    assert sent["type"] == "json_schema"
    properties = list(sent["json_schema"]["schema"]["properties"])
    assert properties[:2] == ["reasoning", "success"]


def test_success_may_be_the_last_field(tmp_path: Path) -> None:
    with LlmServer(text=OBJECT) as server:
        judged_over_http(server, schema_judge(success="last"), seen_run(), tmp_path)
    described = server.seen[0].payload["response_format"]["json_schema"]
    assert list(described["schema"]["properties"])[-1] == "success"


def test_a_server_that_knows_no_schema_is_asked_without_one(tmp_path: Path) -> None:
    """The judge then reads what the prompt asked for, and tells what it had to mend."""

    def text(incoming: Incoming) -> str:
        assert "response_format" not in incoming.payload
        return "Here it is:\n```json\n" + OBJECT[:-1] + ", // sure\n}\n```"

    with LlmServer(text=text, script=at({0: "no-response-format"})) as server:
        judgment = judged_over_http(server, schema_judge(), seen_run(), tmp_path)
        assert server.stats.requests == 2
    assert judgment.status == "ok"
    assert judgment.fallback == FALLBACK


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("Successful", "no JSON object with success"),
        ('{"success": "yes"}', "success = yes, neither true nor false"),
        ('{"success": true, "optimality": 2.5}', "no whole number"),
        ('{"success": true} or {"success": false}', "two contradicting"),
    ],
)
def test_what_is_no_verdict_is_unparsable(tmp_path: Path, reply: str, said: str) -> None:
    with LlmServer(text=reply) as server:
        judgment = judged_over_http(server, schema_judge(), seen_run(), tmp_path)
    assert judgment.status == "unparsable"
    assert said in judgment.detail
    assert judgment.success is None


@pytest.mark.parametrize(
    ("fault", "status"),
    [("refusal", "refused"), ("500", "provider_error"), ("length", "truncated")],
)
def test_trouble_has_its_own_status(tmp_path: Path, fault: str, status: str) -> None:
    with LlmServer(script=always(fault)) as server:
        judgment = judged_over_http(server, schema_judge(), seen_run(), tmp_path)
    assert judgment.status == status


def test_the_schema_variant_has_its_own_id() -> None:
    assert make_judge("simplified", {"answer": "schema"})[0] == "simplified-axtree-answer-schema"
    screens = {"representation": "screenshot", "frames": "4"}
    assert make_judge("simplified", screens)[0] == "simplified-screenshot-frames-4"


def test_the_published_prompts_know_neither() -> None:
    for option in ({"answer": "schema"}, {"frames": 2}):
        with pytest.raises(UserError, match="published prompts"):
            make_judge("simplified", {"prompts": "agentrewardbench", **option})


@pytest.mark.parametrize(
    ("count", "numbers"),
    [(1, [9]), (2, [1, 9]), (3, [1, 5, 9]), (5, [1, 3, 5, 7, 9]), (50, list(range(1, 10)))],
)
def test_frames_are_evenly_spaced_and_end_with_the_last_page(
    count: int, numbers: list[int]
) -> None:
    assert [shot.number for shot in evenly_spaced(seen_run(9), count)] == numbers


def test_the_frames_are_shown_in_order_with_their_steps() -> None:
    ask = ScriptedAsk(GOOD)
    judge = Simplified(SimplifiedOptions.model_validate({"representation": "both", "frames": 3}))
    asyncio.run(judge(seen_run(5), ask))
    assert [picture.width for picture in pictures(ask.asked[0])] == [8, 10, 12]
    assert "at steps 1, 3, 5." in str(ask.asked[0][1].parts[-1])


def test_anthropic_takes_the_schema_under_its_own_name(tmp_path: Path) -> None:
    from trajudge.judges.adapters.anthropic import AnthropicAdapter
    from trajudge.judges.methods.simplified import verdict_schema
    from trajudge.judges.model import Message, Request, Text

    with LlmServer(text=OBJECT) as server:

        async def send() -> None:
            adapter = AnthropicAdapter("claude-sonnet-4", base_url=server.url)
            message = Message(role="user", parts=(Text(text="Judge."),))
            parameters = {"response_format": verdict_schema("first")}
            await adapter.send(
                Request(
                    endpoint=adapter.endpoint,
                    model="claude-sonnet-4",
                    messages=(message,),
                    parameters=parameters,
                )
            )
            await adapter.close()

        asyncio.run(send())
    sent = orjson.loads(server.seen[0].body)
    assert sent["output_config"]["format"]["type"] == "json_schema"
    assert "response_format" not in sent
