"""What a moderator can do."""

from __future__ import annotations

from datetime import date, timedelta

from trajudge.environments.apps.moderation.schema import ACTIONS, SETTLED
from trajudge.environments.apps.submissions import confirmed, number_for, preference, toggle, whole
from trajudge.environments.model.spec import TODAY, FormSubmission, Operation, Rejected, Success
from trajudge.environments.model.state import AppState

OUTCOMES = ("upheld", "overturned")


def _noted(state: AppState, action: str, about: str) -> None:
    """Write a line in the audit log."""
    state.add(
        "entry", id=state.token("entry"), noted=TODAY, moderator=_me(state), action=action,
        about=about,
    )  # fmt: skip


def _me(state: AppState) -> str:
    return str(state.row("account", "me")["name"])


def _recorded(
    submission: FormSubmission, kind: str, *, about: str, member: str, post: str = "",
    clause: str = "", days: int = 0,
) -> Success:  # fmt: skip
    """Take the decision: store, log and show it."""
    state = submission.state
    key = state.token("decision")
    state.add(
        "decision", id=key, number=number_for("D", key), kind=kind, post=post,
        member=member, clause=clause, days=days, moderator=_me(state), taken=TODAY,
        note=submission.text("note", 500),
    )  # fmt: skip
    _noted(state, ACTIONS[kind], about)
    return Success("decision", {"id": key})


def _decide(submission: FormSubmission) -> Success | Rejected:
    state, kind, clause = submission.state, submission.form.get("kind"), submission.row("clause")
    post = submission.row("post")
    if post is None or post["status"] != "visible":
        return Rejected("There is nothing to decide about this post.")
    if kind not in ("approve", "remove") or (kind == "remove") != (clause is not None):
        return Rejected("Choose what to do; name a clause to remove a post, none to approve it.")
    if kind == "remove":
        state.change("post", post["id"], status="removed")
    for report in state.rows(
        "SELECT id FROM report WHERE post = :id AND status = 'open'", id=post["id"]
    ):
        state.change("report", report["id"], status="closed")
    under = clause["id"] if clause else ""
    return _recorded(
        submission, kind, about=post["number"], member=post["author"], post=post["id"], clause=under
    )


def _warn(submission: FormSubmission) -> Success | Rejected:
    member, clause = submission.row("member"), submission.row("clause")
    if member is None or clause is None or not submission.form.get("note", "").strip():
        return Rejected("A warning needs a clause and a message.")
    return _recorded(
        submission, "warn", about=member["handle"], member=member["id"], clause=clause["id"]
    )


def _suspend(submission: FormSubmission) -> Success | Rejected:
    member, clause = submission.row("member"), submission.row("clause")
    days = whole(submission.form.get("days", ""), 1, 999)
    if member is None or member["status"] == "suspended":
        return Rejected("There is no active member to suspend.")
    if clause is None or days is None:
        return Rejected("A suspension needs a clause and a number of days from 1 to 999.")
    until = date.fromisoformat(TODAY) + timedelta(days=days)
    submission.state.change("member", member["id"], status="suspended", until=until.isoformat())
    return _recorded(
        submission, "suspend", about=member["handle"], member=member["id"], clause=clause["id"],
        days=days,
    )  # fmt: skip


def _settle(submission: FormSubmission) -> Success | Rejected:
    state, outcome = submission.state, submission.form.get("outcome")
    appeal = submission.row("appeal")
    if appeal is None or appeal["status"] != "pending":
        return Rejected("This appeal has been settled.")
    reply = submission.text("reply", 500)
    if outcome not in OUTCOMES or not reply:
        return Rejected("Choose an outcome and write a reply.")
    state.change("appeal", appeal["id"], status=outcome, reply=reply)
    if outcome == "overturned":
        state.change("post", state.row("decision", appeal["decision"])["post"], status="visible")
    _noted(state, SETTLED, appeal["number"])
    return Success("appeal", {"id": appeal["id"]})


OPERATIONS = {
    "decide": confirmed(
        _decide, "post", "number", "The decision on {} is final and closes its reports. Record it?"
    ),
    "warn": Operation(_warn, irreversible=True),
    "suspend": confirmed(
        _suspend,
        "member",
        "handle",
        "{} is locked out at once and told why; this stays on record. Suspend?",
    ),
    "settle": Operation(_settle, irreversible=True),
    "lock": toggle("forum", "locked"),
    "alerts": preference("alerts", "preferences"),
}
