"""What varies between two configurations of a scenario, each axis from a seed of its own.

Instance (which values the slots take), data profile (the rows), theme (how pages look, read and
are ordered) and interface state (where a run begins, how long lists are, how they are sorted), as
in PRISM appendix 14. No axis reads another's generator: changing one leaves the bytes of the
others alone. An instance is a place in [0, 1) for every slot, not a value, so that it means
something in every profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256

import numpy as np

from trajudge.environments.model.config import (
    PAGE_SIZES,
    PROFILES,
    STRESS,
    Config,
    Ui,
    drawn_split,
    split_of,
)
from trajudge.environments.model.spec import App
from trajudge.environments.model.state import AppState, Dump, Rows

# Irrational, and none follows from the others: the slots do not move in step.
_STRIDES = np.sqrt([2, 7, 13, 19, 29, 31, 43, 71, 73]) % 1


def generator(axis: str, *parts: str | int) -> np.random.Generator:
    """Return the generator of one axis: the same for the same words in every process."""
    name = "\x1f".join(map(str, (axis, *parts)))
    return np.random.default_rng(int.from_bytes(sha256(name.encode()).digest()[:16], "big"))


@lru_cache(maxsize=4096)
def instance(
    app: str, scenario: str, slots: tuple[str, ...], index: int, seed: int
) -> Mapping[str, float]:
    """Return the place in [0, 1) of every slot. From one index to the next it moves on by more than
    a third and less than two thirds of the way round, so the next instance has another value in
    every slot of three candidates or more, and each candidate comes as often as the others."""
    starts = generator("instance", app, scenario, seed).random(len(slots))
    places = (starts + index * np.resize(_STRIDES, len(slots))) % 1
    return dict(zip(slots, places.tolist(), strict=True))


@lru_cache(maxsize=256)
def profile(app: App, index: int, seed: int) -> bytes:
    """Return the application's state in this data profile, as a snapshot for ``AppState``."""
    state = AppState(app.tables)
    before = drawn_split.set(split_of(seed))
    try:
        rows = app.profile(generator("profile", app.id, index, seed), index % PROFILES)
    finally:
        drawn_split.reset(before)
    state.load(_stressed(app, rows) if index == STRESS else rows)
    snapshot = state.snapshot()
    state.close()
    return snapshot


_WRITTEN = {"body", "note", "about", "blurb", "remark", "reason", "plea"}  # by people
_MARKUP = " <b>'x'</b> & \"y\" <script>document.title = 'z'</script>"


def _stressed(app: App, rows: Rows) -> Rows:
    """Return the rows with markup and odd quotes behind all that people write."""
    columns = {table.name: table.names for table in app.tables}
    return {
        name: [
            tuple(
                f"{cell}{_MARKUP}" if cell and column in _WRITTEN else cell
                for column, cell in zip(columns[name], row, strict=True)
            )
            for row in records
        ]
        for name, records in rows.items()
    }


@lru_cache(maxsize=256)
def _rows(app: App, index: int, seed: int) -> Dump:
    """Return the rows of a data profile."""
    state = AppState(app.tables, profile(app, index, seed))
    rows = state.dump()
    state.close()
    return rows


def open_state(app: App, config: Config) -> AppState:
    """Return a fresh state in the configuration's data profile; the caller closes it."""
    place = app, config.profile, config.seed
    return AppState(app.tables, profile(*place), _rows(*place))


@lru_cache(maxsize=1024)
def ui(app: App, index: int, seed: int) -> Ui:
    """Return the interface state. Index 0 is the plain one: the home page, long lists, first
    order."""
    if index == 0:
        return Ui("home", PAGE_SIZES[-1], 0, folded=False)
    rng = generator("ui", app.id, index, seed)
    return Ui(
        start=str(rng.choice(app.starts)),
        page_size=int(rng.choice(PAGE_SIZES)),
        sort=int(rng.integers(app.sorts)),
        folded=bool(rng.random() < 0.3),
        script="full" if rng.random() < 0.5 else "none",
    )
