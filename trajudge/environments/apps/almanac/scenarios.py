"""What is asked of an agent in the almanac."""

from __future__ import annotations

from trajudge.environments.apps.almanac import plans
from trajudge.environments.apps.almanac.plans import (
    DISTRICT,
    EVENT,
    INDICATOR,
    REGION,
)
from trajudge.environments.apps.almanac.schema import FORMATS, KINDS, LABELS, SHELVES
from trajudge.environments.apps.lists import open_listed
from trajudge.environments.apps.tasks import TaskFile, added, as_asked, changed, with_distractor
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import follow
from trajudge.environments.model.spec import AllowedChange, ChoiceSlot, Expect, Number

_REMARKS = ("for chapter two", "check the sample", "lend to Petra", "read before Easter")
_HEADINGS = ("Top of the list", "For the introduction", "Ask the council")

TASKS = TaskFile(__file__)
SCENARIOS = with_distractor(
    plans.digest,
    TASKS.scenario(
        "opening",
        {"desk": plans.DESK, "event": EVENT},
        lambda b: [
            follow(Word("home"), "look at the hours of the desks"),
            *open_listed("events", b["event"]["title"], "open the calendar", "open the event"),
        ],
    ),
    TASKS.scenario(
        "event-day",
        {"event": EVENT},
        lambda b: open_listed("events", b["event"]["title"], "open the calendar", "open the event"),
    ),
    TASKS.scenario("event-length", {"event": EVENT}, lambda b: plans.attend(b["event"])),
    TASKS.scenario("leader", {"report": plans.REPORT}, lambda b: plans.find(b["report"]["title"])),
    TASKS.scenario("study-costs", {"studies": plans.STUDIES}, plans.costs),
    TASKS.scenario(
        "region-total",
        {"indicator": INDICATOR, "region": REGION, "year": Number(2018, 2025)},
        lambda b: plans.table(b["indicator"]["name"], b["region"]["name"], b["year"]),
    ),
    TASKS.scenario(
        "lowest",
        {"indicator": INDICATOR, "region": REGION},
        lambda b: plans.table(b["indicator"]["name"], b["region"]["name"], 2025),
    ),
    TASKS.scenario(
        "largest-rise",
        {
            "indicator": INDICATOR,
            "region": REGION,
            "first": Number(2018, 2020),
            "last": Number(2023, 2025),
        },
        lambda b: [
            *plans.table(b["indicator"]["name"], b["region"]["name"], b["first"]),
            *plans.table(b["indicator"]["name"], b["region"]["name"], b["last"]),
        ],
    ),
    TASKS.scenario(
        "term-figure",
        {"term": plans.TERM, "district": DISTRICT, "year": Number(2018, 2025)},
        plans.term,
    ),
    TASKS.scenario("busiest-month", {"district": DISTRICT}, lambda b: plans.visit(b["district"])),
    TASKS.scenario(
        "busier-months",
        {"first": DISTRICT, "second": plans.RIVAL},
        lambda b: [*plans.visit(b["first"]), *plans.visit(b["second"])],
    ),
    TASKS.scenario(
        "bookmark",
        {
            "report": plans.UNMARKED,
            "shelf": ChoiceSlot(SHELVES),
            "remark": ChoiceSlot(_REMARKS),
        },
        plans.keep,
        expect=(added("bookmark", report="{report[id]}", **as_asked("shelf", "remark")),),
    ),
    TASKS.scenario(
        "note",
        {
            "region": REGION,
            "indicator": INDICATOR,
            "winner": plans.HIGHEST,
            "heading": ChoiceSlot(_HEADINGS),
            "label": ChoiceSlot(LABELS),
        },
        plans.note,
        expect=(added("note", **as_asked("heading", "label"), body="{winner[name]}"),),
    ),
    TASKS.scenario(
        "export",
        {
            "indicator": INDICATOR,
            "district": DISTRICT,
            "first": Number(2018, 2020),
            "last": Number(2022, 2025),
            "format": ChoiceSlot(tuple(FORMATS)),
        },
        plans.request,
        expect=(
            Expect(
                "added",
                "export",
                {"indicator": "{indicator[id]}", "district": "{district[id]}"}
                | as_asked("first", "last", "format"),
                undone={"status": "withdrawn"},
            ),
        ),
    ),
    TASKS.scenario(
        "withdraw",
        {"format": ChoiceSlot(tuple(FORMATS)), "export": plans.OLDEST},
        plans.withdraw,
        expect=(changed("export", "{export[id]}", status="withdrawn"),),
    ),
    TASKS.scenario(
        "book",
        {"kind": ChoiceSlot(KINDS), "event": plans.SOONEST, "seats": Number(2, 5)},
        plans.book,
        expect=(added("booking", event="{event[id]}", seats="{seats}"),),
        may=(AllowedChange("changed", "event", ("seats",), {"id": "{event[id]}"}),),
    ),
)
