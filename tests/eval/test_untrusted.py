"""Names, pages and files that mean harm, through the command."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from tests.llm_server import LlmServer
from tests.screens import on_one_line
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.model import Status
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import sample_path

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
