"""What an agent is asked to find out at the publishing desk."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.apps.lists import list_all, search_and_open, switch
from trajudge.environments.apps.press.schema import ARTICLE_STATES, COMMENT_STATES, LICENCES, MONTHS
from trajudge.environments.apps.tasks import lookup, peak, question, row_of, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, enter, follow, press
from trajudge.environments.model.spec import Bound, ChoiceSlot, Derive, Pick

SECTION = row_of("section")
_STATE = ChoiceSlot(ARTICLE_STATES)


def set_hints(_: Bound) -> Sequence[PlanStep]:
    """Return a distractor: nobody asked for it."""
    return switch("preferences", "hints")


def pin_article(b: Bound) -> Sequence[PlanStep]:
    """Return a distractor that readers notice."""
    return [
        *search_and_open("articles", b["article"]["title"]),
        press(Word("pin"), "keep it in sight"),
    ]


def chart_of(section: Bound) -> list[PlanStep]:
    """Look at a section's readers."""
    return [
        follow(Word("sections"), "see the sections"),
        follow(section["name"], f"look at the readers of {section['name']}"),
    ]


QUESTIONS = with_distractor(
    set_hints,
    lookup(
        "character-limit",
        "number",
        "rule.most",
        goals=(
            "How many characters may a {rule[subject]} have at most according to the style rules?",
            "Look up the style rules: what is the limit in characters for a {rule[subject]}?",
        ),
        plan=lambda b: [
            follow(Word("rules"), "open the style rules"),
            enter(Word("words"), b["rule"]["subject"], "look for the kind of text"),
            press(Word("search"), "start the search"),
        ],
        reply="At most {answer} characters.",
    ),
    lookup(
        "image-fee",
        "money",
        "image.fee",
        goals=(
            'How much does it cost to use the image "{image[caption]}"?',
            'What is the fee for the image with the caption "{image[caption]}"?',
        ),
        plan=lambda b: search_and_open("images", b["image"]["caption"]),
        reply="The fee is {answer}.",
    ),
    question(
        "credit-fees",
        "money",
        "SELECT sum(fee) FROM image WHERE credit = :credit AND licence = :licence",
        goals=(
            'What do all images by {credit[credit]} with the licence "{licence}" cost altogether?'
        ),
        slots={
            "licence": ChoiceSlot(LICENCES),
            "credit": Pick(
                "SELECT DISTINCT credit FROM image WHERE licence = :licence ORDER BY credit"
            ),
        },
        plan=lambda b: list_all("images", licence=b["licence"]),
        reply="They cost {answer} altogether.",
    ),
    question(
        "next-deadline",
        "date",
        "SELECT min(due) FROM article WHERE section = :section AND state = :state",
        goals="Which is the earliest due date of the articles in the section {section[name]} whose "
        'state is "{state}"?',
        slots={"section": SECTION, "state": _STATE},
        plan=lambda b: list_all("articles", section=b["section"]["name"], state=b["state"]),
        reply="It is {answer}.",
    ),
    question(
        "authors-discussed",
        "texts",
        "SELECT DISTINCT w.name FROM comment c JOIN article a ON a.id = c.article "
        "JOIN author w ON w.id = a.author WHERE a.section = :section "
        "AND c.status = :status ORDER BY 1",
        among="SELECT name FROM author",
        goals="Name every author of an article in the section {section[name]} on which a comment "
        "has the status {status}.",
        slots={"section": SECTION, "status": ChoiceSlot(COMMENT_STATES)},
        plan=lambda b: [
            *list_all("comments", status=b["status"]),
            *list_all("articles", section=b["section"]["name"]),
        ],
        reply="They are {answer}.",
    ),
    peak(
        "best-day",
        "reach.label",
        "section = :section AND kind = 'day'",
        among="SELECT DISTINCT label FROM reach WHERE kind = 'day'",
        goals="According to its chart, on which day of last week did the section {section[name]} "
        "have the most readers?",
        slots={"section": SECTION},
        plan=lambda b: chart_of(b["section"]),
        reply="It was {answer}.",
    ),
    question(
        "top-section",
        "number",
        "SELECT count(*) FROM article WHERE section = :top HAVING count(*) > 0",
        goals="See in the chart which section had the most readers in {month}. How many articles "
        "does the desk have of that section, whatever their state?",
        slots={
            "month": ChoiceSlot(MONTHS),
            "top": Derive(
                "SELECT s.* FROM section s JOIN reach r ON r.section = s.id WHERE r.label = :month "
                "AND r.amount = (SELECT max(amount) FROM reach WHERE label = :month)"
            ),
        },
        plan=lambda b: [
            follow(Word("readers"), "look at the charts"),
            *list_all("articles", section=b["top"]["name"]),
        ],
        reply="There are {answer}.",
        charts=1,
    ),
)
