"""What an editor can do."""

from __future__ import annotations

from trajudge.environments.apps.press.schema import (
    AUDIENCES,
    DAYS,
    PLACEMENTS,
    SENDERS,
    TAGS,
    VERDICTS,
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


def _coming(text: str) -> bool:
    """Tell whether this is a date after today."""
    return is_date(text) and text > TODAY


def _edit(submission: FormSubmission) -> Success | Rejected:
    weekday, tag = submission.form.get("weekday", ""), submission.form.get("tag", "")
    article, due = submission.row("article"), submission.text("due", 200)
    if article is None or article["state"] == "published":
        return Rejected("A published article can no longer be changed.")
    if weekday not in DAYS or tag not in TAGS or not _coming(due):
        return Rejected(f"Choose a weekday and a tag, and give a date after {TODAY}.")
    return changed(submission, "article", article, weekday=weekday, tag=tag, due=due)


def _review(submission: FormSubmission) -> Success | Rejected:
    state, verdict = submission.state, submission.form.get("verdict", "")
    article = submission.row("article")
    grade, remark = whole(submission.form.get("grade", ""), 1, 10), submission.text("remark", 200)
    if article is None or article["state"] == "published":
        return Rejected("A published article is no longer reviewed.")
    if verdict not in VERDICTS or grade is None or not remark:
        return Rejected("A review has a verdict, a grade from 1 to 10 and a remark.")
    state.add(
        "review", id=state.token("review"), article=article["id"],
        reviewer=state.row("account", "me")["name"], verdict=verdict, grade=grade, remark=remark,
    )  # fmt: skip
    return Success("article", {"id": article["id"]})


def _publish(submission: FormSubmission) -> Success | Rejected:
    article, placement = submission.row("article"), submission.form.get("placement", "")
    image, teaser = submission.row("image"), submission.text("teaser", 200)
    if article is None or article["state"] != "in review":
        return Rejected("Only an article in review can be published.")
    if image is None or placement not in PLACEMENTS or not teaser:
        return Rejected("Choose an image and a placement, and write a teaser.")
    return changed(
        submission, "article", article, state="published", image=image["id"],
        placement=placement, teaser=teaser,
    )  # fmt: skip


def _compose(submission: FormSubmission) -> Success | Rejected:
    article, audience = submission.row("article", "lead"), submission.form.get("audience", "")
    subject, sends = submission.text("subject", 200), submission.text("sends", 200)
    if article is None or audience not in AUDIENCES or not subject:
        return Rejected("A newsletter has a subject, an audience and a leading article.")
    if not _coming(sends):
        return Rejected(f"Please give a date after {TODAY}, written like it.")
    return added(
        submission, "newsletter", prefix="NL", subject=subject, audience=audience, sends=sends,
        status="planned", recipients=0, article=article["id"], sender="-",
    )  # fmt: skip


def _delete(submission: FormSubmission) -> Success | Rejected:
    comment = submission.row("comment")
    if comment is None:
        return Rejected("There is no such comment.")
    submission.state.remove("comment", comment["id"])
    return Success("comments")


_send = transition(
    "newsletter",
    "planned",
    "sent",
    "Choose who sends this newsletter; one that is out is out.",
    sender=SENDERS,
)

OPERATIONS = {
    "edit": Operation(_edit),
    "review": Operation(_review, irreversible=True),
    "publish": confirmed(
        _publish, "article", "title", "Everybody can read {} at once. Publish it?"
    ),
    "pin": toggle("article", "pinned"),
    "compose": Operation(_compose),
    "send": confirmed(
        _send, "newsletter", "number", "{} goes out at once, whatever its date. Send it?"
    ),
    "show": Operation(transition("comment", "held", "shown", "This comment is not held.")),
    "delete": confirmed(
        _delete, "comment", "number", "Comment {} cannot be brought back. Delete it?"
    ),
    "hints": preference("hints", "preferences"),
}
