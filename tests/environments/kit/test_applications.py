"""Every application in every theme: all pages can be rendered, and a name leads to one place.

The walker takes the first control of a name in the page's model, an agent the first in the
document, and themes move what is on a page: so two controls of one role and name must do the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from tests.environments.kit.reader import Document
from tests.samples import FUZZING
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.kit.chart import draw
from trajudge.environments.kit.html import NONCE, render
from trajudge.environments.kit.layout import PageLayout
from trajudge.environments.kit.reading import blocks, links
from trajudge.environments.kit.theme import Theme, theme, wordings
from trajudge.environments.model.axes import open_state
from trajudge.environments.model.config import Config, Ui
from trajudge.environments.model.page import Chart, Link, Page
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import App
from trajudge.environments.text.document import PageDocument
from trajudge.environments.text.tree import write

PAGES = 60  # pages of an application that are looked at


@pytest.fixture(params=sorted(APPS))
def app(request: pytest.FixtureRequest) -> App:
    return load_app(request.param)


@pytest.fixture
def site(app: App) -> Iterator[Site]:
    config = Config(app=app.id, scenario=app.scenarios[0].id, profile=2)
    state = open_state(app, config)
    yield Site(app, state, Ui("home", 6, 0, folded=False))
    state.close()


def shell(site: Site, look: Theme, page: str) -> PageLayout:
    return PageLayout(
        title=site.app.title,
        navigation=site.navigation(page),
        theme=look,
        words=wordings(site.app, look),
        nonce=lambda form: "once",
        chart=lambda chart: "/chart/x.png",
        identity=site.app.identity,
        information=site.information(),
    )


def crawl(site: Site) -> Iterator[tuple[str, Page]]:
    """Pages that links lead to, those of every kind first."""
    waiting = [Link("", start) for start in site.app.starts] + list(site.app.navigation)
    seen: set[tuple[str, str]] = set()
    count: dict[str, int] = {}
    while waiting and len(seen) < PAGES:
        waiting.sort(key=lambda link: count.get(link.page, 0))
        link = waiting.pop(0)
        key = link.page, str(sorted(link.args.items()))
        if key in seen:
            continue
        seen.add(key)
        count[link.page] = count.get(link.page, 0) + 1
        page = site.get(link.page, link.args)
        yield link.page, page
        waiting += links(page)


@pytest.mark.slow
@pytest.mark.sampled
def test_every_page_is_rendered_in_every_theme_and_no_name_is_ambiguous(site: Site) -> None:
    """A third of the pages in each theme, so that four themes show each; ``make fuzz``: all."""
    pages = list(crawl(site))
    assert {name for name, _ in pages} <= set(site.app.pages)
    for index in range(12):
        for name, page in pages if FUZZING else pages[index % 3 :: 3]:
            document = Document(render(page, shell(site, theme(index, 0), name)))
            assert ambiguous(document) == {}, (name, index)


def ambiguous(document: Document) -> Mapping[tuple[str, str], set[str]]:
    """Roles and names that lead to different places."""
    places: dict[tuple[str, str], set[str]] = {}
    for name, href in document.links:
        places.setdefault(("link", name), set()).add(href)
    for number, form in enumerate(document.forms):
        sent = sorted((name, value) for name, value in form.hidden.items() if name != NONCE)
        there = f"{form.action} {sent}"
        places.setdefault(("button", form.submit), set()).add(there)
        for control in form.controls:
            places.setdefault((control.kind, control.name), set()).add(f"{number} {control.field}")
    return {name: found for name, found in places.items() if len(found) > 1}


def test_an_application_is_known_by_its_frame() -> None:
    """Spec gym.md, 6.4: the nearest tree of roles and depths is of the same application, in nine of
    ten home pages of all themes."""
    skeletons = []
    for name in sorted(APPS):
        app = load_app(name)
        state = open_state(app, Config(app=name, scenario=app.scenarios[0].id))
        site = Site(app, state, Ui("home", 6, 0, folded=False))
        for index in range(12):
            page = replace(shell(site, theme(index, 0), "home"), name="home")
            tree = write(PageDocument(render(site.get("home", {}), page))).full
            lines = (line.partition("] ")[2] or line for line in tree.splitlines())
            depths = (line.count("\t") for line in tree.splitlines())
            skeletons.append(
                (name, Counter(zip(depths, (s.split()[0] for s in lines), strict=True)))
            )
        state.close()
    known = 0
    for at, (name, skeleton) in enumerate(skeletons):
        others = (other for place, other in enumerate(skeletons) if place != at)
        known += name == min(others, key=lambda other: _distance(skeleton, other[1]))[0]
    assert known >= 0.9 * len(skeletons)


def _distance(one: Counter[tuple[int, str]], other: Counter[tuple[int, str]]) -> int:
    return sum(abs(one[key] - other[key]) for key in one | other)


def test_pages_that_links_lead_to_exist(site: Site) -> None:
    for name, page in crawl(site):
        for link in links(page):
            assert site.knows(link.page), (name, link)


def test_every_chart_can_be_drawn(site: Site) -> None:
    charts = {
        block.kind: block
        for _, page in crawl(site)
        for block in blocks(page.blocks)
        if isinstance(block, Chart)
    }
    for chart in charts.values():
        assert draw(chart, theme(0, 0))
