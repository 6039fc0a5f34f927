"""The command that selects a hard subset: what it prints and writes, and the user's mistakes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.eval.stats.hazard_world import simulate
from tests.samples import narrow
from tests.screens import one_screen
from trajudge.eval.analysis.hard_subset import COLUMNS
from trajudge.eval.hard_subset import main


def write_attempts(path: Path, tasks: int = 60, agents: int = 5) -> Path:
    data, _ = simulate(0, tasks=tasks, agents=agents)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for a, t, steps, won in zip(data.agent, data.task, data.steps, data.success, strict=True):
            site = data.site_names[data.site[t]]
            labels = (site, data.template[t], data.category[t])
            writer.writerow([f"agent {a}", f"task-{t}", *labels, steps, int(won)])
    return path


def test_selects_validates_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = write_attempts(tmp_path / "attempts.csv"), tmp_path / "tasks.csv"
    assert main([str(source), "--save", str(out), "--leave-one-out", "--resamples", "50"]) == 0
    printed = capsys.readouterr().out
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    selected = sum(row["selected"] == "1" for row in rows)
    assert len(rows) == 60
    assert f"selected {selected} of 60 tasks" in printed
    assert "Kendall tau" in printed
    table = printed[printed.index("without agent") :].splitlines()[1:]
    assert [line.split()[:2] for line in table[:5]] == [["agent", str(n)] for n in range(5)]


def many_agents(folder: Path) -> list[str]:
    source = write_attempts(folder / "attempts.csv", tasks=10, agents=32)
    return [str(source), "--leave-one-out", "--resamples", "5"]


@narrow
@pytest.mark.slow
def test_many_agents_take_one_screen(
    tmp_path: Path,
    width: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(many_agents(tmp_path)) == 0
    lines = one_screen(capsys.readouterr().out, width)
    assert lines[0].startswith("selected ")
    assert any(line.endswith(" more: --full") for line in lines)


@pytest.mark.slow
def test_full_prints_all_agents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*many_agents(tmp_path), "--full"]) == 0
    assert capsys.readouterr().out.count("\nagent ") == 32


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    source = write_attempts(tmp_path / "attempts.csv")
    outs = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for out in outs:
        assert main([str(source), "--save", str(out), "--resamples", "20"]) == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["agent,task_id"], "no column 'site'"),
        ([",".join(COLUMNS)], "no attempts"),
        ([",".join(COLUMNS), "a,t,s,1,c,many,1"], "line 2: steps is 'many'"),
        ([",".join(COLUMNS), "a,t,s,1,c,3,perhaps"], "line 2: success is 'perhaps'"),
        ([",".join(COLUMNS), "a,t,s,1,c,3"], "line 2: success is None"),
        ([",".join(COLUMNS), "a,t,s,1,c,3,1", "a,t,s,1,c,3,1"], "two runs"),
        ([",".join(COLUMNS), "a,t,s,1,c,3,1", "b,t,x,1,c,3,1"], "two values of site"),
        ([",".join(COLUMNS), "a,t,s,1,c,3,1"], "lower --min-agents"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str], said: str
) -> None:
    path = tmp_path / "attempts.csv"
    path.write_text("\n".join(lines))
    assert main([str(path)]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert str(path) in captured.err
    assert captured.out == ""


def test_a_validation_without_a_resample_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(write_attempts(tmp_path / "attempts.csv")), "--resamples", "0"]) == 2
    captured = capsys.readouterr()
    assert captured.err == ("error: --resamples is 0: input should be greater than or equal to 1\n")
    assert captured.out == ""


def test_a_missing_file_and_an_impossible_threshold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none.csv")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main([str(tmp_path / "none.csv"), "--hard", "20"]) == 2
    assert "--hard is 20.0" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full")
def test_an_output_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_attempts(tmp_path / "attempts.csv")
    assert main([str(source), "--save", "/dev/full"]) == 2
    assert "error: /dev/full: cannot be written (No space" in capsys.readouterr().err
