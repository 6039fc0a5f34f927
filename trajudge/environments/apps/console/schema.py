"""What the operations console stores, and the rows of its data profiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trajudge.environments.apps import draws
from trajudge.environments.apps.reading import rows_of
from trajudge.environments.model.state import Rows, Value, token

_ROWS = rows_of(__package__ or "")


REGIONS = ("Frankfurt", "Oregon", "Singapore")
ROLES = ("viewer", "developer", "operator", "auditor")
TEAMS = ("Payments", "Discovery", "Media", "Identity")
STATES = ("running", "stopped", "draining")
SEVERITIES = ("minor", "major", "critical")
ALERTED = ("firing", "assigned", "resolved")
SCOPES = ("read logs", "deploy", "manage billing")
GROUNDS = ("leaked", "unused", "replaced")
RESULTS = ("succeeded", "failed", "timed out")
STRATEGIES = ("rolling", "canary", "blue-green")
PAID = ("paid", "due", "overdue")
PRIORITIES = ("P1", "P2", "P3")
BILLINGS = ("monthly", "yearly")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def profile(rng: np.random.Generator, index: int) -> Rows:
    """Return a platform with some 10 to 21 services, 26 to 59 machines and 45 to 78 alerts."""
    members = _members(rng, 9 + index % 9)
    services = _services(rng, 10 + index, members)
    named = [str(member[1]) for member in members]
    machines = _machines(rng, 26 + 3 * index, services)
    return {
        "member": members,
        "service": services,
        "load": [row for service in services for row in _loads(rng, service[0])],
        "machine": machines,
        "deployment": _deployments(rng, 26 + 3 * index, services, named),
        "alert": _alerts(rng, 45 + 3 * index, services, named),
        "accesskey": _keys(rng, 18 + 2 * index, members),
        "invoice": _invoices(rng, 30 + 3 * index, services),
        "window": _windows(rng, 4 + index // 2, services),
        "account": [("me", named[0], 0)],
    }


def _version(rng: np.random.Generator) -> str:
    return ".".join(str(rng.integers(low, 10)) for low in (1, 0, 0))


def _members(rng: np.random.Generator, count: int) -> list[draws.Row]:
    names = rng.choice(_ROWS.people, count, replace=False).tolist()
    return [
        (
            token("member", name),
            name,
            draws.one(rng, TEAMS),
            draws.one(rng, ROLES),
            _ROWS.about[at % 4],
        )
        for at, name in enumerate(names)
    ]


@draws.listed
def _services(rng: np.random.Generator, count: int, members: list[Any]) -> Iterator[draws.Row]:
    names = [f"{service}-{part}" for service in _ROWS.things for part in _ROWS.parts]
    for at, name in enumerate(rng.choice(names, count, replace=False).tolist()):
        region, quota = REGIONS[at % len(REGIONS)], int(rng.integers(2, 9))
        billing, owner = str(draws.one(rng, BILLINGS)), members[at % len(members)][0]
        key = token("service", name)
        yield (key, name, region, owner, _version(rng), quota, billing, "CH-1001", 0)


@draws.listed
def _loads(rng: np.random.Generator, service: Value) -> Iterator[draws.Row]:
    """Draw wide steps, so that the columns of one chart are told apart."""
    for kind, base, step in (("load", 10, 9), ("requests", 120, 90)):
        low = base + int(rng.integers(step))
        for day, rank in zip(DAYS, rng.permutation(len(DAYS)).tolist(), strict=True):
            yield (token("load", service, kind, day), service, kind, day, low + step * rank)


@draws.listed
def _machines(rng: np.random.Generator, count: int, services: list[Any]) -> Iterator[draws.Row]:
    for name in draws.numbers(rng, "node", count):
        size, state = (
            str(draws.one(rng, list(_ROWS.sizes))),
            str(rng.choice(STATES, p=(0.4, 0.3, 0.3))),
        )
        cost = _ROWS.sizes[size] + 5 * int(rng.integers(0, 380))
        yield (token("machine", name), name, draws.one(rng, services)[0], size, cost, state)


@draws.listed
def _deployments(
    rng: np.random.Generator, count: int, services: list[Any], names: list[str]
) -> Iterator[draws.Row]:
    for number in draws.numbers(rng, "DEP", count):
        service, author = draws.one(rng, services)[0], draws.one(rng, names)
        deployed = draws.day(rng, -61, 0)
        result = str(rng.choice(RESULTS, p=(0.5, 0.3, 0.2)))
        strategy, note, version = (
            draws.one(rng, STRATEGIES),
            draws.one(rng, _ROWS.notes),
            _version(rng),
        )
        key = token("deployment", number)
        yield (key, number, service, version, deployed, author, strategy, result, note)


@draws.listed
def _alerts(
    rng: np.random.Generator, count: int, services: list[Any], names: list[str]
) -> Iterator[draws.Row]:
    for number in draws.numbers(rng, "AL", count):
        service, severity = draws.one(rng, services)[0], draws.one(rng, SEVERITIES)
        raised = draws.day(rng, -40, 0)
        status = str(rng.choice(ALERTED, p=(0.5, 0.25, 0.25)))
        assignee, priority = ("-", "-") if status == "firing" else (draws.one(rng, names), "P2")
        about = (severity, raised, status, assignee, priority, draws.one(rng, _ROWS.bodies), "")
        yield (token("alert", number), number, service, *about)


@draws.listed
def _keys(rng: np.random.Generator, count: int, members: list[Any]) -> Iterator[draws.Row]:
    for label in draws.numbers(rng, "key", count):
        status = str(rng.choice(("active", "revoked"), p=(0.65, 0.35)))
        ground = "-" if status == "active" else str(draws.one(rng, GROUNDS))
        member, scope = draws.one(rng, members)[0], str(draws.one(rng, SCOPES))
        key = token("accesskey", label)
        yield (key, label, member, scope, draws.day(rng, 3, 400), status, ground)


@draws.listed
def _invoices(rng: np.random.Generator, count: int, services: list[Any]) -> Iterator[draws.Row]:
    for number in draws.numbers(rng, "INV", count):
        service, amount = draws.one(rng, services)[0], int(rng.integers(900, 91000))
        issued, status = draws.day(rng, -150, -1), str(draws.one(rng, PAID))
        yield (token("invoice", number), number, service, issued, amount, status)


@draws.listed
def _windows(rng: np.random.Generator, count: int, services: list[Any]) -> Iterator[draws.Row]:
    for number in draws.numbers(rng, "MW", count):
        service, starts = draws.one(rng, services)[0], draws.day(rng, 2, 30)
        hours, reason = int(rng.integers(1, 9)), str(draws.one(rng, _ROWS.reasons))
        yield (token("window", number), number, service, starts, hours, reason)
