"""The state of a site: probes over REST and SQL, recorded around a run."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sqlite3
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests import postgresql
from tests.commands import rules_evaluate as evaluate
from tests.commands import rules_probe as record
from tests.conftest import missing
from tests.http_thread import serving
from tests.rules.verified.tasks import answer, page, task
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.state import (
    NoRows,
    RestProbe,
    SqlProbe,
    State,
    Unanswered,
    _engine,
    ask,
    backend_assertions,
    captured,
    select,
)
from trajudge.util.commands import FAILURES, OK, USAGE_ERROR
from trajudge.util.errors import MissingExtra, UserError


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        replies = {"/orders": (200, b'{"orders": [{"status": "canceled"}]}'), "/html": (200, b"<")}
        status, body = replies.get(self.path, (404, b"{}"))
        if self.path == "/moved":
            status = 302
        if self.path == "/huge":
            status, body = 200, b"[" + b"1," * 5_000_000 + b"1]"
        self.send_response(status)
        self.send_header("Location", "/orders")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            return

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def site() -> Iterator[str]:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), _Site)) as address:
        yield address


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "shop's.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table orders (id integer, status text)")
        connection.execute("insert into orders values (299, 'canceled')")
    connection.close()
    return f"sqlite:///{path}"


def _outcomes(check: dict[str, Any], state: State | None) -> list[Outcome]:
    record = {"evaluator": "BackendStateEvaluator", "probe": "orders", **check}
    what = task(["a"], eval=[record])
    states = {} if state is None else {"orders": state}
    return [made.outcome for made in backend_assertions(what, states)]


def test_a_reply_over_rest_is_compared_by_path(site: str) -> None:
    state = captured({"orders": RestProbe(url=f"{site}/orders")}, {"orders": {"orders": []}})
    check = {"expected": {"$.orders[0].status": "Canceled"}, "changed": True}
    assert _outcomes(check, state["orders"]) == [Outcome.PASS, Outcome.PASS]
    check = {"expected": {"$.orders[0].status": "open", "$.orders[1].id": 3}, "changed": False}
    assert _outcomes(check, state["orders"]) == [Outcome.FAIL] * 3


@pytest.mark.parametrize("path", ["/nothing", "/html", "/moved", "/huge"])
def test_a_reply_that_is_none_leaves_the_check_unknown(site: str, path: str) -> None:
    state = captured({"orders": RestProbe(url=site + path)})["orders"]
    assert state.failure
    assert _outcomes({"expected": {"$.x": 1}}, state) == [Outcome.UNKNOWN]


def test_without_a_reply_or_an_earlier_one_a_check_is_unknown() -> None:
    assert _outcomes({"expected": {"$.x": 1}}, None) == [Outcome.UNKNOWN]
    assert _outcomes({"changed": True}, State(after=1)) == [Outcome.UNKNOWN]
    record = {"evaluator": "BackendStateEvaluator", "probe": "orders", "expected": {"$.x": 1}}
    both = backend_assertions(task(["a"], eval=[record, record]), None)
    assert [one.name for one in both] == ["backend.1", "backend.2"]


@pytest.mark.parametrize(
    "query",
    [
        "select * from nothing",
        "with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n",
    ],
)
def test_a_query_that_fails_or_never_ends_is_unanswered(database: str, query: str) -> None:
    with pytest.raises(Unanswered):
        ask(SqlProbe(url=database, query=query, seconds=0.2))
    assert len(ask(SqlProbe(url=database, query="select * from orders"))) == 1


@pytest.mark.parametrize(
    "probe",
    [
        RestProbe(url="file:///etc/passwd"),
        SqlProbe(url="sqlite:///x.db", query="delete from orders"),
        SqlProbe(url="sqlite:///x.db", query="attach database 'y' as y"),
    ],
)
def test_a_probe_that_would_do_more_than_read_is_a_mistake(probe: RestProbe | SqlProbe) -> None:
    with pytest.raises(UserError):
        ask(probe)


def test_an_unreachable_site_and_a_missing_file_are_unanswered(tmp_path: Path) -> None:
    for probe in (
        RestProbe(url="http://127.0.0.1:9/x?token=secret", seconds=2),
        SqlProbe(url=f"sqlite:///{tmp_path}/none.db", query="select 1"),
    ):
        with pytest.raises(Unanswered) as caught:
            ask(probe)
        assert "secret" not in str(caught.value)
    assert not (tmp_path / "none.db").exists()


@pytest.fixture(params=["sqlite", "sqlite+pysqlite"])
def url(request: pytest.FixtureRequest, database: str) -> str:
    """The same database, by Python's own library and by SQLAlchemy."""
    if request.param != "sqlite":
        pytest.importorskip("sqlalchemy")
    return database.replace("sqlite", request.param, 1)


WRITES = [
    "with x as (insert into orders values (1, 'a') returning *) select * from x",
    "WITH x AS (SELECT 1)\nDELETE FROM orders",
    "with x as (select 1) update orders set status = 'open'",
    "select * into copies from orders",
    "select 1; delete from orders",
    "select 'a\\'', 1; drop table orders -- '",
    "select 1 /* */ drop/**/table orders",
]


@pytest.mark.parametrize("query", WRITES)
def test_a_query_that_would_write_is_refused_before_it_runs(url: str, query: str) -> None:
    with pytest.raises(UserError, match="probes only read"):
        ask(SqlProbe(url=url, query=query))
    with pytest.raises(UserError, match="probes only read"):
        ask(SqlProbe(url="postgresql://u:p@127.0.0.1:9/x", query=query))
    assert len(ask(SqlProbe(url=url, query="select * from orders"))) == 1


def test_plain_selects_are_answered(url: str) -> None:
    query = "with o as (select * from orders where id = :id) select status, null as note from o;"
    found = ask(SqlProbe(url=url, query=query, parameters={"id": 299}))
    assert found == [{"status": "canceled", "note": None}]
    assert ask(SqlProbe(url=url, query="select replace(status, 'c', 'k') as s from orders")) == [
        {"s": "kankeled"}
    ]
    words = SqlProbe(url=url, query="select :word as word", parameters={"word": "delete"})
    assert ask(words) == [{"word": "delete"}]


@pytest.mark.parametrize("kind", ["sqlite", "sqlite+pysqlite"])
def test_a_database_that_is_not_there_is_not_made(tmp_path: Path, kind: str) -> None:
    if kind != "sqlite":
        pytest.importorskip("sqlalchemy")
    with pytest.raises(Unanswered):
        ask(SqlProbe(url=f"{kind}:///{tmp_path}/none.db", query="select 1"))
    assert not (tmp_path / "none.db").exists()


def test_the_connection_itself_cannot_write(database: str) -> None:
    """The words of a query are the first wall, not the only one."""
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = _engine(sqlalchemy, database)
    with engine.connect() as connection, pytest.raises(sqlalchemy.exc.OperationalError):
        connection.execute(sqlalchemy.text("delete from orders"))
    engine.dispose()


@pytest.mark.parametrize("url", ["nosuch+driver://u:secret@h/x", "://secret"])
def test_an_address_that_no_library_knows_is_a_mistake(url: str) -> None:
    pytest.importorskip("sqlalchemy")
    with pytest.raises(UserError) as caught:
        ask(SqlProbe(url=url, query="select 1"))
    assert "secret" not in str(caught.value)


def test_other_databases_need_sqlalchemy_and_their_driver() -> None:
    probe = SqlProbe(url="postgresql://u:secret@127.0.0.1:9/x", query="select 1")
    with pytest.raises((MissingExtra, UserError, Unanswered)) as caught:
        ask(probe)
    assert "secret" not in str(caught.value)
    if find_spec("sqlalchemy") is None:
        assert "sqlalchemy" in str(caught.value)
    elif not find_spec("psycopg2") and not find_spec("psycopg"):
        assert "pip install psycopg" in str(caught.value)


TASK = {
    "task_id": "cancel-1",
    "sites": ["shopping"],
    "intent": "Cancel the order.",
    "eval": [
        {
            "evaluator": "AgentResponseEvaluator",
            "results_schema": {"type": "null"},
            "expected": {"task_type": "mutate", "status": "SUCCESS", "retrieved_data": None},
        },
        {
            "evaluator": "BackendStateEvaluator",
            "probe": "orders",
            "expected": {"$[0].status": "canceled"},
            "changed": True,
        },
    ],
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with an open order, probes for it, the task, and a run that claims success."""
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("create table orders (id integer, status text)")
        connection.execute("insert into orders values (299, 'open')")
    connection.close()
    probe = {
        "kind": "sql",
        "url": f"sqlite:///{tmp_path}/shop.db",
        "query": "select status from orders",
    }
    (tmp_path / "probes.json").write_text(json.dumps({"orders": probe}))
    (tmp_path / "tasks.json").write_text(json.dumps([TASK]))
    own = tmp_path / "runs/cancel-1"
    own.mkdir(parents=True)
    (own / "agent_response.json").write_text(json.dumps(answer(None, "mutate")))
    (own / "network.har").write_text(json.dumps({"log": {"entries": [page("/")]}}))
    return tmp_path


def _cancel(shop: Path) -> None:
    with sqlite3.connect(shop / "shop.db") as connection:
        connection.execute("update orders set status = 'canceled'")
    connection.close()


def _record(shop: Path, when: str, probes: str = "probes.json") -> int:
    words = ["--probes", str(shop / probes), "--run-folder", str(shop / "runs/cancel-1")]
    return record([*words, "--when", when])


def _judged(shop: Path, *more: str, code: int = OK) -> dict[str, Any]:
    words = ["--tasks", str(shop / "tasks.json"), "--runs", str(shop / "runs")]
    assert evaluate([*words, "--out", str(shop / "out"), *more]) == code
    result: dict[str, Any] = json.loads((shop / "out/tasks/cancel-1.json").read_text())
    return result


def test_a_recorded_state_decides(shop: Path) -> None:
    assert _record(shop, "before") == OK
    _cancel(shop)
    assert _record(shop, "after") == OK
    assert _judged(shop)["outcome"] == Outcome.PASS


def test_an_agent_that_did_nothing_fails(shop: Path) -> None:
    assert (_record(shop, "before"), _record(shop, "after")) == (OK, OK)
    result = _judged(shop)
    assert result["outcome"] == Outcome.FAIL
    assert "backend.1.changed: the state did not change" in result["reasons"]


def test_the_state_may_be_asked_for_when_the_run_is_judged(shop: Path) -> None:
    _record(shop, "before")
    _cancel(shop)
    assert _judged(shop, "--probes", str(shop / "probes.json"))["outcome"] == Outcome.PASS


def test_a_recorded_state_goes_before_one_that_is_asked_for_later(shop: Path) -> None:
    _record(shop, "before")
    _record(shop, "after")
    _cancel(shop)
    assert _judged(shop, "--probes", str(shop / "probes.json"))["outcome"] == Outcome.FAIL


@pytest.mark.parametrize("when", [None, "before"])
def test_a_state_that_nobody_asked_for_is_unknown(shop: Path, when: str | None) -> None:
    if when:
        _record(shop, when)
    result = _judged(shop)
    assert result["outcome"] == Outcome.UNKNOWN
    assert "not recorded" in result["reasons"][0]


def test_a_probe_without_a_reply_is_recorded_as_such(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "shop.db").unlink()
    assert _record(shop, "after") == FAILURES
    assert "probe orders:" in capsys.readouterr().err
    assert _judged(shop)["outcome"] == Outcome.UNKNOWN


@pytest.mark.parametrize("probes", ["{", "{}", '{"x": {"kind": "telnet"}}', '{"x": []}'])
def test_a_mistake_in_the_probes_is_one_sentence(
    shop: Path, probes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "mine.json").write_text(probes)
    assert _record(shop, "after", "mine.json") == USAGE_ERROR
    assert "mine.json" in capsys.readouterr().err


def test_a_state_file_that_cannot_be_read_makes_its_run_unknown(shop: Path) -> None:
    (shop / "runs/cancel-1/state.json").write_text('{"orders": {"afterwards": 1}}')
    result = _judged(shop, code=FAILURES)
    assert result["outcome"] == Outcome.UNKNOWN
    assert "state.json" in result["reasons"][0]


TABLES = """
create table orders (id int primary key, status text, price numeric(8, 2), paid bool, at date);
insert into orders values (299, 'pending', 12.50, true, '2023-05-01');
insert into orders values (300, 'done', 3, false, null);
create sequence counter;
create function write_it() returns int language plpgsql as
    $$ begin insert into orders values (301, 'forged'); return 1; end $$;
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a server with the tables."""
    if not postgresql.program("initdb"):
        missing("postgresql", "no PostgreSQL on this machine: apt-get install postgresql")
    for library in ("psycopg", "sqlalchemy"):
        if importlib.util.find_spec(library) is None:
            missing("postgresql", f"{library} is not installed: pip install 'psycopg[binary]'")
    import psycopg

    with postgresql.server() as place:
        address = f"{postgresql.USER}:{postgresql.PASSWORD}@{place}"
        with psycopg.connect(f"postgresql://{address}") as connection:
            connection.execute(TABLES)
        yield f"postgresql+psycopg://{address}"


def orders(postgres: str) -> int:
    (row,) = select(postgres, "select count(*) as n from orders", {}, 10)
    count: int = row["n"]
    return count


def test_a_query_gives_rows_of_json_values(postgres: str) -> None:
    rows = select(postgres, "select * from orders where id = :id", {"id": 299}, 10)
    assert rows == [
        {"id": 299, "status": "pending", "price": "12.50", "paid": True, "at": "2023-05-01"}
    ]


@pytest.mark.parametrize(
    "query",
    [
        "select write_it()",
        "select nextval('counter')",
        "with made as (select write_it() as n) select n from made",
        "select set_config('transaction_read_only', 'off', false), write_it()",
    ],
)
def test_a_query_that_writes_is_refused_by_the_server(postgres: str, query: str) -> None:
    before = orders(postgres)
    with pytest.raises(NoRows, match="the postgresql"):
        select(postgres, query, {}, 10)
    assert orders(postgres) == before == 2


def test_what_the_server_lets_through_is_rolled_back(postgres: str) -> None:
    """Versions before 16 make large objects in transactions that only read."""
    with contextlib.suppress(NoRows):
        select(postgres, "select lo_creat(-1)", {}, 10)
    assert select(postgres, "select oid from pg_largeobject_metadata", {}, 10) == []


def test_the_same_function_writes_where_nothing_refuses_it(postgres: str) -> None:
    """It is the read-only transaction that refuses it, not the function that fails."""
    import psycopg

    url = postgres.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url) as connection:
        connection.execute("select write_it()")
        assert connection.execute("select count(*) from orders").fetchone() == (3,)
        connection.rollback()
    assert orders(postgres) == 2


def test_a_slow_query_ends_at_its_time_limit(postgres: str) -> None:
    with pytest.raises(NoRows):
        select(postgres, "select pg_sleep(60)", {}, 0.2)


def test_a_failure_does_not_show_the_password(postgres: str) -> None:
    wrong = postgres.replace(postgresql.PASSWORD, "another-secret")
    state = captured({"orders": SqlProbe(url=wrong, query="select 1")})["orders"]
    assert state.failure.startswith("the postgresql")
    assert "another-secret" not in state.failure


def test_a_probe_of_the_server_is_a_state(postgres: str) -> None:
    probe = SqlProbe(url=postgres, query="select status from orders order by id")
    state = captured({"orders": probe})["orders"]
    assert state.after == [{"status": "pending"}, {"status": "done"}]
