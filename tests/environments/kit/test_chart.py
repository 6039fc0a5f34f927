"""Charts: the picture tells the values, by its axis or by sizes, and nothing else does."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageColor

from trajudge.environments.kit.chart import HEIGHT, WIDTH, draw, ticks
from trajudge.environments.kit.theme import theme
from trajudge.environments.model.page import Chart

LABELS = ("October", "November", "December", "January")
LOOK = theme(0, 0)
NUMBERS = st.floats(-1e9, 1e9, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-3)
KINDS: tuple[Literal["bars", "line", "pie"], ...] = ("bars", "line", "pie")


def pixels(chart: Chart) -> Image.Image:
    return Image.open(io.BytesIO(draw(chart, LOOK))).convert("RGB")


def runs(picture: Image.Image, colour: str) -> list[int]:
    """The heights of the bars of a colour, from left to right."""
    wanted = ImageColor.getrgb(colour)
    columns = [
        sum(picture.getpixel((x, y)) == wanted for y in range(50, HEIGHT - 68))
        for x in range(WIDTH)
    ]
    return [now for before, now in pairwise(columns) if now and not before]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_chart_gives_the_same_bytes(kind: Literal["bars", "line", "pie"]) -> None:
    chart = Chart("Sales", kind, LABELS, (1.0, 2.0, 3.0, 4.0))
    assert draw(chart, LOOK) == draw(chart, LOOK)
    assert pixels(chart).size == (WIDTH, HEIGHT)
    assert draw(chart, LOOK) != draw(chart._replace(values=(1.0, 2.0, 4.0, 3.0)), LOOK)


def test_bars_are_as_high_as_their_values() -> None:
    heights = runs(pixels(Chart("Sales", "bars", LABELS, (10, 20, 40, 30))), LOOK.palette.accent)
    assert len(heights) == 4
    unit = heights[0]
    assert heights == pytest.approx([unit, 2 * unit, 4 * unit, 3 * unit], abs=4)


def test_slices_are_as_wide_as_their_values() -> None:
    picture = pixels(Chart("Shares", "pie", ("a", "b"), (1, 3))).crop((0, 40, 320, HEIGHT))
    counts = sorted((count for count, _ in picture.getcolors(1 << 20) or ()), reverse=True)
    ground, three, one = counts[:3]
    assert three / one == pytest.approx(3, rel=0.05)
    assert ground


@given(st.lists(NUMBERS, min_size=1, max_size=12), st.booleans())
def test_ticks_are_evenly_spread_round_and_span_the_values(
    values: list[float], from_zero: bool
) -> None:
    marks = ticks(values, from_zero=from_zero)
    assert 2 <= len(marks) <= 13
    step = marks[1] - marks[0]
    slack = step * 1e-6
    assert marks[0] <= min(values) + slack
    assert marks[-1] >= max(values) - slack
    assert [b - a for a, b in pairwise(marks)] == pytest.approx([step] * (len(marks) - 1))
    if from_zero:
        assert any(abs(mark) < slack for mark in marks)


@pytest.mark.parametrize(
    ("values", "first", "step", "last"),
    [
        ([97, 99], 97, 0.2, 99),
        ([5, 10], 5, 0.5, 10),  # half of the largest is not far enough below it for a zero
        ([4.9, 10], 0, 1, 10),
        ([-5, 5], -5, 1, 5),
        ([7], 6.6, 0.1, 7.4),  # a twentieth of it, to both sides
        ([0], 0, 0.1, 1),
    ],
)
def test_an_axis_has_ten_round_steps_or_a_few_less(
    values: list[float], first: float, step: float, last: float
) -> None:
    marks = ticks(values, from_zero=False)
    assert marks == pytest.approx([first + step * n for n in range(len(marks))])
    assert marks[-1] == pytest.approx(last)


def test_a_title_keeps_to_its_margins() -> None:
    picture = pixels(Chart("W" * 200, "bars", LABELS, (1, 2, 3, 4)))
    for left, is_empty in ((WIDTH - 20, True), (WIDTH - 60, False)):
        colours = picture.crop((left, 10, WIDTH, 34)).getcolors() or []
        assert (len(colours) == 1) is is_empty


def test_an_axis_of_bars_begins_at_zero() -> None:
    assert ticks([97, 99], from_zero=True)[0] == 0
    assert ticks([97, 99], from_zero=False)[0] > 90
    assert ticks([13.2, 12.25, 9.4], from_zero=True) == [0, 2, 4, 6, 8, 10, 12, 14]


@given(
    st.sampled_from(KINDS),
    st.lists(st.tuples(st.text(max_size=40), NUMBERS), max_size=14),
    st.text(max_size=80),
)
def test_any_chart_can_be_drawn(
    kind: Literal["bars", "line", "pie"], parts: list[tuple[str, float]], title: str
) -> None:
    labels, values = tuple(label for label, _ in parts), tuple(value for _, value in parts)
    assert pixels(Chart(title, kind, labels, values)).size == (WIDTH, HEIGHT)
