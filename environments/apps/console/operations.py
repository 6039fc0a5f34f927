"""What an operator can do."""

from __future__ import annotations

from environments.apps.console.schema import BILLINGS, GROUNDS, PRIORITIES, ROLES, STRATEGIES, TEAMS
from environments.apps.submissions import asks, is_date, number_for, preference, toggle, whole
from environments.model.spec import TODAY, Call, Done, Operation, Refused


def _deploy(call: Call) -> Done | Refused:
    world, strategy = call.world, call.form.get("strategy", "")
    service = call.row("service")
    version = call.text("version", 200)
    parts = version.split(".")
    if service is None or strategy not in STRATEGIES:
        return Refused("Choose a strategy.")
    if len(parts) != 3 or any(whole(part, 0, 999) is None for part in parts):
        return Refused("A version has three numbers, such as 1.4.0.")
    key = world.token("deployment")
    world.add(
        "deployment", id=key, number=number_for("DEP", key), service=service["id"],
        version=version, deployed=TODAY, author=world.row("account", "me")["name"],
        strategy=strategy, result="succeeded", note=call.text("note", 200),
    )  # fmt: skip
    world.change("service", service["id"], version=version)
    return Done("deployment", {"id": key})


def _set_quota(call: Call) -> Done | Refused:
    service = call.row("service")
    quota, billing = whole(call.form.get("quota", ""), 1, 99), call.form.get("billing", "")
    ticket = call.text("ticket", 200)
    if service is None or quota is None or billing not in BILLINGS or not ticket:
        return Refused("A quota is 1 to 99 machines, with a way of billing and a ticket.")
    call.world.change("service", service["id"], quota=quota, billing=billing, ticket=ticket)
    return Done("service", {"id": service["id"]})


def _retire(call: Call) -> Done | Refused:
    machine = call.row("machine")
    if machine is None or machine["state"] in ("running", "retired"):
        return Refused("Only a machine that does not run can be retired.")
    call.world.change("machine", machine["id"], state="retired")
    return Done("machine", {"id": machine["id"]})


def _assign(call: Call) -> Done | Refused:
    alert = call.row("alert")
    member = call.row("member", "assignee")
    priority = call.form.get("priority", "")
    if alert is None or alert["status"] == "resolved":
        return Refused("This alert has been resolved.")
    if member is None or priority not in PRIORITIES:
        return Refused("Choose a member and a priority.")
    call.world.change(
        "alert", alert["id"], status="assigned", assignee=member["name"], priority=priority,
        note=call.text("note", 200),
    )  # fmt: skip
    return Done("alert", {"id": alert["id"]})


def _set_role(call: Call) -> Done | Refused:
    member = call.row("member")
    role, team = call.form.get("role", ""), call.form.get("team", "")
    if member is None or role not in ROLES or team not in TEAMS:
        return Refused("Choose a role and a team.")
    call.world.change("member", member["id"], role=role, team=team)
    return Done("member", {"id": member["id"]})


def _revoke(call: Call) -> Done | Refused:
    key, ground = call.row("accesskey", "key"), call.form.get("ground")
    if key is None or key["status"] != "active" or ground not in GROUNDS:
        return Refused("Choose why this active key is to be revoked.")
    call.world.change("accesskey", key["id"], status="revoked", ground=ground)
    return Done("key", {"id": key["id"]})


def _schedule(call: Call) -> Done | Refused:
    service = call.row("service")
    starts, hours = call.text("starts", 200), whole(call.form.get("hours", ""), 1, 48)
    reason = call.text("reason", 200)
    if service is None or hours is None or not reason:
        return Refused("A window needs a service, 1 to 48 hours and a reason.")
    if not is_date(starts) or starts <= TODAY:
        return Refused(f"Please give a date after {TODAY}, written like it.")
    key = call.world.token("window")
    call.world.add(
        "window", id=key, number=number_for("MW", key), service=service["id"],
        starts=starts, hours=hours, reason=reason,
    )  # fmt: skip
    return Done("window", {"id": key})


OPERATIONS = {
    "deploy": Operation(_deploy, irreversible=True),
    "set-quota": Operation(_set_quota),
    "silence": toggle("service", "silenced"),
    "retire": Operation(
        _retire,
        irreversible=True,
        confirm=asks("machine", "name", "The disks of {} are erased for good. Retire it?"),
    ),
    "assign": Operation(_assign),
    "set-role": Operation(_set_role),
    "revoke": Operation(
        _revoke,
        irreversible=True,
        confirm=asks(
            "accesskey", "label", "Whoever uses {} is cut off at once. Revoke it?", field="key"
        ),
    ),
    "schedule": Operation(_schedule),
    "digest": preference("digest", "preferences"),
}
