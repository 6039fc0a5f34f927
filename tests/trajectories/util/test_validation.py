"""A refused value is named in one line."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, ValidationError

from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.validation import first_error


class Bounded(BaseModel):
    score: float = Field(ge=0, le=1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"benchmark":"b","agent":"a","task_id":"t","attempt":-1}', "attempt is -1 (Input"),
        ("3", "the line is 3 (Input"),
        ("", "the line is not JSON (EOF while parsing a value at line 1"),
        ('{"benchmark":"b', "the line is not JSON (EOF while parsing a string at line 1"),
    ],
)
def test_field_value_and_reason(content: str, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TrajectoryKey.model_validate_json(content)
    assert first_error(refused.value, "the line").startswith(said)


def test_a_number_that_is_none_is_not_said_to_be_out_of_bounds() -> None:
    """NaN is neither below a limit nor above it, and the first limit would be named."""
    with pytest.raises(ValidationError) as refused:
        Bounded.model_validate_json('{"score":NaN}')
    assert first_error(refused.value, "the line") == "score is nan (it is no number)"


def test_a_long_value_is_cut() -> None:
    content = '{"benchmark":"b","agent":"a","task_id":"t","attempt":"%s"}' % ("x" * 5000)
    with pytest.raises(ValidationError) as refused:
        TrajectoryKey.model_validate_json(content)
    assert len(first_error(refused.value, "the line")) < 300
