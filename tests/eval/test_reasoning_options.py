"""The options of reasoning, extras and the user's models, through the command and a server on
loopback: what was sent stands in manifest and cache key, secrets nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.judge_command import model
from tests.llm_server import LlmServer
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_manifest

pytestmark = pytest.mark.usefixtures("own_folder")
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
