"""Labels: which belong to the data, which fit it, and what is said of those that do not."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

import trajudge as tj
from tests.eval.cases import key, label
from tests.hub_server import Hub, serve
from trajudge.annotations import store
from trajudge.annotations.model import Label, Role
from trajudge.annotations.sources import agentrewardbench
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge_command
from trajudge.eval.store.inputs import find_source
from trajudge.eval.store.labels import merged_labels, refuse_conflicts, unanswered_notes
from trajudge.trajectories import store as trajectory_store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import sample_path
from trajudge.util.errors import UserError

AGENT = "GenericAgent-gpt-4o-2024-11-20"
HEADER = (
    "annotator_name,benchmark,task_id,model_name,exp_name,trajectory_success,"
    "trajectory_side_effect,trajectory_optimality,trajectory_looping\n"
)


def table(*tasks: str) -> str:
    rows = (f"A,webarena,{task},{AGENT},exp,Successful,No,2. Suboptimal,No\n" for task in tasks)
    return HEADER + "".join(rows)


def has_package() -> bool:
    try:
        return bool(metadata.version(agentrewardbench.PACKAGE))
    except metadata.PackageNotFoundError:
        return False


@pytest.mark.skipif(
    has_package(), reason="agent-reward-bench is installed, and goes before the Hub"
)
def test_the_labels_of_the_published_benchmark_come_from_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub()
    hub.files["annotations.csv"] = table("webarena.15", "webarena.2").encode()
    with serve(hub):
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.setenv("TRAJUDGE_DATA", str(tmp_path))
        source = find_source("agentrewardbench", None)
    assert [item.raw_task_id for item in source.annotations] == ["webarena.15", "webarena.2"]
    assert source.labels == f"agentrewardbench:{tmp_path / 'annotations.csv'}"


def test_a_copy_of_the_hub_tells_its_revision(tmp_path: Path) -> None:
    """In the copy itself and in a folder of it; other files have none."""
    (tmp_path / "annotations.csv").write_text(table("webarena.15"))
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "annotations.csv").write_text(table("webarena.15"))
    folders = [f"agentrewardbench-text:{place}" for place in (tmp_path, tmp_path / "part")]
    assert [find_source(folder, None).revision for folder in folders] == [None, None]
    (tmp_path / ".trajudge").mkdir()
    record = tmp_path / ".trajudge" / "copy.json"
    record.write_text('{"repo": "x/y", "revision": "c0ffee"}')
    assert [find_source(folder, None).revision for folder in folders] == ["c0ffee", "c0ffee"]
    record.write_text("{")
    assert find_source(folders[0], None).revision is None
    assert find_source("sample", None).revision is None


def test_splits_come_from_beside_the_labels_or_the_package_or_their_absence_is_said(
    tmp_path: Path,
) -> None:
    (tmp_path / "annotations.csv").write_text(table("webarena.15", "not-a-published-task"))
    source = find_source(f"agentrewardbench-text:{tmp_path}", None)
    named = [item.split for item in source.annotations]
    if has_package():
        assert named == ["dev", None]
        assert not source.note
    else:
        assert named == [None, None]
        assert "no splits" in source.note
    (tmp_path / "splits.csv").write_text("task_id,benchmark,split\nwebarena.15,webarena,dev\n")
    source = find_source(f"agentrewardbench-text:{tmp_path}", None)
    assert [item.split for item in source.annotations] == ["dev", None]
    assert not source.note


def test_a_split_that_nobody_knows_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "annotations.csv").write_text(table("not-a-published-task"))
    words = ["--data", f"agentrewardbench-text:{tmp_path}", "--split", "test"]
    assert judge_command(["--judge", "heuristic", *words]) == 2
    assert "error: " in capsys.readouterr().err


def test_labels_that_the_user_named_for_the_sample_are_recorded_as_such(tmp_path: Path) -> None:
    (tmp_path / "annotations.csv").write_text(table("webarena.15"))
    named = f"agentrewardbench:{tmp_path}"
    assert find_source("sample", named).labels == named
    assert find_source("sample", None).labels == find_source("sample", "sample").labels == "sample"


@pytest.mark.parametrize("place", [".", "runs", "runs/july"])
def test_labels_above_the_data_are_named(tmp_path: Path, place: str) -> None:
    data = tmp_path / "runs" / "july"
    trajectory_store.write(
        data,
        [one for one in trajectory_store.read(sample_path()) if isinstance(one, Trajectory)][:1],
    )
    file = tmp_path / place / "labels.jsonl"
    shutil.copy(sample_path() / "labels.jsonl", file)
    note = find_source(f"trajudge:{data}", None).note
    assert (str(file) in note) is (place != "runs/july")
    assert "expert labels" not in find_source(f"trajudge:{data}", f"trajudge:{file}").note
    assert "expert labels" not in find_source("sample", None).note


@pytest.mark.parametrize("place", ["data", "."])
def test_a_pipe_in_place_of_the_labels_is_named(tmp_path: Path, place: str) -> None:
    data = tmp_path / "data"
    trajectory_store.write(
        data,
        [one for one in trajectory_store.read(sample_path()) if isinstance(one, Trajectory)][:1],
    )
    pipe = tmp_path / place / "labels.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match=re.escape(str(pipe)) + r".* \(a pipe\)"):
        find_source(f"trajudge:{data}", None)


Change = Callable[[int, Label], Label | None]


def judged_by(tmp_path: Path, change: Change, *more: str) -> int:
    """Judge the sample by its labels as ``change`` makes them, or leaves them out: all are of test
    unless it says otherwise."""
    labels = store.load(sample_path() / "labels.jsonl")
    changed = [change(i, a.model_copy(update={"split": "test"})) for i, a in enumerate(labels)]
    file = tmp_path / "mine.jsonl"
    store.write(file, [label for label in changed if label])
    words = ["--judge", "heuristic", "--data", "sample", "--annotations", str(file), *more]
    return main(["judge", *words, "--out", str(tmp_path / "run")])


def under_another_key(label: Label, **key: str) -> Label:
    return label.model_copy(update={"key": label.key.model_copy(update=key)})


def test_labels_of_which_none_belongs_are_refused_by_a_key_of_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged_by(tmp_path, lambda _, label: under_another_key(label, benchmark="mine")) == 2
    error = capsys.readouterr().err
    assert "mine.jsonl: none of its" in error
    assert "'mine'" in error
    assert not (tmp_path / "run").exists()


def test_runs_of_tasks_without_a_split_are_counted_and_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = store.load(sample_path() / "labels.jsonl")[0].key
    same = {"benchmark": lost.benchmark, "task_id": lost.task_id}

    def change(_: int, label: Label) -> Label | None:
        return None if same.items() <= label.key.model_dump().items() else label

    assert judged_by(tmp_path, change) == 0
    error = capsys.readouterr().err
    assert "warning: not judged, because no label assigns their tasks to dev or test: " in error
    assert repr(lost.task_id) in error
    assert (
        judged_by(tmp_path, change, "--split", "all") == 2
    )  # other settings than those of the run
    (tmp_path / "all").mkdir()
    assert judged_by(tmp_path / "all", change, "--split", "all") == 0
    assert "not judged, because" not in capsys.readouterr().err


def test_labels_that_miss_their_trajectories_are_counted_and_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(number: int, label: Label) -> Label:
        return under_another_key(label, task_id="Task_1") if number == 3 else label

    assert judged_by(tmp_path, change, "--split", "all") == 0
    error = capsys.readouterr().err
    assert "labels that belong to no trajectory of the data: 1 (the first of" in error
    assert "task 'Task_1'" in error
    assert "trajectories without a label: 1 (" in error


def test_labels_of_other_agents_and_a_filter_are_no_misfit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(number: int, label: Label) -> Label | None:
        if number == 5:
            return None
        return under_another_key(label, agent="somebody") if number == 3 else label

    assert judged_by(tmp_path, change, "--limit", "20") == 0
    assert "belong to no trajectory" not in capsys.readouterr().err


def test_the_first_difference_is_named_with_its_runs_and_all_are_counted() -> None:
    same = {key(task): label(task, True) for task in range(4)}
    less = {key(task): label(task, True) for task in (3, 1)}
    other = {key(task): label(task, task < 2) for task in range(5)}
    refuse_conflicts([("a", same), ("b", less), ("c", {})])
    with pytest.raises(UserError, match=r"^a and c: their labels of \S+\.2 differ .* 2 traj"):
        refuse_conflicts([("a", same), ("b", less), ("c", other)])


def test_a_difference_counts_in_the_questions_that_are_asked() -> None:
    some = {key(1): label(1, True, side_effect=False)}
    more = {key(1): label(1, True), key(2): label(2, True, side_effect=True)}
    refuse_conflicts([("a", some), ("b", more)], ["success"])
    with pytest.raises(UserError, match=r"of 1 trajectory, in side effect\): name the labels"):
        refuse_conflicts([("a", some), ("b", more)])


def test_labels_that_never_answer_a_question_contradict_nobody() -> None:
    some = {key(1): label(1, True, side_effect=False), key(2): label(2, False, side_effect=True)}
    bare = {key(1): label(1, True), key(3): label(3, False)}
    for parts in ([("a", some), ("b", bare)], [("b", bare), ("a", some)]):
        refuse_conflicts(parts)
        merged = merged_labels([labels for _, labels in parts])
        assert {k: (one.success, one.side_effect) for k, one in merged.items()} == {
            key(1): (True, False), key(2): (False, True), key(3): (False, None)
        }  # fmt: skip
        assert [*unanswered_notes(parts)] == [
            "b: its labels lack side effect, which the labels of the other runs answer where they "
            "have the trajectory"
        ]
    assert [*unanswered_notes([("b", bare), ("c", bare)])] == []
    differing = {key(2): label(2, True, side_effect=None)}
    with pytest.raises(UserError, match=r"^a and d: .* of 1 trajectory, in success\)"):
        refuse_conflicts([("b", bare), ("a", some), ("d", differing)])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The same trajectories under two judges, the second by labels of which one was changed."""
    folder = tmp_path_factory.mktemp("runs")
    first, *others = store.load(sample_path() / "labels.jsonl")
    changed = first.model_copy(update={"success": not first.success})
    store.write(folder / "labels.jsonl", [changed, *others])
    more = ["--annotations", f"trajudge:{folder / 'labels.jsonl'}"]
    for judge, named in (("heuristic", []), ("rule-based", more)):
        words = ["--judge", judge, "--data", "sample", "--out", str(folder / judge), *named]
        assert main(["judge", *words]) == 0
    return [str(folder / "heuristic"), str(folder / "rule-based")]


@pytest.mark.parametrize(
    "words", ["score", "audit --out OUT", "select --target-precision 0.1 --out OUT"]
)
def test_a_command_asks_which_labels_count(
    words: str, runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *more = words.replace("OUT", str(tmp_path / "out")).split()
    assert main([command, *runs, *more]) == 2
    error = capsys.readouterr().err
    assert f"{runs[0]} and {runs[1]}: their labels of " in error
    assert "(in all the runs those of 1 trajectory, in success): name the labels" in error
    named = ["--annotations", f"trajudge:{sample_path() / 'labels.jsonl'}"]
    assert main([command, *runs, *more, *named]) in (0, 1)


def test_python_asks_for_the_labels_too(runs: list[str]) -> None:
    with pytest.raises(UserError, match="name the labels that count"):
        tj.score(runs)
    one, other = map(tj.read_run, runs)
    with pytest.raises(UserError, match="name the labels that count"):
        tj.score(one + other)
    assert tj.score(runs, tj.labels("sample")).scores


@pytest.fixture
def run(runs: list[str]) -> Path:
    return Path(runs[0])


def labels() -> list[Label]:
    return store.load(sample_path() / "labels.jsonl")[:3]


def command(words: str, run: Path, out: Path, file: Path) -> list[str]:
    places = {"RUN": run, "OUT": out, "FILE": file}
    return [str(places.get(word, word)) for word in words.split()]


COMMANDS = (
    "judge --judge heuristic --data sample --out OUT --annotations FILE",
    "score RUN --annotations FILE",
    "audit RUN --out OUT --annotations FILE",
    "select RUN --target-precision 0.5 --out OUT --annotations FILE",
    "robust --judge heuristic --data sample --limit 3 --out OUT --annotations FILE",
    "data perturb --data sample --limit 3 --out OUT --annotations FILE",
    "judges train --data sample --annotations FILE",
    "score RUN --ranks --annotations FILE",
    "label build RUN --out OUT --annotations FILE",
    "label build RUN --out OUT --gold FILE",
)
ASKING = [words for words in COMMANDS if words.split()[0] in ("audit", "robust", "judges")]


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("roles", [(), (Role.SECONDARY,)])
def test_a_file_without_a_label_is_refused_by_its_name(
    words: str,
    roles: tuple[Role, ...],
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "mine.jsonl"
    store.write(file, [labels()[0].model_copy(update={"role": role}) for role in roles])
    assert main(command(words, run, tmp_path / "out", file)) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert f"{words.split()[-2]} {file}: holds no label" in error


@pytest.mark.parametrize("words", ASKING)
@pytest.mark.parametrize("changed", ["task", "unsure"])
def test_labels_of_other_runs_and_unsure_ones_are_refused_by_their_name(
    words: str, changed: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.jsonl"
    one = labels()[0]
    other = one.key.model_copy(update={"task_id": "another"})
    update = {"key": other} if changed == "task" else {"success": None}
    store.write(file, [one.model_copy(update=update)])
    assert main(command(words, run, tmp_path / "out", file)) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert str(file) in error
    assert "name" in error


def test_a_report_by_the_labels_of_other_runs_comes_with_a_warning(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.jsonl"
    one = labels()[0]
    other = one.key.model_copy(update={"task_id": "another"})
    store.write(file, [one.model_copy(update={"key": other})])
    words = "report RUN --out OUT --annotations FILE"
    assert main(command(words, run, tmp_path / "x.html", file)) == 0
    error = capsys.readouterr().err
    assert f"warning: {file}: none of its 1 labels belongs to a trajectory that is judged" in error
