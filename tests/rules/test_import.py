"""Rules start at once: importing them loads neither pydantic nor a numeric library."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = ("pydantic", "numpy", "scipy", "rich", "asyncio")


@pytest.mark.parametrize(
    "module",
    [
        "trajudge.rules.verdict",
        "trajudge.rules.webarena",
        "trajudge.rules.webarena.suite",
        "trajudge.rules.weaknesses",
        "trajudge.rules.blind.__main__",
        "trajudge.rules.lint",
        "trajudge.rules.mutation.mutators",
        "trajudge.rules.mutate",
        "trajudge.rules.evaluate",
        "trajudge.rules.verified.audit.suite",
    ],
)
def test_nothing_slow_is_imported(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {SLOW} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
