"""Signing in and out, and who may carry out what."""

from __future__ import annotations

from trajudge.environments.apps.composite import member_operations
from trajudge.environments.apps.office.schema import MEMBERS
from trajudge.environments.model.spec import FormSubmission, Operation, Rejected, Success
from trajudge.environments.model.state import AppState

# What is not named here is open to everybody who is signed in.
RIGHTS = {
    "shop/place-order": ("buyer", "manager"),
    "shop/cancel-order": ("manager",),
    "helpdesk/decide-purchase": ("manager",),
    "helpdesk/decide-leave": ("manager",),
    "helpdesk/update-ticket": ("clerk", "manager"),
    "helpdesk/close-ticket": ("clerk", "manager"),
    "helpdesk/pause": ("manager",),
    "mail/pay-bill": ("buyer", "manager"),
    "press/edit": ("publisher",),
    "press/publish": ("publisher",),
    "press/compose": ("publisher",),
    "press/send": ("publisher",),
    "press/delete": ("publisher", "moderator"),
    "moderation/decide": ("moderator",),
    "moderation/warn": ("moderator",),
    "moderation/suspend": ("moderator",),
    "moderation/settle": ("moderator", "manager"),
    "moderation/lock": ("moderator", "manager"),
    "console/deploy": ("technician",),
    "console/set-quota": ("technician", "manager"),
    "console/retire": ("technician",),
    "console/silence": ("technician",),
    "console/assign": ("technician",),
    "console/schedule": ("technician",),
    "almanac/book": ("buyer", "manager"),
}
USER = "SELECT u.* FROM user u JOIN session s ON s.user = u.id"


def _sign_in(submission: FormSubmission) -> Success | Rejected:
    login, secret = submission.text("login", 60), submission.text("password", 60)
    sql = "SELECT * FROM user WHERE login = :login AND password = :secret"
    user = submission.state.one(sql, login=login, secret=secret)
    if user is None:
        return Rejected("There is no user with this login name and password.")
    submission.state.change("session", "me", user=user["id"])
    return Success("home")


def _sign_out(submission: FormSubmission) -> Success | Rejected:
    submission.state.change("session", "me", user="")
    return Success("home")


def _refused(state: AppState, operation: str) -> str:
    user = state.one(USER)
    if user is None:
        return "Sign in first."
    roles = RIGHTS.get(operation)
    if roles is None or user["role"] in roles:
        return ""
    return f"Only a {' or '.join(roles)} may do this; {user['name']} is a {user['role']}."


OPERATIONS = {
    "sign-in": Operation(_sign_in),
    "sign-out": Operation(_sign_out),
    **{name: op for one in MEMBERS for name, op in member_operations(one, _refused).items()},
}
