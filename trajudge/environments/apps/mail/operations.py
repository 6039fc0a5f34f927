"""What changes a mail box."""

from __future__ import annotations

from trajudge.environments.model.spec import FormSubmission, Operation, Rejected, Success
from trajudge.environments.model.state import token


def _answer(submission: FormSubmission) -> Success | Rejected:
    mail, text = submission.row("message"), submission.text("reply_text", 500)
    if mail is None or not text:
        return Rejected("A reply needs a text.")
    count = submission.state.value("SELECT count(*) FROM reply")
    key = token("reply", mail["id"], count)
    submission.state.add("reply", id=key, message=mail["id"], body=text)
    return Success("message", {"id": mail["id"]})


def _archive(submission: FormSubmission) -> Success | Rejected:
    mail = submission.row("message")
    if mail is None or mail["folder"] == "archive":
        return Rejected("This mail is not in the inbox.")
    submission.state.change("message", mail["id"], folder="archive")
    return Success("home")


OPERATIONS = {
    "answer-mail": Operation(_answer, irreversible=True),
    "archive-mail": Operation(_archive),
}
