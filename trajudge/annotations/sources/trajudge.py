"""Labels in the project's own format, see ``annotations.store``."""

from __future__ import annotations

from trajudge.annotations.store import detect, load

__all__ = ["detect", "load"]
