"""What a reader of the almanac can do."""

from __future__ import annotations

from trajudge.environments.apps import draws
from trajudge.environments.apps.almanac.schema import FORMATS, LABELS, SHELVES, YEARS
from trajudge.environments.apps.submissions import (
    added,
    confirmed,
    preference,
    removal,
    transition,
)
from trajudge.environments.model.spec import TODAY, FormSubmission, Operation, Rejected, Success


def _keep(submission: FormSubmission) -> Success | Rejected:
    report, shelf = submission.row("report"), submission.form.get("shelf")
    if report is None or shelf not in SHELVES:
        return Rejected("Choose the shelf on which the report belongs.")
    remark = submission.text("remark", 200)
    held = submission.state.one("SELECT * FROM bookmark WHERE report = :id", id=report["id"])
    if held is None:
        key = submission.state.token("bookmark")
        submission.state.add("bookmark", id=key, report=report["id"], shelf=shelf, remark=remark)
    else:
        submission.state.change("bookmark", held["id"], shelf=shelf, remark=remark)
    return Success("research")


def _write_note(submission: FormSubmission) -> Success | Rejected:
    heading, label = submission.text("heading", 80), submission.form.get("label")
    if not heading or label not in LABELS:
        return Rejected("A note needs a heading and a label.")
    body = submission.text("body", 2000)
    submission.state.add(
        "note", id=submission.state.token("note"), heading=heading, label=label, body=body
    )  # fmt: skip
    return Success("research")


def _request(submission: FormSubmission) -> Success | Rejected:
    form = submission.form.get("format", "")
    indicator, district = submission.row("indicator"), submission.row("district")
    years = [submission.form.get(name, "") for name in ("first", "last")]
    known = all(year in map(str, YEARS) for year in years)
    if indicator is None or district is None or not known or form not in FORMATS:
        return Rejected("Please fill in every field of the request.")
    first, last = map(int, years)
    if first > last:
        return Rejected("The first year must not be after the last one.")
    return added(
        submission, "export", prefix="EX", least=1000, indicator=indicator["id"],
        district=district["id"], first=first, last=last, format=form, asked=TODAY,
        ready=draws.shifted(FORMATS[form] + last - first), status="requested",
    )  # fmt: skip


_withdraw = transition(
    "export", "requested", "withdrawn", "This request can no longer be withdrawn."
)


def _book(submission: FormSubmission) -> Success | Rejected:
    event, wanted = submission.row("event"), submission.form.get("seats", "")
    if event is None or wanted not in tuple("123456"):
        return Rejected("From one to six seats can be booked at once.")
    if int(wanted) > event["seats"]:
        return Rejected(f"Only {event['seats']} seats are free.")
    seats, total = int(wanted), int(wanted) * event["fee"]
    submission.state.change("event", event["id"], seats=event["seats"] - seats)
    return added(submission, "booking", event=event["id"], seats=seats, total=total)


OPERATIONS = {
    "keep": Operation(_keep),
    "drop": removal("bookmark", "research"),
    "write-note": Operation(_write_note),
    "delete-note": removal("note", "research", irreversible=True),
    "request-export": confirmed(
        _request,
        "indicator",
        "name",
        "A request for {} counts against your yearly allowance at once. Send it?",
        unknown="this series",
    ),
    "withdraw-export": confirmed(
        _withdraw, "export", "number", "Request {} will be given up for good. Do so?"
    ),
    "book": Operation(_book, irreversible=True),
    "digest": preference("digest", "account"),
}
