"""Errors that a user can mend travel between processes."""

from __future__ import annotations

import pickle

import pytest

from trajudge.util.errors import MissingExtra, UserError


@pytest.mark.parametrize("error", [UserError("mend it"), MissingExtra("x", "y", "z")])
def test_a_worker_hands_its_error_to_the_parent(error: UserError) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
