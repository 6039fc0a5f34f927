"""What the applications hold: scenarios, pages, code, generation, and how honest runs are."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import trajudge.environments.apps
from benchmarks.environments.measuring import say
from benchmarks.environments.miniwob_probe import controls
from benchmarks.environments.sample import configs, scenarios
from tests.environments.agents import page_blind
from tests.environments.verify.last_messages import LastMessage, written_messages
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.chromium.action_syntax import write
from trajudge.environments.generation import produce
from trajudge.environments.kit.layout import address
from trajudge.environments.kit.reading import blocks, links
from trajudge.environments.kit.style import SCRIPT
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.environments.model.page import ItemList, Page
from trajudge.environments.planning import SuiteSpecification, planned
from trajudge.environments.serving.run import open_run
from trajudge.environments.text import TextSession

_FOLDER = Path(trajudge.environments.apps.__file__).parent
OF_A_KIND = 3  # pages of one kind in one application and look
LONG = 10  # rows of a page that counts as a list
LOOKS = 4


def counts() -> None:
    """Count scenarios, wordings, widgets, and the lines of Python of an application."""
    every = [scenario for name in APPS for scenario in load_app(name).scenarios]
    fewest = min(len(scenario.goals) for scenario in every)
    say("scenarios", f"{len(every)}", ">= 250", len(every) >= 250)
    say("wordings of a scenario, fewest", f"{fewest}", ">= 4", fewest >= 4)
    for title, share in (
        ("over several applications", sum(s.family == "applications" for s in every) / len(every)),
        ("with a login as a user of a role", sum("user" in s.slots for s in every) / len(every)),
    ):
        say(f"scenarios {title}", f"{share:.1%}", ">= 10 %", share >= 0.1)
    scripted = re.findall(
        r"\w+", re.findall(r"WIDGETS = Object.entries\({([^}]*)}", SCRIPT.text)[0]
    )
    note = "plain HTML ones (disclosure, breadcrumb, rating ...) apart"
    say("widgets with a script", f"{len(scripted)}", ">= 25", len(scripted) >= 25, note)
    lines = {name: _lines(_FOLDER / name) for name in APPS}
    most = max(lines, key=lines.__getitem__)
    note = ", ".join(f"{name} {count}" for name, count in lines.items())
    title = "lines of Python of an application, most"
    say(title, f"{lines[most]} ({most})", "<= 500", lines[most] <= 500, note)


def _lines(folder: Path) -> int:
    texts = (path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    return sum(len(text.splitlines()) for text in texts)


class SeenPage(NamedTuple):
    """A page as the text engine shows it, which stays on it until the next is asked for."""

    page: Page
    tree: str
    session: TextSession

    @property
    def is_list(self) -> bool:
        held = (block for block in blocks(self.page.blocks) if isinstance(block, ItemList))
        return any(len(block.rows) >= LONG for block in held)


def seen_pages(looks: int) -> Iterator[SeenPage]:
    """Yield the pages that links lead to, a few of each kind in each application and look. What
    only a form leads to is not seen."""
    for name in APPS:
        app = load_app(name)
        for look in range(looks):
            scenario = app.scenarios[look % len(app.scenarios)].id
            axes = {"profile": look % PROFILES, "theme": look * 5 % THEMES, "ui": look * 7 % STATES}
            yield from crawl(Config(app=name, scenario=scenario, **axes))


def crawl(config: Config) -> Iterator[SeenPage]:
    run = open_run(config, b"benchmark")
    with closing(run.state):
        session = TextSession(run)
        waiting: list[tuple[str, tuple[tuple[str, str], ...]]] = [(s, ()) for s in run.app.starts]
        known = set(waiting)
        taken: Counter[str] = Counter()
        for name, args in waiting:
            if taken[name] == OF_A_KIND:
                continue
            taken[name] += 1
            page = run.site.get(name, dict(args))
            assert session.act(write("goto", run.origin + address(name, dict(args)))) is None
            yield SeenPage(page, session.observe().observation.axtree or "", session)
            for link in (*run.site.navigation(name), *links(page)):
                place = (link.page, tuple(sorted(link.args.items())))
                if place not in known:
                    known.add(place)
                    waiting.append(place)


def pages(looks: int) -> None:
    """Measure the trees of pages, as an agent gets them."""
    seen = list(seen_pages(looks))
    for title, chosen, characters, elements in (
        ("lists", [one for one in seen if one.is_list], 10_000, 50),
        ("all pages", seen, 6_000, 30),
    ):
        length = median(len(one.tree) for one in chosen)
        count = median(controls(one.tree) for one in chosen)
        note = f"{len(chosen)} pages"
        goal = f">= {characters:,}"
        say(f"characters of a tree, {title}", f"{length:,.0f}", goal, length >= characters, note)
        say(f"controls, {title}", f"{count:,.0f}", f">= {elements}", count >= elements)


def generation(rounds: int, cases: int) -> None:
    """Measure how fast configurations are checked, and cases generated as ``env generate`` does."""
    named = sorted(scenarios(), key=lambda one: one[0].id)
    drawn = [config for app, name in named for config in islice(configs(app, name, 0), 2)]
    for config in drawn:  # the first sight of every data profile is outside
        check(load_app(config.app), config)
    fresh = [config for app, name in named for config in islice(configs(app, name, 1), rounds)]
    start = time.process_time()
    sound = sum(isinstance(check(load_app(config.app), config), Case) for config in fresh)
    rate = len(fresh) / (time.process_time() - start)
    note = f"{sound / len(fresh):.1%} of {len(fresh)} pass"
    say("configurations checked, CPU", f"{rate:,.0f} /s", ">= 1,000 /s", rate >= 1000, note)
    wanted = SuiteSpecification(apps=tuple(APPS), level=2, count=cases)
    start = time.process_time()
    made = produce(wanted, planned(wanted, None))
    used = 1000 * (time.process_time() - start) / len(made.cases)
    proved = sum(case.fewest is not None for case in made.cases)
    note = f"shortest way proved for {proved} of {len(made.cases)}"
    say("a case of level 2, generated, CPU", f"{used:.0f} ms", "<= 20 ms", used <= 20, note)


def blind(every: int) -> None:
    """Measure how well success is told without a page, from every n-th scenario."""
    for seed in (0, 1):
        runs = list(page_blind.played(seed, every))
        areas = page_blind.areas(runs, seed)
        worst = max(areas.values())
        note = f"{len(runs)} runs; " + ", ".join(f"{name} {area}" for name, area in areas.items())
        say(f"page-blind AUC, seed {seed}, worst", f"{worst:.3f}", "<= .65", worst <= 0.65, note)


def answers() -> None:
    """Measure how often the reader of last messages errs, on those written before it."""
    messages = list(written_messages())
    declares: tuple[tuple[str, Callable[[LastMessage], bool]], ...] = (
        ("all", lambda _: True),
        ("declared", lambda one: bool(one.asked) and "nswer" in one.text),
    )
    for title, chosen in declares:
        held = [one for one in messages if chosen(one)]
        wrong = sum(one.read not in (None, one.verdict) for one in held)
        unread = sum(one.read is None and one.verdict is not None for one in held)
        share, note = wrong / len(held), f"{unread} of {len(held)} open though a person is sure"
        say(f"definite errors on messages, {title}", f"{share:.2%}", "<= 1 %", share <= 0.01, note)
