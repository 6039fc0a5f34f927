"""``trajudge data verdicts``: what others said becomes runs that are scored and ranked."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.eval.published_counts import BENCHMARK_IDS, JUDGES
from tests.screens import on_one_line
from tests.trajectories.loaders.cua_made import WEB, release
from tests.trajectories.loaders.made import fara, rubric
from trajudge.annotations import Label, open_annotations, primary_labels
from trajudge.annotations.published import PublishedVerdict, open_verdicts
from trajudge.annotations.sources import agentrewardbench
from trajudge.annotations.sources.agentrewardbench import read_results
from trajudge.annotations.store import write
from trajudge.eval.cli import main
from trajudge.eval.imported import to_judgments
from trajudge.eval.sources import combine, read_run
from trajudge.eval.store.run_folder import read_judgments, read_manifest
from trajudge.judges.model import Status
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

TASKS = ("a", "b", "c", "d")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four runs with verdicts of two judges and labels: the verifier errs on the last, the other
    gave no verdict on it."""
    for number, task in enumerate(TASKS):
        scores = {"WebJudge_x": 1} if task != "d" else {}
        fara(tmp_path / "runs" / task, rubric=rubric(number != 1, 9.0 - number), scores=scores)
    labels = [
        Label(
            key=TrajectoryKey(benchmark="fara", agent="runs", task_id=task),
            raw_task_id=task,
            annotator="A",
            success=task in ("a", "c"),
        )
        for task in TASKS
    ]
    write(tmp_path / "labels.jsonl", labels)
    return tmp_path / "runs"


def test_verdicts_are_runs_that_score_reads(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "verdicts"
    assert main(["data", "verdicts", f"fara:{data}", "--out", str(out)]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == [
        f"{out}/universal-verifier@published: 4 ok; 4 labelled",
        f"{out}/webjudge@published: 3 ok; 4 labelled",
    ]
    folders = sorted(out.iterdir())
    assert [folder.name for folder in folders] == [
        "universal-verifier@published",
        "webjudge@published",
    ]
    verifier = read_judgments(folders[0])
    assert [(j.success, j.process, j.calls) for j in verifier] == [
        (True, True, ()),
        (False, True, ()),
        (True, False, ()),
        (True, False, ()),
    ]
    assert read_manifest(folders[0])["published"] is True
    whole = combine([read_run(folder) for folder in folders])
    assert len(whole.labels) == 4
    assert main(["score", *map(str, folders), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    precision = {
        s["judge"]: (s["precision"], s["recall"], s["missing"])
        for s in scores
        if (s["benchmark"], s["label"], s["baseline"]) == ("overall", "success", False)
    }
    assert precision == {
        "universal-verifier@published": (2 / 3, 1.0, 0),
        "webjudge@published": (2 / 3, 1.0, 0),
    }


def test_the_same_command_again_changes_no_byte(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "verdicts"
    written = []
    for _ in range(2):
        assert main(["data", "verdicts", f"fara:{data}", "--out", str(out)]) == 0
        written.append({p: p.read_bytes() for p in out.rglob("*") if p.is_file()})
    assert written[0] == written[1]
    assert any(path.parent.name == "records" for path in written[0])


def test_two_verdicts_in_one_place_are_refused() -> None:
    key = TrajectoryKey(benchmark="b", agent="a", task_id="t")
    verdict = PublishedVerdict(key=key, judge="j", success=True)
    with pytest.raises(UserError, match="two verdicts of j@published under sample 0"):
        to_judgments([verdict, verdict])
    samples = to_judgments([verdict.model_copy(update={"sample": 1}), verdict])
    assert [judgment.sample for judgment in samples] == [0, 1]


def test_every_ending_is_a_status() -> None:
    field = PublishedVerdict.model_json_schema()["properties"]["status"]
    assert field["enum"] == [status.value for status in Status]


def test_the_authors_policies_for_runs_that_did_not_end(tmp_path: Path) -> None:
    """A run that broke off leaves their rates, one over its budget is a failure."""
    clicks = (("left_click", {"coordinate": [1, 2]}),)
    fara(tmp_path / "runs" / "ended", rubric=rubric())
    fara(tmp_path / "runs" / "over", actions=clicks, answer="<no_answer>", rubric=rubric())
    fara(tmp_path / "runs" / "broke", answer="<no_answer>", aborted=True, rubric=rubric())
    successes = {}
    for name, words in (
        ("as published", []),
        ("authors", ["--aborted", "exclude", "--over-budget", "failure"]),
    ):
        out = tmp_path / name
        assert (
            main(["data", "verdicts", f"fara:{tmp_path / 'runs'}", "--out", str(out), *words]) == 0
        )
        judged = read_judgments(out / "universal-verifier@published")
        successes[name] = {judgment.key.task_id: judgment.success for judgment in judged}
    assert successes == {
        "as published": {"broke": True, "ended": True, "over": True},
        "authors": {"ended": True, "over": False},
    }
    manifest = read_manifest(tmp_path / "authors" / "universal-verifier@published")
    assert manifest["selection"] == {"aborted": "exclude", "over_budget": "failure"}


@pytest.fixture
def cua_verdicts(tmp_path: Path) -> Path:
    """The verdicts published in a made-up CUAVerifierBench."""
    release(tmp_path / "cua")
    command = ["data", "verdicts", f"cuaverifierbench:{tmp_path / 'cua'}"]
    assert main([*command, "--out", str(tmp_path / "verdicts")]) == 0
    return tmp_path / "verdicts"


def test_the_policy_of_the_labels_heads_the_table(
    cua_verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = ["data", "verdicts", f"cuaverifierbench:{tmp_path / 'cua'}", "--out", str(cua_verdicts)]
    assert main(again) == 0
    told = capsys.readouterr().err
    assert "note: labels: adjudicated, 6 runs (4 successful); blind-majority would" in told
    verifier = str(cua_verdicts / "universal-verifier@published")
    majority = ["--annotations", f"cuaverifierbench/blind-majority:{tmp_path / 'cua'}"]
    for words, policy, n in (([], "adjudicated", 5), (majority, "blind-majority", 3)):
        assert main(["score", verifier, *words]) == 0
        head = capsys.readouterr().out.split("\n\n")[0]
        assert f"(labels: {policy})" in on_one_line(head)
        assert main(["score", verifier, "--full", *words]) == 0
        assert f"Success (labels: {policy})" in capsys.readouterr().out
        assert main(["score", verifier, "--json", *words]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["label_policy"] == policy
        [whole] = [
            s for s in report["scores"]
            if (s["label"], s["benchmark"], s["baseline"]) == ("success", "overall", False)
        ]  # fmt: skip
        assert whole["n"] == n


def test_the_splits_stand_apart_and_sites_are_the_clusters(
    cua_verdicts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["score", str(cua_verdicts / "universal-verifier@published"), "--json"]) == 0
    found = {
        s["benchmark"]: (s["n"], s["tasks"])
        for s in json.loads(capsys.readouterr().out)["scores"]
        if (s["label"], s["baseline"]) == ("success", False)
    }
    assert found == {
        "cuaverifierbench/fara7b_om2w_browserbase": (4, 1),
        "cuaverifierbench/internal": (1, 1),
        "overall": (5, 2),
    }


def test_runs_under_different_policies_are_not_scored_together(
    cua_verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    majority = f"cuaverifierbench/blind-majority:{tmp_path / 'cua'}"
    command = ["data", "verdicts", f"cuaverifierbench:{tmp_path / 'cua'}", "--annotations"]
    assert main([*command, majority, "--out", str(tmp_path / "others")]) == 0
    folders = (cua_verdicts, tmp_path / "others")
    runs = [str(folder / "universal-verifier@published") for folder in folders]
    assert main(["score", *runs]) == 2
    assert "the runs' labels follow several policies" in capsys.readouterr().err


def test_the_published_table() -> None:
    """Cohen's κ of the Universal Verifier on the web split, where somebody fetched the files."""
    from sklearn.metrics import cohen_kappa_score

    folder = os.environ.get("TRAJUDGE_CUAVERIFIERBENCH")
    if not folder:
        pytest.skip("TRAJUDGE_CUAVERIFIERBENCH names no folder with the published files")
    said = {v.key: v.success for v in open_verdicts(folder) if v.judge == "universal-verifier"}
    labels = primary_labels(open_annotations(f"cuaverifierbench/adjudicated:{folder}"))
    pairs = [
        (label.success, said[key])
        for key, label in labels.items()
        if key.task_id.startswith(WEB) and label.success is not None
        if said.get(key) is not None
    ]
    assert cohen_kappa_score(*zip(*pairs, strict=True)) == pytest.approx(0.58, abs=0.01)


Rows = dict[tuple[str, str], dict[str, str]]


@pytest.fixture(scope="module")
def arrays_alone(arb: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """AgentRewardBench's annotations and published arrays, without trajectories or replies."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("annotations.csv", "splits.csv"):
        shutil.copy(arb / name, folder)
    shutil.copytree(arb / "published", folder / "published")
    return folder


@pytest.fixture
def found(arrays_alone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Rows:
    """The published verdicts imported as runs, and ranked."""
    out = tmp_path / "verdicts"
    assert main(["data", "verdicts", f"agentrewardbench:{arrays_alone}", "--out", str(out)]) == 0
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
    arb: Path, arrays_alone: Path
) -> None:
    """A verdict by its place in the array is the verdict in the reply's file of that name."""
    test = {a.raw_task_id for a in agentrewardbench.load(arb) if a.split == "test"}
    verdicts = {
        (v.judge, v.key.benchmark, v.key.agent, v.key.task_id): v.success
        for v in open_verdicts(f"agentrewardbench:{arrays_alone}")
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
def test_arrays_of_other_annotations_are_refused(arrays_alone: Path, tmp_path: Path) -> None:
    shutil.copytree(arrays_alone, tmp_path / "data")
    file = tmp_path / "data" / "annotations.csv"
    lines = file.read_text().splitlines()
    split = {a.raw_task_id for a in agentrewardbench.load(arrays_alone) if a.split == "test"}
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
