"""What a run really sent: reasoning, extras, parameters, and its log without keys."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from tests.eval.judge_command import model
from tests.llm_replies import Incoming, Outgoing, error, verdict_text
from tests.llm_server import LlmServer, at
from tests.screens import on_one_line
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import LOG, read_manifest

pytestmark = pytest.mark.usefixtures("own_folder")


KEY = "zz0123456789abcdef"


def picky(incoming: Incoming) -> str | None:
    """As a reasoning model: neither ``max_tokens`` nor ``temperature``."""
    for parameter in ("max_tokens", "temperature"):
        if parameter in incoming.payload:
            return f"no-{parameter.replace('_', '-')}"
    return None


def test_the_manifest_tells_what_really_went_out(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(script=picky, record=1) as server:
        tags = ("--judge-option", "answer=tags")
        assert model(server, "--limit", "6", *tags, name="picky-1") == 0
        (last,) = server.seen
    manifest = read_manifest(Path("run"))
    assert manifest["parameters"] == {"max_tokens": 1024, "temperature": 0.0, "seed": 0}
    (sent,) = manifest["sent"]
    assert sent == {
        "model": "picky-1",
        "endpoint": f"{server.url}/v1",
        "adapter": "http",
        "sdk": f"aiohttp {metadata.version('aiohttp')}",
        "parameters": {"max_completion_tokens": 1024, "seed": 0},
    }
    on_the_wire = {k: v for k, v in last.payload.items() if k not in ("model", "messages")}
    assert on_the_wire == sent["parameters"]
    assert "through the lean http adapter (--adapter openai" in capsys.readouterr().err


def test_the_sdk_asks_where_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer() as server:
        assert model(server, "--limit", "1", "--adapter", "openai") == 0
    (sent,) = read_manifest(Path("run"))["sent"]
    assert sent["sdk"] == f"openai {metadata.version('openai')}"
    assert "lean" not in capsys.readouterr().err


def test_what_was_sent_is_kept_over_sessions_and_told_of_cached_replies() -> None:
    with LlmServer(script=picky) as server:
        assert model(server, "--limit", "4", name="picky-1") == 0
        before = read_manifest(Path("run"))["sent"]
        assert model(server, "--limit", "4", name="picky-1") == 0
        assert read_manifest(Path("run"))["sent"] == before
        asked = server.stats.requests
        assert model(server, "--limit", "4", "--out", "copy", name="picky-1") == 0
        assert server.stats.requests == asked
    (sent,) = read_manifest(Path("copy"))["sent"]
    assert sent == before[0] | {"adapter": None, "sdk": None}


@pytest.mark.slow
def test_a_pause_says_until_when_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    def answered(incoming: Incoming) -> str | Outgoing:
        if incoming.ordinal == 2:
            return error(incoming, 429, "slow down", kind="requests", headers={"retry-after": "3"})
        return verdict_text(incoming.prompt)

    with LlmServer(text=answered) as server:
        assert model(server, "--limit", "4", "--concurrency", "1") == 0
    said = on_one_line(capsys.readouterr().err)
    assert re.search(r"judged 2/4 .*paused until \d\d:\d\d:\d\d \(429, Retry-After 3 s\)", said)
    log = Path("run", LOG).read_text()
    assert "all calls pause for 3.00 s: 429, Retry-After 3 s" in log
    assert re.search(r"^20\d\d-\d\d-\d\d .*RateLimited: 127\.0\.0\.1:\d+ answered 429", log, re.M)


@pytest.mark.slow
def test_a_smaller_window_and_retries_are_told() -> None:
    with LlmServer(slots=2, latency=0.05, script=at({3: "500"})) as server:
        assert model(server, "--limit", "30", "--concurrency", "16") == 0
    assert re.search(r"window \d+ of 16 calls at once", Path("run", LOG).read_text())


FEW = ("--limit", "2", "--judge-option", "answer=tags")
SECRET = "hush-hush-123"


def sent(server: LlmServer) -> dict[str, object]:
    return {k: v for k, v in server.seen[-1].payload.items() if k not in ("model", "messages")}


def test_a_reasoning_model_gets_room_and_an_effort_in_manifest_and_key() -> None:
    with LlmServer(record=9) as server:
        assert model(server, *FEW, name="gpt-5") == 0
        assert sent(server) == {"max_completion_tokens": 16_000, "seed": 0}
        assert model(server, *FEW, "--out", "low", "--reasoning-effort", "low", name="gpt-5") == 0
        assert server.stats.requests == 4, "another effort is another request"
        assert sent(server)["reasoning_effort"] == "low"
    manifest = read_manifest(Path("low"))
    assert manifest["parameters"]["reasoning_effort"] == "low"
    assert manifest["sent"][0]["parameters"]["reasoning_effort"] == "low"


def test_extras_are_sent_and_secrets_kept_nowhere() -> None:
    headers = f'{{"X-Route": "a", "X-Api-Key": "{SECRET}"}}'
    with LlmServer(record=9) as server:
        words = ("--extra-body", '{"top_k": 5}', "--extra-headers", headers)
        assert model(server, *FEW, *words, name="m") == 0
        assert server.seen[-1].headers["x-api-key"] == SECRET
        assert sent(server)["top_k"] == 5
    shown = {"X-Api-Key": "(secret)", "X-Route": "a"}
    parameters = read_manifest(Path("run"))["parameters"]
    assert (parameters["extra_body"], parameters["extra_headers"]) == ({"top_k": 5}, shown)
    kept = [path for path in Path().rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if SECRET.encode() in path.read_bytes()]


def test_a_config_names_parameters_of_each_model() -> None:
    Path("config.yaml").write_text(
        "models:\n  m:\n    context: 9000\n    price: {input: 1, output: 2}\n"
        "    parameters: {temperature: 0.5, reasoning_effort: high, max_tokens: 3000}\n"
    )
    with LlmServer(record=9) as server:
        assert model(server, *FEW, "--config", "config.yaml", name="m") == 0
        told = {"temperature": 0.5, "reasoning_effort": "high", "max_tokens": 3000, "seed": 0}
        assert sent(server) == told
    manifest = read_manifest(Path("run"))
    assert manifest["parameters"] == told
    assert manifest["windows"]["m"] == {"tokens": 9000, "source": "file"}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--extra-body", "x"), "--extra-body: must be a JSON object"),
        (("--extra-body", '{"messages": []}'), "'messages' is the judge's own"),
        (("--extra-headers", '{"a": "x\\ny"}'), "the value of 'a' must be text on one line"),
        (("--thinking-budget", "2000"), "--thinking-budget 2000: 127.0.0.1"),
        (("--models", "none.toml"), "--models none.toml: the file cannot be read"),
        (("--models", "/none/m.toml"), "--models /none/m.toml: the file cannot be read"),
        (("--models", '{"m": {"window": 3}}'), "--models {...}: m: window is no field"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: tuple[str, ...], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer() as server:
        assert model(server, *FEW, *words, name="m") == 2
        assert server.stats.requests == 0
    assert shown in capsys.readouterr().err


def test_a_dry_run_says_what_is_known_of_each_model_and_by_whom(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--dry-run", "--judge", "simplified", *FEW)
    assert main(["--model", "gpt-5.4", *words]) == 0
    shown = capsys.readouterr().err
    assert "gpt-5.4: window 1,050,000 tokens (by the table), replies up to 1,024, $2.5 in" in shown
    assert "more above 272,000 tokens (table: gpt-5.4 in litellm" in shown
    with LlmServer() as server:
        assert model(server, "--dry-run", *FEW, name="mine") == 0
    shown = capsys.readouterr().err
    assert "mine: window 32,768 tokens (a guess), replies up to 1,024, price unknown" in shown
