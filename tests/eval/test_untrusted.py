"""Names, pages, files and servers that mean harm: no key is kept, no sequence obeyed."""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest
from rich.progress import Progress

from tests.app.serving import served
from tests.eval.judge_command import run
from tests.llm_replies import Incoming, Outgoing
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from trajudge.app.workspace import open_workspace
from trajudge.eval.cli import main as trajudge
from trajudge.eval.cli import main as trajudge_command
from trajudge.eval.judge import main
from trajudge.eval.judge import main as judge_command
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.model import Status
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import sample_path
from trajudge.util.masking import MASK, is_secret_header, masked, without_known
from trajudge.util.terminal import terminal_console

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def few() -> list[Trajectory]:
    read = (item for item in store.read(sample_path()) if isinstance(item, Trajectory))
    return [item for item, _ in zip(read, range(3), strict=False)]


def test_escape_sequences_do_not_reach_the_terminal(
    few: list[Trajectory], capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"benchmark": "\x1b[31mred", "agent": "../../\x1b[2J", "task_id": "a\r\nerror: b\x07"}
    evil = few[0].model_copy(update={"key": few[0].key.model_copy(update=names)})
    file = store.write(Path("evil"), [*few, evil, evil])
    file.write_bytes(file.read_bytes() + b'{"key": "\x1b]0;title\x07"}\n')
    words = ["--judge", "heuristic", "--data", "trajudge:evil", "--out", "run"]
    assert main([*words, "--export", "agentrewardbench", "out", "--full"]) == 0
    assert main(words) == 0
    assert main([*words[:4], "--benchmark", "absent"]) == 2
    shown = capsys.readouterr()
    assert "\\x1b[31mred" in shown.out
    for text in (shown.out, shown.err):
        assert all(character.isprintable() or character == "\n" for character in text)
    assert not [line for line in shown.err.splitlines() if line.startswith("error: b")]
    assert {path.parts[0] for path in Path().rglob("*.json")} == {"run", "out"}


@pytest.mark.parametrize("size", [(60_000, 60_000), (1, 63_000_000)])
def test_why_a_judgment_failed_is_shown_once_a_status(
    size: tuple[int, int], few: list[Trajectory], capsys: pytest.CaptureFixture[str]
) -> None:
    store.write(Path("bombs"), few)
    for image in Path("bombs/images").iterdir():
        image.write_bytes(_png(*size))
    with LlmServer() as server:
        words = ["--model", "gpt-4o", "--base-url", server.url, "--representation", "screenshot"]
        assert main([*words, "--data", "trajudge:bombs", "--out", "run"]) == 1
        assert server.stats.requests == 0
    assert {judgment.status for judgment in read_judgments(Path("run"))} == {Status.SKIPPED}
    shown = on_one_line(capsys.readouterr().err)
    assert "warning: 3 skipped, the first because: " in shown
    assert f"{size[0]} x {size[1]} pixels" in shown


def _png(width: int, height: int) -> bytes:
    """A picture that declares what nobody should decode."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        crc = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(1_000_000))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(kind, content)
        for kind, content in ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    )


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


NAME = "lab/:x:[bold]m[/bold][red]:smile:[/oops]"
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        """What stands there: without colours, and without the breaks of narrow columns."""
        return _CONTROLS.sub("", self.getvalue())


@contextmanager
def on_a_terminal() -> Iterator[Terminal]:
    """Both streams, from within a test: pytest puts its own in place between the phases of one."""
    screen = Terminal()
    size = {"COLUMNS": "400", "TERM": "xterm-256color"}
    with patch.dict(os.environ, size), redirect_stdout(screen), redirect_stderr(screen):
        yield screen


def asked(server: LlmServer, *words: str) -> list[str]:
    return ["--data", "sample", "--base-url", server.url + "/v1", "--yes", *words]


def test_the_commands_that_print_a_model_show_its_name() -> None:
    with LlmServer() as server:
        words = asked(server, "--model", NAME, "--limit", "20")
        commands: list[tuple[Callable[[Sequence[str]], int], list[str]]] = [
            (judge_command, [*words, "--out", "run"]),
            (judge_command, [*words, "--out", "dry", "--dry-run"]),
            (judge_command, [*words, "--out", "grid", "--model", "other"]),
            (trajudge_command, ["score", "run"]),
            (trajudge_command, ["audit", "run", "--out", "audit", "--full"]),
        ]
        for command, arguments in commands:
            with on_a_terminal() as terminal:
                command(arguments)
            assert NAME in terminal.shown(), (command, arguments)


def test_bars_still_move() -> None:
    with on_a_terminal() as terminal, Progress(console=terminal_console(stderr=True)) as bar:
        bar.update(bar.add_task("recording", total=2), completed=2)
    assert "recording" in terminal.shown()
    assert "100%" in terminal.shown()
