"""What an agent is asked to find out at the publishing desk."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.apps.lists import list_all, open_listed, search_and_open, switch
from trajudge.environments.apps.press.schema import ARTICLE_STATES, COMMENT_STATES, LICENCES, MONTHS
from trajudge.environments.apps.tasks import TaskFile, row_of, with_distractor
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
    return open_listed(
        "sections", section["name"], "see the sections", f"look at the readers of {section['name']}"
    )


TASKS = TaskFile(__file__)
QUESTIONS = with_distractor(
    set_hints,
    TASKS.scenario(
        "character-limit",
        {"rule": row_of("rule")},
        lambda b: [
            follow(Word("rules"), "open the style rules"),
            enter(Word("words"), b["rule"]["subject"], "look for the kind of text"),
            press(Word("search"), "start the search"),
        ],
    ),
    TASKS.of_row("image-fee", "images", "image.caption"),
    TASKS.scenario(
        "credit-fees",
        {
            "licence": ChoiceSlot(LICENCES),
            "credit": Pick(
                "SELECT DISTINCT credit FROM image WHERE licence = :licence ORDER BY credit"
            ),
        },
        lambda b: list_all("images", licence=b["licence"]),
    ),
    TASKS.scenario(
        "next-deadline",
        {"section": SECTION, "state": _STATE},
        lambda b: list_all("articles", section=b["section"]["name"], state=b["state"]),
    ),
    TASKS.scenario(
        "authors-discussed",
        {"section": SECTION, "status": ChoiceSlot(COMMENT_STATES)},
        lambda b: [
            *list_all("comments", status=b["status"]),
            *list_all("articles", section=b["section"]["name"]),
        ],
    ),
    TASKS.scenario("best-day", {"section": SECTION}, lambda b: chart_of(b["section"])),
    TASKS.scenario(
        "top-section",
        {
            "month": ChoiceSlot(MONTHS),
            "top": Derive(
                "SELECT s.* FROM section s JOIN reach r ON r.section = s.id WHERE r.label = :month "
                "AND r.amount = (SELECT max(amount) FROM reach WHERE label = :month)"
            ),
        },
        lambda b: [
            follow(Word("readers"), "look at the charts"),
            *list_all("articles", section=b["top"]["name"]),
        ],
    ),
)
