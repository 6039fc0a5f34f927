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
from trajudge.environments.apps.tasks import lookup, peak, question, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, press
from trajudge.environments.model.spec import AnswerSpec, Bound, ChoiceSlot

SERVICE = row_of("service")
_SERVICE_NAMES = "SELECT name FROM service"


def set_digest(_: Bound) -> Sequence[PlanStep]:
    return switch("preferences", "digest")


def silence(b: Bound) -> Sequence[PlanStep]:
    return [
        *search_and_open("services", b["service"]["name"]),
        press(Word("silence"), "keep it calm meanwhile"),
    ]


QUESTIONS = with_distractor(
    set_digest,
    lookup(
        "machine-cost",
        "money",
        "machine.cost",
        goals=(
            "What does the machine {machine[name]} cost per month?",
            "Look up the monthly cost of the machine {machine[name]}.",
        ),
        plan=lambda b: search_and_open("machines", b["machine"]["name"]),
        reply="It costs {answer} a month.",
    ),
    question(
        "next-expiry",
        "date",
        "SELECT min(expires) FROM accesskey WHERE scope = :scope AND status = :status",
        goals='Which is the earliest date on which an access key with the scope "{scope}" and the '
        "status {status} expires?",
        slots={"scope": ChoiceSlot(SCOPES), "status": ChoiceSlot(("active", "revoked"))},
        plan=lambda b: list_all("keys", scope=b["scope"], status=b["status"]),
        reply="It expires on {answer}.",
    ),
    question(
        "invoices-sum",
        "money",
        "SELECT sum(amount) FROM invoice WHERE service = :service AND status = :status",
        goals=(
            "What do the invoices for the service {service[name]} with the status {status} come "
            "to altogether?",
            "Add up all invoices for {service[name]} that have the status {status}.",
        ),
        slots={
            "status": ChoiceSlot(PAID),
            "service": row_of(
                "service", "id IN (SELECT service FROM invoice WHERE status = :status)"
            ),
        },
        plan=lambda b: list_all("invoices", status=b["status"]),
        reply="They come to {answer}.",
        distractor=silence,
    ),
    question(
        "alerts-in-region",
        "number",
        "SELECT count(*) FROM alert a JOIN service s ON s.id = a.service "
        "WHERE a.severity = :severity AND s.region = :region HAVING count(*) > 0",
        also=AnswerSpec(
            "date",
            "SELECT max(a.raised) FROM alert a JOIN service s ON s.id = a.service "
            "WHERE a.severity = :severity AND s.region = :region",
        ),
        goals=(
            "How many alerts of the severity {severity}, whatever their status, concern services "
            "in the region {region}, and on which date was the latest of them raised?"
        ),
        slots={"severity": ChoiceSlot(SEVERITIES), "region": ChoiceSlot(REGIONS)},
        plan=lambda b: [
            *list_all("services", region=b["region"]),
            *list_all("alerts", severity=b["severity"]),
        ],
        reply="Number and date: {answer}.",
    ),
    question(
        "deployed-services",
        "texts",
        "SELECT DISTINCT s.name FROM deployment d JOIN service s ON s.id = d.service "
        "WHERE d.result = :result AND substr(d.deployed, 1, 7) = :month ORDER BY 1",
        among=_SERVICE_NAMES,
        goals='Name every service that had a deployment with the result "{result}" in the month '
        "{month}.",
        slots={"result": ChoiceSlot(RESULTS), "month": ChoiceSlot(("2026-01", "2026-02"))},
        plan=lambda b: list_all("deployments", result=b["result"]),
        reply="They are {answer}.",
    ),
    peak(
        "peak-day",
        "load.day",
        "service = :service AND kind = :kind",
        goals="According to the chart of its {kind}, on which day of the week does the service "
        "{service[name]} reach its maximum?",
        slots={"service": SERVICE, "kind": ChoiceSlot(("load", "requests"))},
        plan=lambda b: search_and_open("services", b["service"]["name"]),
        reply="It is on {answer}.",
        distractor=silence,
    ),
)
