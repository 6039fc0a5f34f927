"""The findings of one or several runs on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trajudge.eval.checking.check import RunCheck
from trajudge.eval.checking.findings import GRAVITIES
from trajudge.trajectories.util.layout.screen import LINES
from trajudge.trajectories.util.tables import folded, screen_width
from trajudge.trajectories.util.terminal import count_of, one_line


def check_screen(checks: Sequence[RunCheck]) -> str:
    """Say of every run whether it may be compared, then its findings; one screen at most."""
    width = screen_width()
    lines: list[str] = []
    for check in checks:
        lines += folded(one_line(_verdict(check)), width, most=2)
        for finding in check.findings:
            text = f"  {finding.severity}: {finding.name}: {one_line(finding.text)}"
            lines += folded(text, width, most=3)
    if len(lines) >= LINES:
        cut = len(lines) - LINES + 1
        lines = [*lines[: LINES - 1], f"and {count_of(cut, 'more line')}: --json"]
    return "\n".join(lines) + "\n"


def _verdict(check: RunCheck) -> str:
    counts = Counter(finding.severity for finding in check.findings)
    listed = ", ".join(count_of(counts[each], each) for each in GRAVITIES if counts[each])
    verdict = "may be compared" if check.comparable else "may not be compared"
    judged = count_of(check.judgments, "judgment")
    return f"{check.run}: {check.judge}, {judged}: {verdict} ({listed or 'ok'})"
