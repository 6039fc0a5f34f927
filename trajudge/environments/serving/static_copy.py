"""One case as a folder of plain pages: what links reach, rendered once, with a manifest."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Any

import orjson

from trajudge.environments.apps import load_app
from trajudge.environments.checks import profiles
from trajudge.environments.checks.walk import ControlNotFound, Walk
from trajudge.environments.kit.chart import draw
from trajudge.environments.kit.html import render
from trajudge.environments.kit.layout import PageLayout
from trajudge.environments.kit.listing import SORT
from trajudge.environments.kit.reading import links
from trajudge.environments.kit.style import stylesheet
from trajudge.environments.kit.theme import theme, wordings
from trajudge.environments.model.axes import instance, ui
from trajudge.environments.model.binding import Infeasible, bind
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Chart, Page, Paragraph
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import TODAY, App, Bound, Scenario
from trajudge.environments.serving import PAGES
from trajudge.util.errors import UserError
from trajudge.util.terminal import one_line

START, BEYOND = "index.html", "beyond.html"


NOTE = "This is a static copy: its links work, its forms are shown and do nothing."


_BEYOND = Page(
    "Not in this copy", (Paragraph("The page behind this link was left out of the copy."),)
)


_README = """\
A static copy of one task in a sandboxed web application. Open index.html (a file or from any static
web server), read goal.txt, answer by following links. Forms are shown, disabled.

What this copy does not promise, and a served run does:
- All pages lie open as files: whoever reads the folder need not find the way.
- Nothing is logged: neither the way to the answer nor tampering with the pages is seen.
- The pages are the same for everybody and every time: recorded clicks can be replayed, an answer
  that was heard can be repeated.
- No banners, delays or passing errors, even where the task was made with them.
- Opened as files, pages are not kept apart from other files by an origin of their own.
- It holds no answer: a reply is judged by whoever keeps the key to this copy.
manifest.json has the SHA-256 of every file.
"""


Place = tuple[str, tuple[tuple[str, str], ...]]  # a page and its arguments


class NotStatic(Exception):
    """Why a case cannot be a static copy."""


def bundle(case: Case, most: int = PAGES) -> dict[str, bytes]:
    """Return the files of a case's copy by their paths, the manifest last; the same bytes for the
    same case. ``most`` bounds the pages. Raises NotStatic with the reason."""
    app = load_app(case.config.app)
    config = case.config
    state = profiles.replayable_state(app, config.profile, config.seed)
    site = Site(app, state, ui(app, config.ui, config.seed))
    way = _way(_scenario(app, config), config, site)
    pages = _crawled(site, most)
    if not way <= pages.keys():
        raise NotStatic(f"its way leads beyond the first {most} pages")
    files = dict(_written(app, config, site, pages))
    files["goal.txt"] = f"{case.goal}\n".encode()
    files["README.txt"] = _README.encode()
    files["manifest.json"] = _manifest(case, len(pages), files)
    return files


def _scenario(app: App, config: Config) -> Scenario:
    try:
        return app.scenario(config.scenario)
    except KeyError:
        raise UserError(
            f"application {app.id!r} has no scenario {config.scenario!r}: make the cases anew with "
            "trajudge env generate"
        ) from None


def _way(scenario: Scenario, config: Config, site: Site) -> set[Place]:
    """Return the pages that the oracle visits. Raises NotStatic unless links alone lead there."""
    if scenario.expect:
        raise NotStatic("it changes the state")
    if any(answer.kind == "code" for answer in scenario.answers):
        raise NotStatic("it asks for an operation code")
    walk = Walk(site)
    walk.open(site.ui.start, {})
    try:
        for move in scenario.plan(_bound(scenario, config, site)):
            if move.do not in ("follow", "scan"):
                raise NotStatic("it needs a form")
            walk.do(move)
    except (Infeasible, ControlNotFound) as error:
        raise NotStatic(f"it cannot be solved: {one_line(str(error))}") from None
    return {_place(visit.name, visit.args) for visit in walk.visits}


def _bound(scenario: Scenario, config: Config, site: Site) -> Bound:
    names = tuple(scenario.slots)
    places = instance(config.app, scenario.id, names, config.instance, config.seed)
    return bind(scenario, places, site.state)


def _place(page: str, args: Mapping[str, str]) -> Place:
    return page, tuple(sorted(args.items()))


def _crawled(site: Site, most: int) -> dict[Place, Page]:
    """Return the pages that links reach, the nearest first."""
    waiting = deque([_place(site.ui.start, {})])
    known, pages = set(waiting), dict[Place, Page]()
    while waiting and len(pages) < most:
        place = waiting.popleft()
        pages[place] = site.get(place[0], dict(place[1]))
        for link in (*site.navigation(place[0]), *links(pages[place])):
            target = _place(link.page, link.args)
            # Another order shows the same rows: a copy has the one that the site has.
            if target not in known and SORT not in link.args:
                known.add(target)
                waiting.append(target)
    return pages


def _written(
    app: App, config: Config, site: Site, pages: Mapping[Place, Page]
) -> Iterator[tuple[str, bytes]]:
    """Yield the documents and the pictures."""
    look = theme(config.theme, config.seed)
    names = {place: _named(site, place) for place in pages}
    names[_place(site.ui.start, {})] = START
    pictures: dict[str, bytes] = {}

    def picture(chart: Chart) -> str:
        drawn = _drawn(chart, config.theme, config.seed)
        name = f"charts/{sha256(drawn).hexdigest()[:16]}.png"
        pictures[name] = drawn
        return name

    sheet = stylesheet(look, app.identity)
    yield sheet.name, sheet.text.encode()
    shell = PageLayout(
        identity=app.identity,
        title=app.title,
        navigation=(),
        theme=look,
        words=wordings(app, look),
        nonce=lambda _: "",
        chart=picture,
        page=lambda page, args: names.get(_place(page, args), BEYOND),
        still=True,
        files="",
        folded=site.ui.folded,
    )
    for place, page in [*pages.items(), ((BEYOND, ()), _BEYOND)]:
        noted = page._replace(blocks=(Paragraph(NOTE), *page.blocks))
        around = replace(
            shell, name=place[0], args=dict(place[1]), navigation=site.navigation(place[0])
        )
        yield names.get(place, BEYOND), render(noted, around).encode()
    yield from sorted(pictures.items())


def _named(site: Site, place: Place) -> str:
    """Return a file name that says the page and not its arguments."""
    page = place[0] if site.knows(place[0]) else "missing"
    return f"{page}-{sha256(orjson.dumps(place)).hexdigest()[:16]}.html"


@lru_cache(maxsize=512)
def _drawn(chart: Chart, index: int, seed: int) -> bytes:
    return draw(chart, theme(index, seed))


def _manifest(case: Case, pages: int, files: Mapping[str, bytes]) -> bytes:
    """Return what the bundle holds. The axes of the configuration are left out: they give the task
    away to whoever has the software."""
    content: dict[str, Any] = {
        "format": "trajudge-static-copy",
        "version": 1,
        "goal": case.goal,
        "domain": case.domain,
        "level": case.level,
        "vector": case.vector,
        "today": TODAY,
        "start": START,
        "pages": pages,
        "files": {name: sha256(body).hexdigest() for name, body in sorted(files.items())},
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n"
