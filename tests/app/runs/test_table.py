"""The table of judgments over the wire: pages, filters, JSON and CSV."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.app.made_runs import Task, write_run
from tests.app.serving import Served, served
from tests.waiting import wait_until
from trajudge.app.judgment_table import DEFAULT_COLUMNS, read_query
from trajudge.app.workspace import open_workspace
from trajudge.eval.store.filters import MOST, PAGE

TASKS = [
    Task(f"{place:03}", place % 3 == 0, place % 2 == 0, reasoning=f"Reason {place}.")
    for place in range(120)
]
TABLE = "/run/judge/judgments"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("table")
    hostile = Task("=cmd()", True, True, reasoning='=HYPERLINK("http://evil.test")')
    with served(open_workspace([write_run(folder, [*TASKS, hostile])])) as running:
        yield running


def records(site: Served, **query: str) -> dict[str, object]:
    answer = site.ask(f"{TABLE}?{urlencode(query)}", Accept="application/json")
    assert answer.status == 200, answer.text
    told: dict[str, object] = json.loads(answer.text)
    return told


def tasks(site: Served, **query: str) -> list[int]:
    """The tasks of all pages of a table, each asked for by the link of the one before."""
    found: list[int] = []
    path: str | None = f"{TABLE}?{urlencode(query)}"
    while path:
        told = json.loads(site.ask(path, Accept="application/json").text)
        found += [int(row["task_id"].rpartition(".")[2]) for row in told["judgments"]]
        path = told["next"]
    return found


def test_pages_lead_through_the_whole_table(site: Served) -> None:
    assert tasks(site, f="-task:*cmd*") == [*range(120)]
    assert tasks(site, f="-task:*cmd*", sort="-task") == [*range(119, -1, -1)]


def test_a_filter_keeps_the_wrong_ones(site: Served) -> None:
    assert tasks(site, f="wrong:fp") == [p for p in range(120) if p % 2 == 0 and p % 3]
    told = records(site, f="wrong:fn")
    assert told["total"] == len([p for p in range(120) if p % 2 and p % 3 == 0])


def test_an_address_is_read_and_written_again() -> None:
    def read(**values: str) -> tuple[object, ...]:
        query = read_query(values)
        kept = (query.columns_text, query.are_chosen, query.limit, query.tells_agreement)
        return query.columns, *kept, query.address("/x")

    every = DEFAULT_COLUMNS
    assert read() == (every, "", False, PAGE, False, "/x")
    with_agree = (*every[:4], "agree", *every[4:])
    assert read(sort="-agree") == (with_agree, "", False, PAGE, True, "/x?sort=-agree")
    chosen = ("score", "agree")
    shown = "/x?f=wrong%3Afp&cols=score+agree"
    assert read(cols="score,agree,score", f="wrong:fp") == (
        chosen, "score agree", True, PAGE, True, shown
    )  # fmt: skip
    assert read(cols="luck")[:3] == (every, "luck", False)
    assert read_query({"cols": "luck"}).problem.startswith("There is no column 'luck'")
    assert "use one of" in read_query({"cols": "luck", "f": "wrong:all"}).problem
    limits = [read_query({"limit": text}).limit for text in ("12", "9" * 8, "0" * 8 + "3", "x")]
    assert limits == [12, MOST, PAGE, PAGE]


def test_columns_are_those_that_were_asked_for(site: Served) -> None:
    page = site.ask(f"{TABLE}?cols=tokens+success,benchmark&f=wrong:fp").text
    head = re.findall(r"<th[^>]*>(.*?)</th>", page.split("</thead>")[0], re.S)
    assert [re.sub("<[^>]*>", "", each) for each in head[1:]] == [
        "goal, agent, last page",
        "tokens",
        "verdict",
        "benchmark",
    ]
    assert "cols=tokens+success+benchmark" in page.split('rel="next"')[0] or "sort=-tokens" in page
    unknown = site.ask(f"{TABLE}?cols=luck")
    assert (unknown.status, "There is no column &#39;luck&#39;" in unknown.text) == (422, True)
    assert 'name="cols" class="wide" value="luck"' in unknown.text


def test_a_judgment_leads_on_through_the_table_one_came_from(site: Served) -> None:
    query = "f=wrong:fp&sort=-task"
    first = site.ask(f"{TABLE}?{query}").text
    place = re.search(r'href="(/run/judge/judgment/[^"]+)"', first)
    assert place is not None
    path, seen = html.unescape(place[1]), []
    while path:
        seen.append(int(path.partition("?")[0].rpartition("/")[2]))
        page = site.ask(path).text
        following = re.search(r'href="([^"]+)" data-key="n"', page)
        before = re.search(r'href="/run/judge/judgment/(\d+)[^"]*" data-key="p"', page)
        assert (before and int(before[1])) == (seen[-2] if len(seen) > 1 else None)
        path = html.unescape(following[1]) if following else ""
    assert seen == tasks(site, f="wrong:fp", sort="-task")
    assert len(seen) > 30


def test_the_page_shows_what_the_records_say(site: Served) -> None:
    page = site.ask(f"{TABLE}?f=task:*.00*").text
    assert '<p role="status">10 judgments</p>' in page
    rows = re.findall(r"<tr[^>]*>\s*<td>.*?</tr>", page, re.S)
    assert len(rows) == 10
    assert "✓ yes" in rows[2]
    assert "✗ no" in rows[2]
    assert 'class="false-positive"' in rows[2]
    assert "/t/webarena/agent/webarena.002/0" in rows[2]
    assert "/run/judge/judgment/2" in rows[2]


def test_a_bad_term_stands_beside_the_field(site: Served) -> None:
    answer = site.ask(f"{TABLE}?f=wrong:all+task:x")
    assert answer.status == 422
    assert "use one of fp, fn, any" in answer.text
    assert 'value="wrong:all task:x"' in answer.text
    assert "<table" not in answer.text
    program = site.ask(f"{TABLE}?f=wrong:all", Accept="application/json")
    assert program.status == 422
    assert "use one of" in json.loads(program.text)["error"]


@pytest.mark.parametrize("query", ["sort=x", "after=x", "before=%5B%5D", "after=%5B1%2C%22x%22%5D"])
def test_an_address_that_was_changed_is_one_sentence(site: Served, query: str) -> None:
    answer = site.ask(f"{TABLE}?{query}", Accept="application/json")
    assert (answer.status, [*json.loads(answer.text)]) == (422, ["error"])


def test_csv_has_every_row_and_no_formula(site: Served) -> None:
    answer = site.ask(f"{TABLE}.csv?sort=-place")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = [*csv.DictReader(io.StringIO(answer.text))]
    assert len(rows) == 121
    assert [rows[0]["task_id"], rows[0]["head"][:11]] == ["webarena.=cmd()", "'=HYPERLINK"]
    assert rows[1]["wrong"] == ""
    assert [rows[1]["success"], rows[1]["expert"]] == ["no", "no"]
    chosen = [*csv.DictReader(io.StringIO(site.ask(f"{TABLE}.csv?place=3&place=5").text))]
    assert [row["place"] for row in chosen] == ["3", "5"]


def test_a_run_that_is_not_there_is_404(site: Served) -> None:
    for path in ("/run/other/judgments", "/run/../judgments", "/run/judge%2f../judgments"):
        assert site.ask(path).status == 404


def test_what_is_appended_is_shown_at_once(tmp_path: Path) -> None:
    run = write_run(tmp_path, TASKS[:3])
    lines = (run / "judgments.jsonl").read_bytes().splitlines(keepends=True)
    (run / "judgments.jsonl").write_bytes(b"".join(lines[:2]))
    with served(open_workspace([run])) as site:
        assert records(site)["total"] == 2
        with (run / "judgments.jsonl").open("ab") as file:
            file.write(lines[2])
        assert records(site)["total"] == 3


def test_goals_and_steps_are_read_beside_the_pages(tmp_path: Path) -> None:
    tasks = [Task(str(n), True, True, goal=f"Buy {n} mugs", answer="Mugs!") for n in range(4)]
    with served(open_workspace([write_run(tmp_path, tasks)])) as site:
        without(site, "still being read")
        assert tasks_of(site, '"buy 2 mugs"') == [2]
        assert tasks_of(site, "steps:2 mugs!") == [0, 1, 2, 3]
        assert tasks_of(site, "steps>2") == []


def test_data_that_is_not_there_is_said(tmp_path: Path) -> None:
    run = write_run(tmp_path, TASKS[:2])
    (tmp_path / "data" / "trajectories.jsonl").unlink()
    with served(open_workspace([run])) as site:
        page = without(site, "still being read")
    assert "Filters know neither goals nor steps" in page


def test_the_whole_reasoning_is_searched_beside_the_pages(tmp_path: Path) -> None:
    far = "x " * 200
    tasks = [Task(str(n), True, True, reasoning=f"{far}The invoice {n} is paid.") for n in range(4)]
    with served(open_workspace([write_run(tmp_path, tasks)])) as site:
        without(site, "free text knows the first")
        assert tasks_of(site, '"invoice 2"') == [2]
        assert tasks_of(site, "paid -invoice") == []


def without(site: Served, notice: str) -> str:
    """Wait until the table shows the notice no longer, and return its page."""

    def page() -> str:
        text = site.ask(TABLE).text
        return "" if notice in text else text

    return wait_until(page, every=0.02)


def tasks_of(site: Served, text: str) -> list[int]:
    return tasks(site, f=text)
