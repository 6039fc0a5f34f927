"""A place that cannot be written is refused before the work; a full disk loses nothing."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eval.full_disk import no_file_beyond
from tests.eval.output_places import needed
from tests.eval.parsers import TABLE, parsers
from tests.rules.evaluated import TASKS
from trajudge.eval.cli import main, named
from trajudge.eval.cli import main as trajudge
from trajudge.eval.judge import main as judge_command
from trajudge.util.commands import BROKEN_PIPE
from trajudge.util.settings import Output, options_of

# The flags of what is written. Others look at their place themselves: --export, --queues, --drift.
WRITTEN = {
    *("--out", "--save", "--plot", "--plots", "--folder", "--store", "--submission"),
    *("--mismatches", "--calibration-out", "--cross-fit", "--batch-files", "--run-folder"),
    *("--html", "--report", "--record"),
}


def written() -> Iterator[tuple[str, argparse.Action]]:
    for name, made in parsers():
        for action in made._actions:
            if WRITTEN & {*action.option_strings}:
                yield name, action


def test_what_is_written_is_looked_at_in_every_command() -> None:
    options = [one for command in TABLE.values() for one in options_of(named(command.settings))]
    assert all(isinstance(one.option, Output) for one in options if one.flag in WRITTEN)
    looked_at = {one.flag for one in options if isinstance(one.option, Output)}
    assert looked_at == WRITTEN


@pytest.mark.parametrize("there", ["taken", "below", "read-only"])
@pytest.mark.parametrize(
    ("words", "option", "kind"),
    [
        pytest.param(
            [*name.split()[1:], *needed(name, action.option_strings[-1])],
            action.option_strings[-1],
            action.metavar,
            id=f"{name} {action.option_strings[-1]}",
        )
        for name, action in written()
    ]
    + [
        pytest.param(["robust", "--judge", "heuristic"], "--drift", "FILE", id="robust --drift"),
        pytest.param(["data", "convert", "sample"], None, "DIR", id="data convert OUT"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    words: list[str],
    option: str | None,
    kind: str,
    there: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-folder.png").mkdir()
    (tmp_path / "a-file").touch()
    taken = "a-file" if kind == "DIR" else "a-folder.png"
    place = {"taken": taken, "below": "a-file/x.png", "read-only": "/proc/self/x.png"}[there]
    assert main([*words, *([option] if option else []), place]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"error: {option or 'OUT'} {place}: ")
    assert shown.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"a-file", "a-folder.png"}


def test_a_dry_run_writes_nothing_and_asks_for_no_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a-file").touch()
    out = tmp_path / "a-file" / "run"
    (tmp_path / "config.yaml").write_text(f"out: {out}\n")
    words = ["judge", "--judge", "heuristic", "--data", "sample", "--limit", "1", "--dry-run"]
    for place in (["--out", str(out)], ["--config", str(tmp_path / "config.yaml")]):
        assert main([*words, *place]) == 0
        assert "judgments     1" in capsys.readouterr().out
    assert main([*words[:-1], "--config", str(tmp_path / "config.yaml")]) == 2
    assert f"config.yaml: --out {out}: " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("audit RUN --out OUT", {"audit.json", "cases.jsonl"}),
        ("score RUN --html OUT/page.html", {"page.html"}),
        ("score RUN --mismatches OUT/a --submission OUT/b", {"a", "b"}),
        ("rules lint --tasks TASKS --out OUT", {"lint.json", "lint.csv"}),
    ],
)
def test_what_nobody_reads_to_its_end_is_written(
    words: str, files: set[str], tmp_path: Path
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    assert main(["judge", "--judge", "heuristic", "--data", "sample", "--out", str(run)]) == 0
    tasks = tmp_path / "tasks.json"
    tasks.write_text(json.dumps(TASKS))
    places = {"RUN": run, "TASKS": tasks}
    given = [str(places.get(word, word)).replace("OUT", str(out)) for word in words.split()]
    command = [sys.executable, "-u", "-m", "trajudge.eval.cli", *given]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdout
        process.stdout.close()
    assert process.returncode == BROKEN_PIPE
    assert {path.name for path in out.iterdir()} == files


@pytest.mark.parametrize(
    ("words", "taken", "said"),
    [
        ("report missing", "report.html/x", "report.html: is a folder: name a file"),
        ("rules evaluate --tasks tasks.json --runs missing", "evaluated", "evaluated is a file: "),
        ("env verify missing --other-goals 1", "goals.jsonl/x", "goals.jsonl: is a folder: name"),
    ],
)
def test_a_default_place_is_looked_at_likewise(
    words: str,
    taken: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks.json").write_text(json.dumps(TASKS))
    Path(taken).parent.mkdir(exist_ok=True)
    Path(taken).touch()
    assert main(words.split()) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(("error: --out ", "error: --save ")) and said in error


WORDS = ["--judge", "heuristic", "--data", "sample", "--limit", "20", "--out"]


@pytest.fixture
def undisturbed(tmp_path: Path) -> Path:
    assert judge_command([*WORDS, str(tmp_path / "undisturbed")]) == 0
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
            code = judge_command([*WORDS, str(folder)])
        shown = capsys.readouterr().err
        assert code == 2
        assert shown.count("error: ") == 1
        assert "cannot be written (File too large)" in shown
        assert judge_command([*WORDS, str(folder)]) == 0
        assert (folder / "judgments.jsonl").read_bytes() == wanted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("score RUN --mismatches OUT", "heuristic"),
        ("score RUN --submission OUT --plots OUT-plots", "heuristic"),
        ("audit RUN --out OUT", "official reward"),
        ("robust RUN --attacked ATTACKED --out OUT", "heuristic"),
    ],
)
def test_a_result_is_printed_before_it_is_saved(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert judge_command(made) == 0
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
    assert judge_command(words) == 2
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
    assert judge_command(words) == 2
    shown = capsys.readouterr().err
    assert f"error: {out}: cannot be written (" in shown
    assert "): make it a folder that can be written and" in shown
    assert (tmp_path / "run" / "results.json").is_file()


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
