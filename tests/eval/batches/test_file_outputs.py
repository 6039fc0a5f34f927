"""What ``vllm run-batch`` wrote is read back: whole, in part, and with errors among the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.batch_server import BatchServer
from tests.eval.batches.batch_runs import judge, live, run_file
from trajudge.judges.batch.openai import output_of

pytestmark = pytest.mark.usefixtures("own_folder")


def test_a_line_that_is_cut_is_named_and_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchServer() as server:
        judgments = live(server)
        assert judge(server, "batch", "--batch-files", "files") == 130
        (written,) = Path("files").glob("*.in.jsonl")
        run_file(written, "\nScore: 4\nStatus: success")
        output = output_of(str(written.resolve()))
        first, *others = output.read_bytes().splitlines(keepends=True)
        output.write_bytes(b"".join([first[: len(first) // 2] + b"\n", *others]))
        capsys.readouterr()
        assert judge(server, "batch", "--batch-files", "files") == 130
        told = capsys.readouterr().err
        assert f"warning: {output} line 1 is cut: its request is asked again\n" in told
        assert "batch: 1 request in 1 file" in told
        (again,) = set(Path("files").glob("*.in.jsonl")) - {written}
        run_file(again, "\nScore: 4\nStatus: success")
        assert judge(server, "batch", "--batch-files", "files") == 0
        assert "is cut" not in capsys.readouterr().err
    assert Path("batch/judgments.jsonl").read_bytes() == judgments


def with_first_answer(status: int, body: Any) -> Path:
    """Run the file that was written, so that its first line has this answer; return the output."""
    (written,) = Path("files").glob("*.in.jsonl")
    run_file(written, "\nScore: 4\nStatus: success")
    output = output_of(str(written.resolve()))
    first, *others = map(orjson.loads, output.read_bytes().splitlines())
    first["response"] |= {"status_code": status, "body": body}
    output.write_bytes(b"\n".join(map(orjson.dumps, [first, *others])))
    return output


def told_of(output: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the next command says of the output's first line, and nothing of a server."""
    told = " ".join(capsys.readouterr().err.split())
    assert "asked through" not in told and "--base-url" not in told
    _, found, said = told.partition(f"vllm run-batch (line 1 of {output.name}) ")
    assert found, told
    return said


def test_an_error_in_the_output_is_told_as_the_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    """No server answers when it is read."""
    words = ["files", "--batch-files", "files"]
    with BatchServer() as server:
        assert judge(server, *words) == 130
    output = with_first_answer(400, {"message": "the image is broken", "code": 400})
    assert judge(server, *words) == 1
    assert told_of(output, capsys).startswith("answered 400: the image is broken")


def test_a_model_that_the_output_does_not_know_is_a_matter_of_run_batch(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["files", "--batch-files", "files"]
    with BatchServer() as server:
        assert judge(server, *words) == 130
        output = with_first_answer(404, {"message": "The model gpt-4o does not exist."})
        assert judge(server, *words) == 2
        said = told_of(output, capsys)
        assert said.startswith("does not serve gpt-4o (404: The model gpt-4o does not exist.): ")
        assert "run the file that it writes with the lines' --model" in said
        assert judge(server, *words) == 130
    assert len(list(Path("files").glob("*.in.jsonl"))) == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"choices": [{"text": "no chat"}]}, "answered without a choice"),
        ({"choices": []}, "answered without a choice"),
        ({"object": "chat.completion"}, "answered without a choice"),
        ({"error": {"message": "out of memory", "code": 500}}, "answered 500: out of memory"),
        (None, "answered 500: no answer"),
    ],
)
def test_an_answer_that_cannot_be_read_is_named_by_its_line_and_asked_again(
    body: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["files", "--batch-files", "files"]
    with BatchServer() as server:
        assert judge(server, *words) == 130
        output = with_first_answer(200, body)
        assert judge(server, *words) == 130
    assert told_of(output, capsys).startswith(f"{said}: its request is asked again")
    assert len(list(Path("files").glob("*.in.jsonl"))) == 2


def test_an_output_that_is_not_whole_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchServer() as server:
        assert judge(server, "batch", "--batch-files", "files") == 130
        (written,) = Path("files").glob("*.in.jsonl")
        run_file(written, "")
        output = output_of(str(written.resolve()))
        output.write_bytes(b"".join(output.read_bytes().splitlines(keepends=True)[:3]))
        capsys.readouterr()
        assert judge(server, "batch", "--batch-files", "files") == 130
    told = " ".join(capsys.readouterr().err.split())
    assert f"{output}: 3 of 8 lines there" in told
    assert "run vllm run-batch -i" in told
