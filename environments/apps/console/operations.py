"""What an operator can do."""

from __future__ import annotations

from datetime import date

from environments.apps.console.schema import (
    BILLINGS,
    GROUNDS,
    PRIORITIES,
    ROLES,
    STRATEGIES,
    TEAMS,
)
from environments.apps.lists import whole
from environments.model.spec import TODAY, Call, Done, Operation, Refused


def _text(call: Call, name: str) -> str:
    return call.form.get(name, "").strip()[:200]


def _deploy(call: Call) -> Done | Refused:
    world, strategy = call.world, call.form.get("strategy", "")
    service = world.get("service", call.form.get("service", ""))
    version = _text(call, "version")
    parts = version.split(".")
    if service is None or strategy not in STRATEGIES:
        return Refused("Choose a strategy.")
    if len(parts) != 3 or any(whole(part, 0, 999) is None for part in parts):
        return Refused("A version has three numbers, such as 1.4.0.")
    key = world.token("deployment")
    world.add(
        "deployment", id=key, number=f"DEP-{10000 + int(key[:4], 16)}", service=service["id"],
        version=version, deployed=TODAY, author=world.row("account", "me")["name"],
        strategy=strategy, result="succeeded", note=_text(call, "note"),
    )  # fmt: skip
    world.change("service", service["id"], version=version)
    return Done("deployment", {"id": key})


def _set_quota(call: Call) -> Done | Refused:
    service = call.world.get("service", call.form.get("service", ""))
    quota, billing = whole(call.form.get("quota", ""), 1, 99), call.form.get("billing", "")
    ticket = _text(call, "ticket")
    if service is None or quota is None or billing not in BILLINGS or not ticket:
        return Refused("A quota is 1 to 99 machines, with a way of billing and a ticket.")
    call.world.change("service", service["id"], quota=quota, billing=billing, ticket=ticket)
    return Done("service", {"id": service["id"]})


def _silence(call: Call) -> Done | Refused:
    service = call.world.get("service", call.form.get("service", ""))
    if service is None:
        return Refused("There is no such service.")
    call.world.change("service", service["id"], silenced=1 - service["silenced"])
    return Done("service", {"id": service["id"]})


def _retire(call: Call) -> Done | Refused:
    machine = call.world.get("machine", call.form.get("machine", ""))
    if machine is None or machine["state"] in ("running", "retired"):
        return Refused("Only a machine that does not run can be retired.")
    call.world.change("machine", machine["id"], state="retired")
    return Done("machine", {"id": machine["id"]})


def _about_retiring(call: Call) -> str:
    machine = call.world.get("machine", call.form.get("machine", ""))
    return f"The disks of {machine['name'] if machine else '?'} are erased for good. Retire it?"


def _assign(call: Call) -> Done | Refused:
    alert = call.world.get("alert", call.form.get("alert", ""))
    member = call.world.get("member", call.form.get("assignee", ""))
    priority = call.form.get("priority", "")
    if alert is None or alert["status"] == "resolved":
        return Refused("This alert has been resolved.")
    if member is None or priority not in PRIORITIES:
        return Refused("Choose a member and a priority.")
    call.world.change(
        "alert", alert["id"], status="assigned", assignee=member["name"], priority=priority,
        note=_text(call, "note"),
    )  # fmt: skip
    return Done("alert", {"id": alert["id"]})


def _set_role(call: Call) -> Done | Refused:
    member = call.world.get("member", call.form.get("member", ""))
    role, team = call.form.get("role", ""), call.form.get("team", "")
    if member is None or role not in ROLES or team not in TEAMS:
        return Refused("Choose a role and a team.")
    call.world.change("member", member["id"], role=role, team=team)
    return Done("member", {"id": member["id"]})


def _revoke(call: Call) -> Done | Refused:
    key, ground = call.world.get("accesskey", call.form.get("key", "")), call.form.get("ground")
    if key is None or key["status"] != "active" or ground not in GROUNDS:
        return Refused("Choose why this active key is to be revoked.")
    call.world.change("accesskey", key["id"], status="revoked", ground=ground)
    return Done("key", {"id": key["id"]})


def _about_revoking(call: Call) -> str:
    key = call.world.get("accesskey", call.form.get("key", ""))
    return f"Whoever uses {key['label'] if key else '?'} is cut off at once. Revoke it?"


def _schedule(call: Call) -> Done | Refused:
    service = call.world.get("service", call.form.get("service", ""))
    starts, hours = _text(call, "starts"), whole(call.form.get("hours", ""), 1, 48)
    reason = _text(call, "reason")
    if service is None or hours is None or not reason:
        return Refused("A window needs a service, 1 to 48 hours and a reason.")
    if not _is_date(starts) or starts <= TODAY:
        return Refused(f"Please give a date after {TODAY}, written like it.")
    key = call.world.token("window")
    call.world.add(
        "window", id=key, number=f"MW-{10000 + int(key[:4], 16)}", service=service["id"],
        starts=starts, hours=hours, reason=reason,
    )  # fmt: skip
    return Done("window", {"id": key})


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _digest(call: Call) -> Done | Refused:
    call.world.change("account", "me", digest=int(call.form.get("digest") == "on"))
    return Done("preferences")


OPERATIONS = {
    "deploy": Operation(_deploy, irreversible=True),
    "set-quota": Operation(_set_quota),
    "silence": Operation(_silence),
    "retire": Operation(_retire, irreversible=True, confirm=_about_retiring),
    "assign": Operation(_assign),
    "set-role": Operation(_set_role),
    "revoke": Operation(_revoke, irreversible=True, confirm=_about_revoking),
    "schedule": Operation(_schedule),
    "digest": Operation(_digest),
}
