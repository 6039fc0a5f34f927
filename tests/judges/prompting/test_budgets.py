"""The budget after a server's refusal: by its own numbers, and a little below them."""

from __future__ import annotations

import pytest

from trajudge.judges.adapters.errors import ContextOverflow
from trajudge.judges.prompting import budget_after_overflow


@pytest.mark.parametrize(
    ("prompt", "counted", "budget"), [(5000, 5000, 2760), (5000, 4000, 2208), (2000, 4000, 3680)]
)
def test_a_prompt_of_that_budget_fits_the_window_told(
    prompt: int, counted: int, budget: int
) -> None:
    said = (
        "This model's maximum context length is 4000 tokens. However, you requested "
        f"{prompt + 1000} tokens ({prompt} in the messages, 1000 in the completion)."
    )
    assert budget_after_overflow(ContextOverflow(said), counted) == budget
