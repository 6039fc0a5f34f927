"""Every listed difference between the modes is one, and is of the kind that its reason says."""

from __future__ import annotations

import pytest

from trajudge.rules.audit.verified import EXAMPLES, ReleaseDifference, table, verdicts


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.run)
def test_the_modes_disagree(example: ReleaseDifference) -> None:
    release, sound = verdicts(example)
    assert release != sound


def test_the_table_has_a_row_an_example() -> None:
    assert len(list(table())) == len(EXAMPLES) + 2
