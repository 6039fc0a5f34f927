"""Honest runs, built without the synthesiser's reading of a specification, are accepted."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tests.rules.verified.honest.judged import refusals
from tests.rules.verified.honest.judged import written as written_trace
from tests.rules.verified.honest.sessions import VARIANTS, demo_of, session, wrong_sessions
from tests.rules.verified.honest.texts import written
from tests.rules.verified.tasks import HOSTS, answer, mutation, page, request, trace
from tests.samples import FUZZING
from tests.tables import table
from trajudge.rules.values import equal
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import load_trace
from trajudge.rules.verified.tasks import load_tasks

# No honest run passes them, as the linter says of each: another repository than the intent's, a
# body asked of a GET, a page that was never filled in.
IMPOSSIBLE = {102, 423, 430}
# Each was refused once: pages that a script shows, forms that spell a list out, the shop's packed
# addresses, an address that a pattern spells out with its host.
ONCE_REFUSED = {369, 377, 424, 506, 528, 604, 676, 679, 699, 737, 759}


@pytest.mark.real_data
@pytest.mark.sampled
def test_a_sample_of_the_published_tasks_accepts_honest_runs(
    real_data: Path, tmp_path: Path
) -> None:
    folder = real_data / "webarena"
    path = folder / "webarena-verified.json"
    records = {one["task_id"]: one for one in json.loads(path.read_text())}
    demo = demo_of(json.loads((folder / "demo" / "108" / "network.har").read_text()))
    few = ONCE_REFUSED | IMPOSSIBLE | {*range(0, 812, 1 if FUZZING else 20)}
    refused = {
        one.task_id
        for task in load_tasks(path)
        if task.task_id in few
        for one in refusals(task, records[task.task_id], demo, tmp_path)
    }
    assert refused == IMPOSSIBLE


@pytest.mark.real_data
def test_a_run_that_went_back_to_the_start_page_is_refused(real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "webarena"
    path = folder / "webarena-verified.json"
    records = {one["task_id"]: one for one in json.loads(path.read_text())}
    demo = demo_of(json.loads((folder / "demo" / "108" / "network.har").read_text()))
    accepted, judged = set(), 0
    for task in load_tasks(path):
        if task.task_id not in ONCE_REFUSED | {356, 757}:
            continue
        for run in wrong_sessions(records[task.task_id], demo):
            hosts = {name: (address,) for name, address in run.sites.items()}
            found = load_trace(written_trace(run.entries, 0, tmp_path / "wrong"))
            verdict = VerifiedEvaluator(hosts=hosts).evaluate(task, run.answer, found)
            judged += 1
            if verdict.outcome is Outcome.PASS:
                accepted.add(task.task_id)
    assert judged > len(ONCE_REFUSED)
    # The map's directions are drawn on the start page: the linter calls these tasks idle.
    assert accepted == {356, 757}


@pytest.mark.real_data
def test_an_honest_run_has_what_was_recorded_around_its_requests(real_data: Path) -> None:
    folder = real_data / "webarena"
    records = json.loads((folder / "webarena-verified.json").read_text())
    demo = demo_of(json.loads((folder / "demo" / "108" / "network.har").read_text()))
    for variant in range(VARIANTS):
        run = session(records[677], demo, variant)
        asked = [one["request"] for one in run.entries]
        grids = [one for one in asked if "/mui/index/render/" in one["url"]]
        assert [one["url"].count("filters%5Bstatus%5D=processing") for one in grids] == [0, 1]
        sent = [{pair["name"]: pair["value"] for pair in one["headers"]} for one in grids]
        assert all(headers["referer"].endswith("/admin/sales/order/") for headers in sent)
        assert ("sec-fetch-dest" in sent[0]) is (variant != 1)


def test_the_generator_shares_no_module_with_the_product() -> None:
    folder = Path(__file__).parent / "honest"
    for name in ("sessions", "bodies", "texts"):
        tree = ast.parse((folder / f"{name}.py").read_text())
        modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [module for module in modules if module.startswith("trajudge")], name


def test_a_text_that_its_pattern_refuses_is_no_honest_one() -> None:
    assert written(r"^__GITLAB__/api/v4/projects/\d+/members$").endswith("/421/members")
    assert {written("^(a|b)$", variant) for variant in range(2)} == {"a", "b"}
    with pytest.raises(ValueError, match="refuses"):
        written("^[a-f]{3}$")


def outcome(check: dict[str, Any], *entries: dict[str, Any]) -> Outcome:
    told = answer(None, "mutate")
    found = trace(page("/"), *entries)
    return VerifiedEvaluator(hosts=HOSTS).evaluate(mutation(check), told, found).outcome


@table(
    "form expected",
    """
    a%5B0%5D=1&a%5B1%5D=2 | pass
    a%5B%5D=2&a%5B%5D=1   | pass
    a%5B0%5D=1            | fail
    b%5B0%5D=1&b%5B1%5D=2 | fail
    """,
)
def test_a_form_may_spell_a_list_out(form: str, expected: str) -> None:
    wanted = {"url": "__SHOPPING__/p", "http_method": "POST", "post_data": {"a": [1, 2]}}
    schema = {"properties": {"a": {"type": "array", "items": {"type": "number"}}}}
    check = {"expected": wanted, "post_data_schema": schema}
    assert outcome(check, request("/p", "POST", form=form)) is Outcome(expected)


def test_a_packed_address_with_a_query_is_no_query() -> None:
    # "http://shop.example:7770/x.html?p=2" and "a=1&b=2", as the shop packs them.
    back = "aHR0cDovL3Nob3AuZXhhbXBsZTo3NzcwL3guaHRtbD9wPTI,"
    wanted = {"url": "^__SHOPPING__/add/uenc/.*/product/7$", "http_method": "POST"}
    check = {"expected": wanted, "decode_base64_query": True}
    assert outcome(check, request(f"/add/uenc/{back}/product/7", "POST")) is Outcome.PASS
    query = {"url": "__SHOPPING__/filter", "query_params": {"a": ["1"], "b": ["2"]}}
    check = {"expected": query, "decode_base64_query": True}
    assert outcome(check, request("/filter/YT0xJmI9Mg==/")) is Outcome.PASS


def test_a_pattern_that_names_no_site_may_spell_its_host_out() -> None:
    check = {"expected": {"url": "^http://.*/p$", "http_method": "POST"}}
    assert outcome(check, request("/p", "POST")) is Outcome.PASS
    assert outcome(check, request("/q", "POST")) is Outcome.FAIL


@pytest.mark.parametrize(("query", "held"), [("", True), ("?x=", True), ("?x=1", False)])
def test_a_pattern_asks_for_no_query_in_a_request_as_in_an_answer(query: str, held: bool) -> None:
    pattern = "^__SHOPPING__/a/.*$"
    check = {"expected": {"url": pattern, "http_method": "POST"}}
    asked = outcome(check, request(f"/a/12{query}", "POST"))
    assert asked is (Outcome.PASS if held else Outcome.FAIL)
    assert equal("url", pattern, f"__SHOPPING__/a/12{query}").equal is held
