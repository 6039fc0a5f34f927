"""A group with members that have no value."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.cases import key
from trajudge.rewards.abstaining import Abstained, values_of
from trajudge.rewards.reward import Reward


def group(*values: float | None) -> list[Reward]:
    return [
        Reward(
            key=key(i), value=value, abstained="" if value is not None else "late", judge="j",
            version="v",
        )
        for i, value in enumerate(values)
    ]  # fmt: skip


def test_a_neutral_member_has_no_advantage_and_moves_no_mean() -> None:
    values = np.array(values_of(group(1, 0, None, 1), "neutral"), dtype=float)
    assert values == pytest.approx([1, 0, 2 / 3, 1])
    assert values.mean() == pytest.approx(2 / 3)


def test_what_a_group_without_any_value_gets() -> None:
    assert values_of(group(None, None), "neutral", base_rate=0.3) == [0.3, 0.3]
    with pytest.raises(Abstained, match="no base rate"):
        values_of(group(None, None), "neutral")


def test_the_other_policies() -> None:
    assert values_of(group(1, None), "none") == [1, None]
    assert values_of(group(1, 0), "raise") == [1, 0]
    with pytest.raises(Abstained, match=r"webarena/agent/webarena\.1: late"):
        values_of(group(1, None), "raise")
