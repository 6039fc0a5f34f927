"""A disk that is full, wherever it happens: one sentence, and the run goes on where it was."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.eval.full_disk import no_file_beyond
from trajudge.eval.cli import main as trajudge
from trajudge.eval.judge import main

WORDS = ["--judge", "heuristic", "--data", "sample", "--limit", "20", "--out"]


@pytest.fixture
def undisturbed(tmp_path: Path) -> Path:
    assert main([*WORDS, str(tmp_path / "undisturbed")]) == 0
    return tmp_path / "undisturbed"


@pytest.mark.slow
def test_is_one_sentence_at_every_write_and_loses_nothing(
    undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = (undisturbed / "judgments.jsonl").read_bytes()
    sizes = {path.stat().st_size for path in undisturbed.iterdir()}
    for limit in sorted({0, 1} | {size - 1 for size in sizes if size}):
        folder = tmp_path / str(limit)
        capsys.readouterr()
        with no_file_beyond(limit):
            code = main([*WORDS, str(folder)])
        shown = capsys.readouterr().err
        assert code == 2
        assert shown.count("error: ") == 1
        assert "cannot be written (File too large)" in shown
        assert main([*WORDS, str(folder)]) == 0
        assert (folder / "judgments.jsonl").read_bytes() == wanted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("score RUN --mismatches OUT", "heuristic"),
        ("score RUN --submission OUT --plots OUT-plots", "heuristic"),
        ("robust RUN --attacked ATTACKED --out OUT", "heuristic"),
    ],
)
def test_a_result_is_printed_before_it_is_saved(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The screen of a long computation was lost with the file."""
    run, attacked = tmp_path / "run", tmp_path / "attacked"
    made = [*WORDS, str(run)]
    if "ATTACKED" in words:
        assert (
            trajudge(
                ["data", "perturb", "--data", "sample", "--limit", "3", "--out", str(attacked)]
            )
            == 0
        )
        made = ["--judge", "heuristic", "--data", str(attacked), "--out", str(run)]
    assert main(made) == 0
    places = {"RUN": run, "ATTACKED": attacked}
    given = [
        str(places.get(word, word)).replace("OUT", str(tmp_path / "out")) for word in words.split()
    ]
    capsys.readouterr()
    with no_file_beyond(0):
        code = trajudge(given)
    shown = capsys.readouterr()
    assert code == 2
    assert said in shown.out
    assert "error: " in shown.err.splitlines()[-1]
    assert "cannot be written (File too large)" in shown.err


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_an_export_into_a_file_is_refused_before_anything_is_judged(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    words = [*WORDS, str(tmp_path / "run"), "--export", "agentrewardbench", str(tmp_path / name)]
    assert main(words) == 2
    shown = capsys.readouterr().err
    assert shown.endswith(f"{tmp_path / name}: {tmp_path / 'file'} is a file: name a folder\n")
    assert not (tmp_path / "run").exists()


def test_an_export_that_cannot_be_written_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "published"
    out.mkdir()
    (out / "judgments").write_text("in the way")
    words = [*WORDS, str(tmp_path / "run"), "--export", "agentrewardbench", str(out)]
    assert main(words) == 2
    shown = capsys.readouterr().err
    assert f"error: {out}: cannot be written (" in shown
    assert "): make it a folder that can be written and" in shown
    assert (tmp_path / "run" / "results.json").is_file()


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_run_in_place_of_a_file_asks_for_another_folder(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main([*WORDS, str(tmp_path / name)]) == 2
    shown = capsys.readouterr().err
    assert f"--out {tmp_path / name}: {tmp_path / 'file'} is a file: name a folder" in shown


@pytest.mark.parametrize(
    "command",
    [
        ["judge", "--data", "sample", "--judge", "heuristic", "--out"],
        ["score", "RUN", "--plots"],
        ["report", "RUN", "--folder"],
        ["data", "convert", "sample"],
    ],
)
def test_a_device_is_no_folder_to_write_into(
    command: list[str], undisturbed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe of the test's own: as root, a mistake would replace a device of the machine."""
    pipe = undisturbed.parent / "pipe"
    os.mkfifo(pipe)
    words = [str(undisturbed) if word == "RUN" else word for word in command]
    assert trajudge([*words, str(pipe)]) == 2
    shown = capsys.readouterr().err.splitlines()[-1]
    assert f" {pipe}: {pipe} is a " in shown
    assert re.search(r" is a (device or a )?pipe: name a (regular file or a )?folder", shown)
