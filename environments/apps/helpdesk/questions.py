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
from trajudge.environments.apps.tasks import lookup, question, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import choose, enter, follow, press, scan
from trajudge.environments.model.spec import AnswerSpec, ChoiceSlot, Derive

_TEAM = row_of("team")
_NAMES = "SELECT name FROM person"

QUESTIONS = with_distractor(
    want_digest,
    lookup(
        "policy-limit",
        "money",
        "policy.ceiling",
        goals=(
            "What is the highest amount that the policy allows for one {policy[category]} "
            "purchase?",
            "Look up the spending limit for a single purchase in the category {policy[category]}.",
        ),
        plan=lambda b: policy_page(b["policy"]["category"]),
        reply="The limit is {answer}.",
    ),
    question(
        "manager-of",
        "text",
        "SELECT name FROM person WHERE id = :person_manager",
        among=_NAMES,
        goals="Who is the manager of {person[name]}?",
        slots={"person": row_of("person", "manager <> ''")},
        plan=lambda b: search_and_open("people", b["person"]["name"]),
        reply="That is {answer}.",
    ),
    question(
        "skip-level",
        "text",
        "SELECT t.name FROM person a JOIN person m ON m.id = a.manager "
        "JOIN person t ON t.id = m.manager WHERE a.id = :ticket_assignee",
        among=_NAMES,
        goals="Ticket {ticket[number]} must be escalated twice: name the manager of the manager of "
        "the person it is assigned to.",
        slots={
            "ticket": row_of("ticket"),
            "chain": Derive(
                "SELECT a.name AS first, m.name AS second FROM person a "
                "JOIN person m ON m.id = a.manager WHERE a.id = :ticket_assignee "
                "AND m.manager <> ''"
            ),
        },
        plan=lambda b: [
            *search_and_open("tickets", b["ticket"]["number"]),
            follow(b["chain"]["first"], "look at the assignee"),
            follow(b["chain"]["second"], "go on to the manager"),
        ],
        reply="It goes to {answer}.",
    ),
    question(
        "earliest-due",
        "date",
        "SELECT min(due) FROM ticket WHERE priority = :priority AND status = :status",
        goals="Of the tickets with the priority {priority} and the status {status}, which due date "
        "is the earliest?",
        slots={"priority": ChoiceSlot(PRIORITIES), "status": ChoiceSlot(("open", "waiting"))},
        plan=lambda b: list_all("tickets", priority=b["priority"], status=b["status"]),
        reply="The earliest is {answer}.",
    ),
    question(
        "busy-people",
        "texts",
        "SELECT DISTINCT p.name FROM ticket t JOIN person p ON p.id = t.assignee "
        "WHERE t.priority = :priority AND t.status = :status",
        among=_NAMES,
        goals="Name everybody who has a ticket with the priority {priority} that is {status}.",
        slots={"priority": ChoiceSlot(PRIORITIES), "status": ChoiceSlot(("open", "waiting"))},
        plan=lambda b: list_all("tickets", priority=b["priority"], status=b["status"]),
        reply="These are {answer}.",
    ),
    question(
        "category-total",
        "money",
        "SELECT sum(amount) FROM purchase WHERE category = :category AND status = :status",
        goals="What do the purchases in the category {category} with the status {status} come to "
        "in all?",
        slots={
            "category": ChoiceSlot(CATEGORIES),
            "status": ChoiceSlot(("pending", *VERDICTS.values())),
        },
        plan=lambda b: list_all("purchases", category=b["category"], status=b["status"]),
        reply="They come to {answer}.",
    ),
    question(
        "budget-left",
        "money",
        "SELECT t.budget - sum(u.amount) FROM purchase u JOIN person p "
        "ON p.id = u.requester JOIN team t ON t.id = p.team "
        "WHERE t.id = :team AND u.status = :status",
        goals="How much of this year's budget of the team {team[name]} is left if all of its "
        "purchases that are {status} are subtracted?",
        slots={
            "status": ChoiceSlot(("pending", "approved")),
            "team": row_of(
                "team",
                "id IN (SELECT p.team FROM purchase u JOIN person p "
                "ON p.id = u.requester WHERE u.status = :status)",
            ),
        },
        plan=lambda b: [
            *team_page(b["team"]),
            *list_all("purchases", team=b["team"]["name"], status=b["status"]),
        ],
        reply="{answer} would be left.",
        distractor=pause_team,
    ),
    question(
        "top-spending",
        "money",
        "SELECT ceiling FROM policy WHERE id = :top",
        goals="See in the chart of last year's spending of the team {team[name]} on which category "
        "most was spent. What is the highest amount that the policy allows for one purchase of "
        "that category?",
        slots={
            "team": _TEAM,
            "top": Derive(
                "SELECT * FROM policy WHERE category IN (SELECT label FROM load "
                "WHERE team = :team AND kind = 'spending' AND amount = (SELECT max(amount) "
                "FROM load WHERE team = :team AND kind = 'spending'))"
            ),
        },
        plan=lambda b: [
            *team_page(b["team"]),
            follow(Word("spending"), "look at the spending"),
            *policy_page(b["top"]["category"]),
        ],
        reply="It is {answer}.",
        distractor=pause_team,
        charts=1,
    ),
    # A runner-up that a reader could take for the widest gap makes two answers.
    question(
        "backlog-month",
        "text",
        "WITH gap AS (SELECT a.label, a.amount - b.amount AS width FROM load a "
        "JOIN load b ON b.label = a.label AND b.team = a.team AND b.kind = 'solved' "
        "WHERE a.team = :team AND a.kind = 'received') SELECT label FROM gap "
        "WHERE width >= (SELECT max(width) FROM gap) - 4",
        among="SELECT DISTINCT label FROM load WHERE kind = 'solved'",
        goals="Compare the two charts of the team {team[name]}: in which month did the tickets "
        "received exceed the tickets solved by most? Answer with the month as the charts "
        "write it, and with the team's budget.",
        also=AnswerSpec("money", "SELECT budget FROM team WHERE id = :team"),
        slots={"team": _TEAM},
        plan=lambda b: team_page(b["team"]),
        reply="Month and budget: {answer}.",
        distractor=pause_team,
        charts=2,
    ),
    question(
        "absent-days",
        "number",
        "SELECT sum(days) FROM leave WHERE person = :person AND status = :status",
        goals="How many working days of leave are asked for in all in the requests of "
        "{person[name]} that are {status}?",
        slots={
            "status": ChoiceSlot(("pending", "approved")),
            "person": row_of("person", "id IN (SELECT person FROM leave WHERE status = :status)"),
        },
        plan=lambda b: [
            follow(Word("leaves"), "open the list of leave"),
            enter(Word("words"), b["person"]["name"], f"look for {b['person']['name']}"),
            choose(Word("status"), b["status"], f"narrow it down to {b['status']}"),
            press(Word("search"), "start the search"),
            scan("see all of them"),
        ],
        reply="It is {answer} days.",
    ),
)
