"""What is drawn for an episode: fair tasks, and three splits that share nothing."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.draws import (
    AXES,
    HELD_OUT_LOOKS,
    configuration,
    draw,
    goals_of,
    held_out,
    templates,
    worlds,
)
from trajudge.environments.checks.integrity import check
from trajudge.environments.kit.theme import theme
from trajudge.environments.model.axes import open_state
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, SPLITS, Config, Split
from trajudge.util.errors import UserError


def test_no_split_shares_a_configuration_a_wording_or_a_look_with_another() -> None:
    """12,000 draws, before the checks: what these refuse can only be less."""
    drawn: dict[Split, dict[str, set[object]]] = {}
    for split in SPLITS:
        rng = np.random.default_rng(0)
        offered, _ = templates("all", split, pictures=True)
        kinds: dict[str, set[object]] = defaultdict(set)
        for _ in range(4_000):
            template = offered[int(rng.integers(len(offered)))]
            config, goal = configuration(rng, template, split, AXES)
            look = theme(config.theme, config.seed)
            kinds["config"].add(config.id)
            kinds["rows"].add((config.app, config.profile, config.seed))
            kinds["wording"].add((template.name, goal))
            kinds["look"].add((look.items, look.nav, look.choice))
            kinds["scenario"].add(template.name)
        drawn[split] = kinds
    for kind in ("config", "rows"):
        for one, other in zip(SPLITS, (*SPLITS[1:], SPLITS[0]), strict=True):
            assert not drawn[one][kind] & drawn[other][kind]
    known = {kind: drawn["train"][kind] | drawn["validation"][kind] for kind in drawn["train"]}
    assert not drawn["test"]["wording"] & known["wording"]
    assert drawn["test"]["look"] <= HELD_OUT_LOOKS
    assert not known["look"] & HELD_OUT_LOOKS and len(known["look"]) > 10
    alone = drawn["test"]["scenario"] - known["scenario"]
    everything = sum(len(load_app(app).scenarios) for app in APPS)
    assert 0.1 < len(alone) / everything < 0.3


NAMES = {
    "shop": "product.name review.author account.name",
    "moderation": "member.handle forum.steward decision.moderator account.name",
    "helpdesk": "person.name purchase.what",
    "almanac": "report.leader account.name",
    "toolbox": "paint.name lender.name account.name",
    "console": "member.name service.name deployment.author account.name",
    "press": "author.name image.credit review.reviewer comment.reader account.name",
    "mail": "contact.name message.sender bill.payee",
    "office": "user.name user.login shop_product.name helpdesk_person.name mail_message.sender "
    "press_author.name moderation_member.handle console_member.name almanac_account.name",
}
"""Columns that name people and products, by application."""


def _named(config: Config) -> set[str]:
    state = open_state(load_app(config.app), config)
    columns = [column.split(".") for column in NAMES[config.app].split()]
    named = {str(row[1]) for t, c in columns for row in state.rows(f"SELECT id, {c} FROM {t}")}
    state.close()
    return named


@pytest.mark.parametrize("app", APPS)
def test_no_person_or_product_of_the_test_split_is_in_another(app: str) -> None:
    named = {
        split: {
            name
            for seed in worlds(split)
            for number in range(0, PROFILES, 3)
            for name in _named(Config(app=app, scenario="any", profile=number, seed=seed))
        }
        for split in SPLITS
    }
    assert not named["test"] & (named["train"] | named["validation"])
    assert len(named["test"]) > 5 < len(named["train"] & named["validation"])


def test_each_wording_is_in_a_split_and_with_three_or_more_in_one_alone() -> None:
    for app in APPS:
        for scenario in load_app(app).scenarios:
            parts = [goals_of(app, scenario, split) for split in SPLITS]
            assert {goal for part in parts for goal in part} == set(scenario.goals)
            assert not set(parts[2]) & {*parts[0], *parts[1]}
            if len(scenario.goals) > 2 and not held_out(app, scenario.id):
                assert sum(map(len, parts)) == len(scenario.goals)


@pytest.mark.parametrize("split", SPLITS)
def test_what_is_drawn_is_a_fair_task_and_the_same_for_a_seed(split: Split) -> None:
    offered, _ = templates("shop", split, pictures=False)
    for seed in range(3):
        case = draw(np.random.default_rng(seed), offered, split)
        assert case == draw(np.random.default_rng(seed), offered, split)
        assert isinstance(check(load_app("shop"), case.config), Case)
        assert case.config.seed in worlds(split) and not case.config.noise


def test_axes_that_do_not_move_stand_still_and_a_level_is_kept() -> None:
    offered, _ = templates("shop.buy", "train", pictures=False)
    rng = np.random.default_rng(0)
    still = [draw(rng, offered, "train", axes=["instance"]).config for _ in range(8)]
    assert {(c.profile, c.theme, c.ui, c.noise, c.seed) for c in still} == {
        (0, still[0].theme, 0, 0, 0)
    }
    assert len({config.instance for config in still}) == 8
    assert draw(rng, offered, "train", AXES).config.noise > 0
    everything, level = templates("level2", "train", pictures=False)
    assert level == 2
    assert draw(rng, everything, "train", level=level).level == 2


def test_what_cannot_be_drawn_is_one_sentence() -> None:
    with pytest.raises(UserError, match=r"shop is called 'bye'.*buy"):
        templates("shop.bye", "train", pictures=False)
    with pytest.raises(UserError, match="no application is called 'shopp'"):
        templates("shopp", "train", pictures=False)
    chart = next(s.id for s in load_app("shop").scenarios if s.charts)
    with pytest.raises(UserError, match="engine='chromium'"):
        templates(f"shop.{chart}", "train", pictures=False)
    alone = next(
        (app, s.id)
        for app in APPS
        for s in load_app(app).scenarios
        if held_out(app, s.id) and not s.charts
    )
    with pytest.raises(UserError, match=r"is not in split='train': name 'test'"):
        templates(".".join(alone), "train", pictures=False)
    offered, _ = templates("shop.buy", "train", pictures=False)
    with pytest.raises(UserError, match=r"shop\.buy: none of 400 configurations of level 1"):
        draw(np.random.default_rng(0), offered, "train", axes=(), level=1)


def test_a_configuration_says_its_split() -> None:
    """The splits' seeds are residue classes."""
    for number, split in enumerate(SPLITS):
        assert {seed % len(SPLITS) for seed in worlds(split)} == {number}
    assert Config(app="shop", scenario="buy").seed in worlds("train")
