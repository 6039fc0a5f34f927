"""What is asked of an agent in the almanac."""

from __future__ import annotations

from trajudge.environments.apps.almanac import plans
from trajudge.environments.apps.almanac.plans import (
    DISTRICT,
    EVENT,
    INDICATOR,
    OF_REGION,
    REGION,
)
from trajudge.environments.apps.almanac.schema import FORMATS, KINDS, LABELS, SHELVES
from trajudge.environments.apps.tasks import (
    added,
    as_asked,
    changed,
    lookup,
    peak,
    question,
    task,
    with_distractor,
)
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import follow
from trajudge.environments.model.spec import AllowedChange, AnswerSpec, ChoiceSlot, Expect, Number

_MONTHS = "SELECT DISTINCT month FROM visits"
_REMARKS = ("for chapter two", "check the sample", "lend to Petra", "read before Easter")
_HEADINGS = ("Top of the list", "For the introduction", "Ask the council")

SCENARIOS = with_distractor(
    plans.digest,
    question(
        "opening",
        "text",
        "SELECT opens FROM desk WHERE id = :desk",
        among="SELECT opens FROM desk",
        also=AnswerSpec("date", "SELECT day FROM event WHERE id = :event"),
        goals="At what time does the {desk[name]} open, and on which date is the {event[title]} "
        "held?",
        slots={"desk": plans.DESK, "event": EVENT},
        plan=lambda b: [
            follow(Word("home"), "look at the hours of the desks"),
            follow(Word("events"), "open the calendar"),
            follow(b["event"]["title"], "open the event"),
        ],
        reply="Hour and date: {answer}.",
    ),
    lookup(
        "event-day",
        "date",
        "event.day",
        goals=(
            "On which date is the {event[title]} held?",
            "Tell me the date of the {event[title]}.",
        ),
        plan=lambda b: [
            follow(Word("events"), "open the calendar"),
            follow(b["event"]["title"], "open the event"),
        ],
        reply="It is held on {answer}.",
    ),
    question(
        "event-length",
        "duration",
        "SELECT (substr(ends, 1, 2) - substr(starts, 1, 2)) * 60 + substr(ends, 4)"
        " - substr(starts, 4) FROM event WHERE id = :event",
        goals="How long does the {event[title]} last, from its beginning to its end?",
        slots={"event": EVENT},
        plan=lambda b: plans.attend(b["event"]),
        reply="It lasts {answer}.",
    ),
    lookup(
        "leader",
        "text",
        "report.leader",
        among="SELECT leader FROM report",
        goals=(
            'Who led the field work for the report "{report[title]}"?',
            'Find out who was in charge in the field for the study "{report[title]}".',
        ),
        plan=lambda b: plans.find(b["report"]["title"]),
        reply="The work in the field was led by {answer}.",
    ),
    question(
        "study-costs",
        "money",
        "SELECT sum(cost) FROM report WHERE topic = :studies_topic"
        " AND substr(published, 1, 4) = :studies_year",
        goals="What did all the studies on the topic {studies[topic]} whose reports were published "
        "in {studies[year]} cost in all, printing included?",
        slots={"studies": plans.STUDIES},
        plan=plans.costs,
        reply="Together they cost {answer}.",
    ),
    question(
        "region-total",
        "number",
        f"SELECT sum(f.amount) {OF_REGION} :year",
        goals=(
            "Add up {indicator[name]} in {year} over all districts of the region {region[name]}.",
            "What is the total of {indicator[name]} for the districts in the region "
            "{region[name]} in {year}?",
        ),
        slots={"indicator": INDICATOR, "region": REGION, "year": Number(2018, 2025)},
        plan=lambda b: plans.table(b["indicator"]["name"], b["region"]["name"], b["year"]),
        reply="The total is {answer}.",
    ),
    question(
        "lowest",
        "text",
        f"SELECT d.name {OF_REGION} 2025 AND f.amount = (SELECT min(f.amount) {OF_REGION} 2025)",
        among="SELECT name FROM district",
        goals="Which district of the region {region[name]} had the lowest value of "
        "{indicator[name]} in 2025?",
        slots={"indicator": INDICATOR, "region": REGION},
        plan=lambda b: plans.table(b["indicator"]["name"], b["region"]["name"], 2025),
        reply="It was {answer}.",
    ),
    question(
        "largest-rise",
        "number",
        "SELECT max(l.amount - f.amount) FROM figure f JOIN district d ON d.id = f.district"
        " JOIN figure l ON l.district = f.district AND l.indicator = f.indicator"
        " AND l.year = :last WHERE d.region = :region AND f.indicator = :indicator"
        " AND f.year = :first HAVING max(l.amount - f.amount) > 0",
        goals=(
            "Find the district of the region {region[name]} where "
            "{indicator[name]} rose the most "
            "from {first} to {last}. By how much did it rise there?"
        ),
        slots={
            "indicator": INDICATOR,
            "region": REGION,
            "first": Number(2018, 2020),
            "last": Number(2023, 2025),
        },
        plan=lambda b: [
            *plans.table(b["indicator"]["name"], b["region"]["name"], b["first"]),
            *plans.table(b["indicator"]["name"], b["region"]["name"], b["last"]),
        ],
        reply="It rose by {answer} there.",
    ),
    question(
        "term-figure",
        "number",
        "SELECT amount FROM figure WHERE indicator = :term_indicator"
        " AND district = :district AND year = :year",
        goals='The glossary explains the term "{term[name]}" and says which indicator it stands '
        "for. What was the value of that indicator in {district[name]} in {year}?",
        slots={"term": plans.TERM, "district": DISTRICT, "year": Number(2018, 2025)},
        plan=plans.term,
        reply="The value was {answer}.",
    ),
    peak(
        "busiest-month",
        "visits.month",
        "district = :district",
        goals="Look at the chart of visitors to the reading room in {district[name]}: which month "
        "had the most?",
        slots={"district": DISTRICT},
        plan=lambda b: plans.visit(b["district"]),
        reply="Most visitors came in {answer}.",
    ),
    question(
        "busier-months",
        "texts",
        "SELECT a.month FROM visits a JOIN visits b ON b.month = a.month"
        " WHERE a.district = :first AND b.district = :second AND a.amount > b.amount",
        among=_MONTHS,
        goals="Compare the charts of visitors to the reading rooms in {first[name]} and in "
        "{second[name]}: in which months did {first[name]} have more visitors? Name all of "
        "them.",
        slots={"first": DISTRICT, "second": plans.RIVAL},
        plan=lambda b: [*plans.visit(b["first"]), *plans.visit(b["second"])],
        reply="In these months: {answer}.",
        charts=2,
    ),
    task(
        "bookmark",
        goals='Put the report "{report[title]}" on my research list, on the shelf "{shelf}" and '
        'with the remark "{remark}".',
        slots={
            "report": plans.UNMARKED,
            "shelf": ChoiceSlot(SHELVES),
            "remark": ChoiceSlot(_REMARKS),
        },
        plan=plans.keep,
        expect=(added("bookmark", report="{report[id]}", **as_asked("shelf", "remark")),),
        reply="The report is on your list.",
    ),
    task(
        "note",
        goals="Find the district of the region {region[name]} with the highest value of "
        "{indicator[name]} in 2025. Write a note on my research list with the heading "
        '"{heading}", the label "{label}" and just the name of that district as its text.',
        slots={
            "region": REGION,
            "indicator": INDICATOR,
            "winner": plans.HIGHEST,
            "heading": ChoiceSlot(_HEADINGS),
            "label": ChoiceSlot(LABELS),
        },
        plan=plans.note,
        expect=(added("note", **as_asked("heading", "label"), body="{winner[name]}"),),
        reply="The note is written.",
    ),
    task(
        "export",
        goals=(
            "Request an export of {indicator[name]} in {district[name]} with "
            "{first} as its first "
            "and {last} as its last year, in the format {format}. Report the request's operation "
            "code and the date on which it will be ready."
        ),
        slots={
            "indicator": INDICATOR,
            "district": DISTRICT,
            "first": Number(2018, 2020),
            "last": Number(2022, 2025),
            "format": ChoiceSlot(tuple(FORMATS)),
        },
        plan=plans.request,
        expect=(
            Expect(
                "added",
                "export",
                {"indicator": "{indicator[id]}", "district": "{district[id]}"}
                | as_asked("first", "last", "format"),
                undone={"status": "withdrawn"},
            ),
        ),
        code="export",
        answers=(
            AnswerSpec("date", "SELECT ready FROM export WHERE id = :new_export", when="after"),
        ),
        reply="Code {code}; it will be ready on {answer}.",
    ),
    task(
        "withdraw",
        goals=(
            "Of my export requests in the format {format} that are still open "
            "(status requested), "
            "withdraw the one that I asked for first. Report the operation code that it has then."
        ),
        slots={"format": ChoiceSlot(tuple(FORMATS)), "export": plans.OLDEST},
        plan=plans.withdraw,
        expect=(changed("export", "{export[id]}", status="withdrawn"),),
        code="export",
        reply="The request is withdrawn; its code is {code}.",
    ),
    task(
        "book",
        goals="Book {seats} seats for the {kind} that is held soonest. Report the booking's "
        "operation code and the total to pay.",
        slots={"kind": ChoiceSlot(KINDS), "event": plans.SOONEST, "seats": Number(2, 5)},
        plan=plans.book,
        expect=(added("booking", event="{event[id]}", seats="{seats}"),),
        code="booking",
        answers=(
            AnswerSpec("money", "SELECT total FROM booking WHERE id = :new_booking", when="after"),
        ),
        may=(AllowedChange("changed", "event", ("seats",), {"id": "{event[id]}"}),),
        reply="Booked: code {code}, {answer} to pay.",
    ),
)
