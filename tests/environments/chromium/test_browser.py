"""One browser for many runs: its tabs are used again, threads share it, nothing is left over."""

from __future__ import annotations

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.commands import command
from tests.environments.chromium.conftest import bid, click
from tests.environments.chromium.site import Site
from trajudge.environments.chromium import Browser, launch, open_session
from trajudge.environments.recording import recorder
from trajudge.util.errors import UserError
from trajudge.util.machine import CHROMIUMS

generate = command("env generate")
record = command("env record")

pytestmark = pytest.mark.browser


def test_runs_share_a_tab_but_nothing_that_a_page_can_keep(browser: Browser) -> None:
    tabs = []
    for run in ("same", "same", "another"):
        with open_session(browser, f"http://{run}.localhost/storage") as session:
            tabs.append(session.tab)
            assert session.observe().title in ("", "run=secret")
            assert session.act("go_back()") == "Error: there is no page to go back to"
            assert len(session.har()["log"]["entries"]) == 1
    assert tabs[0] is tabs[1] is tabs[2]


def test_nothing_that_a_page_does_while_it_is_left_reaches_the_next_run(browser: Browser) -> None:
    """Its page stays until the next run's first one is there."""
    tabs = []
    for run in ("kept", "kept", "new", "kept"):
        with open_session(browser, f"http://{run}.localhost/keeping") as session:
            tabs.append(session.tab)
            assert session.observe().title == "nothing"
            session.act("noop(100)")
            entries = session.har()["log"]["entries"]
        assert {entry["request"]["url"] for entry in entries} == {
            f"http://{run}.localhost/{path}" for path in ("keeping", "later")
        }
    with open_session(browser, "http://quiet.localhost/") as session:
        session.act("noop(100)")
        assert session.console_errors == [] and len(session.har()["log"]["entries"]) == 1
        assert session.tab is tabs[0]
    assert len({id(tab) for tab in tabs}) == 1


def test_a_tab_whose_page_closed_itself_meanwhile_is_not_lent(browser: Browser) -> None:
    with open_session(browser, "http://closing.localhost/closing") as session:
        closing = session.tab
        session.evaluate("setTimeout(close, 100)")
    browser.run(closing.lost.wait(), 30)
    with open_session(browser, "http://open.localhost/") as session:
        assert session.tab is not closing and session.observe().elements


def test_other_settings_mean_another_tab(browser: Browser) -> None:
    with open_session(browser, "http://wide.localhost/", viewport=(800, 600)) as session:
        assert session.evaluate("[innerWidth, innerHeight]") == [800, 600]
    with open_session(browser, "http://wide.localhost/", now="2030-01-01T00:00:00Z") as session:
        assert session.evaluate("[innerWidth, new Date().getFullYear()]") == [1024, 2030]


def test_runs_at_the_same_time_do_not_see_each_other(browser: Browser) -> None:
    def order(name: str) -> str:
        with open_session(browser, f"http://{name}.localhost/form", patience=60) as session:
            for _ in range(20):  # a busy machine does not do every action within its two seconds
                session.act(f"fill({bid(session, 'Name')!r}, {name!r})")
                session.act(f"click({bid(session, 'Order')!r})")
                url = session.observe().observation.url or ""
                if "/form" not in url:
                    break
            return url

    names = ["ann", "bob", "cy"]
    with ThreadPoolExecutor(len(names)) as pool:
        urls = list(pool.map(order, names))
    assert urls == [f"http://{name}.localhost/thanks?name={name}&size=s" for name in names]


def test_a_browser_ends_with_its_block(chromium: Path, site: Site) -> None:
    pytest.importorskip("playwright")
    with launch(site.server_port) as browser:
        with open_session(browser, "http://once.localhost/") as session:
            assert session.observe().elements
        assert browser.version
        running = session.tab.context.browser
    assert running and not running.is_connected()


def test_a_browser_without_pictures_shows_and_does_the_same(browser: Browser, site: Site) -> None:
    with launch(site.server_port, pictures=False) as plain:
        refused = pytest.raises(ValueError, match="without pictures")
        with refused, open_session(plain, "http://plain.localhost/"):
            pass
        shown = []
        for each in (browser, plain):
            with open_session(each, "http://plain.localhost/", pictures=False) as session:
                first = session.observe()
                scrolled = session.observe(session.act("scroll(0, 3000)"))
                followed = session.observe(click(session, "Far"))
                shown.append([view.observation for view in (first, scrolled, followed)])
    assert shown[0] == shown[1]
    assert len({view.axtree for view in shown[0]}) == 3


def slow_chromium(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Chromium on the PATH that starts, says where it is, and never answers."""
    program, started = folder / CHROMIUMS[0], folder / "started"
    program.write_text(f"#!/bin/sh\necho $$ > {started}\nexec sleep 300\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return started


def test_a_browser_that_does_not_come_up_is_given_up_and_ended(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("playwright")
    started = slow_chromium(tmp_path, monkeypatch)
    said = (
        f"{CHROMIUMS[0]} did not start within 2 seconds: run it again when the machine is less busy"
    )
    with pytest.raises(UserError, match=said), launch(site.server_port, patience=2):
        pass
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_a_recording_without_a_browser_ends_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("playwright")
    slow_chromium(tmp_path, monkeypatch)
    monkeypatch.setattr(recorder, "launch", partial(launch, patience=0.5))
    cases, out = tmp_path / "cases.jsonl", tmp_path / "out"
    assert generate(["--count", "1", "--level", "1", "--save", str(cases)]) == 0
    capsys.readouterr()
    agent = ["--agent", "oracle", "--out", str(out)]
    assert record(["--cases", str(cases), *agent]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{CHROMIUMS[0]} did not start within 0.5 seconds" in line


def test_the_folder_of_a_process_that_was_killed_is_removed(
    chromium: Path, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("abandoned", "used"):
        (tmp_path / f"trajudge-chromium-{name}").mkdir()
        lock = tmp_path / f"trajudge-chromium-{name}" / "trajudge.lock"
        lock.touch()
        os.utime(lock, (0, 0))
    with lock.open("rb") as used:
        fcntl.flock(used, fcntl.LOCK_EX)
        with launch(site.server_port) as browser:
            assert browser.version
            assert len(list(tmp_path.glob("trajudge-chromium-*"))) == 2  # ours, and the used one
    assert [folder.name for folder in tmp_path.iterdir()] == ["trajudge-chromium-used"]
