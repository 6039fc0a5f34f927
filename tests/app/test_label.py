"""``trajudge label QUEUE``: starts, says where it is, asks for a token where it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.annotations.queues import item, queue
from tests.app.started import started
from trajudge.eval.cli import main as trajudge


@pytest.mark.slow
def test_it_serves_until_ctrl_c(tmp_path: Path) -> None:
    queue(tmp_path / "queue", [item(0)]).close()
    with started("label", str(tmp_path / "queue")) as page:
        assert b"Who are you?" in page


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["serve", "absent"], "make one with  trajudge label build"),
        (["absent"], "no command 'label absent'"),
        (["QUEUE", "--auth"], "trajudge label people"),
        (["QUEUE", "--data", "trajudge:absent"], "there is no file or folder 'absent'"),
        (["serve", "QUEUE", "--host", "0.0.0.0", "--no-token"], "leave --no-token out"),
        (["serve", "QUEUE", "--auth", "--no-token"], "exclude each other"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue(tmp_path, [item(0)]).close()
    assert trajudge(["label", *(str(tmp_path) if word == "QUEUE" else word for word in words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line


def test_the_help_says_where_a_token_comes_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    for command, words in (
        (["label", "serve"], "their own token, which trajudge label people printed"),
        (["inspect"], "--no-token"),
    ):
        with pytest.raises(SystemExit):
            trajudge([*command, "--help"])
        assert words in " ".join(capsys.readouterr().out.split()), command
