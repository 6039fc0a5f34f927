"""The published layout on disk, with the traps of the real files."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image

from tests.worlds import agentrewardbench_like as like
from trajudge.trajectories.loaders import agentrewardbench
from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.needs import FINAL, NO_NEEDS, NOT_READ, Needs
from trajudge.util.errors import UserError

FOLDER = f"screenshots/webarena/{like.AGENT}/webarena.1"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n"


def png() -> bytes:
    buffer = BytesIO()
    Image.new("L", (2, 2)).save(buffer, "PNG")
    return buffer.getvalue()


def record(**fields: Any) -> dict[str, Any]:
    return like.trajectory(np.random.default_rng(0), size=3_000, **fields)


def put(root: Path, **fields: Any) -> Path:
    made = record(**fields)
    return like.write(root, made, fields.get("task_id", "webarena.1"))


def shots(root: Path, *contents: bytes, folder: str = FOLDER) -> None:
    (root / folder).mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(contents):
        (root / folder / f"screenshot_step_{number}.png").write_bytes(content)


def load(path: Path) -> list[Trajectory | Unreadable]:
    return list(agentrewardbench.load(path))


def load_one(path: Path) -> Trajectory:
    (found,) = load(path)
    assert isinstance(found, Trajectory), found
    return found


def warnings(found: Trajectory) -> str:
    return str(found.metadata.get("warnings"))


def test_every_needed_field_is_mapped(tmp_path: Path) -> None:
    shots(tmp_path, png(), png(), png())
    put(tmp_path)
    found, made = load_one(tmp_path), record()
    assert found.key == TrajectoryKey(benchmark="webarena", agent=like.AGENT, task_id="webarena.1")
    assert found.goal == "Put the cheapest item into the cart.\n"
    assert (found.official_reward, found.terminated, found.truncated) == (1.0, True, False)
    assert found.answer is None
    assert [step.action for step in found.steps] == ["click('0')", "click('1')", None]
    for step, source in zip(found.steps, made["steps"], strict=True):
        seen = step.observation
        assert (step.index, step.reasoning) == (source["num"], source["reasoning"])
        assert (seen.url, seen.axtree) == (source["url"], source["axtree"])
        assert seen.axtree_pruned == source["axtree_pruned"]
        assert seen.page_error is None
        assert seen.screenshot is not None
        assert seen.screenshot.path == tmp_path / source["screenshot_path"].removeprefix(
            "trajectories/"
        )
    assert found.metadata == {
        "model": "gpt-4o-2024-11-20",
        "experiment": f"{like.AGENT}_on_webarena",
        "seed": 0,
        "error": None,
        "warnings": [],
    }


def test_telemetry_holds_the_finite_numbers_but_no_reward(tmp_path: Path) -> None:
    summary = like.summary(2, **{"stats.max_cost": None, "stats.big": 2.5e-3, "note": "x"})
    put(tmp_path, summary_info=summary)
    assert load_one(tmp_path).telemetry == {
        "n_steps": 2,
        "cum_steps": 3,
        "cum_input_tokens": 2000,
        "cum_step_elapsed": 3.0,
        "big": 0.0025,
        "error": 0,
    }


def test_the_answer_is_the_last_message(tmp_path: Path) -> None:
    made = record()
    made["steps"][1]["action"] = 'send_msg_to_user("It is (about) $5")'
    like.write(tmp_path, made)
    assert load_one(tmp_path).answer == "It is (about) $5"


def test_a_run_that_ended_in_an_error_has_neither_flag(tmp_path: Path) -> None:
    summary = like.summary(2, err_msg="Timeout", terminated=None, truncated=None, cum_reward=0)
    put(tmp_path, summary_info=summary)
    found = load_one(tmp_path)
    assert (found.terminated, found.truncated, found.official_reward) == (None, None, 0.0)
    assert found.telemetry["error"] == 1
    assert found.metadata["error"] == "Timeout"


def test_both_flags_may_be_true_and_the_reward_a_fraction(tmp_path: Path) -> None:
    put(tmp_path, summary_info=like.summary(2, truncated=True, cum_reward=0.37))
    found = load_one(tmp_path)
    assert (found.terminated, found.truncated, found.official_reward) == (True, True, 0.37)


def test_the_last_step_may_lack_and_others_may_be_bare(tmp_path: Path) -> None:
    made = record()
    made["steps"] = [made["steps"][0], {"num": 1}]
    like.write(tmp_path, made)
    found = load_one(tmp_path)
    assert found.steps[1].action is None
    assert found.final.axtree is None
    made["steps"] = []
    like.write(tmp_path, made)
    assert load_one(tmp_path).steps == ()


def test_a_run_marked_as_not_valid_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, valid=False)
    assert load(tmp_path) == []


def test_a_duplicate_download_does_not_count_twice(tmp_path: Path) -> None:
    path = put(tmp_path, task_id="webarena.414")
    for name in ("webarena.414(1)", "webarena.414 (2)"):
        path.with_name(f"{name}.json").write_bytes(path.read_bytes())
    assert load_one(tmp_path).raw_task_id == "webarena.414"
    path.unlink()
    assert load_one(tmp_path).raw_task_id == "webarena.414"


def test_a_variants_id_is_made_canonical_and_kept_raw(tmp_path: Path) -> None:
    put(tmp_path, benchmark="visualwebarena", task_id="visualwebarena.resized.7")
    found = load_one(tmp_path)
    assert found.key.task_id == "visualwebarena.7"
    assert found.raw_task_id == "visualwebarena.resized.7"


def test_a_second_experiment_of_a_task_is_another_attempt(tmp_path: Path) -> None:
    path = put(tmp_path)
    other = path.parent.with_name("z_later") / path.name
    other.parent.mkdir()
    other.write_bytes(path.read_bytes())
    keys = [found.key for found in load(tmp_path) if isinstance(found, Trajectory)]
    assert [key.attempt for key in keys] == [0, 1]


@pytest.mark.parametrize("given", [".", "cleaned", ".."])
def test_the_dataset_is_found_from_the_usual_folders(given: str, tmp_path: Path) -> None:
    root = tmp_path / "trajectories"
    shots(root, png(), png(), png())
    put(root)
    path = root / given
    assert agentrewardbench.detect(path)
    assert load_one(path).final.screenshot is not None


def test_unwanted_files_are_not_opened(tmp_path: Path) -> None:
    put(tmp_path, task_id="webarena.1").write_bytes(b"not opened")
    put(tmp_path, task_id="webarena.2")
    (found,) = agentrewardbench.load(tmp_path, lambda key: key.task_id == "webarena.2")
    assert isinstance(found, Trajectory)


def test_the_order_is_stable_and_the_first_comes_without_the_rest(tmp_path: Path) -> None:
    for task in ("webarena.2", "webarena.10", "webarena.1"):
        put(tmp_path, task_id=task)
    put(tmp_path, benchmark="assistantbench", task_id="assistantbench.1")
    found = [item.key.task_id for item in load(tmp_path) if isinstance(item, Trajectory)]
    assert found == ["assistantbench.1", "webarena.1", "webarena.10", "webarena.2"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"{", "truncated"),
        (b"\x00" * 10, "malformed"),
        (b"[]", "Expected `object`"),
        (b'{"benchmark": "webarena"}', "missing required field"),
        (orjson.dumps(record(goal=None)), "$.goal"),
        (orjson.dumps(record())[:-50], "truncated"),
    ],
)
def test_a_bad_file_is_named_and_the_rest_is_read(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    path = put(tmp_path, task_id="webarena.1")
    path.write_bytes(content)
    put(tmp_path, task_id="webarena.2")
    bad, good = load(tmp_path)
    assert isinstance(bad, Unreadable)
    assert (bad.source, bad.key and bad.key.task_id) == (str(path), "webarena.1")
    assert reason in bad.reason
    assert isinstance(good, Trajectory)


def test_a_file_beyond_the_bound_is_not_read(tmp_path: Path) -> None:
    path = put(tmp_path)
    os.truncate(path, agentrewardbench.MAX_FILE_BYTES + 1)  # sparse: takes no disk
    (found,) = load(tmp_path)
    assert isinstance(found, Unreadable)
    assert "larger than 512 MiB" in found.reason


@pytest.mark.parametrize(
    ("content", "word"), [(b"", "zero bytes"), (POINTER, "git-LFS"), (b"<html>", "not a PNG")]
)
def test_a_file_that_is_no_picture_is_a_warning(content: bytes, word: str, tmp_path: Path) -> None:
    shots(tmp_path, png(), png(), content)
    put(tmp_path)
    found = load_one(tmp_path)
    assert found.final.screenshot
    assert word in (found.final.screenshot.problem or "")
    first = found.steps[0].observation.screenshot
    assert first
    assert first.problem is None
    assert "step 2" in warnings(found)
    assert word in warnings(found)


def test_missing_pictures_are_one_sentence(tmp_path: Path) -> None:
    put(tmp_path, n_steps=9)
    assert load_one(tmp_path).metadata["warnings"] == [
        "The screenshot of step 0, 1, ..., 8 (9 steps) is missing."
    ]


@pytest.mark.parametrize(
    "given",
    [
        "../outside.png",
        "trajectories/../outside.png",
        "trajectories/screenshots/../../outside.png",
        "{outside}",
        "link.png",
        "folder/outside.png",
    ],
)
def test_nothing_outside_the_dataset_is_referred_to(given: str, tmp_path: Path) -> None:
    root, outside = tmp_path / "set", tmp_path / "outside.png"
    outside.write_bytes(png())
    made = record()
    made["steps"][2]["screenshot_path"] = given.format(outside=outside)
    like.write(root, made)
    (root / "link.png").symlink_to(outside)
    (root / "folder").symlink_to(tmp_path)
    (root / "screenshots").mkdir()
    found = load_one(root)
    assert found.final.screenshot
    assert found.final.screenshot.path is None
    assert "outside the dataset's folder" in (found.final.screenshot.problem or "")
    assert "outside the dataset's folder" in warnings(found)


@pytest.mark.parametrize("given", ["a\0b.png", "/", "..", "x" * 5_000])
def test_a_strange_path_is_only_a_missing_picture(given: str, tmp_path: Path) -> None:
    made = record(benchmark="webarena")
    made["steps"][2]["screenshot_path"] = given
    like.write(tmp_path, made)
    shot = load_one(tmp_path).final.screenshot
    assert shot
    assert shot.problem


@pytest.mark.parametrize("given", [None, ""])
def test_a_step_that_names_no_picture_has_none(given: str | None, tmp_path: Path) -> None:
    made = record(benchmark="webarena")
    made["steps"][2]["screenshot_path"] = given
    like.write(tmp_path, made)
    assert load_one(tmp_path).final.screenshot is None


def test_a_copy_in_the_hubs_cache_may_link_to_its_blobs(tmp_path: Path) -> None:
    root = tmp_path / "snapshots" / "abc"
    blob = tmp_path / "blobs" / "123"
    blob.parent.mkdir()
    blob.write_bytes(png())
    put(root)
    (root / FOLDER).mkdir(parents=True)
    (root / FOLDER / "screenshot_step_2.png").symlink_to(blob)
    assert load_one(root).final.screenshot is not None


def test_a_folder_without_trajectories_is_the_users_mistake_at_the_call(tmp_path: Path) -> None:
    (tmp_path / "cleaned").mkdir()
    assert not agentrewardbench.detect(tmp_path)
    with pytest.raises(UserError, match="no AgentRewardBench trajectories"):
        agentrewardbench.load(tmp_path)


def test_screenshots_that_are_not_needed_are_not_looked_for(tmp_path: Path) -> None:
    """Only who needs them is given a warning for those that are missing."""
    put(tmp_path)
    paths = [step["screenshot_path"] for step in record()["steps"]]
    for needs, missing in ((NO_NEEDS, 0), (Needs(screenshots=FINAL), 1)):
        (found,) = agentrewardbench.load(tmp_path, needs=needs)
        assert isinstance(found, Trajectory)
        refs = [step.observation.screenshot for step in found.steps]
        assert [ref is not None for ref in refs] == [bool(path) for path in paths]
        assert all((ref == NOT_READ) is (not missing) for ref in refs if ref)
        assert warnings(found).count("is missing") == missing
