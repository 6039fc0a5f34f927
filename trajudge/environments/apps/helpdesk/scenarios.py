"""What an agent is asked to do at the request desk, beside the questions."""

from __future__ import annotations

from trajudge.environments.apps.helpdesk.operations import RESOLUTIONS
from trajudge.environments.apps.helpdesk.plans import fill, list_all, policy_page, want_digest
from trajudge.environments.apps.helpdesk.questions import QUESTIONS, TASKS
from trajudge.environments.apps.helpdesk.schema import DAYS, HOURS, PRIORITIES
from trajudge.environments.apps.lists import CONFIRM, open_listed, search_and_open
from trajudge.environments.apps.tasks import added, as_asked, changed, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import enter, follow, press, scan
from trajudge.environments.model.spec import (
    AllowedChange,
    ChoiceSlot,
    Derive,
    Number,
)

_UNFINISHED = row_of("ticket", "status <> 'closed'")
_NOTE = ChoiceSlot(("Settled on the phone", "See the house rules", "Thank you for asking"))

SCENARIOS = with_distractor(
    want_digest,
    *QUESTIONS,
    TASKS.scenario(
        "hand-over",
        {
            "ticket": _UNFINISHED,
            "person": row_of("person", "id <> :ticket_assignee"),
            "priority": ChoiceSlot(PRIORITIES),
        },
        lambda b: [
            *search_and_open("tickets", b["ticket"]["number"]),
            *fill(assignee=b["person"]["name"], priority=b["priority"]),
            press(Word("update"), "save the ticket"),
        ],
        expect=(changed("ticket", "{ticket[id]}", assignee="{person[id]}", priority="{priority}"),),
    ),
    TASKS.scenario(
        "close-ticket",
        {"ticket": _UNFINISHED, "resolution": ChoiceSlot(RESOLUTIONS), "note": _NOTE},
        lambda b: [
            *search_and_open("tickets", b["ticket"]["number"]),
            *fill(resolution=b["resolution"]),
            enter(Word("note"), b["note"], "write the note"),
            press(Word("close_ticket"), "close the ticket"),
            CONFIRM,
        ],
        expect=(
            changed("ticket", "{ticket[id]}", status="closed", **as_asked("resolution", "note")),
        ),
    ),
    TASKS.scenario(
        "decide-by-policy",
        {
            "purchase": row_of("purchase", "status = 'pending'"),
            "note": _NOTE,
            "rule": Derive(
                "SELECT CASE WHEN :purchase_amount <= ceiling THEN 'approve' ELSE 'decline' END "
                "AS verdict, CASE WHEN :purchase_amount <= ceiling THEN 'approved' "
                "ELSE 'declined' END AS status FROM policy WHERE category = :purchase_category"
            ),
        },
        lambda b: [
            *policy_page(b["purchase"]["category"]),
            *search_and_open("purchases", b["purchase"]["number"]),
            *fill(verdict=b["rule"]["verdict"]),
            enter(Word("note"), b["note"], "write the note"),
            press(Word("send_verdict"), "send the verdict"),
            CONFIRM,
        ],
        expect=(changed("purchase", "{purchase[id]}", status="{rule[status]}", note="{note}"),),
    ),
    TASKS.scenario(
        "grant-leave",
        {
            "leave": row_of("leave", "status = 'pending'"),
            "note": _NOTE,
        },
        lambda b: [
            *search_and_open("leaves", b["leave"]["number"]),
            *fill(verdict="approve"),
            enter(Word("note"), b["note"], "write the note"),
            press(Word("answer_leave"), "send the answer"),
        ],
        expect=(changed("leave", "{leave[id]}", status="approved", note="{note}"),),
        may=(AllowedChange("changed", "person", ("allowance",), {"id": "{leave[person]}"}),),
    ),
    TASKS.scenario(
        "file-ticket",
        {
            "subject": ChoiceSlot(("Gate is stuck", "Printer out of ink", "Lights flicker")),
            "priority": ChoiceSlot(PRIORITIES),
            "due": ChoiceSlot(("2026-03-09", "2026-03-13", "2026-03-20", "2026-04-01")),
            "person": row_of("person", "manager <> ''"),
            "manager": Derive("SELECT * FROM person WHERE id = :person_manager"),
        },
        lambda b: [
            *search_and_open("people", b["person"]["name"]),
            follow(Word("tickets"), "go to the tickets"),
            follow(Word("new_ticket"), "begin a new one"),
            enter(Word("subject"), b["subject"], "write the subject"),
            *fill(priority=b["priority"], assignee=b["manager"]["name"]),
            enter(Word("due"), b["due"], f"set the due date to {b['due']}"),
            press(Word("file"), "file the ticket"),
        ],
        expect=(
            added(
                "ticket",
                **as_asked("subject", "priority", "due"),
                assignee="{manager[id]}",
            ),
        ),
    ),
    TASKS.scenario(
        "book-room",
        {
            "purpose": ChoiceSlot(("Planning", "Retrospective", "Jury", "Press call")),
            "day": ChoiceSlot(DAYS),
            "hour": ChoiceSlot(HOURS),
            "seats": Number(3, 14),
            "room": Derive(
                "WITH fit AS (SELECT * FROM room WHERE screen = 1 AND seats >= :seats AND id NOT "
                "IN (SELECT room FROM booking WHERE day = :day AND hour = :hour)) "
                "SELECT * FROM fit WHERE seats = (SELECT min(seats) FROM fit)"
            ),
        },
        lambda b: [
            *list_all("bookings", day=b["day"], hour=b["hour"]),
            follow(Word("rooms"), "compare the rooms"),
            scan("see all of them"),
            *open_listed(
                "rooms", b["room"]["name"], "go back to the top of the list", "open the room"
            ),
            *fill(day=b["day"], hour=b["hour"]),
            enter(Word("purpose"), b["purpose"], "name the occasion"),
            press(Word("book"), "book it"),
        ],
        expect=(added("booking", room="{room[id]}", **as_asked("day", "hour", "purpose")),),
    ),
)
