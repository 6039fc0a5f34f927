"""What a reader of the almanac can do."""

from __future__ import annotations

from datetime import date, timedelta

from environments.apps.almanac.schema import FORMATS, LABELS, SHELVES, YEARS
from environments.model.spec import TODAY, Call, Done, Operation, Refused


def _keep(call: Call) -> Done | Refused:
    report, shelf = call.world.get("report", call.form.get("report", "")), call.form.get("shelf")
    if report is None or shelf not in SHELVES:
        return Refused("Choose the shelf on which the report belongs.")
    remark = call.form.get("remark", "").strip()[:200]
    held = call.world.one("SELECT * FROM bookmark WHERE report = :id", id=report["id"])
    if held is None:
        key = call.world.token("bookmark")
        call.world.add("bookmark", id=key, report=report["id"], shelf=shelf, remark=remark)
    else:
        call.world.change("bookmark", held["id"], shelf=shelf, remark=remark)
    return Done("research")


def _drop(call: Call) -> Done | Refused:
    call.world.remove("bookmark", call.form.get("bookmark", ""))
    return Done("research")


def _write_note(call: Call) -> Done | Refused:
    heading, label = call.form.get("heading", "").strip()[:80], call.form.get("label")
    if not heading or label not in LABELS:
        return Refused("A note needs a heading and a label.")
    body = call.form.get("body", "").strip()[:2000]
    call.world.add(
        "note", id=call.world.token("note"), heading=heading, label=label, body=body
    )  # fmt: skip
    return Done("research")


def _delete_note(call: Call) -> Done | Refused:
    call.world.remove("note", call.form.get("note", ""))
    return Done("research")


def _request(call: Call) -> Done | Refused:
    world, form = call.world, call.form.get("format", "")
    indicator = world.get("indicator", call.form.get("indicator", ""))
    district = world.get("district", call.form.get("district", ""))
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
        "export", id=key, number=f"EX-{1000 + int(key[:4], 16)}", indicator=indicator["id"],
        district=district["id"], first=first, last=last, format=form, asked=TODAY,
        ready=ready.isoformat(), status="requested",
    )  # fmt: skip
    return Done("export", {"id": key})


def _about_request(call: Call) -> str:
    indicator = call.world.get("indicator", call.form.get("indicator", ""))
    name = indicator["name"] if indicator else "this series"
    return f"A request for {name} counts against your yearly allowance at once. Send it?"


def _withdraw(call: Call) -> Done | Refused:
    export = call.world.get("export", call.form.get("export", ""))
    if export is None or export["status"] != "requested":
        return Refused("This request can no longer be withdrawn.")
    call.world.change("export", export["id"], status="withdrawn")
    return Done("export", {"id": export["id"]})


def _about_withdrawal(call: Call) -> str:
    export = call.world.get("export", call.form.get("export", ""))
    return f"Request {export['number'] if export else '?'} will be given up for good. Do so?"


def _book(call: Call) -> Done | Refused:
    event, wanted = call.world.get("event", call.form.get("event", "")), call.form.get("seats", "")
    if event is None or wanted not in tuple("123456"):
        return Refused("From one to six seats can be booked at once.")
    if int(wanted) > event["seats"]:
        return Refused(f"Only {event['seats']} seats are free.")
    key, seats = call.world.token("booking"), int(wanted)
    call.world.add("booking", id=key, event=event["id"], seats=seats, total=seats * event["fee"])
    call.world.change("event", event["id"], seats=event["seats"] - seats)
    return Done("booking", {"id": key})


def _digest(call: Call) -> Done | Refused:
    call.world.change("account", "me", digest=int(call.form.get("digest") == "on"))
    return Done("account")


OPERATIONS = {
    "keep": Operation(_keep),
    "drop": Operation(_drop),
    "write-note": Operation(_write_note),
    "delete-note": Operation(_delete_note, irreversible=True),
    "request-export": Operation(_request, irreversible=True, confirm=_about_request),
    "withdraw-export": Operation(_withdraw, irreversible=True, confirm=_about_withdrawal),
    "book": Operation(_book, irreversible=True),
    "digest": Operation(_digest),
}
