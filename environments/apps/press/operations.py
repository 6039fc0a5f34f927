"""What an editor can do."""

from __future__ import annotations

from environments.apps.press.schema import AUDIENCES, DAYS, PLACEMENTS, SENDERS, TAGS, VERDICTS
from environments.apps.submissions import asks, is_date, number_for, preference, toggle, whole
from environments.model.spec import TODAY, Call, Done, Operation, Refused


def _coming(text: str) -> bool:
    """Whether this is a date after today."""
    return is_date(text) and text > TODAY


def _edit(call: Call) -> Done | Refused:
    world, tag, due = call.world, call.form.get("tag", ""), call.text("due", 200)
    article = call.row("article")
    weekday = call.form.get("weekday", "")
    if article is None or article["state"] == "published":
        return Refused("A published article can no longer be changed.")
    if weekday not in DAYS or tag not in TAGS or not _coming(due):
        return Refused(f"Choose a weekday and a tag, and give a date after {TODAY}.")
    world.change("article", article["id"], weekday=weekday, tag=tag, due=due)
    return Done("article", {"id": article["id"]})


def _review(call: Call) -> Done | Refused:
    world, verdict = call.world, call.form.get("verdict", "")
    article = call.row("article")
    grade, remark = whole(call.form.get("grade", ""), 1, 10), call.text("remark", 200)
    if article is None or article["state"] == "published":
        return Refused("A published article is no longer reviewed.")
    if verdict not in VERDICTS or grade is None or not remark:
        return Refused("A review has a verdict, a grade from 1 to 10 and a remark.")
    world.add(
        "review", id=world.token("review"), article=article["id"],
        reviewer=world.row("account", "me")["name"], verdict=verdict, grade=grade, remark=remark,
    )  # fmt: skip
    return Done("article", {"id": article["id"]})


def _publish(call: Call) -> Done | Refused:
    world, placement = call.world, call.form.get("placement", "")
    article = call.row("article")
    image, teaser = call.row("image"), call.text("teaser", 200)
    if article is None or article["state"] != "in review":
        return Refused("Only an article in review can be published.")
    if image is None or placement not in PLACEMENTS or not teaser:
        return Refused("Choose an image and a placement, and write a teaser.")
    world.change(
        "article", article["id"], state="published", image=image["id"], placement=placement,
        teaser=teaser,
    )  # fmt: skip
    return Done("article", {"id": article["id"]})


def _compose(call: Call) -> Done | Refused:
    world, audience = call.world, call.form.get("audience", "")
    article = call.row("article", "lead")
    subject, sends = call.text("subject", 200), call.text("sends", 200)
    if article is None or audience not in AUDIENCES or not subject:
        return Refused("A newsletter has a subject, an audience and a leading article.")
    if not _coming(sends):
        return Refused(f"Please give a date after {TODAY}, written like it.")
    key = world.token("newsletter")
    world.add(
        "newsletter", id=key, number=number_for("NL", key), subject=subject,
        audience=audience, sends=sends, status="planned", recipients=0, article=article["id"],
        sender="-",
    )  # fmt: skip
    return Done("newsletter", {"id": key})


def _send(call: Call) -> Done | Refused:
    letter = call.row("newsletter")
    sender = call.form.get("sender", "")
    if letter is None or letter["status"] != "planned" or sender not in SENDERS:
        return Refused("Choose who sends this newsletter; one that is out is out.")
    call.world.change("newsletter", letter["id"], status="sent", sender=sender)
    return Done("newsletter", {"id": letter["id"]})


def _show(call: Call) -> Done | Refused:
    comment = call.row("comment")
    if comment is None or comment["status"] != "held":
        return Refused("This comment is not held.")
    call.world.change("comment", comment["id"], status="shown")
    return Done("comment", {"id": comment["id"]})


def _delete(call: Call) -> Done | Refused:
    comment = call.row("comment")
    if comment is None:
        return Refused("There is no such comment.")
    call.world.remove("comment", comment["id"])
    return Done("comments")


OPERATIONS = {
    "edit": Operation(_edit),
    "review": Operation(_review, irreversible=True),
    "publish": Operation(
        _publish,
        irreversible=True,
        confirm=asks("article", "title", "Everybody can read {} at once. Publish it?"),
    ),
    "pin": toggle("article", "pinned"),
    "compose": Operation(_compose),
    "send": Operation(
        _send,
        irreversible=True,
        confirm=asks("newsletter", "number", "{} goes out at once, whatever its date. Send it?"),
    ),
    "show": Operation(_show),
    "delete": Operation(
        _delete,
        irreversible=True,
        confirm=asks("comment", "number", "Comment {} cannot be brought back. Delete it?"),
    ),
    "hints": preference("hints", "preferences"),
}
