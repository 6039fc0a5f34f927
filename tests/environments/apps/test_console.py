"""The operations console: what its operations do and refuse."""

from __future__ import annotations

from functools import partial

import pytest

from tests.environments.apps.desk import sent, state_fixture
from trajudge.environments.apps import load_app
from trajudge.environments.model.site import Redirect
from trajudge.environments.model.spec import TODAY, Rejected
from trajudge.environments.model.state import AppState

APP = load_app("console")
state = state_fixture(APP, profile=4)
send = partial(sent, APP)


def one(state: AppState, sql: str) -> str:
    return str(state.value(sql))


def test_a_deployment_changes_the_version_of_its_service(state: AppState) -> None:
    service = one(state, "SELECT id FROM service ORDER BY id")
    landing = send(state, "deploy", service=service, version="12.0.3", strategy="canary")
    assert isinstance(landing, Redirect)
    deployment = state.row("deployment", landing.args["id"])
    assert (deployment["deployed"], deployment["strategy"]) == (TODAY, "canary")
    assert state.row("service", service)["version"] == "12.0.3"


@pytest.mark.parametrize("version", ["", "12", "1.2.3.4", "1.2.x", "1.2.-3"])
def test_a_version_has_three_numbers(state: AppState, version: str) -> None:
    service = one(state, "SELECT id FROM service ORDER BY id")
    refused = send(state, "deploy", service=service, version=version, strategy="canary")
    assert isinstance(refused, Rejected)


def test_a_machine_that_runs_is_not_retired(state: AppState) -> None:
    machine = one(state, "SELECT id FROM machine WHERE state = 'running' ORDER BY id")
    assert isinstance(send(state, "retire", machine=machine), Rejected)
    stopped = one(state, "SELECT id FROM machine WHERE state = 'stopped' ORDER BY id")
    assert isinstance(send(state, "retire", machine=stopped), Redirect)
    assert state.row("machine", stopped)["state"] == "retired"
    assert isinstance(send(state, "retire", machine=stopped), Rejected)


def test_a_key_is_revoked_once(state: AppState) -> None:
    key = one(state, "SELECT id FROM accesskey WHERE status = 'active' ORDER BY id")
    assert isinstance(send(state, "revoke", key=key), Rejected)
    assert isinstance(send(state, "revoke", key=key, ground="leaked"), Redirect)
    assert state.row("accesskey", key)["ground"] == "leaked"
    assert isinstance(send(state, "revoke", key=key, ground="unused"), Rejected)


@pytest.mark.parametrize("starts", ["", TODAY, "2026-02-30", "2026-3-9", "20260309"])
def test_a_window_starts_on_a_day_to_come(state: AppState, starts: str) -> None:
    service = one(state, "SELECT id FROM service ORDER BY id")
    form = {"service": service, "hours": "3", "reason": "Kernel patch"}
    assert isinstance(send(state, "schedule", starts=starts, **form), Rejected)
    assert isinstance(send(state, "schedule", starts="2026-03-09", **form), Redirect)


def test_a_resolved_alert_is_nobodys_any_more(state: AppState) -> None:
    alert = one(state, "SELECT id FROM alert WHERE status = 'resolved' ORDER BY id")
    member = one(state, "SELECT id FROM member ORDER BY id")
    assert isinstance(send(state, "assign", alert=alert, assignee=member, priority="P1"), Rejected)
