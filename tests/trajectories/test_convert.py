"""Trajectories: their keys, what a judge is shown of them, and conversion."""

from __future__ import annotations

import pickle
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.app.made_runs import png
from tests.eval.cases import key
from tests.trajectories.loaders import conversations, inspect_made
from tests.trajectories.loaders.mutated_files import MADE
from trajudge.eval.cli import main
from trajudge.trajectories import store
from trajudge.trajectories.goals import read_goals
from trajudge.trajectories.loaders import KINDS, open_source
from trajudge.trajectories.model import (
    ImageRef,
    Observation,
    Step,
    Trajectory,
    TrajectoryKey,
    Unreadable,
    checked,
)
from trajudge.trajectories.represent import (
    MissingObservation,
    Representation,
    StepLine,
    final_axtrees,
    final_screenshot,
    step_lines,
)
from trajudge.trajectories.sample import sample_path

FORMATS = {
    "browser-use": "browser_use_0_1/AgentHistoryList.json",
    "inspect": "inspect_eval",
    "messages": "message_logs",
    "osworld": "osworld_style",
    "webarena-html": "webarena_html",
}


def _picture(ref: ImageRef | None) -> str | None:
    """What a picture is, wherever it lies; all that cannot be read are alike."""
    if ref is None or ref.problem:
        return "lost" if ref else None
    content = ref.data if ref.data is not None else ref.path.read_bytes() if ref.path else b""
    return sha256(content).hexdigest()


def _content(run: Trajectory) -> tuple[Any, ...]:
    """All of a run but where its pictures lie, and the warnings of those that were lost."""
    fields = run.model_dump(exclude={"goal_images", "steps", "metadata"})
    steps = []
    for step in run.steps:
        seen = step.observation.model_dump(exclude={"screenshot"})
        steps.append((step.index, step.reasoning, step.action, seen))
    pictures = [_picture(step.observation.screenshot) for step in run.steps]
    notes = {name: value for name, value in run.metadata.items() if name != "warnings"}
    return fields, steps, pictures, [_picture(ref) for ref in run.goal_images], notes


def _round_trip(spec: str, target: Path, goals: Path | None = None) -> int:
    told = read_goals(goals) if goals else None
    before = [run for run in open_source(spec, goals=told) if isinstance(run, Trajectory)]
    main(["data", "convert", spec, str(target), *(["--goals", str(goals)] if goals else [])])
    after = list(open_source(str(target)))
    assert len(before) == len(after) > 0
    for first, second in zip(before, after, strict=True):
        assert isinstance(second, Trajectory)
        assert _content(first) == _content(second)
        assert _warnings(second)[: len(_warnings(first))] == _warnings(first)
    return len(after)


def _warnings(run: Trajectory) -> list[Any]:
    listed = run.metadata.get("warnings") or []
    assert isinstance(listed, list)
    return listed


@pytest.mark.parametrize("kind", sorted(MADE))
def test_a_made_folder_of_every_format(kind: str, tmp_path: Path) -> None:
    folder = MADE[kind](tmp_path / "data")
    assert _round_trip(f"{kind}:{folder}", tmp_path / "ours")


@pytest.mark.real_data
@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_real_files_of_every_format(kind: str, tmp_path: Path, real_data: Path) -> None:
    if kind not in KINDS:
        pytest.skip(f"{kind} is not a kind")
    goals = tmp_path / "goals.json"
    goals.write_text('{"browser_use_0_1": "Find a page"}')
    spec = f"{kind}:{real_data / 'formats' / FORMATS[kind]}"
    assert _round_trip(spec, tmp_path / "ours", goals)


def test_what_cannot_be_read_is_named_and_the_rest_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = inspect_made.sample(1), inspect_made.sample(2, messages=None)
    log = inspect_made.write(tmp_path / "a.eval", good, bad)
    assert main(["data", "convert", str(log), str(tmp_path / "ours")]) == 1
    shown = capsys.readouterr()
    assert shown.out.endswith("trajectories.jsonl: 1 trajectory\n")
    assert shown.err == f"not read: {log}: sample 2: has no list of messages\n"
    assert not any(isinstance(run, Unreadable) for run in store.read(tmp_path / "ours"))


def test_pictures_that_are_not_there_are_counted_and_the_first_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, gone = (
        Step(index=0, observation=Observation(screenshot=ImageRef(data=content)))
        for content in (png(), png(shade=9))
    )
    runs = [
        Trajectory(key=key(task), raw_task_id=str(task), goal="Buy tea", steps=steps)
        for task, steps in enumerate(((shown,), (shown, gone), (gone,)))
    ]
    store.write(tmp_path / "own", runs)
    name = sha256(png(shade=9)).hexdigest()
    (tmp_path / f"own/images/{name}.png").unlink()
    assert main(["data", "convert", str(tmp_path / "own"), str(tmp_path / "ours")]) == 0
    told = capsys.readouterr()
    assert told.out.endswith("trajectories.jsonl: 3 trajectories\n")
    assert told.err.startswith(
        f"warning: 2 pictures could not be read (the first: {key(1)}: no image {name}"
    )
    assert told.err.count("\n") == 1


def test_goals_of_a_file_are_written(tmp_path: Path) -> None:
    log = conversations.write(tmp_path / "t1.json", {"messages": conversations.anthropic()})
    (tmp_path / "goals.json").write_text('{"t1": "Buy tea"}')
    words = ["data", "convert", f"messages:{log}", str(tmp_path / "ours")]
    assert main([*words, "--goals", str(tmp_path / "goals.json")]) == 0
    [run] = store.read(tmp_path / "ours")
    assert isinstance(run, Trajectory)
    assert run.goal == "Buy tea"


def test_nothing_is_overwritten_and_nothing_is_written_into_what_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = conversations.write(tmp_path / "logs" / "a.json", conversations.anthropic())
    ours = tmp_path / "ours"
    assert main(["data", "convert", str(log), str(ours)]) == 0
    for source, target in ((log, ours), (log, log), (log.parent, log.parent / "ours")):
        assert main(["data", "convert", str(source), str(target)]) == 2
        assert "name another folder" in capsys.readouterr().err
    assert sorted(path.name for path in log.parent.iterdir()) == ["a.json"]


def test_the_bundled_sample_is_a_source(tmp_path: Path) -> None:
    assert main(["data", "convert", "sample", str(tmp_path / "own")]) == 0
    kept, bundled = store.read(tmp_path / "own"), store.read(sample_path())
    assert [run.key for run in kept] == [run.key for run in bundled]


@pytest.mark.parametrize(
    ("words", "named"), [(("convert", "nope", "out"), "IN"), (("verdicts", "nope"), "the data")]
)
def test_data_that_is_not_there_is_named_as_it_was_given(
    words: tuple[str, ...], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out")] if words[0] == "verdicts" else []
    assert main(["data", *words, *out]) == 2
    assert capsys.readouterr().err.startswith(f"error: {named} 'nope': no such file or folder")


def run(*observations: Observation) -> Trajectory:
    steps = tuple(
        Step(index=index, observation=seen, reasoning=f"r{index}", action=f"a{index}")
        for index, seen in enumerate(observations)
    )
    key = TrajectoryKey(benchmark="shop", agent="a", task_id="t")
    return Trajectory(key=key, raw_task_id="t", goal="g", steps=steps)


def test_steps_are_numbered_from_one() -> None:
    assert step_lines(run(Observation(url="u"), Observation())) == (
        StepLine(number=1, url="u", action="a0", reasoning="r0"),
        StepLine(number=2, url=None, action="a1", reasoning="r1"),
    )


@pytest.mark.parametrize(
    ("full", "pruned", "trees"),
    [
        ("f", "p", ("f", "p")),
        ("f", None, ("f", None)),
        (None, "p", ("p", None)),
        ("f", "", ("f", None)),
    ],
)
def test_the_final_trees(full: str | None, pruned: str | None, trees: tuple[str, str]) -> None:
    seen = Observation(axtree=full, axtree_pruned=pruned)
    assert final_axtrees(run(Observation(axtree="first"), seen)) == trees


@pytest.mark.parametrize("seen", [(), (Observation(),), (Observation(axtree="x"), Observation())])
def test_only_the_final_observation_counts(seen: tuple[Observation, ...]) -> None:
    with pytest.raises(MissingObservation, match=r"shop/a/t: the final step has no accessibility"):
        final_axtrees(run(*seen))
    with pytest.raises(MissingObservation, match=r"shop/a/t: the final step has no screenshot"):
        final_screenshot(run(*seen))


def test_the_final_screenshot() -> None:
    ref = ImageRef(data=b"x")
    assert final_screenshot(run(Observation(screenshot=ref))) is ref


def test_what_a_representation_shows() -> None:
    shown = {name.value: (name.shows_axtree, name.shows_screenshot) for name in Representation}
    assert shown == {
        "axtree": (True, False),
        "screenshot": (False, True),
        "both": (True, True),
        "none": (False, False),
    }


@pytest.mark.parametrize("task", ["webarena.1", "visualwebarena.resized.2"])
def test_a_key_of_checked_fields_is_the_validated_one(task: str) -> None:
    benchmark = task.partition(".")[0]
    made = TrajectoryKey.of_checked(benchmark, "agent", task, 1)
    validated = TrajectoryKey(benchmark=benchmark, agent="agent", task_id=task, attempt=1)
    assert (made, hash(made), made.model_dump_json(), repr(made)) == (
        *(validated, hash(validated), validated.model_dump_json(), repr(validated)),
    )
    assert made.model_copy(update={"attempt": 2}).attempt == 2
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(ValidationError):
        made.attempt = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="negative"):
        TrajectoryKey.of_checked(benchmark, "agent", task, -1)


def test_a_record_of_checked_fields_is_the_validated_one() -> None:
    fields = {"benchmark": "b", "agent": "a", "task_id": "t", "attempt": 2}
    made, validated = checked(TrajectoryKey, dict(fields)), TrajectoryKey.model_validate(fields)
    assert made == validated and hash(made) == hash(validated)
    assert made.model_fields_set == validated.model_fields_set
    assert made.model_dump_json() == validated.model_dump_json()
    assert made.model_copy(update={"attempt": 0}) != made
