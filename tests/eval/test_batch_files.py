"""Files for ``vllm run-batch``, its outputs, and the command about batches."""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.batch_server import BatchServer
from tests.eval.batch_runs import JUDGMENTS, judge, live, run_file
from trajudge.eval.cli import main
from trajudge.judges.batch.openai import output_of

pytestmark = pytest.mark.usefixtures("own_folder")


def test_files_are_written_and_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchServer() as server:
        judgments = live(server)
        assert judge(server, "batch", "--batch-files", "files") == 130
        (written,) = Path("files").glob("*.in.jsonl")
        captured = capsys.readouterr()
        files = f"-i {written.resolve()} -o {output_of(str(written.resolve()))}"
        assert f"vllm run-batch {files} --model" in " ".join(captured.err.split())
        assert "8 requests in 1 file, at an unknown price. Ctrl-C" in captured.err
        assert captured.out.endswith("\nNothing was judged yet\n")
        calls = server.live
        assert judge(server, "batch", "--batch-files", "files") == 130  # no output yet
        run_file(written, "\nScore: 4\nStatus: success")
        assert judge(server, "batch", "--batch-files", "files") == 0
        assert server.live == calls and server.submissions == 0
    assert len(list(Path("files").glob("*.in.jsonl"))) == 1
    assert Path("batch/judgments.jsonl").read_bytes() == judgments


def test_what_replies_that_were_replaced_cost_is_told_beside_the_judgments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The bill is what the output files say was used."""
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 1000.0\n')
    words = ["--batch-files", "files", "--prices", "prices.toml", "--max-failures", "100%"]
    words += ["--repair", "0"]
    bills = []
    with BatchServer() as server:
        for retry, text in (
            ([], "I cannot say."),
            (["--retry-failed"], "\nScore: 4\nStatus: success"),
        ):
            assert judge(server, "batch", *words, *retry) == 130
            (path,) = (
                p for p in Path("files").glob("*.in.jsonl") if not output_of(str(p)).exists()
            )
            run_file(path, text, is_verdict=bool(retry))
            used = [
                orjson.loads(line)["response"]["body"]["usage"]
                for line in output_of(str(path)).read_bytes().splitlines()
            ]
            bills.append(sum(u["prompt_tokens"] / 4e3 + u["completion_tokens"] / 1e3 for u in used))
            capsys.readouterr()
            assert judge(server, "batch", *words, *retry) == 0
            shown = " ".join(capsys.readouterr().out.split())
            assert f"Cost: ${bills[-1]:.4f}, {JUDGMENTS} calls" in shown
            assert (" more for failed attempts" in shown) == bool(retry)
        beside = re.search(r"\$([\d.]+) more for failed attempts, repeated", shown)
        assert beside and float(beside[1]) == pytest.approx(bills[0], abs=1e-4)
        # Nothing is left to ask, so it needs no batches; what they cost is known to the folder.
        assert judge(server, "batch", *words[2:]) == 0
        again = " ".join(capsys.readouterr().out.split())
        assert again.partition("wall time")[0] == shown.partition("wall time")[0]


def test_a_file_that_somebody_removed_is_written_anew(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchServer() as server:
        assert judge(server, "batch", "--batch-files", "files") == 130
        (written,) = Path("files").glob("*.in.jsonl")
        written.unlink()
        assert judge(server, "batch", "--batch-files", "files") == 2
        assert "its file is not there any more; start the same command again" in (
            capsys.readouterr().err
        )
        assert judge(server, "batch", "--batch-files", "files") == 130
    assert len(list(Path("files").glob("*.in.jsonl"))) == 1


def test_a_file_that_is_cancelled_is_gone_and_its_requests_are_written_anew(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with BatchServer() as server:
        assert judge(server, "batch", "--batch-files", "files") == 130
        capsys.readouterr()
        assert main(["run", "batch", "cancel", "--cache", "batch.sqlite"]) == 0
        told = capsys.readouterr()
        assert "in.jsonl  released (cancelled)" in told.out
        assert "8 released" in told.out
        assert told.err == ""
        assert not list(Path("files").iterdir())
        assert judge(server, "batch", "--batch-files", "files") == 130
    assert len(list(Path("files").glob("*.in.jsonl"))) == 1


def test_a_file_that_was_run_before_it_is_cancelled_is_read() -> None:
    with BatchServer() as server:
        judgments = live(server)
        assert judge(server, "batch", "--batch-files", "files") == 130
        (written,) = Path("files").glob("*.in.jsonl")
        run_file(written, "\nScore: 4\nStatus: success")
        assert main(["run", "batch", "cancel", "--cache", "batch.sqlite"]) == 0
        assert judge(server, "batch", "--batch-files", "files") == 0
    assert Path("batch/judgments.jsonl").read_bytes() == judgments


def test_submitted_here_and_collected_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchServer(seconds=0.0) as server:
        judgments = live(server)
        assert judge(server, "batch", "--batch", "--batch-submit-only") == 130
        assert main(["run", "batch", "status", "--cache", "batch.sqlite"]) == 0
        assert "batch_0  submitted" in capsys.readouterr().out
        assert main(["run", "batch", "resume", "--cache", "batch.sqlite"]) == 0
        assert "8 done" in capsys.readouterr().out
        calls = server.live
        assert judge(server, "batch", "--batch") == 0
        assert (server.live, server.submissions) == (calls, 1)
    assert Path("batch/judgments.jsonl").read_bytes() == judgments


def test_what_the_command_collected_was_paid_by_the_run_that_submitted_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is resumed without batches, for which nothing is left."""
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 1000.0\n')
    prices = ["--prices", "prices.toml"]
    with BatchServer(seconds=0.0) as server:
        assert judge(server, "batch", "--batch", "--batch-submit-only", *prices) == 130
        assert main(["run", "batch", "resume", "--cache", "batch.sqlite"]) == 0
        capsys.readouterr()
        assert judge(server, "batch", *prices) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(rf"Cost: \$[1-9]\S*, {JUDGMENTS} calls, ", shown), shown


@pytest.mark.parametrize("there", ["file", "file/below", "/proc/x"])
def test_a_folder_that_cannot_be_written_leaves_nothing_to_wait_for(
    there: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("in the way")
    with BatchServer() as server:
        assert judge(server, "batch", "--batch-files", there) == 2
        told = capsys.readouterr().err.splitlines()[-1]
        assert told.startswith(f"error: --batch-files {there}: ")
        assert told.endswith(("name a folder", "name another folder"))
        assert judge(server, "batch", "--batch-files", "files") == 130
        (written,) = Path("files").iterdir()
        assert f"vllm run-batch -i {written.resolve()}" in " ".join(capsys.readouterr().err.split())


def test_a_file_that_a_killed_command_did_not_write_is_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Until the grace is over another command may be writing it; there is nothing to run yet."""
    with BatchServer() as server:
        assert judge(server, "batch", "--batch-files", "files") == 130
        (written,) = Path("files").glob("*.in.jsonl")
        written.unlink()
        ledger = sqlite3.connect("batch.sqlite.batches")
        with ledger:
            ledger.execute("UPDATE batches SET state = 'intent', provider_id = ''")
            ledger.execute("UPDATE batches SET intent_at = ?", (time.time() + 60,))
        ledger.close()
        capsys.readouterr()
        assert judge(server, "batch", "--batch-files", "files") == 130
    told = " ".join(capsys.readouterr().err.split())
    assert "an earlier command still writes a file, or was killed then" in told
    assert "vllm run-batch" not in told


def test_requests_that_wait_in_another_folder_are_not_written_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with BatchServer() as server:
        assert judge(server, "batch", "--batch-files", "files") == 130
        capsys.readouterr()
        assert judge(server, "batch", "--batch-files", "others") == 130
    told = " ".join(capsys.readouterr().err.split())
    waits = Path("files").resolve()
    assert f"requests that wait in {waits} already were not written into others again" in told
    assert f"run vllm run-batch -i {waits}" in told


@pytest.mark.parametrize("option", [["--batch-files", "files"], ["--batch"]])
def test_without_a_model_there_is_nothing_to_batch(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["judge", "--data", "sample", "--out", "run", *option]
    for judges in (["heuristic"], ["heuristic", "rule-based"]):
        named = [word for name in judges for word in ("--judge", name)]
        assert main([*words, *named]) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"error: {option[0]}: ")
        assert told.endswith("a model, so that there are no requests: leave it out\n")
    assert not Path("run").exists()


def test_a_judge_without_a_model_beside_one_with_a_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    judges = ("--judge", "heuristic", "--judge", "simplified", "--batch-files", "files")
    with BatchServer() as server:
        assert judge(server, "batch", *judges) == 130
        assert len(list(Path("files").iterdir())) == 1
        capsys.readouterr()
        assert judge(server, "batch", *judges, "--dry-run") == 0
    (line,) = [n for n in capsys.readouterr().out.splitlines() if n.startswith("  in files")]
    assert line.endswith("at most 1 round of  vllm run-batch")


def test_files_and_the_provider_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchServer() as server:
        assert judge(server, "batch", "--batch", "--batch-files", "files") == 2
    assert "--batch asks the provider, --batch-files writes files" in capsys.readouterr().err


def test_a_grid_writes_the_files_of_all_its_runs_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 1000.0\n')
    judges = ("--judge", "simplified", "--judge", "aer-c")
    words = (*judges, "--batch-files", "files", "--prices", "prices.toml")
    with BatchServer() as server:
        assert judge(server, "batch", *words) == 130
        first, second = Path("files").glob("*.in.jsonl")
        told = " ".join(capsys.readouterr().err.split())
        assert told.count(f"vllm run-batch -i {first.resolve()}") == 1
        assert told.count(f"vllm run-batch -i {second.resolve()}") == 1
        for _ in range(2):  # aer-c asks twice: the replies to the first wait for its judgments
            for path in Path("files").glob("*.in.jsonl"):
                if not output_of(str(path)).exists():
                    run_file(path, "\nScore: 4\nStatus: success")
            code = judge(server, "batch", *words)
            captured = capsys.readouterr()
            assert "8 of 8 judged; the same command goes on" not in captured.err
            assert "more for failed attempts" not in captured.out
        assert (code, server.live, server.submissions) == (0, 0, 0)
    judged = [*Path("batch").glob("*/judgments.jsonl")]
    assert [len(path.read_bytes().splitlines()) for path in judged] == [JUDGMENTS] * 2


@pytest.mark.parametrize("order", [("simplified", "mine.py"), ("mine.py", "simplified")])
def test_a_failure_is_the_code_of_a_grid_that_waits_in_any_order(
    order: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.py").write_text(
        "needs_model = False\n\nasync def judge(trajectory, ask):\n    raise KeyError(1)\n"
    )
    judges = [word for name in order for word in ("--judge", name)]
    with BatchServer() as server:
        assert judge(server, "batch", *judges, "--batch-files", "files") == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "run vllm run-batch -i " in told
    assert "error: 1 of 2 runs failed: mine: " in told


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
