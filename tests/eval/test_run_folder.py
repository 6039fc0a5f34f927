"""A run on disk: its files, its settings, the journal, records, and what could not be read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import score
from tests.eval.cases import call, failed, key, label, said
from tests.eval.full_disk import no_file_beyond
from tests.judges.runs import mug_run
from trajudge.app import inspect as inspecting
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge_command
from trajudge.eval.store.inputs import missing_data, recorded_data
from trajudge.eval.store.manifest import RunManifest, default_folder, open_folder
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
    MANIFEST,
    RECORDS,
    REWARDS,
    UNREADABLE,
    JudgmentJournal,
    copy_run,
    judgment_line,
    read_judgments,
    read_labels,
    read_manifest,
    read_rewards,
    record_path,
    write_labels,
    write_manifest,
    write_rewards,
    write_unreadable,
)
from trajudge.eval.store.table import KeyColumns
from trajudge.judges.model import Call, Judgment, Status, Usage
from trajudge.trajectories import store
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.sample import sample_path
from trajudge.util.errors import UserError

REQUEST = "a" * 64


def judgments() -> list[Judgment]:
    return [said(1, True, calls=(call(request=REQUEST),)), failed("\u2028 two", Status.REFUSED)]


def test_every_file_is_read_back(tmp_path: Path) -> None:
    (tmp_path / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments())))
    rewards = {key(2): None, key(1): 0.5}
    labels = [label(2, None), label(1, True, optimality=4)]
    write_rewards(tmp_path, rewards)
    write_labels(tmp_path, labels)
    write_manifest(tmp_path, {"protocol": "default", "judge": "j"})
    assert read_judgments(tmp_path) == judgments()
    assert read_rewards(tmp_path) == rewards
    assert list(read_rewards(tmp_path)) == [key(1), key(2)]
    assert read_labels(tmp_path) == {a.key: a for a in labels}
    assert read_manifest(tmp_path) == {"protocol": "default", "judge": "j"}


@given(st.dictionaries(st.builds(key, st.text(max_size=5)), st.none() | st.floats(0, 1)))
def test_rewards_are_written_as_their_records_are(
    tmp_path_factory: pytest.TempPathFactory, rewards: dict[TrajectoryKey, float | None]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    write_rewards(folder, rewards)
    ordered = sorted(rewards.items(), key=lambda entry: entry[0].order)
    lines = [*map(orjson.loads, (folder / REWARDS).read_bytes().splitlines())]
    assert lines == [{"key": vars(key), "official_reward": reward} for key, reward in ordered]
    assert read_rewards(folder) == rewards


def test_a_copied_run_is_scored_and_reported_as_the_run_is(tmp_path: Path) -> None:
    run, copy = tmp_path / "run", tmp_path / "copy"
    run.mkdir()
    write_manifest(run, {"judge": "j"})
    write_labels(run, [label(1, True)])
    write_rewards(run, {key(1): 1.0})
    write_unreadable(run, [Unreadable(source="data:3", reason="no JSON")])
    copy_run(run, copy)
    assert {file.name: file.read_bytes() for file in run.iterdir()} == {
        file.name: file.read_bytes() for file in copy.iterdir()
    }


def test_what_tells_of_the_execution_only_is_not_written() -> None:
    fast = said(1, True, calls=(call(seconds=0.1, cached=True, request=REQUEST),))
    slow = said(1, True, calls=(call(seconds=9.0, request=REQUEST),))
    assert judgment_line(fast) == judgment_line(slow)


@given(
    said_text=st.text(max_size=30),
    numbers=st.tuples(st.floats(0, 1), st.floats(), st.floats(0)),
    status=st.sampled_from(Status),
    process=st.none() | st.booleans(),
)
def test_a_line_is_what_pydantic_writes_without_what_tells_of_the_execution(
    said_text: str,
    numbers: tuple[float, float, float],
    status: Status,
    process: bool | None,
) -> None:
    score, other, cost = numbers
    made = failed(said_text, status).model_copy(
        update={
            "score": score,
            "scores": {said_text: other},
            "record": {"kept": "elsewhere"},
            "process": process,
            "calls": (call(text=said_text, cost=cost, seconds=1.5), call(cached=True, cost=None)),
        }
    )
    left_out: dict[str, Any] = {"calls": {"__all__": {"seconds", "cached"}}, "record": True}
    assert judgment_line(made) == made.model_dump_json(exclude=left_out).encode() + b"\n"


def test_half_a_character_in_a_reply_does_not_stop_a_run(tmp_path: Path) -> None:
    text = "a\ud800b \ud83d\ude00"
    judgment = said(1, True, reasoning=text, calls=(call(text=text),))
    (tmp_path / JUDGMENTS).write_bytes(judgment_line(judgment))
    (back,) = read_judgments(tmp_path)
    assert back.reasoning == back.calls[0].text == "a\ufffdb \U0001f600"
    assert judgment_line(back) == judgment_line(judgment)


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_line_torn_by_a_kill_is_left_out(tmp_path: Path, kept: int) -> None:
    first, second = map(judgment_line, judgments())
    (tmp_path / JUDGMENTS).write_bytes(first + second[:kept])
    assert read_judgments(tmp_path) == judgments()[:1]


def test_a_bad_line_elsewhere_is_named(tmp_path: Path) -> None:
    (tmp_path / JUDGMENTS).write_bytes(b'{"key": 1}\n' + judgment_line(judgments()[0]))
    with pytest.raises(UserError, match=r"judgments.jsonl, line 1: key"):
        read_judgments(tmp_path)


@pytest.mark.parametrize("written", ["1e400", "-Infinity", "NaN", "1" + "0" * 400])
def test_a_reward_that_is_no_finite_number_is_named(tmp_path: Path, written: str) -> None:
    write_rewards(tmp_path, {key(1): 0.5})
    path = tmp_path / "rewards.jsonl"
    path.write_text(path.read_text().replace("0.5", written))
    with pytest.raises(UserError, match=r"rewards\.jsonl, line 1: .*mend the line"):
        read_rewards(tmp_path)


def test_a_folder_that_is_no_run_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_judgments(tmp_path)
    for content in ("{", "[]"):
        (tmp_path / MANIFEST).write_text(content)
        with pytest.raises(UserError, match="give the folder of a run"):
            read_manifest(tmp_path)


SETTINGS = RunManifest(
    judge="simplified-axtree:a/b", model="a/b", data="sample", seed=1, version="1"
)


def test_the_same_settings_give_the_same_folder() -> None:
    assert default_folder(SETTINGS) == default_folder(SETTINGS.model_copy())
    assert default_folder(SETTINGS) != default_folder(SETTINGS.model_copy(update={"seed": 2}))


def test_scoring_otherwise_or_by_a_newer_release_is_the_same_run() -> None:
    again = SETTINGS.model_copy(update={"protocol": "agentrewardbench", "version": "2"})
    assert default_folder(SETTINGS) == default_folder(again)


def test_the_folder_stays_below_runs_whatever_the_model_is_called() -> None:
    folder = default_folder(SETTINGS.model_copy(update={"model": "../../x", "judge": "j:../../x"}))
    assert folder.parts[0] == "runs"
    assert len(folder.parts) == 2
    assert ".." not in folder.parts


def test_a_folder_of_another_run_is_not_touched(tmp_path: Path) -> None:
    open_folder(tmp_path, SETTINGS)
    before = read_manifest(tmp_path)
    other = SETTINGS.model_copy(update={"model": "c"})
    with pytest.raises(UserError, match=r'holds a run with model "a/b", this one has "c"'):
        open_folder(tmp_path, other)
    assert read_manifest(tmp_path) == before


def test_judgments_without_a_manifest_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / JUDGMENTS).touch()
    with pytest.raises(UserError, match=r"no manifest\.json"):
        open_folder(tmp_path, SETTINGS)


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(UserError, match="run is a file: name a folder"):
        open_folder(tmp_path / "run", SETTINGS)


KEYS = [TrajectoryKey(benchmark="b", agent="a", task_id=str(n)) for n in range(6)]


def numbered(number: int, *, status: Status = Status.OK, seconds: float = 0.0) -> Judgment:
    call = Call(
        stage="verdict",
        request=f"{number:064x}",
        rung="full",
        finish="stop",
        usage=Usage(input=10),
        cost=None,
        text="a\nb",
        seconds=seconds,
        cached=seconds == 0,
    )
    return Judgment(key=KEYS[number], judge="j", status=status, success=True, calls=(call,))


def written(folder: Path, numbers: list[int], seconds: float = 0.0) -> bytes:
    folder.mkdir(exist_ok=True)
    with JudgmentJournal(folder) as journal:
        for number in numbers:
            journal.add(numbered(number, seconds=seconds))
        journal.finish(KeyColumns.of(KEYS))
    return (folder / JUDGMENTS).read_bytes()


@given(st.permutations(range(6)))
def test_the_order_of_arrival_and_the_clock_leave_no_trace(
    tmp_path_factory: pytest.TempPathFactory, arrival: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    assert written(folder / "one", arrival, 1.5) == written(folder / "two", list(range(6)))


def test_a_line_is_on_its_way_to_the_disk_when_add_returns(tmp_path: Path) -> None:
    with JudgmentJournal(tmp_path) as journal:
        journal.add(numbered(3))
        assert (tmp_path / JUDGMENTS).read_bytes().count(b"\n") == 1
        assert orjson.loads((tmp_path / CALLS).read_bytes())["cached"] is True


@pytest.mark.parametrize("torn", [1, 50, 10_000])
def test_a_line_torn_by_a_kill_is_made_again(tmp_path: Path, torn: int) -> None:
    whole = written(tmp_path, [0, 1, 2])
    with (tmp_path / JUDGMENTS).open("ab") as file:
        file.write((b'{"key":' + b"x" * 70_000)[:torn])
    with JudgmentJournal(tmp_path) as journal:
        assert len(journal.judgments()) == 3
        journal.add(numbered(3))
    assert (tmp_path / JUDGMENTS).read_bytes().startswith(whole)
    with JudgmentJournal(tmp_path) as journal:
        assert len(journal.judgments()) == 4


def test_a_line_that_the_disk_has_no_room_for_leaves_nothing(tmp_path: Path) -> None:
    with JudgmentJournal(tmp_path) as journal:
        journal.add(numbered(0))
        whole = (tmp_path / JUDGMENTS).read_bytes()
        with no_file_beyond(len(whole) + 10), pytest.raises(UserError, match="cannot be written"):
            journal.add(numbered(1))
        assert (tmp_path / JUDGMENTS).read_bytes() == whole
        journal.add(numbered(2))
        assert [j.key for j in journal.judgments()] == [KEYS[0], KEYS[2]]


def test_the_last_judgment_of_a_trajectory_and_sample_counts(tmp_path: Path) -> None:
    with JudgmentJournal(tmp_path) as journal:
        journal.add(numbered(1, status=Status.UNPARSABLE))
        journal.add(numbered(0))
        journal.add(numbered(1, seconds=1.5))
        assert [j.status for j in journal.judgments()] == [Status.OK, Status.OK]
        finished = journal.finish(KeyColumns.of(KEYS))
    assert [j.key for j in finished] == KEYS[:2]
    assert finished[1].calls[0].seconds == 1.5
    assert list(map(judgment_line, finished)) == (tmp_path / JUDGMENTS).read_bytes().splitlines(
        True
    )


def test_a_judgment_of_a_trajectory_that_is_gone_is_named(tmp_path: Path) -> None:
    with JudgmentJournal(tmp_path) as journal:
        journal.add(numbered(5))
        with pytest.raises(UserError, match=r"b/a/5, which the data no longer has"):
            journal.finish(KeyColumns.of(KEYS[:2]))


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / JUDGMENTS).write_bytes(b'{"no": "judgment"}\n')
    with pytest.raises(UserError, match=r"judgments\.jsonl, line 1"):
        JudgmentJournal(tmp_path)


def test_a_finished_file_is_left_as_it_is(tmp_path: Path) -> None:
    whole = written(tmp_path, [2, 0, 1])
    before = (tmp_path / JUDGMENTS).stat()
    assert written(tmp_path, []) == whole
    after = (tmp_path / JUDGMENTS).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def recorded(**changes: object) -> Judgment:
    made = Judgment(key=mug_run().key, judge="j", status=Status.OK, success=True)
    return made.model_copy(update=changes)


def test_a_record_is_a_file_of_its_own(tmp_path: Path) -> None:
    record = {"rubric": ["a \ud800 surrogate"], "votes": [True, None]}
    with JudgmentJournal(tmp_path) as journal:
        journal.add(recorded(record=record))
        journal.finish(KeyColumns.of([mug_run().key]))
    (file,) = (tmp_path / RECORDS).iterdir()
    assert file.name == "shop,scripted,shop.1,0,0.json"
    assert json.loads(file.read_text(encoding="utf-8")) == record
    assert "record" not in json.loads((tmp_path / JUDGMENTS).read_text(encoding="utf-8"))
    assert read_judgments(tmp_path) == [recorded()]


def test_judges_that_keep_nothing_make_no_folder(tmp_path: Path) -> None:
    with JudgmentJournal(tmp_path) as journal:
        journal.add(recorded())
    assert not (tmp_path / RECORDS).exists()


def test_names_stay_apart_and_within_the_file_systems_limit(tmp_path: Path) -> None:
    key = mug_run().key
    tasks = ["a/b", "a,b", "x" * 400, "x" * 401, "ü" * 300, ".."]
    keys = [key.model_copy(update={"task_id": task}) for task in tasks]
    paths = {record_path(tmp_path, recorded(key=one)) for one in keys}
    assert len(paths) == len(tasks)
    assert all(path.parent == tmp_path / RECORDS and len(path.name) < 240 for path in paths)


def short_run(number: int) -> Trajectory:
    key = TrajectoryKey(benchmark="b", agent="a", task_id=str(number))
    return Trajectory(key=key, raw_task_id="t", goal="g", steps=(Step(index=0, action="noop()"),))


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """What was written for people, with its long lines joined again."""
    return " ".join(capsys.readouterr().err.split())


CUT = "trajectories.jsonl:3: not a trajectory"


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Two trajectories, and a line that another program cut in two."""
    data = tmp_path / "data"
    store.write(data, [short_run(0), short_run(1)])
    lines = (data / "trajectories.jsonl").read_bytes()
    (data / "trajectories.jsonl").write_bytes(lines + lines[:40] + b"\n")
    run = str(tmp_path / "run")
    return ["--judge", "heuristic", "--data", f"trajudge:{data}", "--out", run]


def test_a_finished_run_tells_of_it_again(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert judge_command(words) == 0
        assert CUT in told(capsys)
    assert score([words[-1]]) == 0
    assert f"judged without 1 record that cannot be read; the first is {words[3][9:]}" in (
        told(capsys)
    )


def test_data_that_was_mended_is_told_of_no_longer(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge_command(words) == 0
    path = Path(words[3].removeprefix("trajudge:")) / "trajectories.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    capsys.readouterr()
    assert judge_command(words) == 0
    assert CUT not in told(capsys)
    assert not (Path(words[-1]) / UNREADABLE).exists()


def test_a_run_without_records_that_were_mended_since_says_so(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge_command(words) == 0
    store.write(
        Path(words[3].removeprefix("trajudge:")), [short_run(0), short_run(1), short_run(2)]
    )
    capsys.readouterr()
    assert judge_command(words) == 2
    assert told(capsys) == (
        f"error: --out {words[-1]}: holds a run of 2 trajectories, and the data has 3 now; "
        "1 record could not be read then: judge them with another --out, or go on with the data as "
        "it was"
    )
    assert (Path(words[-1]) / UNREADABLE).exists()


@pytest.mark.parametrize("is_finished", [False, True])
def test_strict_stops_before_the_first_judgment_and_after_the_last(
    words: list[str], is_finished: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if is_finished:
        assert judge_command(words) == 0
    assert judge_command([*words, "--strict"]) == 2
    assert f"{CUT}: EOF while parsing" in told(capsys)


def test_strict_reads_again_what_an_earlier_session_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trajectory whose key is in its path: it counts as skipped, and is no judgment to keep."""
    data = tmp_path / "data"
    store.write(data, [short_run(0)])
    words = ["--judge", "heuristic", "--data", f"trajudge:{data}", "--out", str(tmp_path / "run")]
    line = (data / "trajectories.jsonl").read_bytes()
    (data / "trajectories.jsonl").write_bytes(line.replace(b'"goal":"g"', b'"goal":7'))
    assert judge_command(words) == 1
    assert judge_command([*words, "--strict"]) == 2
    assert "--strict stops here" in told(capsys)
    (data / "trajectories.jsonl").write_bytes(line)
    assert judge_command([*words, "--strict"]) == 0
    assert "judged 1/1" in told(capsys)


def test_a_resumed_run_tells_of_the_failures_that_stand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its exit code counts them, therefore its progress names them."""
    data = tmp_path / "data"
    store.write(data, [short_run(0), short_run(1)])
    words = ["--judge", "heuristic", "--data", f"trajudge:{data}", "--out", str(tmp_path / "run")]
    lines = (data / "trajectories.jsonl").read_bytes()
    (data / "trajectories.jsonl").write_bytes(lines.replace(b'"goal":"g"', b'"goal":7', 1))
    assert judge_command(words) == 1
    assert "(0 cached, 0 from before), failed 1 skipped, " in told(capsys)
    assert judge_command(words) == 1
    assert "(0 cached, 2 from before), failed 1 before, " in told(capsys)
    (data / "trajectories.jsonl").write_bytes(lines)
    assert judge_command([*words, "--retry-failed"]) == 0
    assert "(0 cached, 1 from before), none failed, " in told(capsys)


def test_data_without_a_readable_trajectory_says_what_is_wrong_with_it(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(words[3].removeprefix("trajudge:")) / "trajectories.jsonl"
    path.write_bytes(b"no line of ours\n")
    assert judge_command(words) == 2
    error = told(capsys)
    assert "holds no trajectory that can be read, only 1 record that cannot be read" in error
    assert f"the first is {path}:1: not a trajectory" in error


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of three trajectories in ``project``, whose data are named relatively."""
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "elsewhere").mkdir()
    runs = [run for run in store.read(sample_path()) if isinstance(run, Trajectory)]
    store.write(project / "logs", runs[:3])
    monkeypatch.chdir(project)
    assert main(["judge", "--judge", "heuristic", "--data", "logs", "--out", "runs/one"]) == 0
    monkeypatch.chdir(tmp_path / "elsewhere")
    return project / "runs" / "one"


def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path) -> str:
    """What ``trajudge inspect`` says before it serves."""
    monkeypatch.setattr(inspecting, "serve", lambda *given: None)
    capsys.readouterr()
    assert main(["inspect", str(run)]) == 0
    return capsys.readouterr().err


def opened(run: Path) -> int:
    return sum(1 for _ in open_source(recorded_data(run)))


def test_its_data_are_those_of_its_own_folder(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # What has the same name here is other data.
    store.write(Path("logs"), [])
    assert opened(run) == 3
    assert shown(monkeypatch, capsys, run) == ""
    assert str(run.resolve()) not in (run / "manifest.json").read_text()


def test_a_project_that_was_moved_and_a_run_that_was_parsed_again_keep_theirs(
    run: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    shutil.move(run.parents[1], moved)
    assert opened(moved / "runs" / "one") == 3
    words = ["run", "reparse", str(moved / "runs" / "one"), "--out", "deep/again"]
    assert main(words) == 0
    assert opened(Path("deep/again")) == 3


def test_data_that_are_gone_are_named_with_the_folders_and_the_option(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.move(tmp_path / "project" / "logs", tmp_path / "other")
    warned = shown(monkeypatch, capsys, run)
    assert warned == (
        f"warning: {run.resolve()}: its data logs is neither in {tmp_path / 'project'} nor in "
        f"{tmp_path / 'elsewhere'}: name it with --data KIND:PATH\n"
    )
    shutil.move(tmp_path / "other", tmp_path / "elsewhere" / "logs")
    assert missing_data(run) == ""
    assert opened(run) == 3


def test_the_same_command_in_the_moved_project_goes_on(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = shutil.move(run.parents[1], tmp_path / "moved")
    monkeypatch.chdir(moved)
    assert main(["judge", "--judge", "heuristic", "--data", "logs", "--out", "runs/one"]) == 0
    assert json.loads(Path("runs/one/manifest.json").read_text())["started_in"] == "../.."
