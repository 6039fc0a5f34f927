"""A place that cannot be written is refused before the work: before even the inputs are read."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eval.output_places import needed
from tests.eval.parsers import TABLE, parsers
from tests.rules.evaluated import TASKS
from trajudge.eval.cli import main, named
from trajudge.util.commands import BROKEN_PIPE
from trajudge.util.settings import Output, options_of

# The flags of what is written. Others look at their place themselves: --export, --queues, --drift.
WRITTEN = {
    *("--out", "--save", "--plot", "--plots", "--folder", "--store", "--submission"),
    *("--mismatches", "--calibration-out", "--cross-fit", "--batch-files", "--run-folder"),
    *("--html", "--report"),
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


@pytest.mark.parametrize(
    ("words", "file", "said"),
    [
        (["audit"], "audit.json", "official reward"),
    ],
)
def test_a_result_is_printed_where_its_file_cannot_be_written(
    words: list[str], file: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    judge = ["judge", "--judge", "heuristic", "--data", "sample", "--out", str(run)]
    assert main(judge) == 0
    (out / file).mkdir(parents=True)
    capsys.readouterr()
    assert main([*words, str(run), "--out", str(out)]) == 2
    shown = capsys.readouterr()
    assert said in shown.out
    assert shown.err.splitlines()[-1].startswith(f"error: --out {out}: cannot be written (")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("audit RUN --out OUT", {"audit.json", "cases.jsonl"}),
        ("score RUN --html OUT/page.html", {"page.html"}),
        ("score RUN --mismatches OUT/a --submission OUT/b", {"a", "b"}),
        ("env prism REPORT --save OUT/prism.json", {"prism.json"}),
        ("rules lint --tasks TASKS --out OUT", {"lint.json", "lint.csv"}),
    ],
)
def test_what_nobody_reads_to_its_end_is_written(
    words: str, files: set[str], tmp_path: Path
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    assert main(["judge", "--judge", "heuristic", "--data", "sample", "--out", str(run)]) == 0
    report = tmp_path / "report.json"
    report.write_text('{"name": "x"}')
    tasks = tmp_path / "tasks.json"
    tasks.write_text(json.dumps(TASKS))
    places = {"RUN": run, "REPORT": report, "TASKS": tasks}
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
