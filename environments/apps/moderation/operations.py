"""What a moderator can do."""

from __future__ import annotations

from datetime import date, timedelta

from environments.apps.moderation.schema import ACTIONS, SETTLED
from environments.apps.submissions import asks, number_for, preference, toggle
from environments.model.spec import TODAY, Call, Done, Operation, Refused
from environments.model.state import World

OUTCOMES = ("upheld", "overturned")


def _noted(world: World, action: str, about: str) -> None:
    """A line in the audit log."""
    world.add(
        "entry", id=world.token("entry"), noted=TODAY, moderator=_me(world), action=action,
        about=about,
    )  # fmt: skip


def _me(world: World) -> str:
    return str(world.row("account", "me")["name"])


def _recorded(
    call: Call, kind: str, *, about: str, member: str, post: str = "", clause: str = "",
    days: int = 0,
) -> Done:  # fmt: skip
    """The decision is taken: stored, logged, shown."""
    world = call.world
    key = world.token("decision")
    world.add(
        "decision", id=key, number=number_for("D", key), kind=kind, post=post,
        member=member, clause=clause, days=days, moderator=_me(world), taken=TODAY,
        note=call.text("note", 500),
    )  # fmt: skip
    _noted(world, ACTIONS[kind], about)
    return Done("decision", {"id": key})


def _decide(call: Call) -> Done | Refused:
    world, kind, clause = call.world, call.form.get("kind"), call.row("clause")
    post = call.row("post")
    if post is None or post["status"] != "visible":
        return Refused("There is nothing to decide about this post.")
    if kind not in ("approve", "remove") or (kind == "remove") != (clause is not None):
        return Refused("Choose what to do; name a clause to remove a post, none to approve it.")
    if kind == "remove":
        world.change("post", post["id"], status="removed")
    for report in world.rows(
        "SELECT id FROM report WHERE post = :id AND status = 'open'", id=post["id"]
    ):
        world.change("report", report["id"], status="closed")
    under = clause["id"] if clause else ""
    return _recorded(
        call, kind, about=post["number"], member=post["author"], post=post["id"], clause=under
    )


def _warn(call: Call) -> Done | Refused:
    member, clause = call.row("member"), call.row("clause")
    if member is None or clause is None or not call.form.get("note", "").strip():
        return Refused("A warning needs a clause and a message.")
    return _recorded(call, "warn", about=member["handle"], member=member["id"], clause=clause["id"])


def _suspend(call: Call) -> Done | Refused:
    member, clause = call.row("member"), call.row("clause")
    days = call.form.get("days", "")
    if member is None or member["status"] == "suspended":
        return Refused("There is no active member to suspend.")
    if clause is None or not days.isascii() or not days.isdigit() or len(days) > 3 or days == "0":
        return Refused("A suspension needs a clause and a number of days from 1 to 999.")
    until = date.fromisoformat(TODAY) + timedelta(days=int(days))
    call.world.change("member", member["id"], status="suspended", until=until.isoformat())
    return _recorded(
        call, "suspend", about=member["handle"], member=member["id"], clause=clause["id"],
        days=int(days),
    )  # fmt: skip


def _settle(call: Call) -> Done | Refused:
    world, outcome = call.world, call.form.get("outcome")
    appeal = call.row("appeal")
    if appeal is None or appeal["status"] != "pending":
        return Refused("This appeal has been settled.")
    reply = call.text("reply", 500)
    if outcome not in OUTCOMES or not reply:
        return Refused("Choose an outcome and write a reply.")
    world.change("appeal", appeal["id"], status=outcome, reply=reply)
    if outcome == "overturned":
        world.change("post", world.row("decision", appeal["decision"])["post"], status="visible")
    _noted(world, SETTLED, appeal["number"])
    return Done("appeal", {"id": appeal["id"]})


OPERATIONS = {
    "decide": Operation(
        _decide,
        irreversible=True,
        confirm=asks(
            "post", "number", "The decision on {} is final and closes its reports. Record it?"
        ),
    ),
    "warn": Operation(_warn, irreversible=True),
    "suspend": Operation(
        _suspend,
        irreversible=True,
        confirm=asks(
            "member",
            "handle",
            "{} is locked out at once and told why; this stays on record. Suspend?",
        ),
    ),
    "settle": Operation(_settle, irreversible=True),
    "lock": toggle("forum", "locked"),
    "alerts": preference("alerts", "preferences"),
}
