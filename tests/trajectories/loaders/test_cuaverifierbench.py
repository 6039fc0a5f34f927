"""CUAVerifierBench's runs: a made-up release, the constructed rows, and the real files."""

from __future__ import annotations

import os
import resource
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.trajectories.loaders.cua_made import INTERNAL, RUNS, WEB, release, run, write
from tests.trajectories.loaders.made import PNG, split
from trajudge.eval.judge import main as judge
from trajudge.eval.store.run_folder import read_judgments, read_labels, read_manifest
from trajudge.judges.model import Status
from trajudge.trajectories.loaders import detect_kind, open_source
from trajudge.trajectories.loaders.cuaverifierbench import LEAKS, has_columns, load
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import FINAL, NO_NEEDS, Needs
from trajudge.util.errors import UserError


def shots(run: Trajectory) -> list[bytes | str | None]:
    """Of each step the end of its screenshot's bytes, or why there is none."""
    refs = [step.observation.screenshot for step in run.steps]
    return [(ref.data or b"").removeprefix(PNG) or ref.problem if ref else None for ref in refs]


def test_a_release_gives_every_run_with_its_own_screenshots(tmp_path: Path) -> None:
    folder = release(tmp_path)
    assert detect_kind(folder) == "cuaverifierbench"
    runs, [] = split(open_source(str(folder)))
    assert [one.key.task_id for one in runs] == [
        *(f"{WEB}/Tea--{number}" for number in range(1, 5)),
        *(f"{INTERNAL}/Mail--{number}" for number in range(1, 3)),
    ]
    assert {one.key.agent for one in runs} == {"fara-7b"}
    assert [one.raw_task_id for one in runs][-1] == "Mail--2"
    assert [shots(one) for one in runs] == [[b"0", b"1", b"2"]] * 5 + [[None, None]]
    assert runs[0].steps[1].action == "left_click(coordinate=[1, 1])"
    assert runs[0].steps[1].reasoning == "thought 1"
    assert (runs[3].answer, runs[3].truncated) == (None, True)
    assert (runs[5].metadata["aborted"], runs[5].truncated) == (True, False)
    assert runs[0].telemetry == {"n_steps": 2.0, "cum_agent_elapsed": 59.5}


def test_only_wanted_runs_and_needed_screenshots_are_kept(tmp_path: Path) -> None:
    folder = release(tmp_path)
    task = f"{WEB}/Tea--3"

    def read(needs: Needs) -> Trajectory:
        [found] = open_source(str(folder), lambda key: key.task_id == task, needs)
        assert isinstance(found, Trajectory)
        return found

    unread = "was not read, for the judge does not need it"
    assert shots(read(NO_NEEDS)) == [f"the screenshot {n} {unread}" for n in range(3)]
    assert shots(read(Needs(screenshots=FINAL)))[1:] == [f"the screenshot 1 {unread}", b"2"]


def test_frames_go_by_the_numbers_in_their_names(tmp_path: Path) -> None:
    row = run("Tea--1", actions=11, pictures=12)
    row["screenshots"].sort(key=lambda shot: shot["path"])
    path = write(tmp_path / "web.parquet", [row], RUNS)
    [found], [] = split(load(path))
    assert shots(found) == [str(number).encode() for number in range(12)]


def test_what_is_amiss_is_told(tmp_path: Path) -> None:
    rows = [run("a", n_screenshots=5), run("a", web_surfer_log="torn"), run("b", instruction=None)]
    rows[1]["screenshots"][0]["bytes"] = None
    path = write(tmp_path / "web.parquet", rows, RUNS)
    runs, unreadable = split(open_source(str(path)))
    assert [one.key.attempt for one in runs] == [0, 1]
    assert runs[0].metadata["warnings"] == ["3 screenshots, where n_screenshots is 5."]
    assert runs[1].metadata["warnings"] == [
        "Line 1 of the log is no JSON object.",
        "0 actions but 3 screenshots.",
    ]
    assert shots(runs[1]) == ["the screenshot 0 has no bytes in its row"]
    assert [one.reason.split(";")[0] for one in unreadable] == [
        "no goal for task 'b' in the run's files"
    ]


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "web.parquet", [run("a")], RUNS)
    content = path.read_bytes()
    torn = len(content) // 3
    path.write_bytes(content[:4] + bytes(torn) + content[4 + torn :])
    with pytest.raises(UserError, match=r"cannot be read as Parquet .*data fetch cuaverifierbench"):
        load(path)
    pq.write_table(pa.table({"instruction": ["a"], "web_surfer_log": [""]}), path)
    with pytest.raises(UserError, match="has no column 'task_id'"):
        load(path)
    with pytest.raises(UserError, match="holds no runs"):
        load(tmp_path / "nothing")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UserError, match="holds no runs"):
        load(path)


def test_the_footer_of_a_file_names_its_columns(tmp_path: Path) -> None:
    for name, footer, length, magic, has in (
        ("a.parquet", b"abcd", 4, b"PAR1", True),
        ("a.parquet", b"abcd", 3, b"PAR1", False),
        ("a.parquet", b"abcd", 5, b"PAR1", False),
        ("a.parquet", b"abc", 3, b"PAR1", False),  # no room for a footer and two marks
        ("a.parquet", b"abcd", 4, b"PAR2", False),
        ("a.json", b"abcd", 4, b"PAR1", False),
    ):
        file = tmp_path / name
        file.write_bytes(footer + length.to_bytes(4, "little") + magic)
        assert has_columns(file, [b"abc"]) is has, (name, footer, length, magic)


def test_the_columns_of_labels_and_verdicts_are_the_leaks() -> None:
    text = {"task_id", "instruction", "init_url", "start_timestamp", "end_timestamp"}
    text |= {"final_answer", "is_aborted", "web_surfer_log", "screenshots", "n_screenshots"}
    assert {*RUNS.names} - text == {*LEAKS}


def test_the_constructed_rows(real_data: Path) -> None:
    folder = real_data / "cuaverifierbench"
    [path] = folder.glob("*.parquet")
    rows = pq.read_table(path).to_pylist()
    runs, [] = split(open_source(str(folder)))
    assert [len(one.steps) for one in runs] == [4, 4]
    for one, row in zip(runs, rows, strict=True):
        assert one.goal == row["instruction"]
        pictures = [step.observation.screenshot for step in one.steps]
        recorded = [shot["bytes"] for shot in row["screenshots"]] or [None] * 4
        assert [ref.data if ref else None for ref in pictures] == recorded
    assert [one.answer is None for one in runs] == [False, True]
    fara, [] = split(open_source(str(real_data / "fara_trajectory")))
    told = [[(step.action, step.reasoning) for step in one.steps] for one in (*fara, *runs)]
    assert told[0] == told[1] == told[2]


def test_the_published_files() -> None:
    """Only where somebody fetched them: 260 runs in time and memory, 53 of 154 with pictures."""
    folder = os.environ.get("TRAJUDGE_CUAVERIFIERBENCH")
    if not folder:
        pytest.skip("TRAJUDGE_CUAVERIFIERBENCH names no folder with the published files")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    runs, [] = split(open_source(f"cuaverifierbench:{folder}", needs=NO_NEEDS))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before <= 300 * 1024
    splits = [one.key.task_id.partition("/")[0] for one in runs]
    assert (splits.count(WEB), splits.count(INTERNAL)) == (106, 154)
    blind = [one for one in runs if not any(step.observation.screenshot for step in one.steps)]
    assert len(blind) == 101
    assert {one.key.task_id.partition("/")[0] for one in blind} == {INTERNAL}


def test_a_run_without_screenshots_is_skipped_by_a_judge_that_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def picture(number: int) -> bytes:
        file = BytesIO()
        Image.new("RGB", (8, 8), (number, 0, 0)).save(file, "PNG")
        return file.getvalue()

    monkeypatch.chdir(tmp_path)
    rows = [run("shown", picture=picture), run("unseen", pictures=0)]
    write(tmp_path / "web.parquet", rows, RUNS)
    words = ["--judge", "simplified", "--representation", "screenshot", "--model", "any"]
    Path("replies.jsonl").write_text('{"text": "<success>True</success>"}\n')
    words += ["--adapter", "scripted", "--script", "replies.jsonl", "--context", "100000"]
    words += ["--yes", "--out", "run"]
    judge(["--data", "web.parquet", *words])
    statuses = {one.key.task_id: one.status for one in read_judgments(tmp_path / "run")}
    assert statuses == {"web/shown": Status.OK, "web/unseen": Status.SKIPPED}
    manifest = read_manifest(tmp_path / "run")
    assert manifest["annotations"] == "cuaverifierbench/adjudicated:web.parquet"
    labels = read_labels(tmp_path / "run")
    assert [(one.success, one.process) for one in labels.values()] == [(True, True)] * 2
