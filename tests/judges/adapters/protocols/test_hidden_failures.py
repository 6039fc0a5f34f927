"""An error that a gateway hid in a 200: its code decides, then its words, else it may pass."""

from __future__ import annotations

import pytest

from trajudge.judges.adapters import errors
from trajudge.judges.adapters.failures import ErrorBody, hidden_failure


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ErrorBody("no such option", "400"), errors.BadRequest),
        (ErrorBody("This model's maximum context length is 4096 tokens"), errors.ContextOverflow),
        (ErrorBody("upstream failed"), errors.Overloaded),
    ],
)
def test_a_hidden_error_is_of_the_kind_it_tells(
    error: ErrorBody, kind: type[errors.CallFailed]
) -> None:
    assert type(hidden_failure(error, where="x", key_variable="KEY", model="m")) is kind
