"""What changes a mail box."""

from __future__ import annotations

from trajudge.environments.apps.mail.schema import FOLDERS
from trajudge.environments.apps.submissions import (
    added,
    changed,
    confirmed,
    is_date,
    preference,
    removal,
)
from trajudge.environments.model.spec import TODAY, FormSubmission, Operation, Rejected, Success
from trajudge.environments.model.state import token

STATES = ("open", "paid")


def _answer(submission: FormSubmission) -> Success | Rejected:
    mail, text = submission.row("message"), submission.text("reply_text", 500)
    if mail is None or not text:
        return Rejected("A reply needs a text.")
    count = submission.state.value("SELECT count(*) FROM reply")
    key = token("reply", mail["id"], count)
    submission.state.add("reply", id=key, message=mail["id"], body=text)
    return Success("message", {"id": mail["id"]})


def _moved(folder: str) -> Operation:
    """Put a mail into a folder where it is not yet."""

    def run(submission: FormSubmission) -> Success | Rejected:
        mail = submission.row("message")
        if mail is None or mail["folder"] == folder:
            return Rejected("This mail is there already.")
        submission.state.change("message", mail["id"], folder=folder)
        return Success("home")

    return Operation(run)


def _delete(submission: FormSubmission) -> Success | Rejected:
    mail = submission.row("message")
    if mail is None or mail["folder"] != "bin":
        return Rejected("Only a mail in the bin is deleted for good.")
    submission.state.remove("message", mail["id"])
    return Success("bin")


def _send(submission: FormSubmission) -> Success | Rejected:
    contact = submission.row("contact")
    topic, text = submission.text("topic", 80), submission.text("letter_text", 500)
    if contact is None or not topic or not text:
        return Rejected("A mail needs a subject and a text.")
    return added(
        submission, "letter", contact=contact["id"], topic=topic, body=text,
        file=submission.text("attachment", 80), sent=TODAY,
    )  # fmt: skip


def _pay(submission: FormSubmission) -> Success | Rejected:
    bill = submission.row("bill")
    if bill is None or bill["state"] != "open":
        return Rejected("This bill was paid before.")
    return changed(submission, "bill", bill, state="paid")


def _filter(submission: FormSubmission) -> Success | Rejected:
    state, contact = submission.state, submission.row("contact")
    folder, day = submission.form.get("to_folder", ""), submission.form.get("from_day", "")
    if contact is None or folder not in FOLDERS[1:] or not is_date(day):
        return Rejected("A filter needs a contact, a folder and a day.")
    if state.one("SELECT id FROM filter WHERE contact = :key", key=contact["id"]):
        return Rejected(f"There is a filter for {contact['name']} already.")
    state.add("filter", id=state.token("filter"), contact=contact["id"], folder=folder, start=day)
    return Success("filters")


OPERATIONS = {
    "answer-mail": Operation(_answer, irreversible=True),
    "archive-mail": _moved("archive"),
    "bin-mail": _moved("bin"),
    "restore-mail": _moved("inbox"),
    "delete-mail": confirmed(_delete, "message", "topic", "{} cannot be brought back. Delete it?"),
    "send-letter": Operation(_send, irreversible=True),
    "pay-bill": confirmed(_pay, "bill", "number", "The money for {} leaves at once. Pay it?"),
    "add-filter": Operation(_filter),
    "remove-filter": removal("filter", "filters"),
    "holiday-reply": preference("holiday_reply", "mailbox_settings"),
}
