"""The documentation's pictures are those of the application as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tests.app.browsing import launched
from tests.app.pictures import NAMES, SIZE, make_pictures

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.browser
@pytest.mark.slow
def test_every_picture_is_made_of_the_sample_and_shown(chromium: Path, tmp_path: Path) -> None:
    with launched(chromium) as browser:
        make_pictures(browser, tmp_path / "pictures", tmp_path)
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    for name in NAMES:
        with Image.open(tmp_path / "pictures" / f"{name}.png") as made:
            assert made.size == SIZE
            assert len(made.convert("L").getcolors() or ()) > 8, "the page is not empty"
        with Image.open(DOCS / "pictures" / f"{name}.png") as shown:
            assert shown.size == SIZE
        assert f"(pictures/{name}.png)" in pages
