"""Logs of inspect_ai: the samples beside a reader of the raw file, and traps."""

from __future__ import annotations

import json
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.trajectories.loaders import conversations as made
from tests.trajectories.loaders import inspect_made
from trajudge.trajectories.loaders.inspect_ import LEAKS, detect
from trajudge.trajectories.model import Trajectory, Unreadable

FORMATS = Path(__file__).parent / "recorded_formats"
FILES = (
    *("generated_screen.eval", "log_formats.eval", "log_message_deduplication.eval"),
    *("log_read_sample.eval", "log_streaming.eval", "log_tool_call_error.json"),
    "mmlu-summary-choices.eval",
)


@pytest.fixture
def samples(real_data: Path) -> Path:
    return real_data / "formats" / "inspect_eval"


def _raw_samples(path: Path) -> Iterator[dict[str, Any]]:
    """The samples of a log, read without the product: deflate by zipfile, Zstandard by hand."""
    if path.suffix == ".json":
        yield from json.loads(path.read_text())["samples"]
        return
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.filename.startswith("samples/"):
                continue
            name, extra = struct.unpack_from("<HH", content, info.header_offset + 26)
            start = info.header_offset + 30 + name + extra
            packed = content[start : start + info.compress_size]
            zstd = zstandard.ZstdDecompressor().decompressobj()
            yield json.loads(
                zstd.decompress(packed) if info.compress_type == 93 else archive.read(info)
            )


def _images(sample: dict[str, Any]) -> list[str]:
    """The pictures that tools gave, as data URLs, in order."""
    return [
        sample["attachments"].get(part["image"].removeprefix("attachment://"), part["image"])
        for message in sample["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image"
    ]


@pytest.mark.real_data
@pytest.mark.parametrize("name", FILES)
def test_a_sample_holds_what_the_raw_file_does(samples: Path, name: str) -> None:
    assert detect(samples / name)
    runs = made.load(samples / name, "inspect")
    raw = list(_raw_samples(samples / name))
    assert len(runs) == len(raw)
    for run, sample in zip(runs, raw, strict=True):
        assert isinstance(run, Trajectory)
        assert (run.key.task_id, run.key.attempt) == (str(sample["id"]), sample["epoch"] - 1)
        assert run.goal.startswith(sample["input"])
        calls = [m["tool_calls"] for m in sample["messages"] if m.get("tool_calls")]
        assert [step.action for step in run.steps if step.action] == [
            "\n".join(f"{c['function']}({json.dumps(c['arguments'])})" for c in turn)
            for turn in calls
        ]
        pictures = [step.observation.screenshot for step in run.steps]
        assert [made.inline(ref) for ref in pictures if ref] == [
            url.partition(",")[2] for url in _images(sample)
        ]
        said = sample.get("output", {}).get("choices", [{}])[0].get("message", {}).get("content")
        assert run.answer == said
        values = [score["value"] for score in sample.get("scores", {}).values()]
        assert run.official_reward == ({"C": 1, "I": 0}.get(*values, *values) if values else None)


@pytest.mark.real_data
def test_what_the_samples_hold(samples: Path) -> None:
    runs = made.load(samples / "generated_screen.eval", "inspect")
    assert [str(run.key) for run in runs] == [
        "screen/mockllm/model/find-answer", "screen/mockllm/model/find-answer#1"
    ]  # fmt: skip
    for run in runs:
        assert isinstance(run, Trajectory)
        shots = [made.colour(step.observation.screenshot) for step in run.steps]
        assert shots == [None, "red", "green", "blue"]
        assert [step.action is None for step in run.steps] == [False, False, False, True]
        assert run.steps[1].reasoning == "The button is top left.\nI click the button."
        assert (run.official_reward, run.answer) == (1.0, "The answer is 42.")
    assert len(made.load(samples / "log_streaming.eval", "inspect")) == 4
    everything = made.load(samples, "inspect")
    assert Counter(type(run).__name__ for run in everything) == {"Trajectory": 11}
    assert len({run.key for run in everything}) == 11


def _one(tmp_path: Path, **more: Any) -> Trajectory:
    return made.load_one(
        inspect_made.write(tmp_path / "a.eval", inspect_made.sample(**more)), "inspect"
    )


@pytest.mark.parametrize("name", ["a.eval", "a.json"])
def test_a_made_log(tmp_path: Path, name: str) -> None:
    path = inspect_made.write(tmp_path / name, inspect_made.sample("a/b", epoch=3))
    assert detect(path)
    assert detect(tmp_path)
    run = made.load_one(path, "inspect")
    assert (str(run.key), run.raw_task_id) == ("shop/m/a/b#2", "a/b")
    assert (run.answer, run.official_reward) == ("A lamp for $12.", 1.0)
    assert [made.colour(step.observation.screenshot) for step in run.steps] == [None, "red"]
    assert "TARGET" not in repr(run)


def test_a_log_that_still_runs_has_no_header(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    inspect_made.write(path, inspect_made.sample(), head="_journal/start.json")
    assert detect(path)
    assert made.load_one(path, "inspect").key.benchmark == "shop"


def test_a_score_is_read_as_inspect_reads_it(tmp_path: Path) -> None:
    """The table is what ``inspect_ai.scorer.value_to_float`` of 0.3.285 made of each value; null
    where it warns and takes 0."""
    table = json.loads(
        (Path(__file__).parent / FORMATS / "inspect_value_to_float.json").read_text()
    )
    for value, number in table:
        run = _one(tmp_path, scores={"s": {"value": value}})
        reward = number if number is not None and 0 <= number <= 1 else None
        assert run.official_reward == reward, value
        assert len(made.warnings(run)) == (reward is None and value != ""), value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_a_score_that_is_no_number_is_named(tmp_path: Path, value: float, suffix: str) -> None:
    sample = inspect_made.sample(scores={"s": {"value": value}})
    run = made.load_one(inspect_made.write(tmp_path / f"a{suffix}", sample), "inspect")
    assert run.official_reward is None
    assert "The score is not read: the number is " in made.warnings(run)[0]


@pytest.mark.parametrize("scores", [["C"], {"s": "C"}, "C"])
def test_scores_in_another_form_are_named(tmp_path: Path, scores: object) -> None:
    run = _one(tmp_path, scores=scores)
    assert run.official_reward is None
    assert made.warnings(run)[0].endswith(" is not read.")


def test_several_scores_are_no_reward(tmp_path: Path) -> None:
    run = _one(tmp_path, scores={"b": {"value": 1}, "a": {"value": 0}})
    assert run.official_reward is None
    assert made.warnings(run) == ["There are several scores (a, b): none is the reward."]


def test_a_run_that_was_stopped_has_no_answer(tmp_path: Path) -> None:
    limited = _one(tmp_path, limit={"type": "message", "limit": 5})
    assert (limited.answer, limited.truncated, limited.metadata["limit"]) == (None, True, "message")
    failed = _one(tmp_path, error={"message": "No such host", "traceback": "..."})
    assert (failed.answer, failed.truncated, failed.metadata["error"]) == (
        None, False, "No such host"
    )  # fmt: skip


def test_a_picture_that_the_log_does_not_hold(tmp_path: Path) -> None:
    run = _one(tmp_path, attachments={"2": "Yes", "1": "/home/recorder/step.png"})
    assert "which is not fetched" in str(made.colour(run.final.screenshot))
    run = _one(tmp_path, attachments={"2": "attachment://1"})
    assert run.answer == "attachment://1"  # one level only
    assert len(made.warnings(run)) == 2


def test_a_retried_evaluation_counts_its_newest_samples(tmp_path: Path) -> None:
    old, new = inspect_made.sample(1, target="x"), inspect_made.sample(1, scores={})
    inspect_made.write(tmp_path / "b.eval", old, inspect_made.sample(2))
    inspect_made.write(tmp_path / "a.eval", new, created="2026-01-02T00:00:00+00:00")
    runs = made.load(tmp_path, "inspect")
    assert [(str(run.key), run.official_reward) for run in runs if isinstance(run, Trajectory)] == [
        ("shop/m/1", None), ("shop/m/2", 1.0)
    ]  # fmt: skip


def test_another_evaluation_adds_attempts_and_another_solver_is_another_agent(
    tmp_path: Path,
) -> None:
    for name, more in (
        ("a", {"task_id": "A", "config": {"epochs": 2}}),
        ("b", {"task_id": "B", "created": "2026-01-01T01:00:00+01:00"}),
        ("c", {"task_id": "C", "model": "n", "solver": "react"}),
        ("d", {"task_id": "D", "model": "n", "solver": "plan"}),
    ):
        inspect_made.write(tmp_path / f"{name}.eval", inspect_made.sample(1), **more)
    assert [str(run.key) for run in made.load(tmp_path, "inspect")] == [
        "shop/m/1", "shop/m/1#2", "shop/n+react/1", "shop/n+plan/1"
    ]  # fmt: skip


def test_choices_belong_to_the_goal_and_the_prompt_around_it_is_no_page(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "Answer with a letter: which? A) tea", "source": "input"}
    answer = {"role": "assistant", "content": "A"}
    run = _one(tmp_path, input="Which?", choices=["tea", "milk"], messages=[asked, answer])
    assert (run.goal, len(run.steps)) == ("Which?\nA) tea\nB) milk", 1)
    assert run.final.axtree is None


def test_a_picture_of_the_question_belongs_to_the_goal(tmp_path: Path) -> None:
    shown = {"type": "image", "image": f"data:image/png;base64,{made.picture('blue')}"}
    asked = {"role": "user", "content": [{"type": "text", "text": "Find this."}, shown]}
    messages = [{**asked, "source": "input"}, *inspect_made.sample()["messages"][1:]]
    run = _one(tmp_path, input=[asked], messages=messages)
    assert (run.goal, [made.colour(ref) for ref in run.goal_images]) == ("Find this.", ["blue"])
    assert [made.colour(step.observation.screenshot) for step in run.steps] == [None, "red"]


def test_a_sample_that_cannot_be_read_costs_itself_alone(tmp_path: Path) -> None:
    for bad in (
        *({"messages": "none"}, {"id": None}, {"epoch": 0}, {"id": {"a": 1}}, {"id": "a" * 1001}),
    ):
        samples = inspect_made.sample(1), inspect_made.sample(2, **bad)
        good, other = made.load(inspect_made.write(tmp_path / "a.eval", *samples), "inspect")
        assert isinstance(good, Trajectory)
        assert isinstance(other, Unreadable)


@pytest.mark.parametrize("name", LEAKS)
def test_what_says_what_is_right_is_nowhere_in_the_run(tmp_path: Path, name: str) -> None:
    mark = "LEAK" * 10
    plain = _one(tmp_path)
    for value in (mark, {mark: mark}, [{"explanation": mark, "value": mark}]):
        marked = _one(tmp_path, **{name: value})
        assert mark not in repr(marked)
        same = {"official_reward": 1.0, "metadata": plain.metadata}
        assert marked.model_copy(update=same) == plain
