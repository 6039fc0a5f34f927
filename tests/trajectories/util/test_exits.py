"""Exit codes: a mistake is a sentence, an interruption is 130, a defect keeps its traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trajudge.util.commands import (
    BROKEN_PIPE,
    INTERRUPTED,
    OK,
    USAGE_ERROR,
    saved_behind_output,
    user_errors,
)
from trajudge.util.errors import MissingExtra, UserError, naming


def raises(error: BaseException) -> int:
    raise error


def test_a_mistake_is_one_sentence_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert user_errors(raises)(UserError("file x: no such column")) == USAGE_ERROR == 2
    assert capsys.readouterr() == ("", "error: file x: no such column\n")
    assert user_errors(raises)(MissingExtra("p", "e", "this")) == USAGE_ERROR


def test_an_error_names_the_option_that_was_given_and_leaves_the_path_alone() -> None:
    with pytest.raises(UserError, match=r"^IN '/my--data/x': write IN KIND:PATH$"), naming("IN"):
        raise UserError("--data '/my--data/x': write --data KIND:PATH")


def test_a_path_that_is_too_long_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert user_errors(lambda: len(Path("x" * 300).read_bytes()))() == USAGE_ERROR
    assert (
        capsys.readouterr().err == f"error: {'x' * 300}: File name too long: give a shorter path\n"
    )


def test_an_interruption_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert user_errors(raises)(KeyboardInterrupt()) == INTERRUPTED == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_everything_else_passes_through() -> None:
    assert user_errors(lambda: OK)() == 0
    with pytest.raises(ZeroDivisionError):
        user_errors(raises)(ZeroDivisionError())
    with pytest.raises(SystemExit):
        user_errors(raises)(SystemExit(3))


def test_a_reader_that_has_gone_is_no_traceback() -> None:
    command = [sys.executable, "-m", "trajudge.eval.cli", "judges", "list"]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == BROKEN_PIPE == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full")
@pytest.mark.parametrize("words", [("--help",), ("judges", "list")])
def test_a_full_disk_under_the_output_is_one_sentence(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "trajudge.eval.cli", *words]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            command,
            cwd=Path(__file__).parents[3],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: the output: cannot be written (No space left on")
    assert ended.stderr.count("\n") == 1


def test_what_is_saved_behind_the_output_is_saved_in_any_case() -> None:
    """In its order, also where an earlier one fails, and where the output cannot be printed."""
    done: list[str] = []

    def fail() -> None:
        done.append("failed")
        raise UserError("no room")

    with pytest.raises(UserError, match="no room"), saved_behind_output() as save:
        save(fail)
        save(done.append, "second")
        done.append("printed")
    assert done == ["printed", "failed", "second"]
    with pytest.raises(BrokenPipeError), saved_behind_output() as save:
        save(done.append, "third")
        raise BrokenPipeError
    assert done[3:] == ["third"]
