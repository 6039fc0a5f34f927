"""Themes: different documents in the same words' meaning, and no two labels that read the same."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import pytest

from trajudge.environments.apps import APPS, load_app
from trajudge.environments.kit.palettes import PALETTES, Palette, luminance
from trajudge.environments.kit.theme import name_of, printable, theme, wordings
from trajudge.environments.kit.words import WORDS
from trajudge.environments.model.page import Word

ALL = [theme(index, seed) for seed in range(4) for index in range(12)]


def test_no_two_themes_of_a_seed_share_their_structure_or_colours() -> None:
    for seed in range(20):
        looks = [theme(index, seed) for index in range(12)]
        assert len({(look.items, look.nav, look.choice) for look in looks}) == 12
        assert len({look.palette for look in looks}) == 12


def test_every_layout_is_used() -> None:
    for axis in ("items", "nav", "choice", "labels", "density", "order", "buttons", "voice"):
        assert len({getattr(look, axis) for look in ALL}) >= 2, axis


def test_themes_depend_on_the_seed() -> None:
    assert len({(look.items, look.nav, look.palette, look.voice) for look in ALL}) > 40


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_every_text_can_be_read_on_its_ground(palette: Palette) -> None:
    for ground in (palette.ground, palette.surface):
        for text in (palette.text, palette.quiet, palette.accent):
            assert contrast(text, ground) >= 4.5, (text, ground)
    assert contrast(palette.on_accent, palette.accent) >= 4.5


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_luminance_is_that_of_the_standard() -> None:
    assert luminance("#000000") == 0
    assert luminance("#ffffff") == pytest.approx(1)
    assert luminance("#808080") == pytest.approx(0.2159, abs=1e-4)


@pytest.mark.parametrize("name", APPS)
def test_no_two_words_of_an_application_read_the_same(name: str) -> None:
    app = load_app(name)
    for look in ALL:
        words = wordings(app, look)
        assert words.keys() == {*WORDS, *app.words}
        assert len({wording.casefold() for wording in words.values()}) == len(words)
        for key, wording in words.items():
            assert wording in {**WORDS, **app.words}[key]


@pytest.mark.parametrize("name", APPS)
def test_wordings_differ_between_themes(name: str) -> None:
    app = load_app(name)
    told = {tuple(wordings(app, theme(index, 0)).values()) for index in range(12)}
    assert len(told) == 12


def test_words_that_collide_take_other_synonyms() -> None:
    app = dataclasses.replace(
        load_app("shop"), words={"a": ("One", "Two"), "b": ("one", "Three"), "c": ("Three", "Two")}
    )
    for look in ALL:
        words = wordings(app, look)
        assert len({words[key].casefold() for key in "abc"}) == 3


def test_words_that_cannot_be_told_apart_are_named() -> None:
    app = dataclasses.replace(load_app("shop"), words={"big": ("Size",), "wide": ("size",)})
    with pytest.raises(ValueError, match=r"'shop': .* 'wide' and 'big' apart"):
        wordings(app, theme(0, 0))


def test_the_name_of_a_control() -> None:
    words = {"remove": "Take out"}
    assert name_of("Oak  Mug\n", words) == "Oak Mug"
    assert name_of(Word("remove"), words) == "Take out"
    assert name_of(Word("remove", "Oak Mug"), words) == "Take out Oak Mug"
    assert name_of("a\x00b", words) == "a\ufffdb"
    with pytest.raises(KeyError):
        name_of(Word("add"), words)


def test_printable_text_is_left_alone() -> None:
    assert printable("tab\tline\nÜ 日本 🎈 \u00a0") == "tab\tline\nÜ 日本 🎈 \u00a0"
    assert printable("\x00\x1b\ud800\uffff") == "\ufffd" * 4


SCRIPT = """
from hashlib import sha256
from trajudge.environments.apps import load_app
from trajudge.environments.kit.chart import draw
from trajudge.environments.model.page import Chart
from trajudge.environments.kit.style import stylesheet
from trajudge.environments.kit.theme import theme, wordings
chart = Chart("Title", "pie", ("a", "b"), (1.0, 2.0))
for index in range(12):
    look = theme(index, 3)
    picture = sha256(draw(chart, look)).hexdigest()
    sheet = stylesheet(look, "till")
    print(look, sorted(wordings(load_app("shop"), look).items()), sheet, picture)
"""


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_in_every_process() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
