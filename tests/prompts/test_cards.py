"""Every prompt folder has a card that says where it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

import trajudge.prompts
from trajudge.prompts.render import load_prompt, read_card

FOLDERS = sorted(
    path.parent.name for path in Path(trajudge.prompts.__path__[0]).glob("*/card.yaml")
)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_card_is_complete_and_named_as_its_folder(name: str) -> None:
    card = load_prompt(name).card
    assert card.name == name
    assert all(value for field, value in card if field not in ("deviations", "left_out", "judges"))


def test_a_card_that_lacks_a_field_is_refused() -> None:
    with pytest.raises(ValidationError, match="paper"):
        read_card("name: n")
