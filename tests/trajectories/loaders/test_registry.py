"""Which loader a ``--data`` value means, and what every loader leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trajectories.loaders.mutated_files import MADE
from tests.worlds import agentrewardbench_like as like
from trajudge.trajectories import store
from trajudge.trajectories.loaders import (
    KINDS,
    detect_kind,
    loader,
    messages,
    open_source,
    parse_source,
)
from trajudge.trajectories.loaders import _files as detection
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey, accept_all
from trajudge.trajectories.needs import EVERYTHING, NO_NEEDS, Needs
from trajudge.util.errors import UserError


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    key = TrajectoryKey(benchmark="shop", agent="a", task_id="t")
    folder = tmp_path / "shop"
    store.write(folder, [Trajectory(key=key, raw_task_id="t", goal="g")])
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_every_loader_has_the_three_names(kind: str, tmp_path: Path) -> None:
    module = loader(kind)
    assert kind == module.KIND
    assert not module.detect(tmp_path)
    with pytest.raises(UserError, match="holds no "):
        list(module.load(tmp_path, lambda key: True))


def test_a_kind_and_a_path(shop: Path) -> None:
    assert parse_source(f"trajudge:{shop}") == ("trajudge", shop)
    (found,) = open_source(f"trajudge:{shop}")
    assert isinstance(found, Trajectory)
    assert list(open_source(f"trajudge:{shop}", lambda key: False)) == []


def test_a_bare_path_is_detected(shop: Path, tmp_path: Path) -> None:
    assert parse_source(str(shop)) == ("trajudge", shop)
    like.write(tmp_path / "arb", like.trajectory(np.random.default_rng(0), size=2_000))
    assert detect_kind(tmp_path / "arb") == "agentrewardbench"


@pytest.mark.parametrize("name", ["C:data", "agentrewardbench:copy", "2025-01-01T10:00:00"])
def test_a_path_with_a_colon_is_a_path(
    name: str, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop.rename(tmp_path / name)
    assert parse_source(f"./{name}") == ("trajudge", Path(name))
    assert parse_source(str(tmp_path / name)) == ("trajudge", tmp_path / name)


def test_a_windows_path_that_is_not_there_is_said_as_a_path() -> None:
    with pytest.raises(UserError, match=r"no such file or folder"):
        parse_source(r"C:\data\runs")


def test_a_kind_alone_needs_a_path_unless_it_can_be_fetched() -> None:
    assert parse_source("agentrewardbench") == ("agentrewardbench", None)
    with pytest.raises(UserError, match="write webvoyager:PATH"):
        open_source("webvoyager")


@pytest.mark.parametrize("spec", ["agentrewardbnch", "webvoyger:runs", "browser-gym"])
def test_a_misspelt_kind_gets_the_closest_name(spec: str) -> None:
    with pytest.raises(UserError, match="did you mean") as caught:
        parse_source(spec)
    assert spec in str(caught.value)


@pytest.mark.parametrize("spec", ["trajudge:", "trajudge:/no/such/folder"])
def test_a_kind_with_a_path_that_is_not_there(spec: str) -> None:
    with pytest.raises(UserError, match="no file or folder"):
        parse_source(spec)


def test_a_path_of_no_kind_names_the_kinds(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no known format.*online-mind2web"):
        parse_source(str(tmp_path))


def test_a_loader_without_its_data_is_told_how_to_be_called(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.touch()
    with pytest.raises(UserError, match=r"mine\.py: a loader needs its data: write .*\.py:PATH"):
        parse_source(str(file))


# What lies in TRAJUDGE_REAL_DATA, and the kind that each is detected as.
SAMPLES = {
    "formats/browser_use_0_1": "browser-use",
    "formats/browser_use_0_1/AgentHistoryList.json": "browser-use",
    "formats/browser_use_0_13": "browser-use",
    "formats/browser_use_0_13/run1": "browser-use",
    "formats/inspect_eval": "inspect",
    "formats/message_logs": "messages",
    "formats/osworld_style": "osworld",
    "formats/osworld_style/results": "osworld",
    "formats/playwright_trace": "playwright-trace",
    "formats/webarena_html": "webarena-html",
    "formats/webarena_html/render_4242.html": "webarena-html",
    "fara_trajectory": "fara",
    "webvoyager": "webvoyager",
    "online-mind2web": "online-mind2web",
}


@pytest.mark.real_data
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_taken_by_the_loader_of_its_kind_alone(sample: str, real_data: Path) -> None:
    path = real_data / sample
    if not path.exists():
        pytest.skip(f"{sample} is not in TRAJUDGE_REAL_DATA")
    taken = [kind for kind in KINDS if loader(kind).detect(path)]
    assert taken == [SAMPLES[sample]] if SAMPLES[sample] in KINDS else taken == []


def test_the_registry_imports_no_loader() -> None:
    code = (
        "import sys; from trajudge.trajectories.loaders import KINDS;"
        "sys.exit(any(module in sys.modules for module in KINDS.values()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


TAKING = [kind for kind in KINDS if "needs" in signature(loader(kind).load).parameters]


def _load(kind: str, path: Path, needs: Needs) -> list[Trajectory]:
    load: Any = loader(kind).load
    return [one for one in load(path, accept_all, needs) if isinstance(one, Trajectory)]


def _without_pictures(run: Trajectory) -> dict[str, Any]:
    screenshot = {"observation": {"screenshot"}}
    hidden: Any = {"goal_images": True, "metadata": {"warnings"}, "steps": {"__all__": screenshot}}
    return run.model_dump(exclude=hidden)


def _shots(run: Trajectory) -> list[ImageRef | None]:
    return [step.observation.screenshot for step in run.steps]


def test_every_loader_of_pictures_takes_needs() -> None:
    """Those that do not read no picture at all."""
    assert set(KINDS) - {*TAKING} == {"agentrewardbench-text", "browser-use-answers", "toolcalls"}


@pytest.mark.parametrize("kind", sorted({*TAKING} & {*MADE}))
def test_a_run_read_without_screenshots_differs_in_them_alone(kind: str, tmp_path: Path) -> None:
    """The same steps, and a mark for each picture that was recorded: never "there was none"."""
    MADE[kind](tmp_path)
    whole, bare = (_load(kind, tmp_path, needs) for needs in (EVERYTHING, NO_NEEDS))
    assert whole and [*map(_without_pictures, bare)] == [*map(_without_pictures, whole)]
    recorded = [shot for run in whole for shot in _shots(run) if shot]
    # The made files of AgentRewardBench name screenshots that are not there.
    assert recorded and (kind == "agentrewardbench" or any(not shot.problem for shot in recorded))
    for run, same in zip(whole, bare, strict=True):
        for one, other in zip(_shots(run), _shots(same), strict=True):
            assert (one is None) is (other is None)
            assert other is None or (other.path, other.data) == (None, None)
            assert other is None or "not read" in str(other.problem)


def has_mark(content: bytes) -> bool:
    return b"mark" in content


def test_two_levels_and_twenty_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "x.json").write_text("mark")
    assert not detection.some_file(tmp_path, "*.json", has_mark)
    (tmp_path / "a" / "b" / "x.json").write_text("mark")
    assert detection.some_file(tmp_path, "*.json", has_mark)
    assert not detection.some_file(tmp_path, "*.html", has_mark)
    for number in range(20):
        (tmp_path / f"{number}.json").write_text("other")
    assert not detection.some_file(tmp_path, "*.json", has_mark)
    assert detection.some_file(tmp_path / "a" / "b" / "x.json", "*.txt", has_mark)


def test_only_the_head_of_regular_files_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zeros.json").symlink_to("/dev/zero")
    large = tmp_path / "large.json"
    large.write_bytes(b" " * detection.HEAD_BYTES + b"mark")
    os.truncate(large, 10 * 2**30)
    assert not detection.some_file(tmp_path, "*.json", has_mark)
    assert len(detection.head(large)) == 65_536
    large.write_bytes(b" " * 65_532 + b"mark")
    assert detection.some_file(tmp_path, "*.json", has_mark)
    assert detection.head(tmp_path / "pipe.json") == b""
    assert detection.head(tmp_path) == b""


def test_links_and_hidden_folders_are_passed_over(tmp_path: Path) -> None:
    inside = tmp_path / "data"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.json").write_text("mark")
    (inside / ".git").mkdir(parents=True)
    (inside / ".git" / "x.json").write_text("mark")
    (inside / "link").symlink_to(tmp_path / "outside")
    (inside / "self").symlink_to(inside)
    assert not detection.some_file(inside, "*.json", has_mark)
    assert list(detection.files(inside, "*.json", levels=9)) == []


def test_files_are_searched_by_level_without_links_and_hidden_folders(tmp_path: Path) -> None:
    for name in ("a", "b/b", "b/c/c", "b/c/d/d", ".e/e"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.json").touch()
    (tmp_path / "link").symlink_to(tmp_path / "b", target_is_directory=True)

    def found(**limits: int) -> str:
        return "".join(file.stem for file in detection.files(tmp_path, "*.json", **limits))

    assert [found(levels=levels) for levels in range(4)] == ["a", "ab", "abc", "abcd"]
    assert found() == "abc"
    assert [found(max_folders=most) for most in range(4)] == ["", "a", "ab", "abc"]


@pytest.mark.parametrize(("files", "folders", "is_found"), [
    (20, 0, True), (21, 0, False), (0, 399, True), (0, 400, False),
])  # fmt: skip
def test_a_mark_is_looked_for_in_20_files_and_400_folders(
    tmp_path: Path, files: int, folders: int, is_found: bool
) -> None:
    """The folder itself is one of them."""
    for number in range(files):
        (tmp_path / f"{number:03}.json").write_bytes(b"mark" if number == files - 1 else b"")
    for number in range(folders):
        (tmp_path / f"{number:03}").mkdir()
    if folders:
        (tmp_path / f"{folders - 1:03}" / "a.json").write_bytes(b"mark")
    assert detection.some_file(tmp_path, "*.json", lambda head: head == b"mark") is is_found


def test_reasons_texts_and_numbers() -> None:
    assert detection.reason(ValueError("a\n b")) == "a b"
    assert detection.reason(ValueError("x" * 501)) == "x" * 500
    assert detection.reason(ValueError()) == "ValueError"
    assert [detection.text(value) for value in (5, " ", " a", "\ud800")] == [None, None, " a", "?"]
    values = {"a": 1, "b": True, "c": "1", "d": float("inf"), "e": -1e300, "f": float("nan")}
    assert detection.numbers(values) == {"a": 1.0, "e": -1e300}


def test_an_object_has_300_000_structures_at_most() -> None:
    detection.check_structures(b'[{"a": "[{"}' + b"[" * 299_998)
    with pytest.raises(detection.Damaged, match="more than 300,000 objects and lists"):
        detection.check_structures(b"[{" + b"[" * 299_999)


@pytest.mark.parametrize(
    ("kind", "name", "content", "is_one"),
    [
        ("messages", "a.json", '[{"role": "user", "content": "x"}]', True),
        ("messages", "a.jsonl", '{"role": "user", "content": "x"}', True),
        ("messages", "a.json", '{"messages": [{"role": "user", "content": "x"}]}', True),
        ("messages", "a.json", '{"role": "user", "content": "x"}', False),
        ("messages", "a.json", "[1, 2]", False),
        ("messages", "a.txt", '[{"role": "user", "content": "x"}]', False),
        ("osworld", "other.jsonl", '{"step_num": 1, "action": "a", "response": "r"}', False),
        ("osworld", "traj.jsonl", '{"role": "user", "content": "x"}', False),
    ],
)
def test_a_file_is_known_by_its_name_and_content(
    tmp_path: Path, kind: str, name: str, content: str, is_one: bool
) -> None:
    file = tmp_path / name
    file.write_text(content)
    assert bool(loader(kind).detect(file)) is is_one


def test_conversations_are_looked_for_in_json_files_alone(tmp_path: Path) -> None:
    names = ("a.json", "b.jsonl", "c.json5", "in/d.json", "in/in/e.json", "trajectories.jsonl")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [str(file.relative_to(tmp_path)) for file in messages.log_files(tmp_path)]
    assert found == ["a.json", "b.jsonl", "in/d.json"]
