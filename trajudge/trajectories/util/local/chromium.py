"""Which Chromium of this machine is used."""

from __future__ import annotations

import shutil

# The shell is the same engine without windows, and takes less CPU.
CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def installed_chromium() -> str | None:
    """Return the path of the first of ``CHROMIUMS`` on the PATH, or None."""
    paths = map(shutil.which, CHROMIUMS)
    return next((path for path in paths if path is not None), None)
