"""What an operator can do."""

from __future__ import annotations

from trajudge.environments.apps.console.schema import (
    BILLINGS,
    GROUNDS,
    PRIORITIES,
    ROLES,
    STRATEGIES,
    TEAMS,
)
from trajudge.environments.apps.submissions import (
    added,
    changed,
    confirmed,
    is_date,
    preference,
    toggle,
    transition,
    whole,
)
from trajudge.environments.model.spec import TODAY, FormSubmission, Operation, Rejected, Success


def _deploy(submission: FormSubmission) -> Success | Rejected:
    state, strategy = submission.state, submission.form.get("strategy", "")
    service = submission.row("service")
    version = submission.text("version", 200)
    parts = version.split(".")
    if service is None or strategy not in STRATEGIES:
        return Rejected("Choose a strategy.")
    if len(parts) != 3 or any(whole(part, 0, 999) is None for part in parts):
        return Rejected("A version has three numbers, such as 1.4.0.")
    state.change("service", service["id"], version=version)
    return added(
        submission, "deployment", prefix="DEP", service=service["id"], version=version,
        deployed=TODAY, author=state.row("account", "me")["name"], strategy=strategy,
        result="succeeded", note=submission.text("note", 200),
    )  # fmt: skip


def _set_quota(submission: FormSubmission) -> Success | Rejected:
    service = submission.row("service")
    quota = whole(submission.form.get("quota", ""), 1, 99)
    billing = submission.form.get("billing", "")
    ticket = submission.text("ticket", 200)
    if service is None or quota is None or billing not in BILLINGS or not ticket:
        return Rejected("A quota is 1 to 99 machines, with a way of billing and a ticket.")
    return changed(submission, "service", service, quota=quota, billing=billing, ticket=ticket)


def _retire(submission: FormSubmission) -> Success | Rejected:
    machine = submission.row("machine")
    if machine is None or machine["state"] in ("running", "retired"):
        return Rejected("Only a machine that does not run can be retired.")
    return changed(submission, "machine", machine, state="retired")


def _assign(submission: FormSubmission) -> Success | Rejected:
    alert = submission.row("alert")
    member = submission.row("member", "assignee")
    priority = submission.form.get("priority", "")
    if alert is None or alert["status"] == "resolved":
        return Rejected("This alert has been resolved.")
    if member is None or priority not in PRIORITIES:
        return Rejected("Choose a member and a priority.")
    return changed(
        submission, "alert", alert, status="assigned", assignee=member["name"],
        priority=priority, note=submission.text("note", 200),
    )  # fmt: skip


def _set_role(submission: FormSubmission) -> Success | Rejected:
    member = submission.row("member")
    role, team = submission.form.get("role", ""), submission.form.get("team", "")
    if member is None or role not in ROLES or team not in TEAMS:
        return Rejected("Choose a role and a team.")
    return changed(submission, "member", member, role=role, team=team)


def _schedule(submission: FormSubmission) -> Success | Rejected:
    service = submission.row("service")
    starts, hours = submission.text("starts", 200), whole(submission.form.get("hours", ""), 1, 48)
    reason = submission.text("reason", 200)
    if service is None or hours is None or not reason:
        return Rejected("A window needs a service, 1 to 48 hours and a reason.")
    if not is_date(starts) or starts <= TODAY:
        return Rejected(f"Please give a date after {TODAY}, written like it.")
    of = service["id"]
    return added(
        submission, "window", prefix="MW", service=of, starts=starts, hours=hours, reason=reason
    )


_revoke = transition(
    "accesskey",
    "active",
    "revoked",
    "Choose why this active key is to be revoked.",
    field="key",
    page="key",
    ground=GROUNDS,
)

OPERATIONS = {
    "deploy": Operation(_deploy, irreversible=True),
    "set-quota": Operation(_set_quota),
    "silence": toggle("service", "silenced"),
    "retire": confirmed(
        _retire, "machine", "name", "The disks of {} are erased for good. Retire it?"
    ),
    "assign": Operation(_assign),
    "set-role": Operation(_set_role),
    "revoke": confirmed(
        _revoke, "accesskey", "label", "Whoever uses {} is cut off at once. Revoke it?", field="key"
    ),
    "schedule": Operation(_schedule),
    "digest": preference("digest", "preferences"),
}
