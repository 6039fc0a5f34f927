"""What a sharded run needs of a store holds for every kind of store."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.eval.shards.s3 import BUCKET
from trajudge.eval.shards.objects.opening import open_store
from trajudge.eval.shards.objects.store import ObjectStore, updated
from trajudge.trajectories.util.errors import UserError


@pytest.fixture(params=["folder", "memory", "s3"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ObjectStore:
    if request.param == "folder":
        return open_store(str(tmp_path / "run"))
    if request.param == "memory":
        return open_store("memory://")
    for name, value in request.getfixturevalue("s3").items():
        monkeypatch.setenv(name, value)
    return open_store(f"s3://{BUCKET}/{secrets.token_hex(4)}")


def test_an_object_is_made_once(store: ObjectStore) -> None:
    assert store.read("claims/0.json") is None
    assert store.create("claims/0.json", b"first")
    assert not store.create("claims/0.json", b"second")
    stored = store.read("claims/0.json")
    assert stored is not None
    assert stored.content == b"first"


def test_an_object_changes_only_as_it_was_read(store: ObjectStore) -> None:
    store.create("a", b"1")
    seen = store.read("a")
    assert seen is not None
    assert store.replace("a", b"2", seen.version)
    assert not store.replace("a", b"3", seen.version)
    now = store.read("a")
    assert now is not None
    assert now.content == b"2"
    assert not store.replace("none", b"", seen.version)


def test_names_are_sorted_and_below_the_prefix(store: ObjectStore) -> None:
    for name in ("shards/1/done.json", "shards/0/a.zst", "claims/0.json"):
        store.write(name, b"x")
    assert [*store.names("shards/")] == ["shards/0/a.zst", "shards/1/done.json"]
    assert [*store.names("none/")] == []


def test_of_many_that_make_an_object_at_once_one_does(store: ObjectStore) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = threads.map(lambda n: store.create("one", str(n).encode()), range(24))
        assert sum(made) == 1


def test_no_change_is_lost_where_many_change_an_object(store: ObjectStore) -> None:
    def add(_: int) -> None:
        updated(store, "sum", lambda held: {"n": held.get("n", 0) + 1})

    with ThreadPoolExecutor(6) as threads:
        [*threads.map(add, range(30))]
    assert updated(store, "sum", lambda _: None) == {"n": 30}


def test_a_name_stays_in_its_folder(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "run"))
    with pytest.raises(UserError, match="no name of an object"):
        store.write("../outside", b"")


@pytest.mark.slow
def test_a_store_that_is_not_there_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "x")
    store = open_store("s3://nowhere/run")
    with pytest.raises(UserError, match="s3://nowhere/run: a cannot be read or written"):
        store.read("a")
    with pytest.raises(UserError, match="check the address"):
        open_store("ftp://host/run")
