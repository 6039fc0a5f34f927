"""What an agent is asked to do at the operations console, beside the questions."""

from __future__ import annotations

from trajudge.environments.apps.console.questions import (
    QUESTIONS,
    SERVICE,
    TASKS,
    set_digest,
    silence,
)
from trajudge.environments.apps.console.schema import (
    BILLINGS,
    DAYS,
    GROUNDS,
    PRIORITIES,
    REGIONS,
    ROLES,
    STRATEGIES,
    TEAMS,
)
from trajudge.environments.apps.lists import CONFIRM, fill, list_all, search_and_open
from trajudge.environments.apps.tasks import added, as_asked, changed, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import follow, press
from trajudge.environments.model.spec import Bound, ChoiceSlot, Derive, Number, Pick

_IDLE = (
    "FROM machine m JOIN service s ON s.id = m.service "
    "WHERE s.region = :region AND m.state = :state"
)


def _calmer(b: Bound) -> Bound:
    """Choose which is looked at first, so that the form of the other one is near."""
    calmer: Bound = b["other"] if b["busier"]["id"] == b["service"]["id"] else b["service"]
    return calmer


SCENARIOS = with_distractor(
    set_digest,
    *QUESTIONS,
    TASKS.scenario(
        "schedule",
        {
            "service": SERVICE,
            "starts": ChoiceSlot(("2026-03-09", "2026-03-14", "2026-04-02", "2026-04-11")),
            "hours": Number(2, 12),
            "reason": ChoiceSlot(("Disk exchange", "Kernel patch", "Load test")),
        },
        lambda b: [
            follow(Word("windows"), "open the calendar"),
            follow(Word("plan_window"), "open the form"),
            *fill(
                "schedule",
                texts={"starts": b["starts"], "hours": b["hours"], "reason": b["reason"]},
                choices={"service": b["service"]["name"]},
            ),
        ],
        expect=(added("window", service="{service[id]}", **as_asked("starts", "hours", "reason")),),
    ),
    TASKS.scenario(
        "revoke-key",
        {
            "key": row_of("accesskey", "status = 'active'"),
            "ground": ChoiceSlot(GROUNDS),
        },
        lambda b: [
            *search_and_open("keys", b["key"]["label"]),
            *fill("revoke", texts={}, choices={"ground": b["ground"]}),
            CONFIRM,
        ],
        expect=(changed("accesskey", "{key[id]}", status="revoked", ground="{ground}"),),
    ),
    TASKS.scenario(
        "deploy",
        {
            "service": SERVICE,
            "major": Number(11, 19),
            "minor": Number(1, 8),
            "strategy": ChoiceSlot(STRATEGIES),
            "note": ChoiceSlot(("Fixes the login", "Faster start", "New price list")),
        },
        lambda b: [
            *search_and_open("services", b["service"]["name"]),
            follow(Word("deploy_service"), "open the form"),
            *fill(
                "deploy",
                texts={"version": f"{b['major']}.{b['minor']}.0", "note": b["note"]},
                choices={"strategy": b["strategy"]},
            ),
        ],
        expect=(
            added(
                "deployment",
                service="{service[id]}",
                version="{major}.{minor}.0",
                **as_asked("strategy", "note"),
            ),
            changed("service", "{service[id]}", version="{major}.{minor}.0"),
        ),
        distractor=silence,
    ),
    TASKS.scenario(
        "retire-dearest",
        {
            "region": ChoiceSlot(REGIONS),
            "state": ChoiceSlot(("stopped", "draining")),
            "worst": Derive(f"SELECT m.* {_IDLE} AND m.cost = (SELECT max(m.cost) {_IDLE})"),
        },
        lambda b: [
            *list_all("machines", region=b["region"], state=b["state"]),
            *search_and_open("machines", b["worst"]["name"]),
            press(Word("retire"), "retire it"),
            CONFIRM,
        ],
        expect=(changed("machine", "{worst[id]}", state="retired"),),
    ),
    TASKS.scenario(
        "assign-alert",
        {
            "alert": row_of("alert", "status = 'firing'"),
            "member": row_of("member"),
            "priority": ChoiceSlot(PRIORITIES),
            "note": ChoiceSlot(("Please look today", "Known since Monday", "Restart it first")),
        },
        lambda b: [
            *search_and_open("alerts", b["alert"]["number"]),
            *fill(
                "assign",
                texts={"note": b["note"]},
                choices={"assignee": b["member"]["name"], "priority": b["priority"]},
            ),
        ],
        expect=(
            changed(
                "alert",
                "{alert[id]}",
                status="assigned",
                assignee="{member[name]}",
                **as_asked("priority", "note"),
            ),
        ),
    ),
    TASKS.scenario(
        "change-role",
        {
            "team": ChoiceSlot(TEAMS),
            "role": ChoiceSlot(ROLES),
            "service": Pick(
                "SELECT s.*, m.name AS owned FROM service s JOIN member m ON m.id = s.owner "
                "WHERE m.team <> :team AND m.role <> :role ORDER BY s.id"
            ),
        },
        lambda b: [
            *search_and_open("services", b["service"]["name"]),
            follow(b["service"]["owned"], "go on to whoever is in charge"),
            *fill("set_role", texts={}, choices={"role": b["role"], "team": b["team"]}),
        ],
        expect=(changed("member", "{service[owner]}", **as_asked("team", "role")),),
        distractor=silence,
    ),
    TASKS.scenario(
        "quota-for-busier",
        {
            "service": SERVICE,
            "other": row_of("service", "id <> :service"),
            "day": ChoiceSlot(DAYS),
            "quota": Number(11, 30),
            "billing": ChoiceSlot(BILLINGS),
            "ticket": ChoiceSlot(("CH-4410", "CH-4572", "CH-4835")),
            # Loads that a reader could take for equal make two rows: a tie.
            "busier": Derive(
                "SELECT s.* FROM service s JOIN load l ON l.service = s.id WHERE l.kind = 'load' "
                "AND l.day = :day AND s.id IN (:service, :other) AND l.amount + 6 > "
                "(SELECT max(amount) FROM load WHERE kind = 'load' AND day = :day "
                "AND service IN (:service, :other))"
            ),
        },
        lambda b: [
            *search_and_open("services", _calmer(b)["name"]),
            *search_and_open("services", b["busier"]["name"]),
            follow(Word("change_quota"), "open the form"),
            *fill(
                "set_quota",
                texts={"quota": b["quota"], "ticket": b["ticket"]},
                choices={"billing": b["billing"]},
            ),
        ],
        expect=(changed("service", "{busier[id]}", **as_asked("quota", "billing", "ticket")),),
        distractor=silence,
    ),
)
