"""Pictures that a record names or holds: found by their last component, or told as problems."""

from __future__ import annotations

import base64
import os
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from trajudge.trajectories.loaders._run import (
    MAX_INLINE_BYTES,
    RunReader,
    RunSource,
    Values,
    plain_name,
)
from trajudge.trajectories.model import ImageRef, TrajectoryKey
from trajudge.util.files import DataFolder


def picture(form: str = "PNG") -> bytes:
    file = BytesIO()
    Image.new("RGB", (4, 4), "red").save(file, form)
    return file.getvalue()


def reader(folder: Path) -> RunReader:
    key = TrajectoryKey(benchmark="b", agent="a", task_id="t")
    return RunReader(RunSource(key, "t", folder, DataFolder(folder)))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run" / "screenshots").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(picture())
    (tmp_path / "run" / "screenshots" / "step_1.png").write_bytes(picture())
    return tmp_path / "run"


FOREIGN = [
    "step_1.png",
    "/home/somebody/.browseruse/agents/1/screenshots/step_1.png",
    "../../elsewhere/step_1.png",
    r"C:\Users\somebody\step_1.png",
    "//server/share/step_1.png",
]


@pytest.mark.parametrize("recorded", FOREIGN)
def test_a_recorded_path_counts_by_its_last_component(recorded: str, run: Path) -> None:
    reading = reader(run)
    found = reading.named_picture(recorded, run / "screenshots", run)
    assert found == ImageRef(path=run / "screenshots" / "step_1.png")
    assert reading.warnings == []


HOSTILE = ["..", "/", "../../", "a\x00.png", "a\n.png", "%2e%2e", "~", "$HOME", "x" * 300]
HOSTILE += ["\ud800.png", "*.png", ". .", "step_1.png|id"]


@pytest.mark.parametrize("recorded", [*HOSTILE, 7, ["step_1.png"], {"a": 1}, True])
def test_what_is_no_file_name_opens_nothing(recorded: object, run: Path) -> None:
    reading = reader(run)
    found = reading.named_picture(recorded, run / "screenshots", run)
    if plain_name(recorded) is None:
        assert reading.warnings[0].endswith("is no file name.")
    assert found is not None
    assert found.problem
    found.model_dump_json()
    "".join(reading.warnings).encode()


def test_a_path_of_the_recorders_disk_is_missing_not_hostile(tmp_path: Path, run: Path) -> None:
    reading = reader(run)
    named = reading.named_picture(str(tmp_path / "secret.png"), run)
    assert named is not None
    assert str(named.problem).endswith("is missing")
    assert reading.warnings == ["The screenshot secret.png is missing."]


def test_links_out_pipes_and_folders_are_told(tmp_path: Path, run: Path) -> None:
    (run / "link.png").symlink_to(tmp_path / "secret.png")
    (run / "device.png").symlink_to("/dev/zero")
    (run / "folder.png").mkdir()
    os.mkfifo(run / "pipe.png")
    expected = {
        "link.png": "leads out of the folder",
        "device.png": "leads out of the folder",
        "folder.png": "is not a file",
        "pipe.png": "is not a file",
    }
    for name, problem in expected.items():
        named = reader(run).named_picture(name, run / "screenshots", run)
        assert named is not None
        assert str(named.problem).endswith(problem)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("label", ["", "data:image/png;base64,", "data:;BASE64,"])
def test_the_bytes_say_what_an_inline_picture_is(form: str, label: str) -> None:
    text = label + base64.b64encode(picture(form)).decode()
    for written in (text, text.rstrip("="), text[:30] + "\n " + text[30:]):
        assert Values().inline_picture(written, "of step 1") == ImageRef(data=picture(form))


BAD = {
    "data:image/png,plain": "is a data URL without base64",
    "not base64!": "is no base64",
    "data:image/png;base64,": "is empty (zero bytes)",
    base64.b64encode(b"hello").decode(): "is not a PNG, JPEG, GIF or WebP image",
    "\ud800": "is no base64",
}


@pytest.mark.parametrize("value", BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_bad_inline_picture_costs_the_picture_and_a_warning(value: str) -> None:
    values = Values()
    found = values.inline_picture(value, "of step 3")
    assert found == ImageRef(problem=f"the picture of step 3 {BAD[value]}")
    assert values.warnings == [f"The picture of step 3 {BAD[value]}."]


@pytest.mark.parametrize("length", [2 * MAX_INLINE_BYTES, MAX_INLINE_BYTES * 4 // 3 + 8])
def test_an_inline_picture_may_be_too_large(length: int) -> None:
    values = Values()
    found = values.inline_picture("A" * length, "of step 3")
    assert found == ImageRef(problem="the picture of step 3 is larger than 20 MiB")
    assert values.warnings == ["The picture of step 3 is larger than 20 MiB."]


@pytest.mark.parametrize("value", [7, True, [], {"a": 1}])
def test_what_is_no_text_is_no_picture(value: object) -> None:
    found = Values().inline_picture(value, "of step 3")
    assert found is not None
    assert found.problem == "the picture of step 3 is no text"


@pytest.mark.parametrize("value", [None, ""])
def test_no_picture_is_none(value: object) -> None:
    assert reader(Path()).inline_picture(value, "of step 3") is None
    assert reader(Path()).named_picture(value) is None
