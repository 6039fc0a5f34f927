"""Pictures that a record names or holds: found by their last component, or told as problems."""

from __future__ import annotations

import base64
import os
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from trajudge.trajectories.loaders._files import (
    MAX_INLINE_BYTES,
    find_file,
    inline_picture,
    named_picture,
    plain_name,
)
from trajudge.trajectories.model import ImageRef
from trajudge.util.files import DataFolder


def picture(form: str = "PNG") -> bytes:
    file = BytesIO()
    Image.new("RGB", (4, 4), "red").save(file, form)
    return file.getvalue()


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
    warnings: list[str] = []
    folders, data = [run / "screenshots", run], DataFolder(run)
    found = named_picture(recorded, folders, data, warnings)
    assert found == ImageRef(path=run / "screenshots" / "step_1.png")
    assert find_file(recorded, folders, data) == run / "screenshots" / "step_1.png"
    assert warnings == []


HOSTILE = ["..", "/", "../../", "a\x00.png", "a\n.png", "%2e%2e", "~", "$HOME", "x" * 300]
HOSTILE += ["\ud800.png", "*.png", ". .", "step_1.png|id"]


@pytest.mark.parametrize("recorded", [*HOSTILE, 7, ["step_1.png"], {"a": 1}, True])
def test_what_is_no_file_name_opens_nothing(recorded: object, run: Path) -> None:
    warnings: list[str] = []
    found = named_picture(recorded, [run / "screenshots", run], DataFolder(run), warnings)
    if plain_name(recorded) is None:
        assert warnings[0].endswith("is no file name.")
    assert found is not None
    assert found.problem
    found.model_dump_json()
    "".join(warnings).encode()


def test_a_path_of_the_recorders_disk_is_missing_not_hostile(tmp_path: Path, run: Path) -> None:
    warnings: list[str] = []
    named = named_picture(str(tmp_path / "secret.png"), [run], DataFolder(run), warnings)
    assert named is not None
    assert str(named.problem).endswith("is missing")
    assert warnings == ["The screenshot secret.png is missing."]
    assert find_file(str(tmp_path / "secret.png"), [run], DataFolder(run)) is None


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
        named = named_picture(name, [run / "screenshots", run], DataFolder(run), [])
        assert named is not None
        assert str(named.problem).endswith(problem)
        assert find_file(name, [run], DataFolder(run)) is None


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("label", ["", "data:image/png;base64,", "data:;BASE64,"])
def test_the_bytes_say_what_an_inline_picture_is(form: str, label: str) -> None:
    text = label + base64.b64encode(picture(form)).decode()
    for written in (text, text.rstrip("="), text[:30] + "\n " + text[30:]):
        assert inline_picture(written, "of step 1", []) == ImageRef(data=picture(form))


BAD = {
    "data:image/png,plain": "is a data URL without base64",
    "not base64!": "is no base64",
    "data:image/png;base64,": "is empty (zero bytes)",
    base64.b64encode(b"hello").decode(): "is not a PNG, JPEG, GIF or WebP image",
    "\ud800": "is no base64",
}


@pytest.mark.parametrize("value", BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_bad_inline_picture_costs_the_picture_and_a_warning(value: str) -> None:
    warnings: list[str] = []
    found = inline_picture(value, "of step 3", warnings)
    assert found == ImageRef(problem=f"the picture of step 3 {BAD[value]}")
    assert warnings == [f"The picture of step 3 {BAD[value]}."]


@pytest.mark.parametrize("length", [2 * MAX_INLINE_BYTES, MAX_INLINE_BYTES * 4 // 3 + 8])
def test_an_inline_picture_may_be_too_large(length: int) -> None:
    warnings: list[str] = []
    found = inline_picture("A" * length, "of step 3", warnings)
    assert found == ImageRef(problem="the picture of step 3 is larger than 20 MiB")
    assert warnings == ["The picture of step 3 is larger than 20 MiB."]


@pytest.mark.parametrize("value", [7, True, [], {"a": 1}])
def test_what_is_no_text_is_no_picture(value: object) -> None:
    found = inline_picture(value, "of step 3", [])
    assert found is not None
    assert found.problem == "the picture of step 3 is no text"


@pytest.mark.parametrize("value", [None, ""])
def test_no_picture_is_none(value: object) -> None:
    assert inline_picture(value, "of step 3", []) is None
    assert named_picture(value, [], DataFolder(Path()), []) is None
