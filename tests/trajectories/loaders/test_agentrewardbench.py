"""AgentRewardBench: trajectories, the history of an attempt, and its text form."""

from __future__ import annotations

import os
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.trajectories.loaders.made import judgment, only, split
from tests.worlds import agentrewardbench_like as like
from trajudge.trajectories.loaders import agentrewardbench
from trajudge.trajectories.loaders.agentrewardbench_text import KIND, detect, parse_history
from trajudge.trajectories.loaders.agentrewardbench_text import load as agentrewardbench_text_load
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
    copy = path.with_name("webarena.414(1).json")
    copy.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"goal": "of the other copy"}))
    path.unlink()
    run = load_one(tmp_path)
    assert run.raw_task_id == "webarena.414" and run.goal != "of the other copy"


@pytest.mark.parametrize(("steps", "named"), [(4, "0, 1, 2, 3"), (5, "0, 1, ..., 4 (5 steps)")])
def test_up_to_four_steps_are_named_and_of_more_the_ends(
    steps: int, named: str, tmp_path: Path
) -> None:
    path = put(tmp_path)
    content = orjson.loads(path.read_bytes())
    step = content["steps"][0] | {"screenshot_path": "screenshots/lost.png"}
    content["steps"] = [step | {"num": number} for number in range(steps)]
    path.write_bytes(orjson.dumps(content))
    warnings = load_one(tmp_path).metadata["warnings"]
    assert isinstance(warnings, list) and len(warnings) == 1
    assert str(warnings[0]).startswith(f"The screenshot of step {named} is missing")


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


HEADING = "User Task: t\n\nKey Points: 1. k\n\nAction History:\n"


def written(entries: list[tuple[str | None, str | None]]) -> str:
    lines = (f"{n}. {action}. Reasoning: {why}" for n, (action, why) in enumerate(entries, 1))
    return HEADING + "\n".join(lines)


@pytest.mark.parametrize(
    "entries",
    [
        [("click('1')", "because"), (None, None)],
        [("send_msg_to_user('1. a\n2. b\n3. c')", "1. one\n2. two\n\n3. three"), (None, None)],
        [("send_msg_to_user('So. Reasoning: mine')", "why"), (None, None)],
        [(None, "no action came out"), ("noop()", None), (None, None)],
        [("click('1')  # the button", "why"), (None, None)],
        [("goto('https://a.example')", "the run crashed after this")],
        [(f"click('{n}')", f"step {n}") for n in range(1, 31)],
    ],
)
def test_what_was_written_is_read(entries: list[tuple[str | None, str | None]]) -> None:
    assert parse_history(written(entries)) == entries


def test_the_judges_notes_on_snapshots_are_no_steps() -> None:
    notes = (
        "\n\nThe potentially important snapshots of the webpage in the agent's trajectory and "
        "their reasons:\n1. click('2') was seen.\n3. noop()"
    )
    entries: list[tuple[str | None, str | None]] = [("noop()", "a"), ("noop()", "b")]
    assert parse_history(written(entries) + notes) == entries


def test_no_history_is_an_error() -> None:
    with pytest.raises(ValueError, match="no action history"):
        parse_history("User Task: t")


_PROSE = st.text(st.characters(exclude_categories=["Cs"]), max_size=40).map(
    lambda text: "x" + text.replace("Reasoning", "").replace("(", "") + "x"
)


@given(st.lists(st.tuples(_PROSE.map(lambda text: f"fill({text!r})"), _PROSE), max_size=12))
def test_any_prose_without_a_forged_entry_is_read(entries: list[tuple[str, str]]) -> None:
    assert parse_history(written([*entries])) == entries


def test_a_judgment_gives_the_whole_trajectory(tmp_path: Path) -> None:
    judgment(tmp_path)
    assert detect(tmp_path)
    assert detect(tmp_path / "judgments")
    [run], [] = split(agentrewardbench_text_load(tmp_path / "judgments"))
    assert run.key == TrajectoryKey(benchmark="webarena", agent="A", task_id="webarena.1")
    assert run.goal == "Buy tea\n"
    assert [(step.action, step.reasoning) for step in run.steps] == [
        ("send_msg_to_user('1. tea\\n2. milk')", "why"),
        (None, None),
    ]
    assert run.answer == "1. tea\n2. milk"
    assert (run.official_reward, run.terminated, run.truncated) == (0.5, True, False)
    assert run.telemetry == {"n_steps": 1, "cum_cost": 0.25, "error": 0}
    assert run.metadata["warnings"] == []


def test_copies_and_second_judges_count_once(tmp_path: Path) -> None:
    judgment(tmp_path, judge="webjudge-gpt-4o")
    judgment(tmp_path, judge="webjudge-gpt-4o", name="webarena.1(1)")
    judgment(tmp_path)
    (tmp_path / "judgments/webarena/A/aer").mkdir()
    (tmp_path / "judgments/webarena/A/aer/webarena.2.json").write_text("not ours to read")
    [run], [] = split(agentrewardbench_text_load(tmp_path))
    assert run.metadata["source"] == "webjudge-7b/webarena.1.json"
    assert run.metadata["warnings"] == []


def test_a_second_judge_with_another_history_is_told(tmp_path: Path) -> None:
    judgment(tmp_path)
    judgment(tmp_path, judge="webjudge-gpt-4o", reasoning="another")
    [run], [] = split(agentrewardbench_text_load(tmp_path))
    assert run.steps[0].reasoning == "why"
    assert run.metadata["warnings"] == ["webjudge-gpt-4o/webarena.1.json has a different history."]


def test_a_damaged_file_gives_way_to_the_second_judge_or_is_named(tmp_path: Path) -> None:
    judgment(tmp_path).write_text("{")
    judgment(tmp_path, judge="webjudge-gpt-4o")
    broken = judgment(tmp_path, name="webarena.2")
    broken.write_text('{"goal": 3}')
    judgment(tmp_path, name="webarena.3")
    runs, [bad] = split(agentrewardbench_text_load(tmp_path))
    assert [run.key.task_id for run in runs] == ["webarena.1", "webarena.3"]
    assert "webjudge-7b/webarena.1.json" in str(runs[0].metadata["warnings"])
    assert bad.source == str(broken)
    assert "JSON" in bad.reason
    assert bad.key == TrajectoryKey(benchmark="webarena", agent="A", task_id="webarena.2")


def test_invalid_runs_are_left_out_and_unwanted_ones_not_opened(tmp_path: Path) -> None:
    judgment(tmp_path, valid=False)
    judgment(tmp_path, name="webarena.2").write_text("broken, but nobody asked for it")
    judgment(tmp_path, name="webarena.3")
    assert [
        r.key and r.key.task_id for r in agentrewardbench_text_load(tmp_path, only("webarena.3"))
    ] == ["webarena.3"]
    assert list(agentrewardbench_text_load(tmp_path, only("webarena.1"))) == []


def test_a_history_that_contradicts_the_summary_is_told(tmp_path: Path) -> None:
    judgment(tmp_path, n_steps=7)
    [run], [] = split(agentrewardbench_text_load(tmp_path))
    assert run.metadata["warnings"] == ["The history lists 2 steps, the summary 7."]


def test_variants_of_a_task_share_its_key(tmp_path: Path) -> None:
    judgment(tmp_path, benchmark="visualwebarena", name="visualwebarena.resized.3")
    [run], [] = split(agentrewardbench_text_load(tmp_path))
    assert run.key.task_id == "visualwebarena.3"
    assert run.raw_task_id == "visualwebarena.resized.3"


@pytest.mark.parametrize("inside", ["", "judgments", "judgments/webarena/A/aer"])
def test_a_folder_without_such_judgments_is_the_users_mistake(tmp_path: Path, inside: str) -> None:
    (tmp_path / inside).mkdir(parents=True, exist_ok=True)
    with pytest.raises(UserError, match=KIND):
        agentrewardbench_text_load(tmp_path)
    with pytest.raises(UserError):
        agentrewardbench_text_load(tmp_path / "nowhere")


@pytest.fixture(scope="module")
def published(arb: Path) -> list[Trajectory]:
    runs, unreadable = split(agentrewardbench_text_load(arb))
    assert not unreadable
    return runs


@pytest.mark.real_data
def test_every_published_history_has_the_steps_that_its_summary_tells(
    published: list[Trajectory],
) -> None:
    """n actions and a last observation; as many as actions where the run crashed."""
    extra = Counter(
        (len(run.steps) - run.telemetry["n_steps"], run.metadata["error"] is not None)
        for run in published
    )
    assert set(extra) == {(1, False), (0, True)}
    for run in published:
        assert all(step.action for step in run.steps[:-1])
        assert (run.steps[-1].action is None) == (run.metadata["error"] is None)
