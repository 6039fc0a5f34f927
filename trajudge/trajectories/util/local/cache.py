"""The user's folder for what can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/trajudge``, or ``~/.cache/trajudge``. Raises RuntimeError for a user
    without a home."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "trajudge"
