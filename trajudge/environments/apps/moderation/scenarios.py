"""What an agent is asked to decide at the moderation desk, beside the questions."""

from __future__ import annotations

from trajudge.environments.apps.lists import CONFIRM, open_listed, search_and_open
from trajudge.environments.apps.moderation.operations import OUTCOMES
from trajudge.environments.apps.moderation.plans import fill, list_all, post_of, set_alerts, suspend
from trajudge.environments.apps.moderation.questions import CATEGORY, QUESTIONS, TASKS, TIMED
from trajudge.environments.apps.tasks import added, changed, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import choose, enter, follow, press
from trajudge.environments.model.spec import (
    AllowedChange,
    ChoiceSlot,
    Derive,
    Expect,
    Number,
    Pick,
)

_CLAUSE = row_of("clause")
# One report a post: whoever mistakes it for another report decides about another post.
_OPEN = Pick(
    "SELECT r.*, p.number AS about FROM report r JOIN post p ON p.id = r.post WHERE r.id IN "
    "(SELECT min(id) FROM report WHERE status = 'open' GROUP BY post) ORDER BY r.id"
)
_LOGGED = (AllowedChange("added", "entry"),)
_DECIDED = (AllowedChange("changed", "report", ("status",), {"post": "{report[post]}"}), *_LOGGED)


_ACTIVE_AUTHORS = Pick(
    "SELECT p.*, m.handle FROM post p JOIN member m ON m.id = p.author "
    "WHERE m.status = 'active' ORDER BY p.id"
)


def _suspended(member: str, days: str) -> tuple[Expect, Expect]:
    """Expect the decision under the clause, and the member's new status."""
    return (
        added("decision", kind="suspend", member=member, clause="{clause[id]}", days=days),
        changed("member", member, status="suspended"),
    )


def _until(member: str) -> tuple[AllowedChange, ...]:
    """Allow the date on which a suspension ends."""
    return (AllowedChange("changed", "member", ("until",), {"id": member}), *_LOGGED)


SCENARIOS = with_distractor(
    set_alerts,
    *QUESTIONS,
    TASKS.scenario(
        "remove-post",
        {"report": _OPEN, "clause": _CLAUSE},
        lambda b: [
            *post_of(b["report"]),
            *fill("record", verdict="remove", clause=b["clause"]["number"]),
            CONFIRM,
        ],
        expect=(
            added("decision", kind="remove", post="{report[post]}", clause="{clause[id]}"),
            changed("post", "{report[post]}", status="removed"),
            changed("report", "{report[id]}", status="closed"),
        ),
        may=_DECIDED,
    ),
    TASKS.scenario(
        "approve-post",
        {
            "report": _OPEN,
            "note": ChoiceSlot(("No breach found", "Allowed as satire", "A misunderstanding")),
        },
        lambda b: [
            *post_of(b["report"]),
            *fill("record", b["note"], verdict="approve"),
            CONFIRM,
        ],
        expect=(
            added("decision", kind="approve", post="{report[post]}", note="{note}"),
            changed("report", "{report[id]}", status="closed"),
        ),
        may=_DECIDED,
    ),
    TASKS.scenario(
        "suspend-author",
        {"post": _ACTIVE_AUTHORS, "days": Number(3, 29), "clause": _CLAUSE},
        lambda b: [
            *search_and_open("posts", b["post"]["number"]),
            follow(b["post"]["handle"], "go on to its author"),
            *suspend(b["clause"], b["days"]),
        ],
        expect=_suspended("{post[author]}", "{days}"),
        may=_until("{post[author]}"),
    ),
    TASKS.scenario(
        "warn",
        {
            "member": row_of("member"),
            "clause": _CLAUSE,
            "note": ChoiceSlot(("Please mind the tone", "One more and you are out", "Kindly stop")),
        },
        lambda b: [
            *search_and_open("members", b["member"]["handle"]),
            follow(Word("warn_member"), "open the form"),
            *fill("warn", b["note"], clause=b["clause"]["number"]),
        ],
        expect=(
            added(
                "decision", kind="warn", member="{member[id]}", clause="{clause[id]}", note="{note}"
            ),
        ),
        may=_LOGGED,
    ),
    TASKS.scenario(
        "settle-appeal",
        {
            "appeal": Pick(
                "SELECT a.*, d.post FROM appeal a JOIN decision d ON d.id = a.decision "
                "WHERE a.status = 'pending' ORDER BY a.id"
            ),
            "outcome": ChoiceSlot(OUTCOMES),
            "reply": ChoiceSlot(
                ("Thank you for writing", "We looked at it again", "This is final")
            ),
        },
        lambda b: [
            *search_and_open("appeals", b["appeal"]["number"]),
            choose(Word("outcome"), b["outcome"], f"choose {b['outcome']}"),
            enter(Word("your_reply"), b["reply"], "write the reply"),
            press(Word("settle"), "settle the appeal"),
        ],
        expect=(changed("appeal", "{appeal[id]}", status="{outcome}", reply="{reply}"),),
        may=(AllowedChange("changed", "post", ("status",), {"id": "{appeal[post]}"}), *_LOGGED),
    ),
    TASKS.scenario(
        "suspend-most-reported",
        {
            "category": CATEGORY,
            "clause": TIMED,
            "worst": Derive(
                "WITH n AS (SELECT p.author, count(*) AS often FROM report r JOIN post p "
                "ON p.id = r.post WHERE r.status = 'open' AND r.category = :category "
                "GROUP BY p.author) SELECT m.* FROM member m JOIN n ON n.author = m.id "
                "WHERE n.often = (SELECT max(often) FROM n) AND m.status = 'active'"
            ),
        },
        lambda b: [
            *open_listed(
                "rules", b["clause"]["heading"], "open the house rules", "read what the clause sets"
            ),
            *list_all("reports", category=b["category"], status="open"),
            *search_and_open("members", b["worst"]["handle"]),
            *suspend(b["clause"], b["clause"]["days"]),
        ],
        expect=_suspended("{worst[id]}", "{clause[days]}"),
        may=_until("{worst[id]}"),
    ),
)
