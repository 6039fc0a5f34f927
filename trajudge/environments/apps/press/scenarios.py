"""What an agent is asked to do at the publishing desk, beside the questions."""

from __future__ import annotations

from trajudge.environments.apps.lists import CONFIRM, fill, list_all, search_and_open
from trajudge.environments.apps.press.questions import (
    QUESTIONS,
    SECTION,
    TASKS,
    chart_of,
    pin_article,
    set_hints,
)
from trajudge.environments.apps.press.schema import AUDIENCES, PLACEMENTS, SENDERS, TAGS, VERDICTS
from trajudge.environments.apps.tasks import (
    added,
    as_asked,
    changed,
    removed,
    row_of,
    with_distractor,
)
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import enter, follow, press
from trajudge.environments.model.spec import ChoiceSlot, Derive, Number, Pick

_ARTICLE = row_of("article")
_OPEN = row_of("article", "state <> 'published'")
_IN_REVIEW = row_of("article", "state = 'in review'")
_DATES = ChoiceSlot(("2026-06-05", "2026-06-12", "2026-07-03", "2026-07-17"))
_NEXT = "FROM newsletter WHERE status = 'planned' AND audience = :audience"

SCENARIOS = with_distractor(
    pin_article,
    *QUESTIONS,
    TASKS.scenario(
        "publish",
        {
            "article": _IN_REVIEW,
            "image": row_of("image"),
            "placement": ChoiceSlot(PLACEMENTS),
            "teaser": ChoiceSlot(("What we found", "A second look", "Told by those who know")),
        },
        lambda b: [
            *search_and_open("articles", b["article"]["title"]),
            follow(Word("publish_it"), "open the form"),
            *fill(
                "publish",
                texts={"teaser": b["teaser"]},
                choices={"image": b["image"]["caption"], "placement": b["placement"]},
            ),
            CONFIRM,
        ],
        expect=(
            changed(
                "article",
                "{article[id]}",
                state="published",
                image="{image[id]}",
                **as_asked("placement", "teaser"),
            ),
        ),
    ),
    TASKS.scenario(
        "review",
        {
            "article": _OPEN,
            "verdict": ChoiceSlot(VERDICTS),
            "grade": Number(2, 9),
            "remark": ChoiceSlot(("Shorten the middle", "A fine opening", "Name your sources")),
        },
        lambda b: [
            *search_and_open("articles", b["article"]["title"]),
            follow(Word("review_it"), "open the form"),
            *fill(
                "review",
                texts={"grade": b["grade"], "remark": b["remark"]},
                choices={"verdict": b["verdict"]},
            ),
        ],
        expect=(
            added("review", article="{article[id]}", **as_asked("verdict", "grade", "remark")),
        ),
    ),
    TASKS.scenario(
        "compose",
        {
            "article": _ARTICLE,
            "audience": ChoiceSlot(AUDIENCES),
            "subject": ChoiceSlot(("Summer reading", "Five at a glance", "Thank you")),
            "sends": _DATES,
        },
        lambda b: [
            follow(Word("newsletters"), "open the list of newsletters"),
            follow(Word("compose_one"), "open the form"),
            *fill(
                "compose",
                texts={"subject": b["subject"], "sends": b["sends"]},
                choices={"audience": b["audience"], "lead": b["article"]["title"]},
            ),
        ],
        expect=(
            added(
                "newsletter", article="{article[id]}", **as_asked("audience", "subject", "sends")
            ),
        ),
    ),
    TASKS.scenario(
        "send-next",
        {
            "audience": ChoiceSlot(AUDIENCES),
            "sender": ChoiceSlot(SENDERS),
            "next": Derive(f"SELECT * {_NEXT} AND sends = (SELECT min(sends) {_NEXT})"),
        },
        lambda b: [
            *list_all("newsletters", audience=b["audience"], status="planned"),
            *search_and_open("newsletters", b["next"]["number"]),
            *fill("send", texts={}, choices={"sender": b["sender"]}),
            CONFIRM,
        ],
        expect=(changed("newsletter", "{next[id]}", status="sent", sender="{sender}"),),
        distractor=set_hints,
    ),
    TASKS.scenario(
        "delete-comment",
        {
            "comment": Pick(
                "SELECT c.*, a.title FROM comment c JOIN article a ON a.id = c.article "
                "WHERE 1 = (SELECT count(*) FROM comment d WHERE d.article = c.article "
                "AND d.reader = c.reader) ORDER BY c.id"
            ),
        },
        lambda b: [
            follow(Word("comments"), "open the list of comments"),
            enter(Word("words"), b["comment"]["reader"], "look for the reader"),
            press(Word("search"), "start the search"),
            follow(b["comment"]["number"], "open the comment on that article"),
            press(Word("delete"), "delete it"),
            CONFIRM,
        ],
        expect=(removed("comment", number="{comment[number]}"),),
        distractor=set_hints,
    ),
    TASKS.scenario(
        "best-weekday",
        {
            "section": SECTION,
            "other": row_of("section", "id <> :section"),
            "article": _OPEN,
            "tag": ChoiceSlot(TAGS),
            "due": _DATES,
            # A runner-up that could be taken for the widest gap makes two rows: a tie.
            "best": Derive(
                "WITH gap AS (SELECT a.label, a.amount - b.amount AS width FROM reach a "
                "JOIN reach b ON b.label = a.label AND b.section = :other "
                "WHERE a.section = :section AND a.kind = 'day') SELECT label FROM gap "
                "WHERE width >= (SELECT max(width) FROM gap) - 35"
            ),
        },
        lambda b: [
            *chart_of(b["section"]),
            *chart_of(b["other"]),
            *search_and_open("articles", b["article"]["title"]),
            follow(Word("edit_it"), "open the form"),
            *fill(
                "edit",
                texts={"due": b["due"]},
                choices={"weekday": b["best"]["label"], "tag": b["tag"]},
            ),
        ],
        expect=(
            changed("article", "{article[id]}", weekday="{best[label]}", **as_asked("tag", "due")),
        ),
    ),
)
