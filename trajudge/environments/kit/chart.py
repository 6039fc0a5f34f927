"""A chart as a picture: values are to be read off its axis, or judged by the size of a part."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from trajudge.environments.kit.theme import Theme
from trajudge.environments.model.page import Chart

WIDTH, HEIGHT = 540, 360  # small enough to be read on a telephone
_RIGHT, _TOP, _BOTTOM = WIDTH - 16, 52, HEIGHT - 66
_DISC = 280
_LEGEND = 330  # where the legend of a pie begins
_TICKS = 10
# Told apart with colour blindness too, on dark and light grounds.
_PARTS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb8855", "#888888")


def draw(chart: Chart, look: Theme) -> bytes:
    """Return the chart as PNG: the same bytes for the same chart and theme."""
    picture = Image.new("RGB", (WIDTH, HEIGHT), look.palette.surface)
    pen = ImageDraw.Draw(picture)
    pen.text((20, 14), _fitting(chart.title, WIDTH - 40, 18), look.palette.text, _font(18))
    if chart.kind == "pie":
        _pie(picture, chart, look)
    else:
        _axes(pen, chart, look)
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=3)
    return file.getvalue()


def ticks(values: Sequence[float], *, from_zero: bool) -> list[float]:
    """Round numbers at equal distances that span the values: at most thirteen."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    near, far = sorted((abs(low), abs(high)))
    if from_zero or low * high < 0 or near < far / 2:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= far * 1e-6:  # a single value
        low, high = (low, 1.0) if far == 0 else (low - far * 0.05, high + far * 0.05)
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


@lru_cache(maxsize=8)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)  # Pillow's own, the same on every machine


def _fitting(text: str, width: float, size: int) -> str:
    """Return the text, cut with an ellipsis where it is too long."""
    text = " ".join(text.split())[:200]
    if _font(size).getlength(text) <= width:
        return text
    while text and _font(size).getlength(text + "...") > width:
        text = text[:-1]
    return text + "..."


def _axes(pen: ImageDraw.ImageDraw, chart: Chart, look: Theme) -> None:
    marks = ticks(chart.values, from_zero=chart.kind == "bars")
    scale = (_BOTTOM - _TOP) / (marks[-1] - marks[0])
    quiet, line, accent = look.palette.quiet, look.palette.line, look.palette.accent

    def height(value: float) -> float:
        return _BOTTOM - (value - marks[0]) * scale

    labels = [_fitting(f"{mark:,.6f}".rstrip("0").rstrip("."), 140, 15) for mark in marks]
    left = 20 + max(_font(15).getlength(text) for text in labels)
    for mark, text in zip(marks, labels, strict=True):
        y = round(height(mark))
        pen.line((left, y, _RIGHT, y), line)
        pen.text((left - 8, y), text, quiet, _font(15), anchor="rm")
    slot = (_RIGHT - left) / max(1, len(chart.values))
    centres = [left + slot * (place + 0.5) for place in range(len(chart.values))]
    if chart.kind == "bars":
        base = height(0)
        for x, value in zip(centres, chart.values, strict=True):
            top, foot = sorted((height(value), base))
            pen.rectangle((x - slot * 0.32, top, x + slot * 0.32, foot), accent)
    else:
        points = [(x, height(value)) for x, value in zip(centres, chart.values, strict=True)]
        pen.line(points, accent, 3, joint="curve")
        for across, down in points:
            pen.ellipse((across - 5, down - 5, across + 5, down + 5), accent)
    pen.line((left, _BOTTOM, _RIGHT, _BOTTOM), quiet, 2)
    _categories(pen, chart.labels, centres, slot, look)


def _categories(
    pen: ImageDraw.ImageDraw, labels: Sequence[str], centres: Sequence[float], slot: float,
    look: Theme,
) -> None:  # fmt: skip
    """Draw the labels below the axis, in up to three rows by turns where one row is too narrow."""
    widest = max((_font(15).getlength(label) for label in labels), default=0)
    rows = next((rows for rows in (1, 2) if widest <= slot * rows - 6), 3)
    for place, (label, centre) in enumerate(zip(labels, centres, strict=True)):
        text = _fitting(label, slot * rows - 6, 15)
        half = _font(15).getlength(text) / 2 + 4
        inside = min(max(centre, half), WIDTH - half)
        at = (inside, _BOTTOM + 14 + 19 * (place % rows))
        pen.text(at, text, look.palette.text, _font(15), anchor="mm")


def _pie(picture: Image.Image, chart: Chart, look: Theme) -> None:
    pen = ImageDraw.Draw(picture)
    shares = [max(0.0, value) for value in chart.values]
    total, size = sum(shares) or 1.0, _DISC
    disc = Image.new("RGB", (size * 2, size * 2), look.palette.surface)  # halved: smooth edges
    brush, start = ImageDraw.Draw(disc), -90.0
    for place, share in enumerate(shares):
        end = start + 360 * share / total
        if share:
            fill = _PARTS[place % len(_PARTS)]
            box = (4, 4, size * 2 - 4, size * 2 - 4)
            brush.pieslice(box, start, end, fill, look.palette.surface, 3)
        start = end
    picture.paste(disc.reduce(2), (24, _TOP))
    for place, label in enumerate(chart.labels):
        y = _TOP + 14 + place * min(30, _DISC // max(1, len(chart.labels)))
        pen.rectangle((_LEGEND, y - 8, _LEGEND + 16, y + 8), _PARTS[place % len(_PARTS)])
        text = _fitting(label, WIDTH - _LEGEND - 42, 16)
        pen.text((_LEGEND + 26, y), text, look.palette.text, _font(16), anchor="lm")
