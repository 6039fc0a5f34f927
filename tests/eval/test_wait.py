"""``--wait``: a server that is still loading is waited for, and it is said."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from tests.eval.judge_command import model
from tests.llm_replies import Outgoing
from tests.llm_server import LlmServer
from tests.ports import free_port
from trajudge.judges.calls import handle as readiness
from trajudge.judges.calls.handle import wait_until_ready, why_not_ready
from trajudge.util.errors import UserError

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
