"""Independent axes: each from a seed of its own, the same bytes in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.samples import examples
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.kit.theme import theme, wordings
from trajudge.environments.model.axes import generator, instance, open_state, profile, ui
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.environments.model.state import digest
from trajudge.environments.serving.noise import noise

AXES = {"instance": 50, "profile": PROFILES, "theme": THEMES, "ui": STATES, "noise": 20}
PROBE = """
import json, sys
from tests.environments.model.test_axes import fingerprints
print(json.dumps(fingerprints()))
"""


def parts(config: Config) -> dict[str, str]:
    """What each axis made of a configuration, in few bytes."""
    app = load_app(config.app)
    slots = tuple(app.scenario(config.scenario).slots)
    state = open_state(app, config)
    rows = digest(state.dump())
    state.close()
    look = theme(config.theme, config.seed)
    return {
        "instance": str(instance(app.id, config.scenario, slots, config.instance, config.seed)),
        "profile": rows,
        "theme": f"{look} {sorted(wordings(app, look).items())}",
        "ui": str(ui(app, config.ui, config.seed)),
        "noise": str(noise(config)),
    }


def fingerprints() -> dict[str, str]:
    """Every application in a few configurations."""
    found = {}
    for name in APPS:
        scenario = load_app(name).scenarios[0].id
        for n in range(3):
            config = Config(
                app=name, scenario=scenario, instance=n, profile=n, theme=n, ui=n, noise=n
            )
            found[config.id] = sha256(json.dumps(parts(config)).encode()).hexdigest()
    return found


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_in_every_process() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", PROBE],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path.cwd())},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "77")
    ]
    assert printed[0] == printed[1]
    assert json.loads(printed[0]) == fingerprints()


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_changing_one_axis_leaves_the_others_alone(data: st.DataObject) -> None:
    chosen = {axis: data.draw(st.integers(0, size - 1), axis) for axis, size in AXES.items()}
    config = Config(app="shop", scenario="buy", **chosen)
    axis = data.draw(st.sampled_from(sorted(AXES)))
    other = config.model_copy(update={axis: (chosen[axis] + 1) % AXES[axis]})
    before, after = parts(config), parts(other)
    changed = before.pop(axis) != after.pop(axis)
    assert changed or axis == "noise", "two indices may draw the same noise"
    before.pop("noise", None), after.pop("noise", None)  # drawn for the configuration as a whole
    assert before == after


def test_every_axis_has_at_least_ten_values_that_differ() -> None:
    shop = load_app("shop")
    assert len({profile(shop, n, 0) for n in range(PROFILES)}) >= 10
    assert len({str(theme(n, 0)) for n in range(THEMES)}) >= 10
    assert len({ui(shop, n, 0) for n in range(STATES)}) >= 10
    assert len({str(instance("shop", "buy", ("a", "b"), n, 0)) for n in range(20)}) == 20


def test_another_seed_is_another_instance_profile_theme_and_state() -> None:
    config = Config(app="shop", scenario="buy", instance=1, profile=1, theme=1, ui=1)
    one, two = parts(config), parts(config.model_copy(update={"seed": 1}))
    assert all(one[axis] != two[axis] for axis in ("instance", "profile", "theme"))


def test_the_plain_interface_state_is_the_first() -> None:
    state = ui(load_app("shop"), 0, 5)
    assert (state.start, state.sort, state.folded) == ("home", 0, False)


def test_places_are_fractions_so_that_an_instance_means_something_in_every_profile() -> None:
    places = instance("shop", "buy", ("product", "quantity"), 3, 0)
    assert list(places) == ["product", "quantity"]
    assert all(0 <= place < 1 for place in places.values())


@pytest.mark.parametrize("seed", range(3))
def test_the_next_instance_has_another_value_in_every_slot(seed: int) -> None:
    """From three candidates on; and all of them, and all pairs of two slots, come in turn."""
    slots = ("a", "b", "c")
    for size in (3, 4, 7):
        drawn = [
            [int(place * size) for place in instance("shop", "buy", slots, n, seed).values()]
            for n in range(40 * size)
        ]
        assert all(one != two for pair in pairwise(drawn) for one, two in zip(*pair, strict=True))
        for slot in range(len(slots)):
            counts = Counter(values[slot] for values in drawn)
            assert max(counts.values()) - min(counts.values()) <= 8, counts
        assert len({(a, b) for a, b, _ in drawn}) == size**2


def test_generators_of_the_same_words_agree_and_of_others_do_not() -> None:
    assert generator("a", 1).random() == generator("a", 1).random()
    draws = {
        generator(*words).random() for words in (("a", 1), ("a", 2), ("b", 1), ("a1",), ("a", 11))
    }
    assert len(draws) == 5


@pytest.mark.parametrize(
    "axis", [{"profile": 13}, {"theme": 12}, {"ui": 12}, {"instance": -1}, {"x": 1}]
)
def test_an_axis_beyond_its_end_is_no_configuration(axis: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Config.model_validate({"app": "shop", "scenario": "buy", **axis})


def test_a_configuration_is_named_by_all_its_axes() -> None:
    config = Config(app="shop", scenario="buy", instance=3, profile=1, ui=2, noise=4, seed=5)
    assert config.id == "shop.buy.i3.p1.t0.u2.n4.s5"
