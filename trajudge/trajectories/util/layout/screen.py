"""The size of a screen that everything shown first fits."""

from __future__ import annotations

COLUMNS, LINES = 100, 40
