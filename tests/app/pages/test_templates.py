"""No template lets text through unescaped, and no page needs what its policy refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

APP = Path(__file__).parents[3] / "trajudge" / "app"
TEMPLATES = sorted((APP / "templates").rglob("*.html"))
# The report is one file: its style and script stand in it, allowed by their hashes.
ONE_FILE = {"report.html"}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_escapes_and_has_nothing_inline(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe\b|autoescape|Markup", text)
    assert not re.search(r"<[^>{]*\s(on\w+|style|hx-on[^=]*|hx-vals|srcdoc)\s*=", text)
    assert "javascript:" not in text
    if template.name not in ONE_FILE:
        assert not re.search(r"<style|<script(?![^>]*\ssrc=)", text)


def test_nothing_is_fetched_from_elsewhere() -> None:
    for path in (APP / "static").iterdir():
        if path.suffix in (".css", ".js") and path.name != "htmx.min.js":
            assert not re.search(r"//\w|url\(", path.read_text().replace("\n//", "\n")), path.name


def test_the_environment_escapes() -> None:
    from trajudge.app.rendering import templates

    shown = templates().from_string("{{ text }} {{ text|visible }}").render(text="<b>'\"&")
    assert "<b>" not in shown
