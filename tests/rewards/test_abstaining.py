"""A group with members that have no value."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.cases import key
from trajudge.rewards.reward import Abstained, Reward, neutral_values


def group(*values: float | None) -> list[Reward]:
    return [
        Reward(
            key=key(i), value=value, abstained="" if value is not None else "late", judge="j",
            version="v",
        )
        for i, value in enumerate(values)
    ]  # fmt: skip


def test_a_neutral_member_has_no_advantage_and_moves_no_mean() -> None:
    values = np.array(neutral_values(group(1, 0, None, 1)))
    assert values == pytest.approx([1, 0, 2 / 3, 1])
    assert values.mean() == pytest.approx(2 / 3)


def test_what_a_group_without_any_value_gets() -> None:
    assert neutral_values(group(None, None), base_rate=0.3) == [0.3, 0.3]
    with pytest.raises(Abstained, match=r"webarena/agent/webarena\.0: late .* no neutral value"):
        neutral_values(group(None, None))


def test_a_group_with_all_values_stays_as_it_is() -> None:
    assert neutral_values(group(1, 0)) == [1, 0]
