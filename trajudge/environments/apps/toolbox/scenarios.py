"""What is asked of an agent in the toolbox."""

from __future__ import annotations

from trajudge.environments.apps.lists import open_listed
from trajudge.environments.apps.tasks import TaskFile, added, changed, removed, with_distractor
from trajudge.environments.apps.toolbox import plans
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import follow, press, scan
from trajudge.environments.model.spec import ChoiceSlot, Expect, Number

_HUNDREDS = Number(30, 400)

TASKS = TaskFile(__file__)
SCENARIOS = with_distractor(
    plans.survey,
    TASKS.scenario(
        "bench",
        {"bench": plans.BENCH},
        lambda b: [follow(Word("home"), "see which benches are taken")],
    ),
    TASKS.scenario(
        "convert",
        {"pair": plans.PAIR, "amount": Number(12, 480)},
        lambda b: plans.convert(b["amount"], b["pair"]["source"], b["pair"]["target"]),
    ),
    TASKS.scenario(
        "monthly",
        {
            "principal": _HUNDREDS,
            "rate": ChoiceSlot(("3.1", "4.25", "5.5", "6.75", "7.9")),
            "years": Number(3, 15),
        },
        lambda b: plans.borrow(b["principal"], b["rate"], b["years"]),
    ),
    TASKS.scenario("lowest-total", {"term": plans.TERM, "principal": _HUNDREDS}, plans.compare),
    TASKS.scenario(
        "working-days",
        {
            "start": ChoiceSlot(("2026-03-12", "2026-04-07", "2026-05-20", "2026-06-26")),
            "days": Number(8, 60),
        },
        plans.count,
    ),
    TASKS.scenario(
        "drying",
        {"paint": plans.PAINT, "coats": Number(2, 5)},
        lambda b: open_listed("estimator", b["paint"]["name"], "see the paints", "open the paint"),
    ),
    TASKS.scenario("bag-weight", {"list": plans.LIST, "bag": plans.BAG}, plans.weigh),
    TASKS.scenario(
        "heavy-things",
        {"list": plans.LIST, "limit": Number(3, 10)},
        lambda b: [*plans.unpack(b["list"]["name"]), scan("see all of it")],
    ),
    TASKS.scenario("dampest-day", {"room": plans.ROOM}, lambda b: plans.visit(b["room"])),
    TASKS.scenario(
        "furthest-apart",
        {"first": plans.ROOM, "second": plans.RIVAL},
        lambda b: [*plans.visit(b["first"]), *plans.visit(b["second"])],
    ),
    TASKS.scenario(
        "save-result",
        {
            "pair": plans.PAIR,
            "amount": Number(12, 480),
            "name": ChoiceSlot(("Curtain rail", "Recipe card", "Parcel to Oslo")),
        },
        plans.save,
        expect=(
            added(
                "result",
                tool="converter",
                name="{name}",
                inputs="amount={amount}; source={pair[source]}; target={pair[target]}",
            ),
        ),
    ),
    TASKS.scenario(
        "rename-job",
        {
            "job": plans.JOB,
            "name": ChoiceSlot(("Version two", "For the neighbours", "Final numbers")),
        },
        plans.rename,
        expect=(changed("job", "{job[id]}", name="{name}"),),
    ),
    TASKS.scenario(
        "delete-job",
        {"tool": ChoiceSlot(("loan", "converter", "dates")), "job": plans.OLDEST},
        plans.delete,
        expect=(removed("job", id="{job[id]}"),),
    ),
    TASKS.scenario(
        "run-job",
        {"job": plans.LOAN_JOB},
        lambda b: [*plans.open_job(b["job"]["name"]), press(Word("run"), "run it")],
        expect=(added("result", tool="loan", inputs="{job[inputs]}"),),
    ),
    TASKS.scenario(
        "order-tins",
        {"room": plans.ROOM, "paint": plans.PAINT, "coats": Number(2, 5), "need": plans.NEED},
        plans.order,
        expect=(added("purchase", paint="{paint[id]}", tins="{need[tins]}"),),
    ),
    TASKS.scenario(
        "enquire",
        {
            "principal": _HUNDREDS,
            "years": Number(4, 8),
            "limit": plans.LIMIT,
            "lender": plans.CHEAPEST,
        },
        plans.enquire,
        expect=(
            added("enquiry", lender="{lender[id]}", principal="{lender[cents]}", years="{years}"),
        ),
    ),
    TASKS.scenario(
        "record-room",
        {
            "name": ChoiceSlot(("Bicycle shed", "Sauna", "Tea house")),
            "long": Number(9, 28),
            "wide": Number(7, 19),
            "height": Number(225, 290),
            "openings": Number(1, 6),
            "metric": plans.METRIC,
        },
        plans.record,
        expect=(
            Expect(
                "added",
                "room",
                {"name": "{name}", "length": "{metric[length]}", "width": "{metric[width]}"}
                | {name: f"{{{name}}}" for name in ("height", "openings")},
            ),
        ),
    ),
)
