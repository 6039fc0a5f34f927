"""What scenarios of the almanac are about, and the ways an oracle goes."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.apps.lists import open_listed, search_and_open, switch
from trajudge.environments.apps.tasks import row_of
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, choose, enter, follow, press, scan
from trajudge.environments.model.spec import Bound, Derive, Pick

DESK = row_of("desk")
DISTRICT = row_of("district")
INDICATOR = row_of("indicator")
REGION = Pick("SELECT DISTINCT region AS name FROM district ORDER BY region")
REPORT = row_of("report")
UNMARKED = row_of("report", "id NOT IN (SELECT report FROM bookmark)")
EVENT = row_of("event")
TERM = Pick(
    "SELECT t.*, i.name AS series FROM term t JOIN indicator i ON i.id = t.indicator ORDER BY t.id"
)
# Charts are compared by eye: in every month the two districts have to be well apart.
RIVAL = Pick(
    "SELECT * FROM district d WHERE d.id <> :first AND 100 <= (SELECT min(abs(a.amount - b.amount))"
    " FROM visits a JOIN visits b ON b.month = a.month WHERE a.district = :first"
    " AND b.district = d.id) ORDER BY d.id"
)
STUDIES = Pick(
    "SELECT topic || year AS id, topic, year, group_concat(title, '|') AS titles FROM"
    " (SELECT topic, substr(published, 1, 4) AS year, title FROM report ORDER BY title)"
    " GROUP BY topic, year HAVING count(*) = 2 ORDER BY topic, year"
)
OF_REGION = (
    "FROM figure f JOIN district d ON d.id = f.district WHERE d.region = :region"
    " AND f.indicator = :indicator AND f.year = "
)
HIGHEST = Derive(
    f"SELECT d.id, d.name {OF_REGION} 2025 AND f.amount = (SELECT max(f.amount) {OF_REGION} 2025)"
)
SOONEST = Derive(
    "SELECT * FROM event WHERE kind = :kind"
    " AND day = (SELECT min(day) FROM event WHERE kind = :kind)"
)
OLDEST = Derive(
    "SELECT * FROM export WHERE status = 'requested' AND format = :format AND asked ="
    " (SELECT min(asked) FROM export WHERE status = 'requested' AND format = :format)"
)


def find(title: str) -> list[PlanStep]:
    return search_and_open("reports", title, aim="open the report")


def visit(district: Bound) -> list[PlanStep]:
    return open_listed(
        "districts", district["name"], "open the list of districts", f"open {district['name']}"
    )


def table(indicator: str, region: str, year: int) -> list[PlanStep]:
    return [
        follow(Word("figures"), "open the tables"),
        choose(Word("indicator"), indicator, f"choose {indicator}"),
        choose(Word("year"), str(year), f"choose the year {year}"),
        choose(Word("region"), region, f"narrow it down to {region}"),
        press(Word("show"), "see the table"),
        scan("see the whole table"),
    ]


def _of_kind(kind: str) -> list[PlanStep]:
    return [
        follow(Word("events"), "open the calendar"),
        choose(Word("kind"), kind, f"narrow it down to the kind {kind}"),
        press(Word("search"), "apply the filter"),
    ]


def attend(event: Bound) -> list[PlanStep]:
    return [*_of_kind(event["kind"]), follow(event["title"], "open the event")]


def costs(b: Bound) -> Sequence[PlanStep]:
    moves = [
        follow(Word("reports"), "open the list of reports"),
        choose(Word("topic"), b["studies"]["topic"], "narrow it down to the topic"),
        press(Word("search"), "apply the filter"),
        scan("see which of them appeared in that year"),
    ]
    for title in b["studies"]["titles"].split("|"):
        moves += find(title)
    return moves


def term(b: Bound) -> Sequence[PlanStep]:
    return [
        follow(Word("glossary"), "open the glossary"),
        scan("find the term in it"),
        follow(Word("figures"), "open the tables"),
        choose(Word("indicator"), b["term"]["series"], "choose what the term stands for"),
        choose(Word("year"), str(b["year"]), f"choose the year {b['year']}"),
        press(Word("show"), "see the table"),
        scan("find the district in it"),
    ]


def keep(b: Bound) -> Sequence[PlanStep]:
    return [
        *find(b["report"]["title"]),
        choose(Word("shelf"), b["shelf"], "choose the shelf"),
        enter(Word("remark"), b["remark"], "write the remark"),
        press(Word("keep"), "keep the report"),
    ]


def note(b: Bound) -> Sequence[PlanStep]:
    return [
        *table(b["indicator"]["name"], b["region"]["name"], 2025),
        follow(Word("research"), "open my research list"),
        enter(Word("heading"), b["heading"], "give the note its heading"),
        choose(Word("label"), b["label"], "choose the label"),
        enter(Word("body"), b["winner"]["name"], "write the district's name"),
        press(Word("write_note"), "save the note"),
    ]


def request(b: Bound) -> Sequence[PlanStep]:
    return [
        follow(Word("exports"), "open the requests"),
        choose(Word("indicator"), b["indicator"]["name"], "choose the indicator"),
        choose(Word("district"), b["district"]["name"], "choose the district"),
        choose(Word("first"), str(b["first"]), "set the first year"),
        choose(Word("last"), str(b["last"]), "set the last year"),
        choose(Word("format"), b["format"], "choose the format"),
        press(Word("request"), "send the request"),
        press(Word("confirm"), "confirm it"),
    ]


def withdraw(b: Bound) -> Sequence[PlanStep]:
    return [
        follow(Word("exports"), "open the requests"),
        scan("see all of them"),
        *open_listed(
            "exports", b["export"]["number"], "go back to the first of them", "open the oldest one"
        ),
        press(Word("withdraw"), "withdraw it"),
        press(Word("confirm"), "confirm it"),
    ]


def book(b: Bound) -> Sequence[PlanStep]:
    return [
        *_of_kind(b["kind"]),
        scan("see all of this kind"),
        *attend(b["event"]),
        enter(Word("wanted"), b["seats"], f"ask for {b['seats']} seats"),
        press(Word("book"), "book them"),
    ]


def digest(_: Bound) -> list[PlanStep]:
    return switch("account", "digest", "look at the account")
