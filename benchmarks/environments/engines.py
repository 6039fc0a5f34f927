"""The two engines: whether they show the same, what a step takes, beside bare Playwright."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from threading import Thread
from time import process_time
from typing import Any

import gymnasium
import numpy as np

from benchmarks.environments.measuring import Spent, resident, say, spent
from benchmarks.environments.miniwob_probe import cpu
from benchmarks.environments.sample import sound
from tests.environments.agents.blind_replay import solution
from tests.environments.text.lockstep import SECRET, lockstep
from trajudge.environments.agents.protocol import Job, NotPlayed
from trajudge.environments.agents.script import AGENTS
from trajudge.environments.apps import load_app
from trajudge.environments.chromium import Browser, Session, launch, open_session
from trajudge.environments.gym import WebEnv
from trajudge.environments.kit.html import render
from trajudge.environments.kit.layout import PageLayout
from trajudge.environments.kit.theme import theme, wordings
from trajudge.environments.model.case import Case
from trajudge.environments.model.page import ItemList, Link, ListRow, Page
from trajudge.environments.recording.recorder import (
    actions_of,
    open_recorder,
    recorded_offline,
)
from trajudge.environments.serving.run import open_run
from trajudge.environments.serving.server import serve
from trajudge.environments.text import TextSession


def equality(wanted: int) -> None:
    """Compare trees, errors and events of both engines over drawn actions, page by page."""
    shown = different = runs = 0
    with serve(SECRET) as server, launch(server.port) as browser:
        for case in sound(wanted // 10):
            runs += 1
            for moment in lockstep(server, browser, case.config, steps=12):
                if moment.out_of_time:
                    break
                shown += 1
                if moment.text != moment.chromium:
                    different += 1
                    break
            if shown >= wanted:
                break
    share = 1 - different / shown
    note = f"{shown - different} of {shown} pages of {runs} runs"
    say(
        "trees, errors and events equal in both engines",
        f"{share:.2%}",
        ">= 99 %",
        share >= 0.99,
        note,
    )


def labels(wanted: int) -> None:
    """Compare the labels of scripted agents in both engines."""
    same = played = 0
    names = list(AGENTS)
    with open_recorder(0) as recorder:
        for number, case in enumerate(sound(wanted)):
            job = _job(case, names[number % len(names)])
            try:
                offline = recorded_offline(job, 0)
            except NotPlayed:
                continue
            played += 1
            same += offline.finding.labels == recorder.record(job).finding.labels
    say("labels equal in both engines", f"{same} of {played}", "all", same == played)


def _job(case: Case, agent: str) -> Job:
    return Job(config=case.config, agent=agent, goal=case.goal, shortest=case.shortest)


def gym(count: int, chromium: int) -> None:
    """Play reference solutions through the Gymnasium environment: the text engine on all cases,
    Chromium on some of them, in turn case by case."""
    cases = sound(count)
    forms: dict[str, tuple[WebEnv, float, float]] = {
        "text": (WebEnv(cases=cases), 1000, 5),
        "text, BrowserGym": (WebEnv(cases=cases, observation="browsergym"), 1000, 5),
        "Chromium": (WebEnv(cases=cases, engine="chromium", pictures=False), 10, 120),
        "Chromium, pictures": (WebEnv(cases=cases, engine="chromium"), 8, 120),
    }
    for env, _, _ in forms.values():
        env.reset(seed=0)  # starts the browser
    begun: dict[str, list[Spent]] = {name: [] for name in forms}
    played: dict[str, list[Spent]] = {name: [] for name in forms}
    steps = dict.fromkeys(forms, 0)
    for number, case in enumerate(cases):
        known = actions_of(solution(case))
        for name, (env, _, _) in forms.items():
            if number >= chromium and env.engine == "chromium":
                continue
            clock = process_time if env.engine == "text" else cpu
            with spent(clock) as used:
                env.reset(options={"case": case.id})
            begun[name].append(used)
            with spent(clock) as used:
                for action in known:
                    env.step(action)
            played[name].append(used)
            steps[name] += len(known)
    for name, (env, rate, reset) in forms.items():
        env.close()
        made = steps[name] / sum(one.cpu for one in played[name])
        wall = steps[name] / sum(one.wall for one in played[name])
        note = f"{wall:,.1f} by wall time, {len(played[name])} runs"
        say(f"steps per CPU second, {name}", f"{made:,.1f}", f">= {rate:,.0f}", made >= rate, note)
        half, late = 1000 * np.percentile([one.cpu for one in begun[name]], (50, 95))
        note = f"95th {late:.1f} ms"
        say(f"a reset, CPU, {name}", f"{half:.1f} ms", f"<= {reset:.0f} ms", half <= reset, note)
    _drawn()


def _drawn() -> None:
    """Measure a vector of random agents, and resets that draw their configuration."""
    envs = gymnasium.make_vec("trajudge/all-v0", 16)
    envs.reset(seed=0)
    offered = [env.action_space for env in envs.unwrapped.envs]  # type: ignore[attr-defined]
    with spent(process_time) as used:
        for _ in range(60):
            envs.step(tuple(space.sample() for space in offered))
    envs.close()
    rate = 16 * 60 / used.cpu
    say("steps per CPU second, vector of 16, random", f"{rate:,.0f}", note="with resets")
    env = WebEnv()
    env.reset(seed=0)
    resets = []
    for _ in range(60):
        with spent(process_time) as used:
            env.reset()
        resets.append(1000 * used.cpu)
    env.close()
    half, late = np.percentile(resets, (50, 95))
    say("a drawn reset, CPU, text", f"{half:.1f} ms", "<= 5 ms", half <= 5, f"95th {late:.1f} ms")


def memory(count: int) -> None:
    """Measure what an open session of the text engine holds."""
    cases = sound(count + 20)
    opened = [_opened(case) for case in cases[:20]]  # what all sessions share
    before = resident()
    opened += [_opened(case) for case in cases[20:]]
    each = (resident() - before) / count
    for session in opened:
        session.run.state.close()
    say("a session of the text engine", f"{each:.2f} MB", "<= 5 MB", each <= 5, f"{count} open")


def _opened(case: Case) -> TextSession:
    session = TextSession(open_run(case.config, SECRET, "memory"))
    session.observe()
    return session


# --- bare Playwright -----------------------------------------------------------------------------


def steps(pairs: int) -> None:
    """Measure a step in turn with bare Playwright on the same page: both click the link that opens
    the page again, read the accessibility tree and take a picture."""
    for rows, goal in ((12, 150), (300, 350)):
        with listed(rows) as port, launch(port) as browser:
            for pictures in (True, False):
                _steps(browser, pairs, goal, pictures=pictures)


def _document(rows: int) -> bytes:
    """Return a list of things with a link to itself, as the kit writes it."""
    columns = ("Name", "Kind", "Price")
    things = tuple(
        ListRow(Link(f"Thing {row}", "small", {"row": str(row)}), ("wooden", f"${row}.50"))
        for row in range(rows)
    )
    look = theme(0, 0)
    words = wordings(load_app("shop"), look)
    shell = PageLayout(
        "Benchmark", (), replace(look, items="table"), words, lambda _: "", lambda _: ""
    )
    page = Page("A list", (Link("Again", "again"), ItemList(columns, things)))
    return render(page, shell).encode()


@contextmanager
def listed(rows: int) -> Iterator[int]:
    """Serve one page; give the port."""
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


def _steps(browser: Browser, pairs: int, goal: int, *, pictures: bool) -> None:
    url = "http://run.localhost/again"
    with open_session(browser, url, pictures=pictures) as session:
        bare = _bare(browser, session, url, pictures=pictures)
        view = session.observe()
        lines = (view.observation.axtree or "").count("\n") + 1
        ours, theirs = [], []
        for _ in range(pairs + 1):
            bid = next(one.bid for one in view.elements if one.name == "Again")
            with spent() as used:
                view = session.observe(session.act(f"click({bid!r})"))
            ours.append(used)
            with spent() as used:
                bare()
            theirs.append(used)
    wall, used_cpu = _medians(ours)
    bare_wall, bare_cpu = _medians(theirs)
    what = "picture" if pictures else "text"
    note = (
        f"bare Playwright {bare_cpu:.0f} ms, {used_cpu / bare_cpu:.2f} times; "
        f"wall {wall:.0f} and {bare_wall:.0f} ms"
    )
    say(
        f"a step, CPU, {lines} lines, {what}",
        f"{used_cpu:.0f} ms",
        f"<= {goal} ms",
        used_cpu <= goal,
        note,
    )


def _medians(turns: list[Spent]) -> tuple[float, float]:
    """Return milliseconds of wall time and of CPU; the first turn warms up."""
    walls, cpus = ([getattr(turn, part) for turn in turns[1:]] for part in ("wall", "cpu"))
    return 1000 * median(walls), 1000 * median(cpus)


def _bare(browser: Browser, session: Session, url: str, *, pictures: bool) -> Callable[[], None]:
    """Return the same step by Playwright alone, on a page of its own in the same Chromium."""
    chromium = session.tab.context.browser
    assert chromium
    page = browser.run(chromium.new_page(viewport={"width": 1024, "height": 768}), 60)
    tools = browser.run(page.context.new_cdp_session(page), 60)
    browser.run(page.goto(url), 60)

    async def step() -> None:
        async with page.expect_navigation():
            await page.get_by_role("link", name="Again", exact=True).first.click()
        await tools.send("Accessibility.getFullAXTree")
        if pictures:
            await page.screenshot()

    return lambda: browser.run(step(), 60)
