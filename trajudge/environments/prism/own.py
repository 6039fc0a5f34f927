"""The PRISM report of this package's own applications, measured and not asserted.

Pages are crawled and rendered, configurations are checked, states are made twice and compared. The
crawl follows links from every start page; what only a form leads to is not seen, so a pattern may
be missed but never made up.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from html import escape
from itertools import islice

import numpy as np

from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.kit.html import render
from trajudge.environments.kit.layout import PageLayout
from trajudge.environments.kit.reading import charts, forms, links
from trajudge.environments.kit.theme import theme, wordings
from trajudge.environments.model.axes import generator, instance, open_state, profile, ui
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.environments.model.page import Field, Link, Page, Word
from trajudge.environments.model.payload import USER_CONTENT
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import App
from trajudge.environments.model.state import digest
from trajudge.environments.prism.report import (
    Integrity,
    Multifactorial,
    Privileged,
    Realistic,
    Report,
    Sandboxed,
)
from trajudge.environments.serving.noise import KINDS, noise

MOST_PAGES = 150
Place = tuple[str, tuple[tuple[str, str], ...]]  # a page and its arguments
_ABSOLUTE = re.compile(r"""(?:href|src|action)=["'](?:[a-z]+:)?//""", re.IGNORECASE)


def own_report(configurations: int, seed: int) -> Report:
    """Return the report over ``configurations`` of each application."""
    apps = [load_app(name) for name in APPS]
    scenarios = [scenario for app in apps for scenario in app.scenarios]
    verified = sum(bool(scenario.answers or scenario.expect) for scenario in scenarios)
    return Report(
        name="trajudge environments",
        privileged=Privileged(tasks=len(scenarios), by_state=verified),
        realistic=Realistic(applications="written for it", patterns=tuple(_patterns(apps, seed))),
        integrity=_integrity(apps, configurations, seed),
        sandboxed=_sandboxed(apps, seed),
        multifactorial=Multifactorial(
            axes=_values(apps, seed), independent=_independent(apps, seed)
        ),
    )


def crawl(app: App, config: Config) -> Iterator[tuple[Page, tuple[Link, ...]]]:
    """Yield the pages that links lead to, from every start page, and the navigation of each."""
    state = open_state(app, config)
    site = Site(app, state, ui(app, config.ui, config.seed))
    waiting: deque[Place] = deque((start, ()) for start in app.starts)
    seen = set(waiting)
    try:
        while waiting and len(seen) < MOST_PAGES:
            name, args = waiting.popleft()
            page = site.get(name, dict(args))
            navigation = site.navigation(name)
            yield page, navigation
            for link in (*navigation, *links(page)):
                place = (link.page, tuple(sorted(link.args.items())))
                if place not in seen:
                    seen.add(place)
                    waiting.append(place)
    finally:
        state.close()


def _patterns(apps: Iterable[App], seed: int) -> Iterator[str]:
    """Yield the patterns of use that at least one application shows."""
    apps = list(apps)
    pages = [page for app in apps for page, _ in crawl(app, _plain(app, seed, 2))]
    entries = [entry for page in pages for form in forms(page) for entry in form.fields]
    operations = [operation for app in apps for operation in app.operations.values()]
    shows = {
        "search": any(entry.input == "search" for entry in entries),
        "filters": any(_filters(page) for page in pages),
        "sort orders": any(app.sorts > 1 for app in apps),
        "long lists in parts": any(
            link.label == Word("next_page") for page in pages for link in links(page)
        ),
        "forms of several fields": any(
            form.operation and len(form.fields) > 2 for page in pages for form in forms(page)
        ),
        "refused input": any(_refuses(app, seed) for app in apps),
        "questions before irreversible steps": any(
            o.irreversible and o.confirm for o in operations
        ),
        "irreversible steps without a question": any(
            o.irreversible and not o.confirm for o in operations
        ),
        "charts": any(charts(page) for page in pages),
        "content written by users": any(_shows_users_words(app, seed) for app in apps),
        "layouts": len({theme(index, seed).items for index in range(THEMES)}) > 1,
        "interruptions": _interrupted(seed),
    }
    return (pattern for pattern, shown in shows.items() if shown)


def _shows_users_words(app: App, seed: int) -> bool:
    """Return True if a page shows what the profile's users wrote."""
    config = _plain(app, seed, 2)
    state = open_state(app, config)
    try:
        written = {
            escape(str(row[0]))
            for place in USER_CONTENT.get(app.id, ())
            for row in state.rows('SELECT "{1}" FROM "{0}"'.format(*place.split(".")))  # noqa: S608
            if len(str(row[0])) > 20
        }
    finally:
        state.close()
    return any(words in text for text in _rendered(app, config) for words in written)


def _plain(app: App, seed: int, state: int = 0) -> Config:
    return Config(app=app.id, scenario=app.scenarios[0].id, ui=state, seed=seed)


def _filters(page: Page) -> bool:
    fields: list[Field] = [f for form in forms(page) if form.page for f in form.fields]
    return any(entry.input == "choice" for entry in fields)


def _refuses(app: App, seed: int) -> bool:
    """Tell whether some operation refuses an empty form and leaves the state as it was."""
    state = open_state(app, _plain(app, seed))
    try:
        before, site = digest(state.dump()), Site(app, state, ui(app, 0, seed))
        outcomes = [
            site.post(name, {}) for name, known in app.operations.items() if not known.confirm
        ]
        refusals = [outcome for outcome in outcomes if hasattr(outcome, "message")]
        return bool(refusals) and (len(refusals) < len(outcomes) or digest(state.dump()) == before)
    finally:
        state.close()


def _interrupted(seed: int) -> bool:
    config = Config(app="shop", scenario="price", noise=1, seed=seed)
    return {item.kind for item in noise(config)} == set(KINDS)


def _rendered(app: App, config: Config) -> Iterator[str]:
    look = theme(config.theme, config.seed)
    shell = PageLayout(
        title=app.title,
        navigation=(),
        theme=look,
        words=wordings(app, look),
        nonce=lambda _: "",
        chart=lambda _: "/chart/x.png",
    )
    for page, navigation in crawl(app, config):
        yield render(page, replace(shell, navigation=navigation))


def drawn(app: App, seed: int) -> Iterator[Config]:
    """Yield configurations of an application without end, on all axes."""
    rng = generator("prism", app.id, seed)
    while True:
        scenario = app.scenarios[int(rng.integers(len(app.scenarios)))].id
        numbers = {"profile": PROFILES, "theme": THEMES, "ui": STATES, "instance": 1000}
        axes = {axis: int(rng.integers(most)) for axis, most in numbers.items()}
        yield Config(app=app.id, scenario=scenario, seed=seed, **axes)


def _integrity(apps: Iterable[App], configurations: int, seed: int) -> Integrity:
    checked = [check(app, c) for app in apps for c in islice(drawn(app, seed), configurations)]
    return Integrity(
        feasible="every configuration",
        coherent="every configuration",
        nontrivial="every configuration",
        checked=len(checked),
        rejected=sum(not isinstance(outcome, Case) for outcome in checked),
    )


def _sandboxed(apps: Iterable[App], seed: int) -> Sandboxed:
    """Make every state twice from scratch, and look for foreign addresses in the rendered pages."""
    same = all(
        _made(app, index, seed) == _made(app, index, seed) for app in apps for index in (0, 5)
    )
    outside = {
        app.id
        for app in apps
        if any(_ABSOLUTE.search(text) for text in _rendered(app, _plain(app, seed)))
    }
    return Sandboxed(external_dependencies=tuple(sorted(outside)), deterministic_reset=same)


def _made(app: App, index: int, seed: int) -> str:
    profile.cache_clear()
    state = open_state(app, _plain(app, seed).model_copy(update={"profile": index}))
    try:
        return digest(state.dump())
    finally:
        state.close()


def _values(apps: Iterable[App], seed: int) -> dict[str, int]:
    """Return the fewest different values that an axis takes in any application."""
    return {
        "instance": min(
            len({tuple(_places(app, index, seed)) for index in range(20)}) for app in apps
        ),
        "data profile": min(
            len({_made(app, index, seed) for index in range(PROFILES)}) for app in apps
        ),
        "theme": min(len({theme(index, seed) for index in range(THEMES)}) for _ in apps),
        "interface state": min(
            len({ui(app, index, seed) for index in range(STATES)}) for app in apps
        ),
    }


def _places(app: App, index: int, seed: int) -> Iterable[float]:
    scenario = app.scenarios[0]
    return instance(app.id, scenario.id, tuple(scenario.slots), index, seed).values()


def _independent(apps: Iterable[App], seed: int) -> bool:
    """Tell whether the state is the same however the other axes are set, for drawn settings."""
    rng = np.random.default_rng(seed)
    for app in apps:
        plain = _plain(app, seed)
        for _ in range(5):
            other = plain.model_copy(
                update={"theme": int(rng.integers(THEMES)), "ui": int(rng.integers(STATES))}
            )
            one, two = open_state(app, plain), open_state(app, other)
            same = digest(one.dump()) == digest(two.dump())
            one.close()
            two.close()
            if not same:
                return False
    return True
