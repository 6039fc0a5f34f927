"""An application that is opened on a profile, and forms that are sent to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from trajudge.environments.model.axes import open_state, ui
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Page
from trajudge.environments.model.site import CONFIRMED, Redirect, Site
from trajudge.environments.model.spec import App, Rejected
from trajudge.environments.model.state import AppState


def state_fixture(app: App, profile: int, scenario: str = "") -> Any:
    """Return a fixture that opens the application's state on a profile."""

    @pytest.fixture
    def state() -> Iterator[AppState]:
        opened = open_state(app, Config(app=app.id, scenario=scenario, profile=profile))
        yield opened
        opened.close()

    return state


def sent(app: App, state: AppState, operation: str, /, **form: str) -> Redirect | Rejected | Page:
    """Post a form, confirmed where the application asks for it."""
    return Site(app, state, ui(app, 0, 0)).post(operation, {CONFIRMED: "yes", **form})
