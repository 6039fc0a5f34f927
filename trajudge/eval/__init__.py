"""Commands and numbers: judge (the main job), score, and the metrics behind their tables.

The benchmarks' own rules are judges of this room, because judges may not import rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trajudge.judges.providers import register_judges

if TYPE_CHECKING:
    from trajudge.judges.entry import JudgeEntry


def _rule_judges() -> Mapping[str, JudgeEntry]:
    from trajudge.eval.rules_judge import ENTRIES  # noqa: PLC0415 - only where judges are listed

    return ENTRIES


register_judges(_rule_judges)
