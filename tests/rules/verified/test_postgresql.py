"""Probes of a real PostgreSQL server: they read, and cannot write whatever the query does."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator

import pytest

from tests import postgresql
from tests.conftest import missing
from trajudge.rules.verified.state import NoRows, SqlProbe, captured, select

TABLES = """
create table orders (id int primary key, status text, price numeric(8, 2), paid bool, at date);
insert into orders values (299, 'pending', 12.50, true, '2023-05-01');
insert into orders values (300, 'done', 3, false, null);
create sequence counter;
create function write_it() returns int language plpgsql as
    $$ begin insert into orders values (301, 'forged'); return 1; end $$;
"""


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
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


def orders(database: str) -> int:
    (row,) = select(database, "select count(*) as n from orders", {}, 10)
    count: int = row["n"]
    return count


def test_a_query_gives_rows_of_json_values(database: str) -> None:
    rows = select(database, "select * from orders where id = :id", {"id": 299}, 10)
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
def test_a_query_that_writes_is_refused_by_the_server(database: str, query: str) -> None:
    before = orders(database)
    with pytest.raises(NoRows, match="the postgresql"):
        select(database, query, {}, 10)
    assert orders(database) == before == 2


def test_what_the_server_lets_through_is_rolled_back(database: str) -> None:
    """Versions before 16 make large objects in transactions that only read."""
    with contextlib.suppress(NoRows):
        select(database, "select lo_creat(-1)", {}, 10)
    assert select(database, "select oid from pg_largeobject_metadata", {}, 10) == []


def test_the_same_function_writes_where_nothing_refuses_it(database: str) -> None:
    """It is the read-only transaction that refuses it, not the function that fails."""
    import psycopg

    url = database.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url) as connection:
        connection.execute("select write_it()")
        assert connection.execute("select count(*) from orders").fetchone() == (3,)
        connection.rollback()
    assert orders(database) == 2


def test_a_slow_query_ends_at_its_time_limit(database: str) -> None:
    with pytest.raises(NoRows):
        select(database, "select pg_sleep(60)", {}, 0.2)


def test_a_failure_does_not_show_the_password(database: str) -> None:
    wrong = database.replace(postgresql.PASSWORD, "another-secret")
    state = captured({"orders": SqlProbe(url=wrong, query="select 1")})["orders"]
    assert state.failure.startswith("the postgresql")
    assert "another-secret" not in state.failure


def test_a_probe_of_the_server_is_a_state(database: str) -> None:
    probe = SqlProbe(url=database, query="select status from orders order by id")
    state = captured({"orders": probe})["orders"]
    assert state.after == [{"status": "pending"}, {"status": "done"}]
