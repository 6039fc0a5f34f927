"""The sites' own state, over real HTTP and in a real database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.http_thread import serving
from tests.rules.verified.tasks import task
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.state import (
    RestProbe,
    SqlProbe,
    State,
    Unanswered,
    _engine,
    ask,
    backend_assertions,
    captured,
)
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


def test_rows_of_a_sqlite_file(database: str) -> None:
    query = "select status from orders where id = :id"
    assert ask(SqlProbe(url=database, query=query, parameters={"id": 299})) == [
        {"status": "canceled"}
    ]


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


def test_a_reply_is_json(site: str) -> None:
    assert (
        json.dumps(ask(RestProbe(url=f"{site}/orders"))) == '{"orders": [{"status": "canceled"}]}'
    )
