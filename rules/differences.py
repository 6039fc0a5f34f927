"""Writes DIFFERENCES.md: every difference between the two modes, by examples that were just run.

``python -m rules.differences`` rewrites the file; a test holds it in step.
"""

from __future__ import annotations

from pathlib import Path

from rules.values import differences as values
from rules.verified import differences as verified

PATH = Path(__file__).with_name("DIFFERENCES.md")

_HEAD = """\
# How `sound` differs from `release-1.2.3`

`sound` is the default. `release-1.2.3` does what version 1.2.3 of the published package does, for
comparison with published results. Both columns of verdicts are computed from the examples by
`python -m rules.differences`.

## Values
"""

_RUNS = "\n## Runs\n"


def document() -> str:
    """The whole file."""
    return "\n".join([_HEAD, *values.table(), _RUNS, *verified.table(), ""])


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
