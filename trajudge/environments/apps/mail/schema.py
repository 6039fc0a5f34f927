"""The rows of a mail box: small talk, and one mail for each thing that others wish done."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trajudge.environments.apps.reading import rows_of
from trajudge.environments.model.state import Rows, Value, token

_ROWS = rows_of(__package__ or "")
Wish = tuple[str, str, str]  # sender, topic, body


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return a box of small talk."""
    return box(rng, [], ["A. Nobody"])


def box(rng: np.random.Generator, wishes: Sequence[Wish], senders: Sequence[str]) -> Rows:
    """Return a box with these mails among small talk by the senders."""
    talk = [
        (str(rng.choice(senders)), topic, body)
        for topic, body in zip(_ROWS.topics, _ROWS.bodies, strict=True)
    ]
    mails = [*wishes, *talk]
    rows: list[tuple[Value, ...]] = []
    for place, number in enumerate(rng.permutation(len(mails))):
        sender, topic, body = mails[number]
        day = f"2026-02-{1 + place % 28:02}"
        rows.append((token("mail", topic, sender), sender, topic, body, day, "inbox"))
    return {"message": rows, "reply": []}
