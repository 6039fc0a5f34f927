"""One label of several annotations of a trajectory."""

from __future__ import annotations

import pytest

from tests.eval.cases import label
from trajudge.annotations.model import Annotation, Role, primary_labels


def by(annotator: str, success: bool, role: Role = Role.PRIMARY) -> Annotation:
    return label(1, success).model_copy(update={"annotator": annotator, "role": role})


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        pytest.param([by("ann", True), by("bob", False)], True, id="the first opinion"),
        pytest.param([by("ann", True), by("ann", False)], False, id="a correction"),
        pytest.param(
            [by("ann", True), by("bob", False), by("ann", True)], True, id="a correction later"
        ),
        pytest.param(
            [by("bob", False, Role.SECONDARY), by("ann", True)], True, id="a second opinion first"
        ),
        pytest.param(
            [by("ann", True), by("judge", False, Role.ADJUDICATED), by("ann", True)],
            False,
            id="an adjudicated one",
        ),
    ],
)
def test_the_first_opinion_its_correction_or_what_was_adjudicated_is_the_label(
    given: list[Annotation], counts: bool
) -> None:
    (chosen,) = primary_labels(given).values()
    assert chosen.success is counts
