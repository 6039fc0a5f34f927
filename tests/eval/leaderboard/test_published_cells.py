"""Rows of the leaderboard against the published tables, each read by a reader of its own."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.eval.data.published_files import ANNOTATIONS, put
from tests.eval.scoring.test_protocol import BENCHMARK_IDS, JUDGES
from trajudge.eval.leaderboard.__main__ import main
from trajudge.eval.leaderboard.board import read_result_arrays
from trajudge.util.errors import UserError

Row = dict[str, str]


def rows_of(folder: Path) -> dict[tuple[str, str], Row]:
    with (folder / "leaderboard.csv").open(newline="") as file:
        return {(row["judge"], row["benchmark"]): row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def board(arb: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The leaderboard of AgentRewardBench's published verdicts, its replies left out."""
    folder = tmp_path_factory.mktemp("board")
    data = folder / "data"
    data.mkdir()
    for name in ("annotations.csv", "splits.csv"):
        shutil.copy(arb / name, data)
    shutil.copytree(arb / "published", data / "published")
    assert main(["--published", str(data), "--out", str(folder)]) == 0
    return folder


@pytest.mark.real_data
@pytest.mark.parametrize("judge", JUDGES)
def test_webjudges_rows_are_the_published_cells(board: Path, arb: Path, judge: str) -> None:
    """``metrics_test.csv``: precision, recall and F1 in percent with one digit, and the count."""
    found, cells = rows_of(board), 0
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
def test_webjudges_rows_are_those_of_the_leaderboard_entries(board: Path, real_data: Path) -> None:
    """The entries as their authors submitted them, κ as computed from the published counts."""
    names = {"WebJudge (GPT-4o)": "webjudge-gpt-4o", "WebJudge-7B": "webjudge-7b"}
    found, cells = rows_of(board), 0
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
    arb: Path,
) -> None:
    """A verdict by its place in the array is the verdict in the reply's file of that name."""
    from trajudge.annotations.sources import agentrewardbench

    annotations = agentrewardbench.load(arb)
    test = {a.raw_task_id for a in annotations if a.split == "test"}
    compared = 0
    for judge in JUDGES:
        verdicts = {
            (j.key.benchmark, j.key.agent, j.key.task_id): j.success
            for j in read_result_arrays(arb / "published" / judge / "results.json", annotations)
        }
        for path in arb.glob(f"judgments/*/*/{judge}/*.json"):
            benchmark, agent, _, file = path.parts[-4:]
            task = file.removesuffix(".json")
            if task not in test or ".resized" in task or ".improved" in task:
                continue
            reply = json.loads(path.read_bytes())["response"]["choices"][0]["message"]["content"]
            said = "success" in reply.lower().partition("status:")[2]
            assert verdicts[benchmark, agent, task] is said, path
            compared += 1
    assert compared == 567


@pytest.mark.real_data
def test_arrays_of_other_annotations_are_refused(arb: Path, tmp_path: Path) -> None:
    from trajudge.annotations.sources import agentrewardbench

    annotations = agentrewardbench.load(arb)
    first = next(a for a in annotations if a.split == "test" and a.success is not None)
    turned = [
        a.model_copy(update={"success": not a.success}) if a is first else a for a in annotations
    ]
    with pytest.raises(UserError, match="y_human is not the labels"):
        read_result_arrays(arb / "published" / JUDGES[0] / "results.json", turned)


@pytest.mark.usefixtures("own_folder")
def test_published_replies_are_rows_beside_the_official_reward(tmp_path: Path) -> None:
    """A folder of replies alone, without arrays and without a trajectory."""
    folder = tmp_path / "data" / "replies"
    for task in range(4):
        put(folder, task, "Successful" if task % 2 else "Unsuccessful")
    rows = "".join(
        f"A,webarena,webarena.{task},agent,{word},No,Unsure,No\n"
        for task, word in enumerate(["Unsuccessful", *["Successful"] * 4])
    )
    (folder / "annotations.csv").write_text(ANNOTATIONS + rows)
    assert main(["--published", str(tmp_path / "data"), "--split", "all", "--out", "board"]) == 0
    found = rows_of(Path("board"))
    assert set(found) == {("judge-x@published", "webarena"), ("rule-based", "webarena")}
    row = found["judge-x@published", "webarena"]
    assert (row["n"], row["labelled"], row["precision"]) == ("4", "5", "1.0")
    assert row["cost_per_1000"] == ""


def test_a_file_that_holds_no_arrays_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    for content in ("[1]", "{", '{"judge": {"webarena": {"agent": [1]}}}', '{"judge": [1]}'):
        file.write_text(content)
        with pytest.raises(UserError, match=r"results\.json"):
            read_result_arrays(file, [])


@pytest.mark.slow
@pytest.mark.real_data
def test_trajectory_judges_rows_are_the_published_table(real_data: Path, tmp_path: Path) -> None:
    """``tables/summary.md``: F1 of a fault that is found, by judge, with three digits."""
    shutil.copytree(real_data / "trajectory_judge", tmp_path / "data" / "trajectory_judge")
    published = {
        cells[1].strip().strip("`"): float(cells[2])
        for line in (real_data / "trajectory_judge/tables/summary.md").read_text().splitlines()
        if len(cells := line.split("|")) == 11 and cells[1].strip().startswith("`")
    }
    assert len(published) == 5
    assert main(["--published", str(tmp_path / "data"), "--out", str(tmp_path)]) == 0
    with (tmp_path / "leaderboard.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["question"] == "fault"]
    assert {
        row["judge"].removesuffix("@published"): round(float(row["f1"]), 3) for row in rows
    } == published
    assert {(row["n"], row["labelled"], row["positives"]) for row in rows} == {
        ("400", "400", "300")
    }
