"""What an agent is asked to find out at the request desk."""

from __future__ import annotations

from trajudge.environments.apps.helpdesk.operations import VERDICTS
from trajudge.environments.apps.helpdesk.plans import (
    list_all,
    pause_team,
    policy_page,
    team_page,
    want_digest,
)
from trajudge.environments.apps.helpdesk.schema import CATEGORIES, PRIORITIES
from trajudge.environments.apps.lists import search_and_open
from trajudge.environments.apps.tasks import TaskFile, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import choose, enter, follow, press, scan
from trajudge.environments.model.spec import ChoiceSlot, Derive

_TEAM = row_of("team")

_OPEN = {"priority": ChoiceSlot(PRIORITIES), "status": ChoiceSlot(("open", "waiting"))}
TASKS = TaskFile(__file__)
QUESTIONS = with_distractor(
    want_digest,
    TASKS.scenario(
        "policy-limit", {"policy": row_of("policy")}, lambda b: policy_page(b["policy"]["category"])
    ),
    TASKS.of_row("manager-of", "people", "person.name", "manager <> ''"),
    TASKS.scenario(
        "skip-level",
        {
            "ticket": row_of("ticket"),
            "chain": Derive(
                "SELECT a.name AS first, m.name AS second FROM person a "
                "JOIN person m ON m.id = a.manager WHERE a.id = :ticket_assignee "
                "AND m.manager <> ''"
            ),
        },
        lambda b: [
            *search_and_open("tickets", b["ticket"]["number"]),
            follow(b["chain"]["first"], "look at the assignee"),
            follow(b["chain"]["second"], "go on to the manager"),
        ],
    ),
    TASKS.of_list("earliest-due", "tickets", "open the list", **_OPEN),
    TASKS.of_list("busy-people", "tickets", "open the list", **_OPEN),
    TASKS.of_list(
        "category-total",
        "purchases",
        "open the list",
        category=ChoiceSlot(CATEGORIES),
        status=ChoiceSlot(("pending", *VERDICTS.values())),
    ),
    TASKS.scenario(
        "budget-left",
        {
            "status": ChoiceSlot(("pending", "approved")),
            "team": row_of(
                "team",
                "id IN (SELECT p.team FROM purchase u JOIN person p "
                "ON p.id = u.requester WHERE u.status = :status)",
            ),
        },
        lambda b: [
            *team_page(b["team"]),
            *list_all("purchases", team=b["team"]["name"], status=b["status"]),
        ],
        distractor=pause_team,
    ),
    TASKS.scenario(
        "top-spending",
        {
            "team": _TEAM,
            "top": Derive(
                "SELECT * FROM policy WHERE category IN (SELECT label FROM load "
                "WHERE team = :team AND kind = 'spending' AND amount = (SELECT max(amount) "
                "FROM load WHERE team = :team AND kind = 'spending'))"
            ),
        },
        lambda b: [
            *team_page(b["team"]),
            follow(Word("spending"), "look at the spending"),
            *policy_page(b["top"]["category"]),
        ],
        distractor=pause_team,
    ),
    TASKS.scenario(
        "backlog-month", {"team": _TEAM}, lambda b: team_page(b["team"]), distractor=pause_team
    ),
    TASKS.scenario(
        "absent-days",
        {
            "status": ChoiceSlot(("pending", "approved")),
            "person": row_of("person", "id IN (SELECT person FROM leave WHERE status = :status)"),
        },
        lambda b: [
            follow(Word("leaves"), "open the list of leave"),
            enter(Word("words"), b["person"]["name"], f"look for {b['person']['name']}"),
            choose(Word("status"), b["status"], f"narrow it down to {b['status']}"),
            press(Word("search"), "start the search"),
            scan("see all of them"),
        ],
    ),
)
