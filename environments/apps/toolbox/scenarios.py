"""What is asked of an agent in the toolbox."""

from __future__ import annotations

from trajudge.environments.apps.tasks import (
    added,
    changed,
    lookup,
    peak,
    question,
    removed,
    task,
    with_distractor,
)
from trajudge.environments.apps.toolbox import plans
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import follow, press, scan
from trajudge.environments.model.spec import AnswerSpec, ChoiceSlot, Expect, Number

# The right answers are reckoned here once more, in SQL, and not by the tools' own code.
_CONVERTED = "SELECT (2 * :amount * :pair_large * 100 + :pair_small) / (2 * :pair_small) / 100.0"
_MONTHLY = (
    "WITH RECURSIVE growth(n, f) AS (SELECT 0, 1.0 UNION ALL SELECT n + 1, f * (1 + :rate / 1200.0)"
    " FROM growth WHERE n < 12 * :years) SELECT CAST(:principal * 10000 * (:rate / 1200.0) * f"
    " / (f - 1) + 0.5 AS INTEGER) FROM growth WHERE n = 12 * :years"
)
_LOWEST = (
    "WITH RECURSIVE growth(rate, fee, n, f) AS (SELECT rate / 120000.0, fee, 0, 1.0 FROM lender"
    " WHERE longest >= :term UNION ALL SELECT rate, fee, n + 1, f * (1 + rate) FROM growth"
    " WHERE n < 12 * :term) SELECT min(fee + 12 * :term * CAST(:principal * 10000 * rate * f"
    " / (f - 1) + 0.5 AS INTEGER)) FROM growth WHERE n = 12 * :term"
)
_WORKING_DAYS_LATER = (
    "WITH RECURSIVE walk(day, left) AS (SELECT :start, :days UNION ALL SELECT date(day, '+1 day'),"
    " left - (strftime('%w', day, '+1 day') NOT IN ('0', '6')) FROM walk WHERE left > 0)"
    " SELECT day FROM walk WHERE left = 0"
)
_DAYS = "SELECT DISTINCT day FROM humidity"
_HUNDREDS = Number(30, 400)

SCENARIOS = with_distractor(
    plans.survey,
    lookup(
        "bench",
        "date",
        "bench.taken",
        goals="Until which date is the {bench[name]} taken?",
        plan=lambda b: [follow(Word("home"), "see which benches are taken")],
        reply="It is taken until {answer}.",
    ),
    question(
        "convert",
        "number",
        _CONVERTED,
        goals="How many {pair[target]} are {amount} {pair[source]}? Give the two decimals that the "
        "converter gives.",
        slots={"pair": plans.PAIR, "amount": Number(12, 480)},
        plan=lambda b: plans.convert(b["amount"], b["pair"]["source"], b["pair"]["target"]),
        reply="They are {answer} {pair[target]}.",
    ),
    question(
        "monthly",
        "money",
        _MONTHLY,
        goals="What is the monthly payment for a loan of ${principal}00 at {rate} per cent a year "
        "over {years} years?",
        slots={
            "principal": _HUNDREDS,
            "rate": ChoiceSlot(("3.1", "4.25", "5.5", "6.75", "7.9")),
            "years": Number(3, 15),
        },
        plan=lambda b: plans.borrow(b["principal"], b["rate"], b["years"]),
        reply="It is {answer} a month.",
    ),
    question(
        "lowest-total",
        "money",
        _LOWEST,
        goals=(
            "Of the lenders that lend for {term[years]} years or longer, take the "
            "one that is the "
            "cheapest in all: every monthly payment and the lender's one-off fee. What does a loan "
            "of ${principal}00 over {term[years]} years come to there, payments and fee together?"
        ),
        slots={"term": plans.TERM, "principal": _HUNDREDS},
        plan=plans.compare,
        reply="It comes to {answer}.",
    ),
    question(
        "working-days",
        "date",
        _WORKING_DAYS_LATER,
        goals="Which date is {days} working days (Monday to Friday) after {start}?",
        slots={
            "start": ChoiceSlot(("2026-03-12", "2026-04-07", "2026-05-20", "2026-06-26")),
            "days": Number(8, 60),
        },
        plan=plans.count,
        reply="It is {answer}.",
    ),
    question(
        "drying",
        "duration",
        "SELECT :coats * drying FROM paint WHERE id = :paint",
        goals=(
            "How long do {coats} coats of {paint[name]} take to dry, if each of "
            "them has to be dry "
            "before the next?"
        ),
        slots={"paint": plans.PAINT, "coats": Number(2, 5)},
        plan=lambda b: [
            follow(Word("estimator"), "see the paints"),
            follow(b["paint"]["name"], "open the paint"),
        ],
        reply="They take {answer}.",
    ),
    question(
        "bag-weight",
        "number",
        "SELECT sum(grams * count) FROM thing WHERE list = :list AND bag = :bag",
        goals="What do all the things in the {bag[name]} on the packing list {list[name]} weigh "
        "together, in grams? Mind the number of pieces.",
        slots={"list": plans.LIST, "bag": plans.BAG},
        plan=plans.weigh,
        reply="Together they weigh {answer} grams.",
    ),
    question(
        "heavy-things",
        "texts",
        "SELECT name FROM thing WHERE list = :list AND grams > 100 * :limit",
        among="SELECT name FROM thing WHERE list = :list",
        goals=(
            "Which things on the packing list {list[name]} weigh more than "
            "{limit}00 grams apiece? "
            "Name all of them."
        ),
        slots={"list": plans.LIST, "limit": Number(3, 10)},
        plan=lambda b: [*plans.unpack(b["list"]["name"]), scan("see all of it")],
        reply="These: {answer}.",
    ),
    peak(
        "dampest-day",
        "humidity.day",
        "room = :room",
        goals="According to its chart, on which day of last week was the {room[name]} dampest?",
        slots={"room": plans.ROOM},
        plan=lambda b: plans.visit(b["room"]),
        reply="It was dampest on {answer}.",
    ),
    question(
        "furthest-apart",
        "text",
        "WITH gap AS (SELECT a.day, abs(a.amount - b.amount) AS size FROM humidity a"
        " JOIN humidity b ON b.day = a.day WHERE a.room = :first AND b.room = :second)"
        " SELECT day FROM gap WHERE size = (SELECT max(size) FROM gap)",
        among=_DAYS,
        goals=(
            "Compare the humidity charts of the {first[name]} and the "
            "{second[name]}: on which day "
            "of last week were the two furthest apart?"
        ),
        slots={"first": plans.ROOM, "second": plans.RIVAL},
        plan=lambda b: [*plans.visit(b["first"]), *plans.visit(b["second"])],
        reply="They were furthest apart on {answer}.",
        charts=2,
    ),
    task(
        "save-result",
        goals=(
            "Convert {amount} {pair[source]} to {pair[target]} and save the result "
            "under the name "
            '"{name}". Report the operation code of the saved result and the converted amount, '
            "with two decimals."
        ),
        slots={
            "pair": plans.PAIR,
            "amount": Number(12, 480),
            "name": ChoiceSlot(("Curtain rail", "Recipe card", "Parcel to Oslo")),
        },
        plan=plans.save,
        expect=(
            added(
                "result",
                tool="converter",
                name="{name}",
                inputs="amount={amount}; source={pair[source]}; target={pair[target]}",
            ),
        ),
        code="result",
        answers=(AnswerSpec("number", _CONVERTED),),
        reply="Saved with the code {code}; it is {answer}.",
    ),
    task(
        "rename-job",
        goals='Rename my saved job "{job[name]}" to "{name}".',
        slots={
            "job": plans.JOB,
            "name": ChoiceSlot(("Version two", "For the neighbours", "Final numbers")),
        },
        plan=plans.rename,
        expect=(changed("job", "{job[id]}", name="{name}"),),
        reply="The job is renamed.",
    ),
    task(
        "delete-job",
        goals=(
            'Delete the oldest of my saved jobs for the tool "{tool}", by the day '
            "on which it was "
            "made."
        ),
        slots={"tool": ChoiceSlot(("loan", "converter", "dates")), "job": plans.OLDEST},
        plan=plans.delete,
        expect=(removed("job", id="{job[id]}"),),
        reply="The job is deleted.",
    ),
    task(
        "run-job",
        goals='Run my saved job "{job[name]}". Report the operation code of its result and the '
        "monthly payment.",
        slots={"job": plans.LOAN_JOB},
        plan=lambda b: [*plans.open_job(b["job"]["name"]), press(Word("run"), "run it")],
        expect=(added("result", tool="loan", inputs="{job[inputs]}"),),
        code="result",
        answers=(
            AnswerSpec("money", "SELECT value FROM result WHERE id = :new_result", when="after"),
        ),
        reply="The code is {code} and the payment {answer}.",
    ),
    task(
        "order-tins",
        goals="The walls of the {room[name]} are to get {coats} coats of {paint[name]}; the room's "
        "measurements are on record. Have the tool for it work out how many tins that takes, "
        "order just as many, and report the order's operation code and its cost.",
        slots={"room": plans.ROOM, "paint": plans.PAINT, "coats": Number(2, 5), "need": plans.NEED},
        plan=plans.order,
        expect=(added("purchase", paint="{paint[id]}", tins="{need[tins]}"),),
        code="purchase",
        answers=(AnswerSpec("money", "SELECT :need_tins * price FROM paint WHERE id = :paint"),),
        reply="Ordered: code {code}, for {answer}.",
    ),
    task(
        "enquire",
        goals="Of the lenders that lend for {years} years or longer and whose fee is at most "
        "{limit[fee]:money}, find the one with the lowest interest. Send it an enquiry for a "
        "loan of ${principal}00 over {years} years and report the operation code.",
        slots={
            "principal": _HUNDREDS,
            "years": Number(4, 8),
            "limit": plans.LIMIT,
            "lender": plans.CHEAPEST,
        },
        plan=plans.enquire,
        expect=(
            added("enquiry", lender="{lender[id]}", principal="{lender[cents]}", years="{years}"),
        ),
        code="enquiry",
        reply="The enquiry is sent; its code is {code}.",
    ),
    task(
        "record-room",
        goals='Record a room called "{name}". It is {long} feet long and {wide} feet wide (both to '
        "be converted and rounded to whole centimetres), {height} cm high, and has {openings} "
        "m² of doors and windows.",
        slots={
            "name": ChoiceSlot(("Bicycle shed", "Sauna", "Tea house")),
            "long": Number(9, 28),
            "wide": Number(7, 19),
            "height": Number(225, 290),
            "openings": Number(1, 6),
            "metric": plans.METRIC,
        },
        plan=plans.record,
        expect=(
            Expect(
                "added",
                "room",
                {"name": "{name}", "length": "{metric[length]}", "width": "{metric[width]}"}
                | {name: f"{{{name}}}" for name in ("height", "openings")},
            ),
        ),
        reply="The room is on record.",
    ),
)
