"""Ranks of published verdicts against the published tables, each read by a reader of its own."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from tests.eval.scoring.published_counts import BENCHMARK_IDS, JUDGES
from trajudge.annotations.published import open_verdicts
from trajudge.annotations.sources import agentrewardbench
from trajudge.annotations.sources.agentrewardbench import read_results
from trajudge.eval.cli import main
from trajudge.util.errors import UserError

Rows = dict[tuple[str, str], dict[str, str]]


@pytest.fixture(scope="module")
def data(arb: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """AgentRewardBench's annotations and published arrays, without trajectories or replies."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("annotations.csv", "splits.csv"):
        shutil.copy(arb / name, folder)
    shutil.copytree(arb / "published", folder / "published")
    return folder


@pytest.fixture
def found(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Rows:
    """The published verdicts imported as runs, and ranked."""
    out = tmp_path / "verdicts"
    assert main(["data", "verdicts", f"agentrewardbench:{data}", "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["score", *map(str, out.iterdir()), "--ranks", "--csv"]) == 0
    rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
    return {(row["judge"], row["benchmark"]): row for row in rows}


@pytest.mark.real_data
@pytest.mark.parametrize("judge", JUDGES)
def test_webjudges_rows_are_the_published_cells(found: Rows, arb: Path, judge: str) -> None:
    """``metrics_test.csv``: precision, recall and F1 in percent with one digit, and the count."""
    cells = 0
    published = arb / "published" / judge / "metrics_test.csv"
    with published.open(newline="") as file:
        for row in csv.DictReader(file):
            if (row["judge"], row["category"], row["agent"]) != ("WebJudge", "Success", "All"):
                continue
            benchmark = BENCHMARK_IDS[row["benchmark"]].replace("all", "overall")
            mine = found[f"{judge}@published", benchmark]
            for rate in ("precision", "recall", "f1"):
                assert round(100 * float(mine[rate]), 1) == float(row[rate]), (row, rate)
                cells += 1
            assert mine["n"] == mine["labelled"] == row["total"]
            assert (mine["coverage"], mine["failed"]) == ("1.0", "0")
    assert cells == 18


@pytest.mark.real_data
def test_webjudges_rows_are_those_of_the_leaderboard_entries(found: Rows, real_data: Path) -> None:
    """The entries as their authors submitted them, κ as computed from the published counts."""
    names = {"WebJudge (GPT-4o)": "webjudge-gpt-4o", "WebJudge-7B": "webjudge-7b"}
    cells = 0
    entries = real_data.parent / "tables" / "leaderboard_webjudge.csv"
    if not entries.is_file():
        pytest.skip(f"{entries} is not there")
    with entries.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["judge"] not in names:
                continue
            judge = f"{names[row['judge']]}@published"
            for column, text in row.items():
                if column in ("judge", "source") or not text:
                    continue
                place, _, rate = column.rpartition("_")
                benchmark = BENCHMARK_IDS[place] if place else "overall"
                value = found[judge, benchmark][rate]
                assert round(100 * float(value), 1) == float(text), (judge, column)
                cells += 1
    assert cells == 14
    for name, kappa in (("webjudge-7b", 0.553), ("webjudge-gpt-4o", 0.626)):
        assert round(float(found[f"{name}@published", "overall"]["kappa"]), 3) == kappa


@pytest.mark.real_data
def test_the_published_arrays_name_the_trajectories_of_the_published_replies(
    arb: Path, data: Path
) -> None:
    """A verdict by its place in the array is the verdict in the reply's file of that name."""
    test = {a.raw_task_id for a in agentrewardbench.load(arb) if a.split == "test"}
    verdicts = {
        (v.judge, v.key.benchmark, v.key.agent, v.key.task_id): v.success
        for v in open_verdicts(f"agentrewardbench:{data}")
    }
    compared = 0
    for judge in JUDGES:
        for path in arb.glob(f"judgments/*/*/{judge}/*.json"):
            benchmark, agent, _, file = path.parts[-4:]
            task = file.removesuffix(".json")
            if task not in test or ".resized" in task or ".improved" in task:
                continue
            reply = json.loads(path.read_bytes())["response"]["choices"][0]["message"]["content"]
            said = "success" in reply.lower().partition("status:")[2]
            assert verdicts[judge, benchmark, agent, task] is said, path
            compared += 1
    assert compared == 567


@pytest.mark.real_data
def test_arrays_of_other_annotations_are_refused(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "data")
    file = tmp_path / "data" / "annotations.csv"
    lines = file.read_text().splitlines()
    split = {a.raw_task_id for a in agentrewardbench.load(data) if a.split == "test"}
    place = next(n for n, line in enumerate(lines[1:], 1) if line.split(",")[2] in split)
    old, new = ",Successful,", ",Unsuccessful,"
    lines[place] = (
        lines[place].replace(old, new) if old in lines[place] else lines[place].replace(new, old)
    )
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match="y_human is not the labels"):
        open_verdicts(f"agentrewardbench:{tmp_path / 'data'}")


def test_a_file_that_holds_no_arrays_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    for content in ("[1]", "{", '{"judge": {"webarena": {"agent": [1]}}}', '{"judge": [1]}'):
        file.write_text(content)
        with pytest.raises(UserError, match=r"results\.json"):
            list(read_results(file, {}))
