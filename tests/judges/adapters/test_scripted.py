from __future__ import annotations

from pathlib import Path

import pytest

from tests.judges.adapters.requests import request
from trajudge.judges.adapters import errors
from trajudge.judges.adapters.scripted import ScriptedAdapter, from_file
from trajudge.judges.model import Reply
from trajudge.util.errors import UserError

pytestmark = pytest.mark.anyio


async def test_a_function_may_answer_with_text_or_a_reply_or_fail() -> None:
    sent = await ScriptedAdapter(lambda asked: f"for {asked.model}").send(request("m"))
    assert (sent.reply.text, sent.reply.model) == ("for m", "m")
    assert sent.reply.usage and sent.reply.usage.input > 0
    cut = await ScriptedAdapter(lambda _: Reply(text="", finish="length")).send(request())
    assert cut.reply.finish == "length"


async def test_the_first_line_that_matches_answers_whatever_the_order(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text(
        '{"text": "never", "match": "not in the prompt"}\n\n'
        '{"text": "hit", "match": "Second part"}\n'
        '{"text": "rest"}\n'
    )
    adapter = from_file(str(file))
    assert (await adapter.send(request())).reply.text == "hit"
    assert (await adapter.send(request())).reply.text == "hit"


async def test_a_line_may_be_an_error(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text('{"error": "ContextOverflow", "text": "too long"}\n')
    with pytest.raises(errors.ContextOverflow, match="too long"):
        await from_file(str(file)).send(request())


async def test_a_prompt_that_no_line_matches_is_a_bad_request(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text('{"text": "x", "match": "zzz"}\n')
    with pytest.raises(errors.BadRequest, match=r"replies\.jsonl"):
        await from_file(str(file)).send(request())


@pytest.mark.parametrize("bad", ['{"txt": 1}', "[]", "{", '{"error": "Exception"}', "3"])
def test_a_wrong_line_is_named(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text('{"text": "fine"}\n' + bad + "\n")
    with pytest.raises(UserError, match=r"replies\.jsonl, line 2"):
        from_file(str(file))
    with pytest.raises(UserError, match="cannot be read"):
        from_file(str(tmp_path / "nowhere"))
