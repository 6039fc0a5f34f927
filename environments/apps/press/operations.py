"""What an editor can do."""

from __future__ import annotations

from datetime import date

from environments.apps.lists import whole
from environments.apps.press.schema import AUDIENCES, DAYS, PLACEMENTS, SENDERS, TAGS, VERDICTS
from environments.model.spec import TODAY, Call, Done, Operation, Refused


def _text(call: Call, name: str) -> str:
    return call.form.get(name, "").strip()[:200]


def _coming(text: str) -> bool:
    """Whether this is a date after today."""
    try:
        return date.fromisoformat(text).isoformat() == text > TODAY
    except ValueError:
        return False


def _edit(call: Call) -> Done | Refused:
    world, tag, due = call.world, call.form.get("tag", ""), _text(call, "due")
    article = world.get("article", call.form.get("article", ""))
    weekday = call.form.get("weekday", "")
    if article is None or article["state"] == "published":
        return Refused("A published article can no longer be changed.")
    if weekday not in DAYS or tag not in TAGS or not _coming(due):
        return Refused(f"Choose a weekday and a tag, and give a date after {TODAY}.")
    world.change("article", article["id"], weekday=weekday, tag=tag, due=due)
    return Done("article", {"id": article["id"]})


def _review(call: Call) -> Done | Refused:
    world, verdict = call.world, call.form.get("verdict", "")
    article = world.get("article", call.form.get("article", ""))
    grade, remark = whole(call.form.get("grade", ""), 1, 10), _text(call, "remark")
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
    article = world.get("article", call.form.get("article", ""))
    image, teaser = world.get("image", call.form.get("image", "")), _text(call, "teaser")
    if article is None or article["state"] != "in review":
        return Refused("Only an article in review can be published.")
    if image is None or placement not in PLACEMENTS or not teaser:
        return Refused("Choose an image and a placement, and write a teaser.")
    world.change(
        "article", article["id"], state="published", image=image["id"], placement=placement,
        teaser=teaser,
    )  # fmt: skip
    return Done("article", {"id": article["id"]})


def _about_publishing(call: Call) -> str:
    article = call.world.get("article", call.form.get("article", ""))
    return f"Everybody can read {article['title'] if article else '?'} at once. Publish it?"


def _pin(call: Call) -> Done | Refused:
    article = call.world.get("article", call.form.get("article", ""))
    if article is None:
        return Refused("There is no such article.")
    call.world.change("article", article["id"], pinned=1 - article["pinned"])
    return Done("article", {"id": article["id"]})


def _compose(call: Call) -> Done | Refused:
    world, audience = call.world, call.form.get("audience", "")
    article = world.get("article", call.form.get("lead", ""))
    subject, sends = _text(call, "subject"), _text(call, "sends")
    if article is None or audience not in AUDIENCES or not subject:
        return Refused("A newsletter has a subject, an audience and a leading article.")
    if not _coming(sends):
        return Refused(f"Please give a date after {TODAY}, written like it.")
    key = world.token("newsletter")
    world.add(
        "newsletter", id=key, number=f"NL-{10000 + int(key[:4], 16)}", subject=subject,
        audience=audience, sends=sends, status="planned", recipients=0, article=article["id"],
        sender="-",
    )  # fmt: skip
    return Done("newsletter", {"id": key})


def _send(call: Call) -> Done | Refused:
    letter = call.world.get("newsletter", call.form.get("newsletter", ""))
    sender = call.form.get("sender", "")
    if letter is None or letter["status"] != "planned" or sender not in SENDERS:
        return Refused("Choose who sends this newsletter; one that is out is out.")
    call.world.change("newsletter", letter["id"], status="sent", sender=sender)
    return Done("newsletter", {"id": letter["id"]})


def _about_sending(call: Call) -> str:
    letter = call.world.get("newsletter", call.form.get("newsletter", ""))
    return f"{letter['number'] if letter else '?'} goes out at once, whatever its date. Send it?"


def _show(call: Call) -> Done | Refused:
    comment = call.world.get("comment", call.form.get("comment", ""))
    if comment is None or comment["status"] != "held":
        return Refused("This comment is not held.")
    call.world.change("comment", comment["id"], status="shown")
    return Done("comment", {"id": comment["id"]})


def _delete(call: Call) -> Done | Refused:
    comment = call.world.get("comment", call.form.get("comment", ""))
    if comment is None:
        return Refused("There is no such comment.")
    call.world.remove("comment", comment["id"])
    return Done("comments")


def _about_deleting(call: Call) -> str:
    comment = call.world.get("comment", call.form.get("comment", ""))
    return f"Comment {comment['number'] if comment else '?'} cannot be brought back. Delete it?"


def _hints(call: Call) -> Done | Refused:
    call.world.change("account", "me", hints=int(call.form.get("hints") == "on"))
    return Done("preferences")


OPERATIONS = {
    "edit": Operation(_edit),
    "review": Operation(_review, irreversible=True),
    "publish": Operation(_publish, irreversible=True, confirm=_about_publishing),
    "pin": Operation(_pin),
    "compose": Operation(_compose),
    "send": Operation(_send, irreversible=True, confirm=_about_sending),
    "show": Operation(_show),
    "delete": Operation(_delete, irreversible=True, confirm=_about_deleting),
    "hints": Operation(_hints),
}
