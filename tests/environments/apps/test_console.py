"""The operations console: what its operations do and refuse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from environments.apps import load_app
from environments.model.axes import open_world, ui
from environments.model.config import Config
from environments.model.page import Page
from environments.model.site import CONFIRMED, Landing, Site
from environments.model.spec import TODAY, Refused
from environments.model.state import World

APP = load_app("console")


@pytest.fixture
def world() -> Iterator[World]:
    world = open_world(APP, Config(app=APP.id, scenario="", profile=4))
    yield world
    world.close()


def send(world: World, operation: str, **form: str) -> Landing | Refused | Page:
    return Site(APP, world, ui(APP, 0, 0)).post(operation, {CONFIRMED: "yes", **form})


def one(world: World, sql: str) -> str:
    return str(world.value(sql))


def test_a_deployment_changes_the_version_of_its_service(world: World) -> None:
    service = one(world, "SELECT id FROM service ORDER BY id")
    landing = send(world, "deploy", service=service, version="12.0.3", strategy="canary")
    assert isinstance(landing, Landing)
    deployment = world.row("deployment", landing.args["id"])
    assert (deployment["deployed"], deployment["strategy"]) == (TODAY, "canary")
    assert world.row("service", service)["version"] == "12.0.3"


@pytest.mark.parametrize("version", ["", "12", "1.2.3.4", "1.2.x", "1.2.-3"])
def test_a_version_has_three_numbers(world: World, version: str) -> None:
    service = one(world, "SELECT id FROM service ORDER BY id")
    refused = send(world, "deploy", service=service, version=version, strategy="canary")
    assert isinstance(refused, Refused)


def test_a_machine_that_runs_is_not_retired(world: World) -> None:
    machine = one(world, "SELECT id FROM machine WHERE state = 'running' ORDER BY id")
    assert isinstance(send(world, "retire", machine=machine), Refused)
    stopped = one(world, "SELECT id FROM machine WHERE state = 'stopped' ORDER BY id")
    assert isinstance(send(world, "retire", machine=stopped), Landing)
    assert world.row("machine", stopped)["state"] == "retired"
    assert isinstance(send(world, "retire", machine=stopped), Refused)


def test_a_key_is_revoked_once(world: World) -> None:
    key = one(world, "SELECT id FROM accesskey WHERE status = 'active' ORDER BY id")
    assert isinstance(send(world, "revoke", key=key), Refused)
    assert isinstance(send(world, "revoke", key=key, ground="leaked"), Landing)
    assert world.row("accesskey", key)["ground"] == "leaked"
    assert isinstance(send(world, "revoke", key=key, ground="unused"), Refused)


@pytest.mark.parametrize("starts", ["", TODAY, "2026-02-30", "2026-3-9", "20260309"])
def test_a_window_starts_on_a_day_to_come(world: World, starts: str) -> None:
    service = one(world, "SELECT id FROM service ORDER BY id")
    form = {"service": service, "hours": "3", "reason": "Kernel patch"}
    assert isinstance(send(world, "schedule", starts=starts, **form), Refused)
    assert isinstance(send(world, "schedule", starts="2026-03-09", **form), Landing)


def test_a_resolved_alert_is_nobodys_any_more(world: World) -> None:
    alert = one(world, "SELECT id FROM alert WHERE status = 'resolved' ORDER BY id")
    member = one(world, "SELECT id FROM member ORDER BY id")
    assert isinstance(send(world, "assign", alert=alert, assignee=member, priority="P1"), Refused)
