"""WebArena Verified as the released package 1.2.3 evaluates it, for comparison with its results.

Written from the package's observed behaviour, its defects included; what it calls an *error* is
``ReleaseError`` here and scores 0, as there.
"""

from __future__ import annotations


class ReleaseError(Exception):
    """Where the package raises: the task has status error, whatever the other checks say."""
