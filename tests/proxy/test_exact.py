"""Random plans: what the records say fired is what an origin server saw and what the agent got.

``TRAJUDGE_PLANS=1000 pytest tests/proxy/test_exact.py`` draws more of them.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.client import client
from tests.proxy.site import Site, events_of, page_headers, proxied
from trajudge.proxy.plan import FaultPlan, Schedule

pytestmark = pytest.mark.anyio
PLANS = int(os.environ.get("TRAJUDGE_PLANS", "12"))
PATHS = ("/b", "/strict", "/c", "/d")
STATUSES = (408, 429, 500, 502, 503, 504)
# What loads no page, whoever asks for it: (method, path, fields).
OTHERS = (
    ("GET", "/frame", page_headers("iframe")),
    ("GET", "/fragment", page_headers("empty")),
    ("HEAD", "/a", page_headers()),
    ("GET", "/next", page_headers(**{"Sec-Purpose": "prefetch"})),
    ("GET", "/i.png", page_headers("image")),
    ("GET", "/plain", {"Accept": "*/*"}),
)


def drawn_plan(draw: random.Random) -> list[dict[str, Any]]:
    """One to four faults of the three kinds that leave a trace at both ends."""
    faults: list[dict[str, Any]] = []
    for number in range(draw.randint(1, 4)):
        kind = draw.choice(("status", "status", "popup", "delay"))
        fault: dict[str, Any] = {"id": f"f{number}", "kind": kind}
        if kind == "status":
            stage = draw.choice(("before", "after"))
            fault |= {"status": draw.choice(STATUSES), "stage": stage}
        elif kind == "delay":
            fault |= {"seconds": 0.05, "stage": draw.choice(("before", "after"))}
        horizon = draw.randint(2, 8)
        fault["policy"] = draw.choice(
            (
                f"at({draw.randint(1, 8)})",
                f"random({draw.randint(1, horizon)}, {horizon})",
                f"bernoulli({draw.choice((0.1, 0.5, 0.9))})",
            )
        )
        faults.append(fault)
    return faults


def expected(plan: FaultPlan, seed: int, k: int) -> tuple[dict[str, str], int, bool, bool]:
    """What page load ``k`` has by the plan alone: the outcome by fault, the status that the agent
    gets, whether an overlay is in the page, and whether the site sees the request."""
    due = Schedule(plan, "task", seed).due(k)
    outcomes = {fault.id: "fired" for fault in due}
    answer = next((fault for fault in due if fault.kind == "status"), None)
    if answer is None:
        return outcomes, 200, any(fault.kind == "popup" for fault in due), True
    for fault in due:
        before = fault.kind == "delay" and (fault.stage, answer.stage) != ("after", "before")
        if fault is not answer and not before:
            outcomes[fault.id] = "masked"
    return outcomes, answer.status, False, answer.stage == "after"


async def wrong_loads(site: Site, out: Path, seed: int) -> list[str]:
    """Load pages under a plan that the seed draws; return what differs from the plan."""
    draw = random.Random(seed)
    faults, wrong, planned = drawn_plan(draw), [], {}
    plan = FaultPlan.model_validate({"faults": faults})
    async with proxied(*faults, out=out, seed=seed) as proxy, client(proxy) as http:
        loads = draw.randint(3, 9)
        for k in range(1, loads + 1):
            _, status, popup, reached = planned[k] = expected(plan, seed, k)
            path, site.seen = draw.choice(PATHS), []
            answer = await http.get(site.origin + path, headers=page_headers())
            seen = (answer.status_code, "No, thanks" in answer.text, site.paths() == [path])
            if seen != (status, popup, reached):
                wrong.append(f"plan {seed}, load {k}: {seen}, not {(status, popup, reached)}")
            asking = [
                http.request(method, site.origin + other, headers=fields)
                for method, other, fields in draw.sample(OTHERS, draw.randint(0, 3))
            ]
            if any(one.status_code != 200 for one in await asyncio.gather(*asking)):
                wrong.append(f"plan {seed}, load {k}: a fault met what is no page load")
    recorded: dict[int, dict[str, str]] = {k: {} for k in planned}
    for event in events_of(out, "fault"):
        recorded.setdefault(event["k"], {})[event["fault"]] = event["outcome"]
    pages = [(page["k"], page["status"]) for page in events_of(out, "page")]
    if pages != [(k, one[1]) for k, one in planned.items()]:
        wrong.append(f"plan {seed}: the records hold the page loads {pages}")
    if recorded != {k: one[0] for k, one in planned.items()}:
        wrong.append(f"plan {seed}: the records hold {recorded}")
    (end,) = events_of(out, "task_end")
    for exposure in end["exposure"]:
        fired = [k for k, one in planned.items() if one[0].get(exposure["fault"]) == "fired"]
        if exposure["fired"] != fired or exposure["open"]:
            wrong.append(f"plan {seed}: exposure {exposure}")
    return wrong


async def test_random_plans_meet_exactly_their_page_loads(site: Site, tmp_path: Path) -> None:
    wrong = [
        one for seed in range(PLANS) for one in await wrong_loads(site, tmp_path / f"{seed}", seed)
    ]
    assert not wrong, f"{len(wrong)} differences"


async def test_requests_of_a_program_load_pages_where_it_says_so(
    site: Site, tmp_path: Path
) -> None:
    """An agent that is no browser names no purpose: by itself none of its requests counts."""
    fault = {"kind": "status", "status": 503, "policy": "at(2)"}
    for option, loads in ((None, []), (r"^GET \S+/[bc]$", ["/b", "/c"])):
        out = tmp_path / str(option is None)
        async with proxied(fault, out=out, page_requests=option) as proxy, client(proxy) as http:
            paths = ("/b", "/plain", "/c")
            got = [(await http.get(site.origin + path)).status_code for path in paths]
            posted = await http.post(site.origin + "/b")
            framed = await http.get(site.origin + "/b", headers=page_headers("iframe"))
        assert got == [200, 200, 503 if loads else 200]
        assert (posted.status_code, framed.status_code) == (200, 200)
        pages = events_of(out, "page")
        assert [page["url"].removeprefix(site.origin) for page in pages] == loads
        assert all(page["certain"] for page in pages)
