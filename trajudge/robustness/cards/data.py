"""What is known of the data that judges were measured on, for their cards."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from trajudge.eval.store.inputs import find_source
from trajudge.robustness.facts import FACTS
from trajudge.trajectories.sample import SAMPLE
from trajudge.trajectories.sources import card_of_kind


class CardData(NamedTuple):
    """Whether the truth of the runs rests on the state of an application or on people's labels, and
    their licence, "" where it is not known."""

    from_state: bool
    licence: str = ""


def card_data(attacked: Path, data: str | None, *, is_source: bool) -> CardData:
    """Describe a folder of changed runs; ``is_source``: they were made of ``data`` (None: the
    default). Raises UserError for data that cannot be found."""
    from_state = (attacked / FACTS).is_file()
    if not is_source:
        return CardData(from_state)
    spec = find_source(data, None).spec
    known = card_of_kind(SAMPLE if spec == SAMPLE else spec.partition(":")[0])
    return CardData(from_state, "" if known is None else f"{known.licence} ({known.title})")
