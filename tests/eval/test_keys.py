"""No key that a server repeats is kept or shown, whatever SDK carried it there and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.app.serving import served
from tests.eval.judge_command import run
from tests.llm_replies import Incoming, Outgoing
from tests.llm_server import LlmServer
from trajudge.app.workspace import open_workspace
from trajudge.eval.cli import main as trajudge
from trajudge.util.masking import MASK, is_secret_header, masked, without_known

pytestmark = pytest.mark.usefixtures("own_folder")
# They look like nothing that is known: only this process can tell that they are keys.
KEY, HEADER, PASSWORD, QUERY = (
    "Zq7/Tr9+Lm2Xw4Bv8N",
    "rivulet-Quartz-90210",
    "m4rble!Staircase",
    "tulip=Q77",
)
ALL = (KEY, HEADER, PASSWORD, QUERY, "Zq7%2FTr9%2BLm2Xw4Bv8N")
ADAPTERS = {
    "openai": "gpt-4o",
    "http": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "litellm": "openai/gpt-4o",
}


def echoing(status: int, form: str) -> Callable[[Incoming], Outgoing]:
    """An answer that repeats every header of the request, in its body and in its headers."""

    def answer(incoming: Incoming) -> Outgoing:
        headers = " ".join(incoming.headers.values())
        assert KEY in headers
        assert HEADER in headers
        words = f"rejected: {headers} and {QUERY} of {PASSWORD} at /v1?key={ALL[-1]}"
        bodies = {
            # A gateway's 200 that says 400: another error would be tried again, with pauses.
            "json": json.dumps(
                {"error": {"message": words, "code": 400 if status == 200 else words[:60]}}
            ),
            "page": f"<!doctype html><html><body><h1>{words}</h1></body></html>",
            "text": words,
        }
        echoed = {"x-echo": headers, "www-authenticate": f"Bearer {KEY}", "request-id": KEY}
        return Outgoing(status, bodies[form].encode(), {**echoed, "retry-after": "0"})

    return answer


def holds(folder: Path) -> list[str]:
    """Files below a folder that hold a key."""
    return [
        str(file)
        for file in sorted(folder.rglob("*"))
        if file.is_file() and any(key.encode() in file.read_bytes() for key in ALL)
    ]


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(
    ("status", "form"), [(400, "json"), (401, "json"), (403, "page"), (422, "text"), (200, "json")]
)
def test_a_key_that_a_server_repeats_is_nowhere(
    adapter: str,
    status: int,
    form: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if find_spec(adapter) is None and adapter != "http":
        pytest.skip(f"{adapter} is not installed (the extra of that name)")
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, KEY)
    with LlmServer(text=echoing(status, form)) as server:
        words = ["--model", ADAPTERS[adapter], "--adapter", adapter]
        withheld = server.url.replace("//", f"//user:{PASSWORD}@") + f"/v1?sig={QUERY}"
        assert run(*words, "--base-url", withheld, "--judge", "simplified") == 2
        words += ["--base-url", f"{server.url}/v1"]
        words += ["--extra-headers", json.dumps({"X-Team-Secret": HEADER}), "--limit", "2"]
        run(*words, "--judge", "simplified")
        assert server.stats.requests > 0
    screen = "".join(capsys.readouterr())
    assert not [key for key in ALL if key in screen], screen
    if (folder := tmp_path / "run").is_dir():
        trajudge(["report", str(folder), "--baselines", "off", "--out", "report.html"])
        with served(open_workspace([folder])) as site:
            pages = ["/", "/run/run", "/run/run/judgments", "/run/run/judgment/0"]
            shown = "".join(site.ask(page).text for page in pages)
        assert not [key for key in ALL if key in shown]
        if status in (400, 422):
            assert MASK in (folder / "judgments.jsonl").read_text()
    assert holds(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "Incorrect API key provided: sk-proj-abc*********wxyz. You",
            "Incorrect API key provided: [key] You",
        ),
        ("x-api-key sk-ant-api03-Ab_c-9: no", "x-api-key [key]: no"),
        ("key AIzaSyA1234567890abcdefghijklmnopqrstuv is", "key [key] is"),
        ("id AKIAIOSFODNN7EXAMPLE, ", "id [key], "),
        ("token hf_abcdefghijklmnopqrstuvwx", "token [key]"),
        ("gsk_0123456789abcdef", "[key]"),
        ("the key 0123456789abcdef0123456789abcdef is", "the key [key] is"),
        (
            "subscription key you sent: 0123456789abcdef0123456789abcdef",
            "subscription key you sent: [key]",
        ),
        ("Authorization: Bearer abc.def-123", "Authorization: [key]"),
        (
            "at https://joe:pw@example.test/v1?api-key=abc&x=1",
            "at https://[key]@example.test/v1?api-key=[key]&x=1",
        ),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "[key]"),
        # What is no key stays.
        ("request 0123456789abcdef0123456789abcdef failed", None),
        ("the primary key is absent, a risk-averse turn-key-solution", None),
        ("install hf_transfer, set key-value", None),
        ("max_tokens is 4096; basic auth is off", None),
        ("mail joe@example.test about https://example.test/a", None),
    ],
)
def test_what_looks_like_a_key_is_masked(text: str, kept: str | None) -> None:
    assert masked(text) == (text if kept is None else kept)


def test_the_values_of_the_environment_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "password-file").touch()
    values = {
        "MY_API_KEY": "quiet-otter",
        "GITHUB_TOKEN": "loud/otter",
        "DB_PASSWORD": "otter with spaces",
        "SECRET_NAME": str(file),
        "MAX_TOKENS": "100000000",
        "SHORT_KEY": "otter",
        "KEYBOARD": "us-international",
        "TOKENIZERS_PARALLELISM": "sometimes",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    hidden = {value for value in values.values() if without_known(f"<{value}>") == f"<{MASK}>"}
    assert hidden == {"quiet-otter", "loud/otter", "otter with spaces"}
    assert without_known("loud%2Fotter") == MASK


def test_a_header_is_secret_by_its_name_or_its_value() -> None:
    assert is_secret_header("X-Api-Key", "a")
    assert is_secret_header("X-Any", "Bearer abcdefgh")
    assert not is_secret_header("X-Team", "agents")
