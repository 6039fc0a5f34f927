"""``trajudge score``: the same tables from folders and tables alone, without a call."""

from __future__ import annotations

import csv
import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

import trajudge
import trajudge as tj
from tests.commands import score as main
from tests.commands import score as score_command
from tests.eval.cases import key, label, said
from tests.eval.runs_to_score import LABELS, make_run
from tests.screens import on_one_line
from trajudge import compare, read_run, score
from trajudge import judge as judge_in_python
from trajudge.annotations import store
from trajudge.eval.cli import main as trajudge_command
from trajudge.eval.judge import main as judge
from trajudge.eval.scoring.notes import mixed_versions
from trajudge.eval.store.export import ExportSettings, export
from trajudge.eval.store.run_folder import write_labels
from trajudge.judges.registry import versions_of
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError


def overall(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, dict[str, object]]:
    """judge -> its overall success score, as results.json has it."""
    assert main([*map(str, arguments), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    return {s["judge"]: s for s in scores if s["benchmark"] == "overall" and not s["baseline"]}


def test_a_run_is_scored_from_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    assert main([str(run)]) == 0
    text = capsys.readouterr().out
    assert "50.0 [1.3, 98.7]" in text  # two tasks say next to nothing
    assert "rule-based" in text
    assert main([str(run), "--csv"]) == 0
    assert capsys.readouterr().out.startswith("judge,evaluator,benchmark,agent,label,precision,")
    assert main([str(run), "--csv", "--json"]) == 2
    shown = capsys.readouterr()
    assert "--csv and --json exclude each other" in shown.err
    assert main([str(run), "--json", "--format", "latex"]) == 2
    assert "leave out --table and --format" in capsys.readouterr().err
    assert shown.out == ""


def test_missing_and_protocol_come_from_the_command_line_or_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    assert overall(capsys, run)["judge"]["recall"] == 0.5
    assert overall(capsys, run, "--missing", "exclude")["judge"]["n"] == 2
    assert overall(capsys, run, "--protocol", "agentrewardbench")["judge"]["recall"] == 1
    paper = make_run(tmp_path / "paper", protocol="agentrewardbench")
    assert overall(capsys, paper)["judge"]["recall"] == 1
    assert overall(capsys, paper, "--protocol", "default")["judge"]["recall"] == 0.5
    assert main([str(run), str(paper)]) == 2
    assert "--protocol" in capsys.readouterr().err


def test_one_judge_in_two_runs_is_two_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = make_run(tmp_path / "a"), make_run(tmp_path / "b", flip=True)
    found = overall(capsys, first, second)
    assert set(found) == {f"judge ({first})", f"judge ({second})"}
    assert found[f"judge ({second})"]["precision"] == 0


def test_a_split_and_other_annotations_can_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    assert overall(capsys, run, "--split", "test")["judge"]["n"] == 2
    other = tmp_path / "other.jsonl"
    store.write(other, [label(1, False)])
    found = overall(capsys, run, "--annotations", f"trajudge:{other}")["judge"]
    assert (found["n"], found["precision"]) == (1, 0)


def test_labels_of_other_data_are_said_to_belong_to_other_trajectories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, other = make_run(tmp_path / "run"), tmp_path / "other.jsonl"
    store.write(other, [label(n, False) for n in (7, 8)])
    for full in ([], ["--full"]):
        assert main([str(run), "--annotations", f"trajudge:{other}", *full]) == 0
        text = on_one_line(capsys.readouterr().out)
        assert "No expert labels belong to these trajectories" in text
        told = f"KIND:PATH (not the 2 labels of others that were named, {key(7)} for one)"
        assert told in text


def test_the_labels_of_the_sample_are_named_as_its_runs_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert (
        judge(["--data", "sample", "--judge", "heuristic", "--limit", "20", "--out", str(run)]) == 0
    )
    capsys.readouterr()
    scored = overall(capsys, run)
    write_labels(run, [])
    assert overall(capsys, run, "--annotations", "sample") == scored != overall(capsys, run)


def test_published_judgments_are_scored_beside_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trajectories = [
        Trajectory(key=a.key, raw_task_id=a.raw_task_id, goal="", official_reward=1.0)
        for a in LABELS
    ]
    judgments = [said(1, True, judge="other"), said(2, False, judge="other")]
    export(tmp_path, judgments, trajectories, ExportSettings(model="m", provider="p"))
    labels = tmp_path / "labels.jsonl"
    store.write(labels, LABELS)
    run = make_run(tmp_path / "run")
    found = overall(capsys, run, "--judgments", tmp_path, "--annotations", labels)
    assert found["other"]["precision"] == 1
    assert set(found) == {"judge", "other"}


def test_a_run_that_has_nothing_to_score_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not that labels are missing: these have some."""
    run = make_run(tmp_path / "run")
    write_labels(run, [one.model_copy(update={"split": None}) for one in LABELS])
    assert main([str(run), "--split", "test"]) == 2
    assert "--split test: no label is in it (3 in no split)" in capsys.readouterr().err
    (run / "judgments.jsonl").write_bytes(b"")
    assert main([str(run)]) == 2
    assert f"{run}: no judgment was made yet" in capsys.readouterr().err


def test_of_several_runs_one_without_judgments_or_with_fewer_questions_is_no_obstacle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, bare, begun = (make_run(tmp_path / name) for name in ("whole", "bare", "begun"))
    write_labels(whole, [one.model_copy(update={"side_effect": False}) for one in LABELS])
    write_labels(bare, LABELS)
    (begun / "judgments.jsonl").write_bytes(b"")
    assert main([str(whole), str(bare), str(begun), "--baselines", "off"]) == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert warned == [
        f"warning: {begun}: left out, for no judgment was made yet",
        f"warning: {bare}: its labels lack side effect, which the labels of the other runs answer "
        "where they have the trajectory",
    ]


@pytest.mark.parametrize("arguments", [[], ["absent"], ["--judgments", "absent"]])
def test_a_mistake_is_one_sentence(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.real_data
def test_the_published_scores_of_a_judge_from_its_texts(
    arb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--judgments", str(arb), "--split", "test", "--full"]) == 0
    text = capsys.readouterr().out
    judge, rule = next(
        pair for pair in pairwise(text.splitlines()) if pair[0].startswith("Overall ")
    )
    assert "webjudge-7b  " in judge
    assert "78.6 [69.0, 85.8]" in judge
    assert "rule-based  " in rule
    assert "83.0 [73.4, 89.6]    64.7" in rule


NEEDED = ("benchmark", "agent", "task_id", "judge", "success")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run")


def table_of(run: Path, suffix: str) -> Path:
    frame, file = trajudge.read_run(run).to_frame(), run.parent / f"table{suffix}"
    if suffix == ".csv":
        frame.to_csv(file, index=False)
    elif suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(file)
    else:
        frame.to_json(file, orient="records", lines=True)
    return file


def scores_of(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, object]]:
    assert score_command([*map(str, words), "--json", "--baselines", "off"]) == 0
    report = json.loads(capsys.readouterr().out)
    return [one for one in report["scores"] if not one["baseline"]]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_table_scores_as_the_run_that_it_was_made_of(
    run: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = ("--annotations", f"trajudge:{run / 'labels.jsonl'}")
    expected = scores_of(capsys, run, *labels)
    assert expected and scores_of(capsys, table_of(run, suffix), *labels) == expected
    assert scores_of(capsys, run / "judgments.jsonl", *labels) == expected


def test_a_frame_scores_as_its_run(run: Path) -> None:
    judgments = trajudge.read_run(run)
    found = trajudge.score(judgments.to_frame(), judgments.labels)
    mine = [one for one in found.scores if not one.baseline]
    assert mine == [one for one in judgments.scores().scores if not one.baseline]


def rows_of(run: Path) -> list[dict[str, str]]:
    with table_of(run, ".csv").open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("name", ["task", "taskID", "question_id", "Prompt"])
def test_the_task_is_found_by_the_names_that_check_knows(
    run: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = ("--annotations", f"trajudge:{run / 'labels.jsonl'}")
    rows = [{name if k == "task_id" else k: v for k, v in row.items()} for row in rows_of(run)]
    table = write(run.parent / "renamed.csv", rows)
    assert scores_of(capsys, table, *labels) == scores_of(capsys, run, *labels)


@pytest.mark.parametrize("name", NEEDED)
def test_a_column_that_is_missing_is_named(
    run: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{key: value for key, value in row.items() if key != name} for row in rows_of(run)]
    assert score_command([str(write(run.parent / "cut.csv", rows))]) == 2
    error = capsys.readouterr().err
    assert f"cut.csv: has no column {name}, only " in error
    assert "trajudge check TABLE" in error


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("success", "perhaps", "success"),
        ("status", "fine", "status"),
        ("score", "1.5", "score"),
        ("calls", "[{", "calls, cost or seconds are no numbers"),
        ("judge", "", "judge"),
    ],
)
def test_a_cell_that_cannot_be_read_is_named_with_its_line(
    run: Path, column: str, value: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of(run)
    rows[1][column] = value
    assert score_command([str(write(run.parent / "bad.csv", rows))]) == 2
    error = capsys.readouterr().err
    assert "bad.csv, line 3: " in error and why in error


def test_an_empty_verdict_is_unknown_and_no_no(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of(run)
    for row in rows[:5]:
        row["success"] = ""
    labels = ("--annotations", f"trajudge:{run / 'labels.jsonl'}")
    whole, *_ = [s for s in scores_of(capsys, run, *labels) if s["benchmark"] == "overall"]
    file = write(run.parent / "open.csv", rows)
    found, *_ = [s for s in scores_of(capsys, file, *labels) if s["benchmark"] == "overall"]
    assert isinstance(found["missing"], int) and isinstance(whole["missing"], int)
    assert 0 < found["missing"] - whole["missing"] <= 5


def test_the_cost_of_a_row_is_that_of_its_calls(run: Path) -> None:
    frame = trajudge.read_run(run).to_frame().assign(calls=3, cost=0.25)
    spent = trajudge.score(frame, trajudge.read_run(run).labels).spending
    assert sum(one.calls for one in spent) == 3 * len(frame)
    assert sum(one.cost or 0 for one in spent) == pytest.approx(0.25 * len(frame))
    assert all(one.cost is None for one in trajudge.score(frame.assign(cost=None)).spending)


@pytest.fixture(scope="module")
def eight_judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("versions") / "run"
    judge_in_python("sample", judge="heuristic", limit=8, out=folder, yes=True)
    return folder


def in_version(eight_judged: Path, folder: Path, version: int) -> Path:
    """A copy of the run as another version of the judge would have written it."""
    shutil.copytree(eight_judged, folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["judge_versions"] = {"heuristic": version}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_mixed_versions_are_told_by_the_command_and_from_python(
    eight_judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = in_version(eight_judged, tmp_path / "new", 2)
    assert score_command([str(eight_judged), str(new)]) == 0
    shown = capsys.readouterr().out
    assert "warning: judge heuristic is compared in several versions (version 1 in " in shown
    judgments = [read_run(eight_judged), read_run(new)]
    [warning] = compare(judgments).warnings
    assert "heuristic" in warning
    assert warning in score(judgments).remarks
    assert warning in compare(judgments)._repr_html_()


def test_one_version_is_no_mixture(
    eight_judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = in_version(eight_judged, tmp_path / "again", 1)
    assert score_command([str(eight_judged), str(again)]) == 0
    assert "several versions" not in capsys.readouterr().out
    assert compare([read_run(eight_judged), read_run(again)]).warnings == ()


def test_the_versions_of_a_panel_are_those_of_its_members() -> None:
    members = {"members": [{"name": "webjudge"}, {"name": "heuristic"}]}
    versions = versions_of("panel", {"of": members})
    current = versions_of("webjudge", {})["webjudge"]
    assert current > 1
    assert versions == {"panel": 1, "webjudge": current, "heuristic": 1}
    panel = {"webjudge:m": {"webjudge": 1}, "panel-of": versions}
    [warning] = mixed_versions(panel)
    assert f"version 1 in webjudge:m; version {current} in panel-of" in warning


COMMANDS = [
    "score {} {}",
    "report {} {} --out out",
    "select {} {} --target-precision 0.5 --out out",
    "audit {} {} --out out",
    "score {} {} --ranks",
    "accept --judge judge --threshold 1 --run {} --run {} --out out",
    "label build {} {} --out out",
    "robust {} {} --attacked attacked --out out",
]


@pytest.fixture
def run_and_link(own_folder: None) -> Path:
    """The run's folder ``run``, with a link to it."""
    Path("link").symlink_to("run")
    return make_run(Path("run"))


@pytest.mark.usefixtures("run_and_link")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("again", "sentence"),
    [
        ("run/", "error: run: is given twice: give each folder once"),
        ("link/", "error: link: is the folder run, which is given twice: give each folder once"),
    ],
)
def test_a_command_takes_a_run_once(
    command: str, again: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trajudge_command(command.format("run", again).split()) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", sentence + "\n")
    assert not Path("out").exists()


def test_so_does_python(run_and_link: Path) -> None:
    judged = tj.read_run(run_and_link)
    with pytest.raises(UserError, match="run: is given twice"):
        judged + tj.read_run("run/")
    with pytest.raises(UserError, match="run: is given twice"):
        tj.score([run_and_link, "run"])
    with pytest.raises(UserError, match="link: is the folder run, which is given twice"):
        tj.compare([judged, "link"])
    with pytest.raises(UserError, match="run: is given twice"):
        tj.select([judged, run_and_link], target_precision=0.5)
