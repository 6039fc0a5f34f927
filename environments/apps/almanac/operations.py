"""What a reader of the almanac can do."""

from __future__ import annotations

from datetime import date, timedelta

from environments.apps.almanac.schema import FORMATS, LABELS, SHELVES, YEARS
from environments.apps.submissions import asks, number_for, preference, removal
from environments.model.spec import TODAY, Call, Done, Operation, Refused


def _keep(call: Call) -> Done | Refused:
    report, shelf = call.row("report"), call.form.get("shelf")
    if report is None or shelf not in SHELVES:
        return Refused("Choose the shelf on which the report belongs.")
    remark = call.text("remark", 200)
    held = call.world.one("SELECT * FROM bookmark WHERE report = :id", id=report["id"])
    if held is None:
        key = call.world.token("bookmark")
        call.world.add("bookmark", id=key, report=report["id"], shelf=shelf, remark=remark)
    else:
        call.world.change("bookmark", held["id"], shelf=shelf, remark=remark)
    return Done("research")


def _write_note(call: Call) -> Done | Refused:
    heading, label = call.text("heading", 80), call.form.get("label")
    if not heading or label not in LABELS:
        return Refused("A note needs a heading and a label.")
    body = call.text("body", 2000)
    call.world.add(
        "note", id=call.world.token("note"), heading=heading, label=label, body=body
    )  # fmt: skip
    return Done("research")


def _request(call: Call) -> Done | Refused:
    world, form = call.world, call.form.get("format", "")
    indicator = call.row("indicator")
    district = call.row("district")
    years = [call.form.get(name, "") for name in ("first", "last")]
    known = all(year in map(str, YEARS) for year in years)
    if indicator is None or district is None or not known or form not in FORMATS:
        return Refused("Please fill in every field of the request.")
    first, last = map(int, years)
    if first > last:
        return Refused("The first year must not be after the last one.")
    key = world.token("export")
    ready = date.fromisoformat(TODAY) + timedelta(days=FORMATS[form] + last - first)
    world.add(
        "export", id=key, number=number_for("EX", key, 1000), indicator=indicator["id"],
        district=district["id"], first=first, last=last, format=form, asked=TODAY,
        ready=ready.isoformat(), status="requested",
    )  # fmt: skip
    return Done("export", {"id": key})


def _withdraw(call: Call) -> Done | Refused:
    export = call.row("export")
    if export is None or export["status"] != "requested":
        return Refused("This request can no longer be withdrawn.")
    call.world.change("export", export["id"], status="withdrawn")
    return Done("export", {"id": export["id"]})


def _book(call: Call) -> Done | Refused:
    event, wanted = call.row("event"), call.form.get("seats", "")
    if event is None or wanted not in tuple("123456"):
        return Refused("From one to six seats can be booked at once.")
    if int(wanted) > event["seats"]:
        return Refused(f"Only {event['seats']} seats are free.")
    key, seats = call.world.token("booking"), int(wanted)
    call.world.add("booking", id=key, event=event["id"], seats=seats, total=seats * event["fee"])
    call.world.change("event", event["id"], seats=event["seats"] - seats)
    return Done("booking", {"id": key})


OPERATIONS = {
    "keep": Operation(_keep),
    "drop": removal("bookmark", "research"),
    "write-note": Operation(_write_note),
    "delete-note": removal("note", "research", irreversible=True),
    "request-export": Operation(
        _request,
        irreversible=True,
        confirm=asks(
            "indicator",
            "name",
            "A request for {} counts against your yearly allowance at once. Send it?",
            unknown="this series",
        ),
    ),
    "withdraw-export": Operation(
        _withdraw,
        irreversible=True,
        confirm=asks("export", "number", "Request {} will be given up for good. Do so?"),
    ),
    "book": Operation(_book, irreversible=True),
    "digest": preference("digest", "account"),
}
