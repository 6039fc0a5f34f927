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
        "trajudge.rules.audit.webarena",
        "trajudge.rules.audit.weaknesses",
        "trajudge.rules.audit.blind",
        "trajudge.rules.audit.lint",
        "trajudge.rules.audit.mutators",
        "trajudge.rules.audit.mutate",
        "trajudge.rules.evaluate",
        "trajudge.rules.audit.verified.suite",
    ],
)
def test_nothing_slow_is_imported(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {SLOW} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
