"""What an agent is asked to find out at the moderation desk."""

from __future__ import annotations

from trajudge.environments.apps.lists import search_and_open
from trajudge.environments.apps.moderation.plans import charts_of, list_all, lock_forum, set_alerts
from trajudge.environments.apps.moderation.schema import ACTIONS, CATEGORIES
from trajudge.environments.apps.tasks import lookup, peak, question, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import follow
from trajudge.environments.model.spec import AnswerSpec, ChoiceSlot, Derive, Pick

CATEGORY = ChoiceSlot(CATEGORIES)
_FORUM = row_of("forum")
TIMED = Pick(
    "SELECT c.*, r.title AS heading FROM clause c JOIN rule r ON r.id = c.rule "
    "WHERE c.days > 0 ORDER BY c.id"
)

QUESTIONS = with_distractor(
    set_alerts,
    lookup(
        "penalty",
        "number",
        "clause.days",
        goals=(
            "For how many days is a member suspended under clause {clause[number]} of the house "
            "rules?",
            "Look up clause {clause[number]} of the house rules: how many days of suspension does "
            "it set?",
        ),
        slot=TIMED,
        plan=lambda b: [
            follow(Word("rules"), "open the house rules"),
            follow(b["clause"]["heading"], "read its clauses"),
        ],
        reply="It is {answer} days.",
    ),
    lookup(
        "joined",
        "date",
        "member.joined",
        goals=(
            "On which date did the member {member[handle]} join?",
            "Since when has {member[handle]} been a member? Give the date.",
        ),
        plan=lambda b: search_and_open("members", b["member"]["handle"]),
        reply="It was on {answer}.",
    ),
    question(
        "oldest-report",
        "date",
        "SELECT min(filed) FROM report WHERE category = :category AND status = :status",
        goals="On which date was the oldest of the reports in the category {category} filed that "
        "are {status}?",
        slots={"category": CATEGORY, "status": ChoiceSlot(("open", "closed"))},
        plan=lambda b: list_all("reports", category=b["category"], status=b["status"]),
        reply="It was filed on {answer}.",
    ),
    question(
        "promotion-fees",
        "money",
        "SELECT sum(fee) FROM post WHERE forum = :forum AND status = :status",
        goals="How much did the authors pay in all to promote the posts in the forum {forum[name]} "
        "whose status is {status}?",
        slots={
            "status": ChoiceSlot(("visible", "removed")),
            "forum": row_of(
                "forum", "id IN (SELECT forum FROM post WHERE status = :status AND fee > 0)"
            ),
        },
        plan=lambda b: list_all("posts", forum=b["forum"]["name"], status=b["status"]),
        reply="They paid {answer} in all.",
        distractor=lock_forum,
    ),
    question(
        "reported-authors",
        "texts",
        "SELECT DISTINCT m.handle FROM report r JOIN post p ON p.id = r.post "
        "JOIN member m ON m.id = p.author WHERE r.status = 'open' "
        "AND r.category = :category",
        among="SELECT handle FROM member",
        goals="Name every member who wrote a post about which a report in the category {category} "
        "is open.",
        slots={"category": CATEGORY},
        plan=lambda b: list_all("reports", category=b["category"], status="open"),
        reply="They are {answer}.",
    ),
    peak(
        "busiest-week",
        "tally.label",
        "forum = :forum AND kind = 'week'",
        among="SELECT DISTINCT label FROM tally WHERE kind = 'week'",
        goals="According to the weekly chart of the forum {forum[name]}, in which week were most "
        "reports filed?",
        slots={"forum": _FORUM},
        plan=lambda b: charts_of(b["forum"]),
        reply="Most reports came in {answer}.",
        distractor=lock_forum,
    ),
    # A runner-up that a reader could take for the widest gap makes two answers.
    question(
        "widest-gap",
        "text",
        "WITH gap AS (SELECT a.label, a.amount - b.amount AS width FROM tally a "
        "JOIN tally b ON b.label = a.label AND b.forum = :other "
        "WHERE a.forum = :forum AND a.kind = 'week') SELECT label FROM gap "
        "WHERE width >= (SELECT max(width) FROM gap) - 4",
        among="SELECT DISTINCT label FROM tally WHERE kind = 'week'",
        goals="Compare the weekly charts of the forums {forum[name]} and {other[name]}: in which "
        "week did {forum[name]} exceed {other[name]} by most reports?",
        slots={
            "forum": _FORUM,
            "other": row_of("forum", "id <> :forum"),
        },
        plan=lambda b: [*charts_of(b["forum"]), *charts_of(b["other"])],
        reply="The gap was widest in {answer}.",
        distractor=lock_forum,
        charts=2,
    ),
    question(
        "top-category",
        "number",
        "SELECT count(*) FROM report WHERE category = :top HAVING count(*) > 0",
        also=AnswerSpec("date", "SELECT min(filed) FROM report WHERE category = :top"),
        goals=(
            "See in the chart which category was reported most in the forum "
            "{forum[name]} in 2025. "
            "How many of the reports on the list of reports (of all forums) are in that category, "
            "open and closed together, and on which date was the oldest of them filed?"
        ),
        slots={
            "forum": _FORUM,
            "top": Derive(
                "SELECT label FROM tally WHERE forum = :forum AND kind = 'category' AND amount = "
                "(SELECT max(amount) FROM tally WHERE forum = :forum AND kind = 'category')"
            ),
        },
        plan=lambda b: [
            *charts_of(b["forum"]),
            *list_all("reports", category=b["top"]["label"]),
        ],
        reply="Number and date: {answer}.",
        distractor=lock_forum,
        charts=1,
    ),
    question(
        "busiest-moderator",
        "text",
        "WITH n AS (SELECT moderator, count(*) AS often FROM entry "
        "WHERE action = :action GROUP BY moderator) "
        "SELECT moderator FROM n WHERE often = (SELECT max(often) FROM n)",
        among="SELECT DISTINCT moderator FROM entry",
        also=AnswerSpec(
            "number",
            "SELECT max(often) FROM (SELECT count(*) AS often FROM entry WHERE action = :action "
            "GROUP BY moderator)",
        ),
        goals=(
            'Which moderator stands most often beside the action "{action}" in the audit log, and '
            "how often?",
            'Find out from the audit log who carried out the action "{action}" most often, and say '
            "how many times.",
        ),
        slots={"action": ChoiceSlot(tuple(ACTIONS.values()))},
        plan=lambda b: list_all("log", action=b["action"]),
        reply="Moderator and number: {answer}.",
    ),
)
