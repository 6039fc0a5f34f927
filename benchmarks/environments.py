"""The environments' speed and size: ``python -m benchmarks.environments [--quick]``.

Rates are for a core: work over the CPU time of this process and of Chromium's, since machines are
shared; wall times stand beside them with the load average. Physical limits are measured in the same
run: bare Playwright on the same pages, the same bytes written to files. ``--only gym`` plays the
oracle's actions through the Gymnasium environment: in Chromium with screenshots, in Chromium with
text alone, and without a browser, one after the other for each case.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import gymnasium
import numpy as np

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import AGENTS, Behaviour
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.chromium import Browser, Session, launch, open_session
from trajudge.environments.gym import WebEnv
from trajudge.environments.kit.html import render
from trajudge.environments.kit.layout import PageLayout
from trajudge.environments.kit.theme import theme, wordings
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.environments.model.page import ItemList, Link, ListRow, Page
from trajudge.environments.recording.episode import Recorded, play
from trajudge.environments.recording.recorder import recorded_offline
from trajudge.environments.serving.server import Server, serve
from trajudge.environments.stages import SuiteSpecification, produce
from trajudge.environments.stages.planning import planned

ORACLE = next(name for name, behaviour in AGENTS.items() if behaviour is Behaviour.ORACLE)
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _stat(pid: str) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def family() -> list[str]:
    """This process and all that come from it."""
    parents: dict[str, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[folder.name] = _stat(folder.name)[1]
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
    found = [str(os.getpid())]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def cpu() -> float:
    """Seconds that the family has used, its ended members included."""
    total = 0
    for pid in family():
        try:
            total += sum(map(int, _stat(pid)[11:15]))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / _TICKS


def resident() -> float:
    """Megabytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 1e6


@dataclass
class Spent:
    """Seconds."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def spent() -> Iterator[Spent]:
    used = Spent(-time.perf_counter(), -cpu())
    yield used
    used.wall += time.perf_counter()
    used.cpu += cpu()


def say(name: str, figure: str, goal: str = "", note: str = "") -> None:
    load = os.getloadavg()[0]
    print(f"{name:52}{figure:>16}  {goal:14}load {load:4.1f}  {note}", flush=True)


# --- offline -------------------------------------------------------------------------------------


def configs(app: str, rounds: int) -> Iterator[Config]:
    """Configurations of every scenario, no two alike, that go through all axes."""
    number = 0
    for index in range(rounds):
        for scenario in load_app(app).scenarios:
            number += 1
            yield Config(
                app=app,
                scenario=scenario.id,
                instance=index,
                profile=number % PROFILES,
                theme=number * 5 % THEMES,
                ui=number * 7 % STATES,
            )


def generation(rounds: int) -> None:
    """Configurations generated and checked; the first sight of every data profile is outside."""
    total, seconds = 0, 0.0
    for app in APPS:
        loaded = load_app(app)
        for config in configs(app, 2):
            check(loaded, config)
        fresh = list(configs(app, rounds))
        start = time.process_time()
        found = [check(loaded, config) for config in fresh]
        used = time.process_time() - start
        kinds = Counter(one.reason for one in found if not isinstance(one, Case))
        passed = sum(isinstance(one, Case) for one in found)
        note = f"{passed / len(found):.1%} pass; {dict(kinds)}"
        say(f"configurations checked, {app}", f"{len(found) / used:,.0f} /s", note=note)
        total, seconds = total + len(found), seconds + used
    say("configurations checked, all", f"{total / seconds:,.0f} /s", ">= 1,000 /s")


def generated(count: int) -> None:
    """Cases of level 2 as ``env generate`` makes them, data profiles and search included."""
    wanted = SuiteSpecification(apps=tuple(APPS), level=2, count=count)
    start = time.process_time()
    made = produce(wanted, planned(wanted, None))
    used = 1000 * (time.process_time() - start) / len(made.cases)
    proved = sum(case.fewest is not None for case in made.cases)
    note = (
        f"shortest way proved for {proved} of {len(made.cases)}; {made.tally.tried.total()} tried"
    )
    say("a case of level 2, generated", f"{used:.0f} ms CPU", "<= 20 ms", note)


def sound(count: int) -> list[Case]:
    """Cases of all applications in turn."""
    found: list[Case] = []
    for together in zip(*(configs(app, 50) for app in APPS), strict=False):
        cases = (check(load_app(config.app), config) for config in together)
        found += [case for case in cases if isinstance(case, Case)]
        if len(found) >= count:
            break
    return found[:count]


# --- in Chromium ---------------------------------------------------------------------------------


def oracle(server: Server, browser: Browser, case: Case, name: str, **how: Any) -> Recorded:
    job = Job(config=case.config, agent=ORACLE, goal=case.goal, shortest=case.shortest)
    return play(server, browser, job, lambda run: Scripted(run, ORACLE, 0, 0), name=name, **how)


def tasks(count: int) -> None:
    """Oracle runs in a browser that is open, verified."""
    cases = sound(count)
    with serve(b"benchmark") as server, launch(server.port) as browser:
        for case in cases[:3]:
            oracle(server, browser, case, "warm")
        for what, pictures, goal in (("with screenshots", True, 40), ("text only", False, 60)):
            with spent() as used:
                runs = [oracle(server, browser, case, what, pictures=pictures) for case in cases]
            steps = sum(len(run.trajectory.steps) - 1 for run in runs)
            solved = sum(run.finding.labels.success is True for run in runs)
            say(
                f"tasks validated, {what}",
                f"{60 * len(runs) / used.cpu:.0f} /min/core",
                f">= {goal}",
                f"{solved}/{len(runs)} solved, {steps / len(runs):.1f} steps, a step "
                f"{1000 * used.cpu / steps:.0f} ms CPU, {1000 * used.wall / steps:.0f} ms wall",
            )


def _document(rows: int) -> bytes:
    """A list of things with a link to itself, as the kit writes it."""
    columns = ("Name", "Kind", "Price")
    listed = tuple(
        ListRow(Link(f"Thing {row}", "small", {"row": str(row)}), ("wooden", f"${row}.50"))
        for row in range(rows)
    )
    look = theme(0, 0)
    words = wordings(load_app("shop"), look)
    shell = PageLayout(
        "Benchmark", (), replace(look, items="table"), words, lambda _: "", lambda _: ""
    )
    page = Page("A list", (Link("Again", "again"), ItemList(columns, listed)))
    return render(page, shell).encode()


@contextmanager
def listed(rows: int) -> Iterator[int]:
    """A server of one page; gives its port."""
    document = _document(rows)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(document)))
            self.end_headers()
            self.wfile.write(document)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def steps(pairs: int) -> None:
    """A step (a click that opens the page again, tree, screenshot) in turn with what bare
    Playwright takes to open and to picture the same page in the same Chromium."""
    for rows, goal in ((12, 100), (300, 250)):
        with listed(rows) as port, launch(port) as browser:
            for pictures in (True, False):
                _steps(browser, pairs, f"<= {goal} ms" if pictures else "", pictures=pictures)


def _steps(browser: Browser, pairs: int, goal: str, *, pictures: bool) -> None:
    url = "http://run.localhost/again"
    with open_session(browser, url, pictures=pictures) as session:
        bare = _bare(browser, session, url)
        view = session.observe()
        nodes = (view.observation.axtree or "").count("\n") + 1
        ours, theirs, acted = [], [], []
        for _ in range(pairs + 1):
            bid = next(one.bid for one in view.elements if one.name == "Again")
            with spent() as used:
                start = time.perf_counter()
                session.act(f"click({bid!r})")
                acted.append(time.perf_counter() - start)
                view = session.observe()
            ours.append(used)
            with spent() as used:
                bare()
            theirs.append(used)
    what = "screenshot" if pictures else "text only"
    wall, cpu = _medians(ours)
    bare_wall, bare_cpu = _medians(theirs)
    note = (
        f"act {1000 * median(acted[1:]):.0f}, CPU {cpu:.0f}; bare goto + screenshot "
        f"{bare_wall:.0f}, CPU {bare_cpu:.0f}; {wall / bare_wall:.2f} times, "
        f"CPU {cpu / bare_cpu:.2f} times"
    )
    say(f"a step, tree of {nodes} lines, {what}", f"{wall:.0f} ms", goal, note)


def _medians(turns: list[Spent]) -> tuple[float, float]:
    """Milliseconds of wall time and of CPU; the first turn warms up."""
    walls, cpus = ([getattr(turn, part) for turn in turns[1:]] for part in ("wall", "cpu"))
    return 1000 * median(walls), 1000 * median(cpus)


def _bare(browser: Browser, session: Session, url: str) -> Callable[[], None]:
    """Playwright alone on a page of its own, as a plain recorder would use it."""
    chromium = session.tab.context.browser
    assert chromium
    page = browser.run(chromium.new_page(viewport={"width": 1024, "height": 768}), 60)

    async def visit() -> None:
        await page.goto(url)
        await page.screenshot()

    return lambda: browser.run(visit(), 60)


def reuse(times: int) -> None:
    """A session in a tab that another run left, and in a fresh one."""
    with listed(12) as port, launch(port) as browser:

        def session(viewport: tuple[int, int]) -> None:
            with open_session(browser, "http://run.localhost/again", viewport=viewport):
                pass

        session((1024, 768))
        for what, sizes in (
            ("reused", [(1024, 768)] * times),
            ("fresh", [(1000, 700 + number) for number in range(times)]),
        ):
            walls: list[float] = []
            with spent() as used:
                for size in sizes:
                    start = time.perf_counter()
                    session(size)
                    walls.append(time.perf_counter() - start)
            note = f"CPU {1000 * used.cpu / times:.0f}"
            say(f"a session, {what} tab", f"{1000 * median(walls):.0f} ms", "", note)


def flakes(count: int, repeats: int) -> None:
    """The oracle on many cases several times over in one process: every run a success, the same
    pages every time, memory flat."""
    cases = sound(count)
    trees: dict[str, set[str]] = {}
    missed: list[str] = []
    sizes: list[float] = []
    with serve(b"flakes") as server, launch(server.port) as browser:
        for repeat in range(repeats):
            for case in cases:
                run = oracle(server, browser, case, f"repeat {repeat}")
                labels = run.finding.labels
                if labels.success is not True or labels.side_effect is not False:
                    missed.append(f"{case.id} ({repeat})")
                trees.setdefault(case.id, set()).add(_way(run))
                sizes.append(resident())
    tenth = max(1, len(sizes) // 10)
    grown = sizes[-1] - sizes[tenth - 1]
    differing = sum(len(seen) > 1 for seen in trees.values())
    solved = f"{len(sizes) - len(missed)}/{len(sizes)}"
    say("oracle runs that succeed", solved, "all", " ".join(missed))
    say("cases whose actions differ between repeats", str(differing), "0")
    note = f"{sizes[-1]:.0f} MB after {len(sizes)} runs"
    say("memory grown after the first tenth of the runs", f"{grown:+.0f} MB", "flat", note)


def _way(run: Recorded) -> str:
    return "\n".join(step.action or "" for step in run.trajectory.steps[:-1])


def actions(case: Case) -> list[str]:
    job = Job(config=case.config, agent=ORACLE, goal=case.goal, shortest=case.shortest)
    steps = recorded_offline(job, 0).trajectory.steps
    return [step.action for step in steps if step.action]


def gym(count: int) -> None:
    """Steps per second of the Gymnasium environment, resets apart, and of a vector of 16."""
    cases = sound(count)
    envs = {
        "Chromium, screenshots": WebEnv(cases=cases, engine="chromium"),
        "Chromium, text": WebEnv(cases=cases, engine="chromium", pictures=False),
        "text engine": WebEnv(cases=cases),
        "text engine, BrowserGym": WebEnv(cases=cases, observation="browsergym"),
    }
    for env in envs.values():
        env.reset(seed=0)  # starts the browser
    used = {name: (Spent(), Spent()) for name in envs}
    steps = 0
    for case in cases:
        known = actions(case)
        steps += len(known)
        for name, env in envs.items():
            with spent() as begun:
                env.reset(options={"case": case.id})
            with spent() as played:
                for action in known:
                    env.step(action)
            for total, part in zip(used[name], (begun, played), strict=True):
                total.wall += part.wall
                total.cpu += part.cpu
    for name, (begun, played) in used.items():
        print(
            f"{name:24} {steps / played.cpu:8.1f} steps/s of CPU time, {steps / played.wall:8.1f} "
            f"of wall time; a reset takes {1000 * begun.cpu / len(cases):6.1f} ms of CPU time"
        )
        envs[name].close()
    _vector(16)


def _vector(number: int) -> None:
    """Play random actions in a vector of the text engine, with draws and resets as they come."""
    envs = gymnasium.make_vec("trajudge/all-v0", number)
    envs.reset(seed=0)
    offered = [env.action_space for env in envs.unwrapped.envs]  # type: ignore[attr-defined]
    with spent() as played:
        for _ in range(60):
            envs.step(tuple(space.sample() for space in offered))
    print(f"a vector of {number}: {60 * number / played.cpu:8.1f} steps/s of CPU time, with resets")
    begun = []
    for form in ("text", "browsergym"):
        env = WebEnv(observation=form)
        env.reset(seed=0)
        for _ in range(60):
            with spent() as one:
                env.reset()
            begun.append(1000 * one.cpu)
        half, late = np.percentile(begun, (50, 95))
        print(f"a drawn reset, {form}: median {half:.1f} ms of CPU time, 95th centile {late:.1f}")
        begun = []
    envs.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the work")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--flakes", type=int, default=0, metavar="CASES", help="three times each")
    options = parser.parse_args()
    share = 4 if options.quick else 1
    parts: dict[str, Callable[[], None]] = {
        "generation": lambda: generation(60 // share),
        "generate": lambda: generated(400 // share),
        "steps": lambda: steps(9),
        "reuse": lambda: reuse(20 // share),
        "tasks": lambda: tasks(60 // share),
        "gym": lambda: gym(21),
    }
    if options.flakes:
        parts["flakes"] = lambda: flakes(options.flakes, 3)
    for name in options.only or parts:
        parts[name]()


if __name__ == "__main__":
    main()
