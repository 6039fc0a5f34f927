"""What a desk manager can do."""

from __future__ import annotations

from environments.apps.helpdesk.schema import DAYS, HOURS, PRIORITIES
from environments.apps.submissions import asks, is_date, number_for, preference, toggle
from environments.model.spec import Call, Done, Operation, Refused

RESOLUTIONS = ("fixed", "duplicate", "not reproducible", "withdrawn")
VERDICTS = {"approve": "approved", "decline": "declined"}


def _file_ticket(call: Call) -> Done | Refused:
    world, priority, due = call.world, call.form.get("priority"), call.form.get("due", "")
    subject, assignee = (
        call.text("subject", 80),
        call.row("person", "assignee"),
    )
    if not subject or assignee is None or priority not in PRIORITIES or not is_date(due):
        return Refused("A ticket needs a subject, an assignee, a priority and a due date.")
    key = world.token("ticket")
    world.add(
        "ticket", id=key, number=number_for("T", key), subject=subject,
        body=call.text("body", 500), priority=priority, status="open",
        requester=world.row("account", "me")["person"], assignee=assignee["id"], due=due,
        resolution="", note="",
    )  # fmt: skip
    return Done("ticket", {"id": key})


def _update_ticket(call: Call) -> Done | Refused:
    world, priority = call.world, call.form.get("priority", "")
    ticket = call.row("ticket")
    assignee = call.row("person", "assignee")
    if ticket is None or ticket["status"] == "closed":
        return Refused("This ticket can no longer be changed.")
    if assignee is None or priority not in PRIORITIES:
        return Refused("Choose an assignee and a priority.")
    world.change("ticket", ticket["id"], assignee=assignee["id"], priority=priority)
    return Done("ticket", {"id": ticket["id"]})


def _close_ticket(call: Call) -> Done | Refused:
    ticket = call.row("ticket")
    resolution, note = call.form.get("resolution", ""), call.text("note", 500)
    if ticket is None or ticket["status"] == "closed":
        return Refused("There is no such ticket to close.")
    if resolution not in RESOLUTIONS or not note:
        return Refused("Choose a resolution and write a note to the requester.")
    call.world.change("ticket", ticket["id"], status="closed", resolution=resolution, note=note)
    return Done("ticket", {"id": ticket["id"]})


def _decide_purchase(call: Call) -> Done | Refused:
    purchase = call.row("purchase")
    status, note = VERDICTS.get(call.form.get("verdict", "")), call.text("note", 500)
    if purchase is None or purchase["status"] != "pending":
        return Refused("There is nothing to decide about this request.")
    if status is None or not note:
        return Refused("Choose a verdict and write a note.")
    call.world.change("purchase", purchase["id"], status=status, note=note)
    return Done("purchase", {"id": purchase["id"]})


def _decide_leave(call: Call) -> Done | Refused:
    """At once, and the allowance with it."""
    leave = call.row("leave")
    status = VERDICTS.get(call.form.get("verdict", ""))
    if leave is None or leave["status"] != "pending" or status is None:
        return Refused("Choose a verdict on a request that is pending.")
    person = call.world.row("person", leave["person"])
    if status == "approved":
        if person["allowance"] < leave["days"]:
            return Refused(f"Only {person['allowance']} days are left.")
        call.world.change("person", person["id"], allowance=person["allowance"] - leave["days"])
    call.world.change("leave", leave["id"], status=status, note=call.text("note", 500))
    return Done("leave", {"id": leave["id"]})


def _book(call: Call) -> Done | Refused:
    world, day, hour = call.world, call.form.get("day", ""), call.form.get("hour", "")
    room, purpose = call.row("room"), call.text("purpose", 80)
    if room is None or day not in DAYS or hour not in HOURS or not purpose:
        return Refused("A booking needs a day, an hour and a purpose.")
    taken = "SELECT count(*) FROM booking WHERE room = :room AND day = :day AND hour = :hour"
    if world.value(taken, room=room["id"], day=day, hour=hour):
        return Refused(f"{room['name']} is taken on {day} at {hour}.")
    world.add(
        "booking", id=world.token("booking"), room=room["id"], day=day, hour=hour,
        purpose=purpose, person=world.row("account", "me")["person"],
    )  # fmt: skip
    return Done("room", {"id": room["id"]})


OPERATIONS = {
    "file-ticket": Operation(_file_ticket),
    "update-ticket": Operation(_update_ticket),
    "close-ticket": Operation(
        _close_ticket,
        irreversible=True,
        confirm=asks("ticket", "number", "{} cannot be opened again once it is closed. Close it?"),
    ),
    "decide-purchase": Operation(
        _decide_purchase,
        irreversible=True,
        confirm=asks(
            "purchase", "number", "The verdict on {} is sent to the buyers and binding. Send it?"
        ),
    ),
    "decide-leave": Operation(_decide_leave, irreversible=True),
    "book": Operation(_book),
    "pause": toggle("team", "paused"),
    "digest": preference("digest", "preferences"),
}
