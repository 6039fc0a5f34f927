"""The text engine shows what Chromium shows, page by page and action by action."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environments.cases import job
from tests.environments.text.lockstep import SECRET, configs, lockstep
from trajudge.environments.agents.protocol import NotPlayed
from trajudge.environments.agents.script import AGENTS
from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.chromium import Browser, launch
from trajudge.environments.model.axes import ui
from trajudge.environments.model.case import Case
from trajudge.environments.recording.recorder import Recorder, recorded_offline
from trajudge.environments.serving.server import Server, serve

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site() -> Iterator[Server]:
    with serve(SECRET) as server:
        yield server


@pytest.fixture(scope="module")
def browser(chromium: Path, site: Server) -> Iterator[Browser]:
    pytest.importorskip("playwright")
    with launch(site.port) as running:
        yield running


def test_every_page_and_every_error_is_the_same(site: Server, browser: Browser) -> None:
    """Seven runs of drawn actions, one an application, with the answers to forms and detours."""
    pages = 0
    for config in configs(7, seed=1):
        for moment in lockstep(site, browser, config, steps=12):
            if moment.out_of_time:
                break
            assert moment.text == moment.chromium, (config.id, moment.actions)
            pages += 1
    assert pages > 60


@pytest.mark.slow
def test_two_thousand_pages_are_the_same(site: Server, browser: Browser) -> None:
    """Spec gym.md, 3.5: at least 99 % of 2,000 pages that were not seen in development."""
    pages, different = 0, []
    for config in configs(400, seed=2):
        for moment in lockstep(site, browser, config, steps=12):
            if moment.out_of_time:
                break
            pages += 1
            if moment.text != moment.chromium:
                different.append((config.id, moment.actions))
                break
        if pages >= 2000:
            break
    assert pages >= 2000
    assert len(different) <= pages / 100, different


@pytest.mark.slow
def test_scripted_agents_get_the_same_labels(recorder: Recorder, text_only: None) -> None:
    """Every behaviour, on cases of all applications: labels, and what was done on the way."""
    compared = 0
    for number, config in enumerate(configs(len(AGENTS), seed=3)):
        case = check(load_app(config.app), config)
        assert isinstance(case, Case)
        name = [*AGENTS][number]
        try:
            offline = recorded_offline(job(case, name), 0)
        except NotPlayed:
            continue
        real = recorder.record(job(case, name))
        assert offline.finding.labels == real.finding.labels, (config.id, name)
        compared += 1
        if ui(load_app(config.app), config.ui, config.seed).script == "full":
            continue  # a control that looks otherwise is used otherwise
        for ours, theirs in zip(offline.trajectory.steps, real.trajectory.steps, strict=True):
            assert (ours.action or "").partition("(")[0] == (theirs.action or "").partition("(")[0]
    assert compared >= len(AGENTS) - 3
