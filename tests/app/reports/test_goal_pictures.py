"""The pictures of a case's goal stand below its words: the verdict rests on them, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.browsing import launched
from tests.app.made_runs import Task, png, write_run
from trajudge.eval.cli import main as trajudge
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Trajectory

ALT = 'alt="Picture 1 of the goal"'


def report(folder: Path, *words: str) -> Path:
    """Write the report of one wrong verdict on a goal with two pictures, the second unreadable."""
    run, data = write_run(folder, [Task("like-this", False, True)]), folder / "data"
    [made] = [one for one in store.read(data) if isinstance(one, Trajectory)]
    pictures = (ImageRef(data=png(1_200, 600, shade=200)), ImageRef(problem="gone"))
    (data / "trajectories.jsonl").unlink()
    store.write(data, [made.model_copy(update={"goal_images": pictures})])
    out = () if "--folder" in words else ("--out", str(folder / "report.html"))
    assert trajudge(["report", "--baselines", "off", str(run), *words, *out]) == 0
    return folder / "report.html"


def test_each_is_shown_or_why_it_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = report(tmp_path).read_text()
    assert page.count(ALT) == 1
    assert "Picture 2 of the goal cannot be shown: <bdi>it was lost before</bdi>" in page
    assert page.count("data:image/webp") == 2, "and the screenshot"
    assert "2 pictures" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--no-images"], ["--redact", "goals"], ["--redact", "urls"]])
def test_none_is_where_pictures_or_goals_are_left_out(tmp_path: Path, words: list[str]) -> None:
    page = report(tmp_path, *words).read_text()
    assert "of the goal" not in page
    assert "data:image/webp" not in page


def test_in_a_folder_they_are_files(tmp_path: Path) -> None:
    report(tmp_path, "--folder", str(tmp_path / "page"))
    assert len(list((tmp_path / "page" / "img").iterdir())) == 2
    assert ALT in (tmp_path / "page" / "index.html").read_text()


def test_what_does_not_fit_is_left_out_from_the_first_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = report(tmp_path).stat().st_size
    bare = report(tmp_path / "bare", "--no-images").stat().st_size
    capsys.readouterr()
    page = report(tmp_path / "small", "--max-size", f"{(bare + 450) / 1e6:.6f}")
    assert page.stat().st_size <= bare + 450 < whole
    assert "Picture 1 of the goal left out: the file would be too large." in page.read_text()
    assert "3 pictures did not fit" in capsys.readouterr().out


@pytest.mark.browser
def test_they_fit_a_telephone(chromium: Path, tmp_path: Path) -> None:
    file = report(tmp_path)
    with launched(chromium) as browser:
        page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
        page.goto(file.as_uri())
        picture = page.locator(".asked img")
        picture.scroll_into_view_if_needed()
        assert picture.evaluate("i => i.decode().then(() => i.naturalWidth)") == 900
        box = picture.bounding_box()
        assert box and 0 < box["width"] <= 320
        assert box["width"] == pytest.approx(2 * box["height"], rel=0.02)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
