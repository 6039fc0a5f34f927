"""What scenarios of the toolbox are about, and the ways an oracle goes."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.apps.lists import open_listed, switch
from trajudge.environments.apps.tasks import row_of
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, choose, enter, follow, press, scan
from trajudge.environments.model.spec import Bound, Derive, Pick

BENCH = row_of("bench")
ROOM = row_of("room", "id IN (SELECT room FROM humidity)")
PAINT = row_of("paint")
LIST = row_of("list")
BAG = Pick("SELECT DISTINCT bag AS name FROM thing WHERE list = :list ORDER BY bag")
JOB = row_of("job")
LOAN_JOB = row_of("job", "tool = 'loan'")
# Two decimals have to tell one amount from the next.
PAIR = Pick(
    "SELECT s.id || t.id AS id, s.name AS source, t.name AS target, s.size AS large, t.size AS"
    " small FROM unit s JOIN unit t ON t.measures = s.measures AND t.id <> s.id"
    " WHERE s.size * 20 >= t.size AND s.size <= t.size * 1000 ORDER BY s.id, t.id"
)
# Charts are compared by eye: one gap has to be plainly the widest.
RIVAL = Pick(
    "WITH gap AS (SELECT b.room, abs(a.amount - b.amount) AS size, row_number() OVER"
    " (PARTITION BY b.room ORDER BY abs(a.amount - b.amount) DESC) AS place FROM humidity a"
    " JOIN humidity b ON b.day = a.day AND b.room <> a.room WHERE a.room = :first)"
    " SELECT r.* FROM room r JOIN gap x ON x.room = r.id AND x.place = 1"
    " JOIN gap y ON y.room = r.id AND y.place = 2 WHERE x.size - y.size >= 6 ORDER BY r.id"
)
TERM = Pick(
    "SELECT a.longest AS years, group_concat(b.rate, '|') AS rates FROM"
    " (SELECT DISTINCT longest FROM lender) a JOIN (SELECT * FROM lender ORDER BY name) b"
    " ON b.longest >= a.longest GROUP BY a.longest HAVING count(*) BETWEEN 2 AND 5"
    " ORDER BY a.longest"
)
LIMIT = Pick("SELECT DISTINCT fee AS id, fee FROM lender ORDER BY fee")
CHEAPEST = Derive(
    "SELECT *, :principal * 10000 AS cents FROM lender WHERE longest >= :years AND fee <= :limit"
    " AND rate = (SELECT min(rate) FROM lender WHERE longest >= :years AND fee <= :limit)"
)
OLDEST = Derive(
    "SELECT * FROM job WHERE tool = :tool AND made = (SELECT min(made) FROM job WHERE tool = :tool)"
)
NEED = Derive(
    "SELECT p.id, ((2 * (r.length + r.width) * r.height - 10000 * r.openings) * :coats"
    " + p.covers * p.tin * 10000 - 1) / (p.covers * p.tin * 10000) AS tins"
    " FROM room r JOIN paint p ON p.id = :paint WHERE r.id = :room"
)
METRIC = Derive(
    "SELECT 'metric' AS id, (:long * 3048 + 50) / 100 AS length, (:wide * 3048 + 50) / 100 AS width"
)


def _reckon() -> PlanStep:
    return press(Word("reckon"), "let the tool reckon")


def convert(amount: int, source: str, target: str) -> list[PlanStep]:
    return [
        follow(Word("converter"), "open the converter"),
        enter(Word("amount"), amount, "fill in the amount"),
        choose(Word("source"), source, f"convert from {source}"),
        choose(Word("target"), target, f"convert to {target}"),
        _reckon(),
    ]


def save(b: Bound) -> Sequence[PlanStep]:
    return [
        *convert(b["amount"], b["pair"]["source"], b["pair"]["target"]),
        enter(Word("result_name"), b["name"], "name the result"),
        press(Word("save_result"), "save it"),
    ]


def borrow(principal: int, rate: str, years: int) -> list[PlanStep]:
    return [
        follow(Word("loan"), "open the loan calculator"),
        enter(Word("principal"), f"{principal}00", "fill in the sum"),
        enter(Word("rate"), rate, f"fill in {rate} per cent"),
        enter(Word("years"), years, f"fill in {years} years"),
        _reckon(),
    ]


def compare(b: Bound) -> Sequence[PlanStep]:
    first, *others = [f"{int(rate) / 100:g}" for rate in b["term"]["rates"].split("|")]
    moves = [
        follow(Word("loan"), "see the lenders"),
        scan("see all of them"),
        *borrow(b["principal"], first, b["term"]["years"]),
    ]
    for rate in others:
        moves += [enter(Word("rate"), rate, f"try the lender at {rate} per cent"), _reckon()]
    return moves


def enquire(b: Bound) -> Sequence[PlanStep]:
    return [
        follow(Word("loan"), "see the lenders"),
        scan("see all of them"),
        *open_listed(
            "loan", b["lender"]["name"], "go back to the first of them", "open the lender"
        ),
        enter(Word("principal"), f"{b['principal']}00", "fill in the sum"),
        enter(Word("years"), b["years"], "fill in the term"),
        press(Word("enquire"), "send the enquiry"),
    ]


def count(b: Bound) -> Sequence[PlanStep]:
    return [
        follow(Word("dates"), "open the date calculator"),
        enter(Word("start"), b["start"], "set the first day"),
        enter(Word("days"), b["days"], "fill in the number of days"),
        choose(Word("counting"), "working days", "count working days"),
        _reckon(),
    ]


def visit(room: Bound) -> list[PlanStep]:
    return open_listed("rooms", room["name"], "open the rooms", f"open the {room['name']}")


def order(b: Bound) -> Sequence[PlanStep]:
    room, paint = b["room"], b["paint"]["name"]
    sides = ("length", "width", "height", "openings")
    return [
        *visit(room),
        follow(Word("estimator"), "open the paint estimator"),
        *(enter(Word(side), room[side], f"fill in the {side}") for side in sides),
        enter(Word("coats"), b["coats"], "fill in the coats"),
        choose(Word("paint"), paint, "choose the paint"),
        _reckon(),
        follow(paint, "open the paint"),
        enter(Word("wanted"), b["need"]["tins"], "order as many tins"),
        press(Word("order"), "order them"),
        press(Word("confirm"), "confirm it"),
    ]


def record(b: Bound) -> Sequence[PlanStep]:
    return [
        *convert(b["long"], "feet", "centimetres"),
        enter(Word("amount"), b["wide"], "convert the width as well"),
        _reckon(),
        follow(Word("rooms"), "open the rooms"),
        enter(Word("room_name"), b["name"], "name the room"),
        enter(Word("length"), b["metric"]["length"], "fill in the length"),
        enter(Word("width"), b["metric"]["width"], "fill in the width"),
        enter(Word("height"), b["height"], "fill in the height"),
        enter(Word("openings"), b["openings"], "fill in doors and windows"),
        press(Word("record"), "record the room"),
    ]


def unpack(trip: str) -> list[PlanStep]:
    return open_listed("packing", trip, "open the lists", "open the list")


def weigh(b: Bound) -> Sequence[PlanStep]:
    return [
        *unpack(b["list"]["name"]),
        choose(Word("bag"), b["bag"]["name"], "narrow it down to the bag"),
        press(Word("search"), "apply the filter"),
        scan("see all of it"),
    ]


def open_job(name: str) -> list[PlanStep]:
    return open_listed("jobs", name, "open the saved jobs", f"open {name}")


def rename(b: Bound) -> Sequence[PlanStep]:
    return [
        *open_job(b["job"]["name"]),
        enter(Word("new_name"), b["name"], "write the new name"),
        press(Word("rename"), "rename it"),
    ]


def delete(b: Bound) -> Sequence[PlanStep]:
    return [
        follow(Word("jobs"), "open the saved jobs"),
        scan("see all of them"),
        *open_job(b["job"]["name"]),
        press(Word("delete_job"), "delete it"),
        press(Word("confirm"), "confirm it"),
    ]


def survey(_: Bound) -> list[PlanStep]:
    return switch("account", "survey", "look at the account")
