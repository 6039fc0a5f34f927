"""Servers: the window of a model asked for, learned or guessed; one that is still loading."""

from __future__ import annotations

import io
import sys
import threading
import time
from itertools import islice
from pathlib import Path

import orjson
import pytest

from tests.commands import score
from tests.eval.judge_command import model, statuses
from tests.llm_replies import Incoming, Outgoing, answer, verdict_text
from tests.llm_server import LlmServer
from tests.ports import free_port
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments, read_manifest
from trajudge.judges.adapters.litellm import LiteLLMAdapter
from trajudge.judges.adapters.openai import HttpAdapter, OpenAIAdapter
from trajudge.judges.calls import handle as readiness
from trajudge.judges.calls.handle import wait_until_ready, why_not_ready
from trajudge.judges.models import ContextWindow, guesses
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import sample_path
from trajudge.util.errors import UserError

FEW = 3


@pytest.fixture
def long_pages(own_folder: None) -> None:
    """Runs of the bundled sample whose last pages are long, in the folder ``long``."""
    read = (item for item in store.read(sample_path()) if isinstance(item, Trajectory))
    made = []
    for run in islice(read, FEW):
        last = run.steps[-1]
        tree = "\n".join(f"[{n}] {last.observation.axtree or ''}" for n in range(30))
        seen = last.observation.model_copy(update={"axtree": tree, "axtree_pruned": None})
        steps = (*run.steps[:-1], last.model_copy(update={"observation": seen}))
        made.append(run.model_copy(update={"steps": steps}))
    store.write(Path("long"), made)


def on_long_pages(server: LlmServer, *words: str, name: str = "gpt-4o") -> int:
    """The main command on the long pages; its exit code."""
    where = ["--base-url", f"{server.url}/v1", "--data", "trajudge:long", "--out", "run"]
    return main(["--model", name, *where, *words])


@pytest.mark.usefixtures("long_pages")
def test_a_limit_without_a_price_is_refused_before_there_is_a_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer() as server:
        assert on_long_pages(server, "--max-cost", "1", name="mine") == 2
    assert "so --max-cost 1 cannot be kept: give its price with --prices FILE" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not Path("run").exists(), "a run without a judgment is refused by select"


# As the servers send them; what is not read is left out.
LISTS: dict[str, dict[str, object]] = {
    "vllm": {"id": "mine", "object": "model", "owned_by": "vllm", "max_model_len": 3000},
    "openrouter": {"id": "mine", "context_length": 3000, "top_provider": {}},
    "groq": {"id": "mine", "object": "model", "context_window": 3000, "active": True},
    "mistral": {"id": "mine", "object": "model", "max_context_length": 3000},
    "lm studio": {"id": "mine", "max_context_length": 131072, "loaded_context_length": 3000},
}
LLAMA_CPP = {"default_generation_settings": {"id": 0, "n_ctx": 3000}, "total_slots": 1}
WORDS = ("--max-tokens", "500")


def longest(server: LlmServer) -> int:
    """Characters of the longest prompt that the server was sent."""
    return max(len(incoming.prompt) for incoming in server.seen)


def rungs(folder: str = "run") -> dict[str, int]:
    results = orjson.loads(Path(folder, "results.json").read_bytes())
    overall: dict[str, int] = results["coverage"][-1]["shortened"]
    return overall


@pytest.mark.usefixtures("long_pages")
@pytest.mark.parametrize("kind", LISTS)
def test_the_servers_list_of_models_tells_the_window(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with LlmServer(models=[{"id": "other", "max_model_len": 99}, LISTS[kind]]) as server:
        assert on_long_pages(server, *WORDS, name="mine") == 0
        assert longest(server) < 6 * 3000
        assert sum(rungs().values()) > 0
    assert read_manifest(Path("run"))["windows"]["mine"] == {"tokens": 3000, "source": "server"}
    assert "guess" not in capsys.readouterr().err


@pytest.mark.usefixtures("long_pages")
def test_every_adapter_asks_for_llamacpps_window() -> None:
    listed = {"id": "/models/tiny.gguf", "meta": {"n_ctx_train": 131072}}
    with LlmServer(models=[listed], props=LLAMA_CPP) as server:
        for kind in (OpenAIAdapter, HttpAdapter, LiteLLMAdapter):
            name = "openai/mine" if kind is LiteLLMAdapter else "mine"
            told = kind(name, base_url=f"{server.url}/v1").context_window(name)
            assert told == ContextWindow(tokens=3000, source="server")


@pytest.mark.usefixtures("long_pages")
@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("gpt-4oo", "not known, did you mean 'gpt-4o'? 9 tokens"),
        ("xai/grok-4.33", "not known, did you mean 'xai/grok-4.3'? 9 tokens"),
        ("deepseek/deepseek-chatt", "not known, did you mean 'deepseek/deepseek-chat'? 9 tokens"),
        ("my-gpt-4oo", "known: 9 "),
        ("mine/deepseek-chatt", "known: 9 "),
    ],
)
def test_a_model_that_is_close_to_a_known_one_is_asked_back(name: str, close: str) -> None:
    (sentence,) = guesses({name: ContextWindow(tokens=9, source="guess")})
    assert close in sentence
    assert "did you mean" not in "".join(guesses({name: ContextWindow(tokens=9, source="named")}))


@pytest.mark.usefixtures("long_pages")
def test_a_window_that_nobody_tells_is_said_to_be_a_guess(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer() as server:
        assert on_long_pages(server, name="mine") == 0
        shown = capsys.readouterr().err
        assert "the window of mine is not known: 32,768 tokens are a guess" in shown
        assert "--context N" in shown
        assert score(["run"]) == 0
        assert "32,768 tokens are a guess" in capsys.readouterr().err
        assert on_long_pages(server, "--dry-run", name="mine") == 0
        assert "32,768 tokens are a guess" in capsys.readouterr().err
        assert on_long_pages(server, "--context", "32768", name="mine") == 0
        assert "guess" not in capsys.readouterr().err


@pytest.mark.usefixtures("long_pages")
def test_a_window_without_room_for_a_prompt_is_refused_before_a_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer() as server:
        assert on_long_pages(server, "--context", "500", "--max-tokens", "800", name="mine") == 2
        assert "its window of 500 tokens has no room for a prompt beside --max-tokens 800" in (
            capsys.readouterr().err
        )
        assert on_long_pages(server, "--context", "500", "--max-tokens", "300", "--dry-run") == 0
        assert "judgments would be context_overflow, the first because: the prompt does not" in (
            capsys.readouterr().err
        )
        assert not any(asked.prompt for asked in server.seen)


@pytest.mark.usefixtures("long_pages")
def test_what_was_cut_is_counted_by_rung(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer() as server:
        assert on_long_pages(server, "--context", "3000", *WORDS) == 0
    counted: dict[str, int] = {}
    for judgment in read_judgments(Path("run")):
        for call in judgment.calls:
            if call.rung != "full":
                counted[call.rung] = counted.get(call.rung, 0) + 1
    assert rungs() == counted
    assert counted
    shown = capsys.readouterr().out
    assert "shortened" in shown
    assert all(f"{rung} {n}" in shown for rung, n in counted.items())


def refusing(window: int, words: str) -> LlmServer:
    """A server that counts three characters a token, and refuses what its window does not hold."""

    def said(incoming: Incoming) -> str | Outgoing:
        tokens = len(incoming.prompt) // 3
        if tokens + 500 <= window:
            return answer(incoming, verdict_text(incoming.prompt))
        message = words.format(window=window, prompt=tokens, all=tokens + 500)
        body = {"error": {"message": message, "type": "BadRequestError", "code": 400}}
        return Outgoing(400, orjson.dumps(body))

    return LlmServer(text=said)


REFUSALS = {
    "vllm": "This model's maximum context length is {window} tokens. However, you requested {all} "
    "tokens ({prompt} in the messages, 500 in the completion). Please reduce the length.",
    "vllm 0.10": "'max_tokens' or 'max_completion_tokens' is too large: 500. This model's maximum "
    "context length is {window} tokens and your request has {prompt} input tokens (500 > {window} "
    "- {prompt}). None",
    "llama.cpp": "request ({prompt} tokens) exceeds the available context size ({window} tokens), "
    "try increasing it",
    "anthropic": "prompt is too long: {prompt} tokens > {window} maximum",
    "mistral": "Prompt contains {prompt} tokens and 0 draft tokens, too large for model with "
    "{window} maximum context length",
    "long": "x" * 300 + " This model's maximum context length is {window} tokens. However, your "
    "messages resulted in {prompt} tokens. Please reduce the length of the messages.",
}


@pytest.mark.usefixtures("long_pages")
@pytest.mark.slow
@pytest.mark.parametrize("words", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("judge", ["simplified", "insta"])
def test_a_refusals_own_numbers_are_learned_at_once(words: str, judge: str) -> None:
    with refusing(3500, words) as server:
        on_long_pages(server, *WORDS, "--judge", judge, "--limit", "2", name="mine")
        failed = [incoming for incoming in server.seen if len(incoming.prompt) // 3 + 500 > 3500]
        assert 0 < len(failed) <= 2  # one of each run
    assert "context_overflow" not in statuses()


@pytest.mark.usefixtures("long_pages")
def test_a_run_goes_on_while_its_server_is_down_and_not_with_another_window(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listed = {"id": "mine", "max_model_len": 3000}
    with LlmServer(models=[listed]) as server:
        assert on_long_pages(server, *WORDS, name="mine") == 0
        before = Path("run/judgments.jsonl").read_bytes()
        server.models = [{"id": "mine", "max_model_len": 9000}]
        assert on_long_pages(server, *WORDS, name="mine") == 2
        assert "go on with  --context 3000" in capsys.readouterr().err
        assert on_long_pages(server, *WORDS, "--context", "3000", name="mine") == 0
        server.models = [listed]
        assert on_long_pages(server, *WORDS, name="mine") == 0
        assert server.stats.requests == FEW
    assert on_long_pages(server, *WORDS, name="mine") == 0
    assert Path("run/judgments.jsonl").read_bytes() == before


@pytest.mark.usefixtures("long_pages")
def test_a_server_that_is_not_there_is_said_before_a_folder_is_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LlmServer() as server:
        pass
    assert on_long_pages(server, name="mine") == 2
    shown = capsys.readouterr().err
    assert "cannot reach 127.0.0.1" in shown
    assert "--context N" in shown
    assert not Path("run").exists()


LOADING = b'{"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}'


class Loading(LlmServer):
    """As llama.cpp: its models are listed at once, and all else is a 503 for the first
    ``questions``."""

    questions = 3

    def handle(self, target: str, headers: dict[str, str], body: bytes) -> object:  # type: ignore[override]
        if target.endswith("/models"):
            return super().handle(target, headers, body)
        if self.questions:
            self.questions -= 1
            return Outgoing(503, LOADING)
        if target == "/health":
            return Outgoing(200, b'{"status": "ok"}')
        return super().handle(target, headers, body)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FIRST_PAUSE", 0.01)


@pytest.mark.usefixtures("own_folder")
def test_a_run_begins_when_the_model_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    with Loading() as server:
        assert model(server, "--limit", "2", "--wait", "20") == 0
        assert server.stats.requests == 2, "none of them while it was loading"
    err = capsys.readouterr().err
    assert "waiting for the server, 20 s at most: 127.0.0.1" in err
    assert "answered 503 (Loading model)" in err
    assert "is ready after" in err


class Heard(io.StringIO):
    """Standard error that tells when a refusal was written."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = threading.Event()

    def write(self, text: str) -> int:
        if "Connection refused" in text:
            self.refused.set()
        return super().write(text)


def test_a_port_that_opens_later_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    assert "Connection refused" in why_not_ready(url)
    server, err = LlmServer(port=port), Heard()
    monkeypatch.setattr(sys, "stderr", err)
    opening = threading.Thread(target=lambda: err.refused.wait(20) and server.__enter__())
    opening.start()
    try:
        wait_until_ready(url, 20)
    finally:
        opening.join()
        server.__exit__()
    assert "is ready after" in err.getvalue()


def test_a_server_that_never_comes_is_a_matter_of_the_user() -> None:
    started = time.monotonic()
    with pytest.raises(UserError, match=r"--wait 0.2: cannot reach 127.0.0.1:9: .*refused"):
        wait_until_ready("http://127.0.0.1:9/v1", 0.2)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("status", [401, 404, 200])
def test_any_other_answer_is_that_of_a_server_at_work(status: int) -> None:
    class Answering(LlmServer):
        def handle(self, target: str, headers: dict[str, str], body: bytes) -> Outgoing:
            return Outgoing(status, b"{}")

    with Answering() as server:
        assert why_not_ready(f"{server.url}/v1") == ""
