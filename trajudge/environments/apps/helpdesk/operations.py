"""What a desk manager can do."""

from __future__ import annotations

from trajudge.environments.apps.helpdesk.schema import DAYS, HOURS, PRIORITIES
from trajudge.environments.apps.submissions import (
    added,
    changed,
    confirmed,
    is_date,
    preference,
    toggle,
)
from trajudge.environments.model.spec import FormSubmission, Operation, Rejected, Success

RESOLUTIONS = ("fixed", "duplicate", "not reproducible", "withdrawn")
ON_THE_BOARD = ("open", "waiting")
VERDICTS = {"approve": "approved", "decline": "declined"}


def _file_ticket(submission: FormSubmission) -> Success | Rejected:
    state, priority = submission.state, submission.form.get("priority")
    subject, due = submission.text("subject", 80), submission.form.get("due", "")
    assignee = submission.row("person", "assignee")
    if not subject or assignee is None or priority not in PRIORITIES or not is_date(due):
        return Rejected("A ticket needs a subject, an assignee, a priority and a due date.")
    return added(
        submission, "ticket", prefix="T", subject=subject, body=submission.text("body", 500),
        priority=priority, status="open", requester=state.row("account", "me")["person"],
        assignee=assignee["id"], due=due, resolution="", note="",
    )  # fmt: skip


def _update_ticket(submission: FormSubmission) -> Success | Rejected:
    priority, ticket = submission.form.get("priority", ""), submission.row("ticket")
    assignee = submission.row("person", "assignee")
    if ticket is None or ticket["status"] == "closed":
        return Rejected("This ticket can no longer be changed.")
    if assignee is None or priority not in PRIORITIES:
        return Rejected("Choose an assignee and a priority.")
    return changed(submission, "ticket", ticket, assignee=assignee["id"], priority=priority)


def _move_ticket(submission: FormSubmission) -> Success | Rejected:
    ticket, status = submission.row("ticket"), submission.form.get("status", "")
    if ticket is None or ticket["status"] == "closed" or status not in ON_THE_BOARD:
        return Rejected("This ticket cannot be moved there.")
    submission.state.change("ticket", ticket["id"], status=status)
    return Success("board")


def _close_ticket(submission: FormSubmission) -> Success | Rejected:
    ticket = submission.row("ticket")
    resolution, note = submission.form.get("resolution", ""), submission.text("note", 500)
    if ticket is None or ticket["status"] == "closed":
        return Rejected("There is no such ticket to close.")
    if resolution not in RESOLUTIONS or not note:
        return Rejected("Choose a resolution and write a note to the requester.")
    return changed(submission, "ticket", ticket, status="closed", resolution=resolution, note=note)


def _decide_purchase(submission: FormSubmission) -> Success | Rejected:
    purchase = submission.row("purchase")
    status, note = VERDICTS.get(submission.form.get("verdict", "")), submission.text("note", 500)
    if purchase is None or purchase["status"] != "pending":
        return Rejected("There is nothing to decide about this request.")
    if status is None or not note:
        return Rejected("Choose a verdict and write a note.")
    return changed(submission, "purchase", purchase, status=status, note=note)


def _decide_leave(submission: FormSubmission) -> Success | Rejected:
    """At once, and the allowance with it."""
    leave = submission.row("leave")
    status = VERDICTS.get(submission.form.get("verdict", ""))
    if leave is None or leave["status"] != "pending" or status is None:
        return Rejected("Choose a verdict on a request that is pending.")
    person = submission.state.row("person", leave["person"])
    if status == "approved":
        if person["allowance"] < leave["days"]:
            return Rejected(f"Only {person['allowance']} days are left.")
        left = person["allowance"] - leave["days"]
        submission.state.change("person", person["id"], allowance=left)
    note = submission.text("note", 500)
    return changed(submission, "leave", leave, status=status, note=note)


def _book(submission: FormSubmission) -> Success | Rejected:
    state = submission.state
    day, hour = submission.form.get("day", ""), submission.form.get("hour", "")
    room, purpose = submission.row("room"), submission.text("purpose", 80)
    if room is None or day not in DAYS or hour not in HOURS or not purpose:
        return Rejected("A booking needs a day, an hour and a purpose.")
    taken = "SELECT count(*) FROM booking WHERE room = :room AND day = :day AND hour = :hour"
    if state.value(taken, room=room["id"], day=day, hour=hour):
        return Rejected(f"{room['name']} is taken on {day} at {hour}.")
    state.add(
        "booking", id=state.token("booking"), room=room["id"], day=day, hour=hour,
        purpose=purpose, person=state.row("account", "me")["person"],
    )  # fmt: skip
    return Success("room", {"id": room["id"]})


OPERATIONS = {
    "file-ticket": Operation(_file_ticket),
    "update-ticket": Operation(_update_ticket),
    "move-ticket": Operation(_move_ticket),
    "close-ticket": confirmed(
        _close_ticket, "ticket", "number", "{} cannot be opened again once it is closed. Close it?"
    ),
    "decide-purchase": confirmed(
        _decide_purchase,
        "purchase",
        "number",
        "The verdict on {} is sent to the buyers and binding. Send it?",
    ),
    "decide-leave": Operation(_decide_leave, irreversible=True),
    "book": Operation(_book),
    "pause": toggle("team", "paused"),
    "digest": preference("digest", "preferences"),
}
