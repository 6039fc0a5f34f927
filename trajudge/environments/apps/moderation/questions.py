"""What an agent is asked to find out at the moderation desk."""

from __future__ import annotations

from trajudge.environments.apps.lists import open_listed
from trajudge.environments.apps.moderation.plans import charts_of, list_all, lock_forum, set_alerts
from trajudge.environments.apps.moderation.schema import ACTIONS, CATEGORIES
from trajudge.environments.apps.tasks import TaskFile, row_of, with_distractor
from trajudge.environments.model.spec import ChoiceSlot, Derive, Pick

CATEGORY = ChoiceSlot(CATEGORIES)
_FORUM = row_of("forum")
TIMED = Pick(
    "SELECT c.*, r.title AS heading FROM clause c JOIN rule r ON r.id = c.rule "
    "WHERE c.days > 0 ORDER BY c.id"
)

TASKS = TaskFile(__file__)
QUESTIONS = with_distractor(
    set_alerts,
    TASKS.scenario(
        "penalty",
        {"clause": TIMED},
        lambda b: open_listed(
            "rules", b["clause"]["heading"], "open the house rules", "read its clauses"
        ),
    ),
    TASKS.of_row("joined", "members", "member.handle"),
    TASKS.of_list(
        "oldest-report",
        "reports",
        "open the list",
        category=CATEGORY,
        status=ChoiceSlot(("open", "closed")),
    ),
    TASKS.scenario(
        "promotion-fees",
        {
            "status": ChoiceSlot(("visible", "removed")),
            "forum": row_of(
                "forum", "id IN (SELECT forum FROM post WHERE status = :status AND fee > 0)"
            ),
        },
        lambda b: list_all("posts", forum=b["forum"]["name"], status=b["status"]),
        distractor=lock_forum,
    ),
    TASKS.scenario(
        "reported-authors",
        {"category": CATEGORY},
        lambda b: list_all("reports", category=b["category"], status="open"),
    ),
    TASKS.scenario(
        "busiest-week", {"forum": _FORUM}, lambda b: charts_of(b["forum"]), distractor=lock_forum
    ),
    TASKS.scenario(
        "widest-gap",
        {
            "forum": _FORUM,
            "other": row_of("forum", "id <> :forum"),
        },
        lambda b: [*charts_of(b["forum"]), *charts_of(b["other"])],
        distractor=lock_forum,
    ),
    TASKS.scenario(
        "top-category",
        {
            "forum": _FORUM,
            "top": Derive(
                "SELECT label FROM tally WHERE forum = :forum AND kind = 'category' AND amount = "
                "(SELECT max(amount) FROM tally WHERE forum = :forum AND kind = 'category')"
            ),
        },
        lambda b: [
            *charts_of(b["forum"]),
            *list_all("reports", category=b["top"]["label"]),
        ],
        distractor=lock_forum,
    ),
    TASKS.of_list(
        "busiest-moderator", "log", "open the list", action=ChoiceSlot(tuple(ACTIONS.values()))
    ),
)
