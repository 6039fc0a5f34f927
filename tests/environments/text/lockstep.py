"""A run in Chromium and the same run in the text engine, action by action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.chromium import AgentObservation, Browser, open_session
from trajudge.environments.chromium.action_syntax import write
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.environments.serving.run import ServedRun, open_run
from trajudge.environments.serving.server import Server
from trajudge.environments.text import TextSession

SECRET = b"the same in both"
WORDS = ("tea", "Blue kettle", "two\nlines", "é~*' \"<&>", "")
NUMBERS = ("3", "12", "2.5", "abc", "")
DATES = ("2026-03-04", "2026-02-30", "")
OUT_OF_TIME = ("Timeout", "does not answer", "did not load")
KEYS = ("Enter", "Tab", "Shift+Tab", "Space", "ArrowDown", "Escape")
MODIFIERS = ("Control", "Shift", "Alt", "Hyper")
PATHS = (
    "",
    "/home#x",
    "/nowhere?a=%20b&c='\"<é",
    "/do/x",
    "/a/../home",
    "/_answer",
    "/chart/x.png",
)


class Look(NamedTuple):
    """What an agent sees after an action, and what the run noted so far."""

    url: str | None
    title: str
    error: str | None
    axtree: str | None
    pruned: str | None
    elements: Sequence[object]
    focused: str | None
    tabs: tuple[object, ...]
    events: Sequence[object]


class Moment(NamedTuple):
    """The actions so far, and what the two engines show after them."""

    actions: tuple[str, ...]
    chromium: Look
    text: Look

    @property
    def out_of_time(self) -> bool:
        """Whether a busy machine kept Chromium from doing the action: there is nothing to compare
        from then on."""
        return any(words in (self.chromium.error or "") for words in OUT_OF_TIME)


def lockstep(server: Server, browser: Browser, config: Config, steps: int) -> Iterator[Moment]:
    """Play drawn actions in both engines, from the same seed every time."""
    real = server.open(config, "lockstep")
    real.script = False  # what the text engine plays are the plain forms
    text = open_run(config, SECRET, "lockstep")
    rng = np.random.default_rng(config.instance)
    try:
        with open_session(
            browser, real.start_url, pictures=False, visible="rendered", patience=30
        ) as session:
            offline = TextSession(text)
            seen, other = session.observe(), offline.observe()
            actions: tuple[str, ...] = ()
            yield Moment(actions, _look(seen, real), _look(other, text))
            while len(actions) < steps:
                action = _drawn(seen, real.origin, rng)
                actions += (action,)
                seen = session.observe(session.act(action))
                other = offline.observe(offline.act(action))
                yield Moment(actions, _look(seen, real), _look(other, text))
    finally:
        server.close(real)
        text.state.close()


def configs(count: int, seed: int) -> Iterable[Config]:
    """Yield sound configurations, the applications by turns, most of them with noise."""
    rng = np.random.default_rng(seed)
    names = [*APPS]
    for number in range(count):
        app = load_app(names[number % len(names)])
        while True:
            scenario = app.scenarios[int(rng.integers(len(app.scenarios)))]
            instance, profile, theme, ui, noise = rng.integers(
                (1000, PROFILES, THEMES, STATES, 4)
            ).tolist()
            config = Config(
                app=app.id,
                scenario=scenario.id,
                instance=instance,
                profile=profile,
                theme=theme,
                ui=ui,
                noise=noise,
            )
            if isinstance(check(app, config), Case):
                yield config
                break


def _look(seen: AgentObservation, run: ServedRun) -> Look:
    page = seen.observation
    return Look(
        page.url,
        seen.title,
        page.page_error,
        page.axtree,
        page.axtree_pruned,
        seen.elements,
        seen.focused,
        (seen.open_pages, seen.open_titles, seen.active_page),
        tuple(run.events),
    )


def _drawn(seen: AgentObservation, origin: str, rng: np.random.Generator) -> str:
    """Return an action on what the page offers; some fail, as those of agents do."""

    def one_of(values: Sequence[str]) -> str:
        return values[int(rng.integers(len(values)))]

    if not seen.elements:  # a tab that is blank
        return write("goto", origin + "/home")
    element = seen.elements[int(rng.integers(len(seen.elements)))]
    chance = rng.random()
    if chance < 0.08:
        return one_of(("go_back()", "go_forward()"))
    if chance < 0.12:
        return write("goto", one_of((seen.observation.url or "", *(origin + p for p in PATHS))))
    if chance < 0.14:
        return one_of(("goto('file:///etc')", "click('9999')", "jump()", "scroll(0, 300)"))
    if chance < 0.17:
        return write(one_of(("hover", "dblclick")), element.bid)
    if chance < 0.25:
        return write("press", element.bid, one_of(KEYS))
    if chance < 0.27:
        return write("fill", element.bid, "x")
    if chance < 0.29:
        return write(one_of(("focus", "clear")), element.bid)
    if chance < 0.30:
        return write("drag_and_drop", element.bid, one_of([e.bid for e in seen.elements]))
    if chance < 0.32:
        return f"click({element.bid!r}, modifiers=[{one_of(MODIFIERS)!r}])"
    if chance < 0.34:
        return one_of(("new_tab()", "tab_close()", "tab_focus(0)", "tab_focus(1)"))
    if chance < 0.35:
        return one_of(("keyboard_type('ab')", "keyboard_press('Tab')", "upload_file('1', 'x')"))
    match element.role:
        case "textbox" | "searchbox":
            return write("fill", element.bid, one_of(WORDS))
        case "spinbutton":
            return write("fill", element.bid, one_of(NUMBERS))
        case "Date":
            return write("fill", element.bid, one_of(DATES))
        case "option" if chance < 0.9:
            lists = [e.bid for e in seen.elements if e.role in ("combobox", "listbox")]
            return write("select_option", one_of(lists), element.name)
    return write("click", element.bid)
