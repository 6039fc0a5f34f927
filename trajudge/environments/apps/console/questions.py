"""What an agent is asked to find out at the operations console."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.apps.console.schema import (
    PAID,
    REGIONS,
    RESULTS,
    SCOPES,
    SEVERITIES,
)
from trajudge.environments.apps.lists import list_all, search_and_open, switch
from trajudge.environments.apps.tasks import TaskFile, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, press
from trajudge.environments.model.spec import Bound, ChoiceSlot

SERVICE = row_of("service")


def set_digest(_: Bound) -> Sequence[PlanStep]:
    return switch("preferences", "digest")


def silence(b: Bound) -> Sequence[PlanStep]:
    return [
        *search_and_open("services", b["service"]["name"]),
        press(Word("silence"), "keep it calm meanwhile"),
    ]


TASKS = TaskFile(__file__)
QUESTIONS = with_distractor(
    set_digest,
    TASKS.of_row("machine-cost", "machines", "machine.name"),
    TASKS.of_list(
        "next-expiry", "keys", scope=ChoiceSlot(SCOPES), status=ChoiceSlot(("active", "revoked"))
    ),
    TASKS.scenario(
        "invoices-sum",
        {
            "status": ChoiceSlot(PAID),
            "service": row_of(
                "service", "id IN (SELECT service FROM invoice WHERE status = :status)"
            ),
        },
        lambda b: list_all("invoices", status=b["status"]),
        distractor=silence,
    ),
    TASKS.scenario(
        "alerts-in-region",
        {"severity": ChoiceSlot(SEVERITIES), "region": ChoiceSlot(REGIONS)},
        lambda b: [
            *list_all("services", region=b["region"]),
            *list_all("alerts", severity=b["severity"]),
        ],
    ),
    TASKS.scenario(
        "deployed-services",
        {"result": ChoiceSlot(RESULTS), "month": ChoiceSlot(("2026-01", "2026-02"))},
        lambda b: list_all("deployments", result=b["result"]),
    ),
    TASKS.scenario(
        "peak-day",
        {"service": SERVICE, "kind": ChoiceSlot(("load", "requests"))},
        lambda b: search_and_open("services", b["service"]["name"]),
        distractor=silence,
    ),
)
