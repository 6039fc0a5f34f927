"""What was answered is on the disk before anyone sees it, and is found again."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.judges.engine.parts import request
from trajudge.judges.adapters.errors import ContextOverflow, Refused
from trajudge.judges.engine.cache import GATHER, Cache
from trajudge.judges.model import Reply, Usage
from trajudge.util.errors import UserError

ROOT = Path(__file__).parents[4]
REPLY = Reply(
    text="<success>Successful</success> \u00e9\u4e2d",
    finish="length",
    usage=Usage(input=10, output=3, reasoning=2),
    model="m-2026",
    seconds=1.5,
    parameters={"temperature": 0, "stop": ["a"]},
    logprobs=[{"token": "x", "p": 0.5}],
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "cache.db"


def claimed(path: Path, texts: str) -> Cache:
    """A cache whose requests of these letters are under way."""
    cache = Cache(path)
    for text in texts:
        cache.claims.claim(request(text).hash)
    return cache


def put(path: Path, count: int, first: int = 0) -> None:
    cache = Cache(path)
    for i in range(first, first + count):
        cache.put(request(str(i)), Reply(text=str(i)))
    cache.close()


def test_every_kind_of_answer_is_found_again_without_loss(path: Path) -> None:
    cache = Cache(path)
    cache.put(request("a"), REPLY)
    cache.put(request("b"), Refused("filtered"))
    cache.put(request("c"), ContextOverflow("too long"))
    cache.close()
    cache = Cache(path)
    assert cache.get(request("a").hash) == REPLY
    refused, overflow = cache.get(request("b").hash), cache.get(request("c").hash)
    assert isinstance(refused, Refused) and str(refused) == "filtered"
    assert isinstance(overflow, ContextOverflow) and str(overflow) == "too long"
    assert cache.get(request("d").hash) is None
    assert cache.get(request("a", sample=1).hash) is None


def test_the_later_answer_replaces_the_earlier(path: Path) -> None:
    cache = Cache(path)
    for text in ("first", "second"):
        cache.put(request(), Reply(text=text))
    assert cache.get(request().hash) == Reply(text="second")


@pytest.mark.parametrize("reply", [REPLY, Reply(text=""), Reply(text="x", thoughts="y")])
def test_a_reply_is_kept_as_pydantic_writes_it_without_defaults(path: Path, reply: Reply) -> None:
    cache = Cache(path)
    cache.put(request(), reply)
    cache.close()
    (body,) = sqlite3.connect(path).execute("SELECT body FROM answers").fetchone()
    assert body == reply.model_dump_json(exclude_defaults=True)


def test_an_answer_is_visible_to_others_when_put_returns(path: Path) -> None:
    cache, other = Cache(path), Cache(path)
    cache.put(request(), REPLY)
    assert other.get(request().hash) == REPLY


@pytest.mark.slow
def test_an_answer_outlives_its_process_and_the_log_of_many_is_copied(path: Path) -> None:
    script = f"""
import os, signal
from pathlib import Path
from tests.judges.engine.parts import request
from trajudge.judges.engine.cache import Cache
from trajudge.judges.model import Reply

cache = Cache(Path({str(path)!r}))
for i in range(1_100):
    cache.put(request(str(i)), Reply(text="x" * 1_000))
cache._thread.shutdown()
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False, cwd=ROOT)
    assert path.stat().st_size > 1_000 * 1_000
    cache = Cache(path)
    assert all(cache.get(request(str(i)).hash) for i in range(1_100))


@pytest.mark.slow
def test_two_processes_share_one_cache(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=put, args=(path, 50, 50 * nth)) for nth in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    cache = Cache(path)
    assert all(cache.get(request(str(i)).hash) for i in range(150))


def test_a_newer_version_is_left_untouched(path: Path) -> None:
    put(path, 1)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match=r"cache\.db.*version 99.*up to 1.*update trajudge"):
        Cache(path)


def test_another_programs_file_is_left_untouched(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE accounts (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(UserError, match="not a cache of trajudge"):
        Cache(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_damaged_file_is_named(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"cache\.db is damaged"):
        Cache(path)


def test_a_damaged_answer_is_an_error_and_not_an_answer(path: Path) -> None:
    put(path, 1)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET body = '{\"text\": 1'")
    with pytest.raises(UserError, match="damaged"):
        Cache(path).get(request("0").hash)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        Cache(tmp_path / "file" / "cache.db")
    with pytest.raises(UserError, match="cannot be written"):
        Cache(tmp_path)


def test_on_a_full_disk_what_was_kept_stays(path: Path) -> None:
    cache = Cache(path)
    cache._connection.execute("PRAGMA max_page_count = 20")
    kept = 0
    with pytest.raises(UserError, match=r"cache\.db cannot grow.*free space"):
        for kept in range(1000):
            cache.put(request(str(kept)), Reply(text="x" * 1000))
    assert kept > 10
    assert all(cache.get(request(str(i)).hash) for i in range(kept))
    cache._connection.execute("PRAGMA max_page_count = 2000")
    cache.put(request(str(kept)), REPLY)  # space was made: it goes on
    cache.close()
    assert all(Cache(path).get(request(str(i)).hash) for i in range(kept + 1))


@pytest.mark.slow
def test_a_file_that_may_not_grow_is_a_full_disk_too(path: Path) -> None:
    script = f"""
import resource, signal
from pathlib import Path
from trajudge.judges.engine.cache import Cache
from trajudge.judges.model import Reply
from tests.judges.engine.parts import request
from trajudge.util.errors import UserError

def main():
    cache = Cache(Path({str(path)!r}))
    cache.put(request("kept"), Reply(text="kept"))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        for i in range(1000):
            cache.put(request(str(i)), Reply(text="x" * 1000))
    except UserError as error:
        return str(error)

assert "cannot grow" in main()
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)
    assert Cache(path).get(request("kept").hash) == Reply(text="kept")


@pytest.mark.anyio
async def test_answers_that_come_together_are_committed_together(path: Path) -> None:
    cache, statements = Cache(path), list[str]()
    cache._connection.set_trace_callback(statements.append)
    texts = [*map(str, range(500)), "0"]
    for text in texts:
        cache.claims.claim(request(text).hash)
    puts = [cache.put_soon(request(t), Reply(text=f"{t} {i}")) for i, t in enumerate(texts)]
    await asyncio.gather(*puts)
    assert statements.count("COMMIT") == 1
    assert cache.get(request("0").hash) == Reply(text="0 500"), "the last one counts"
    assert cache.get(request("1").hash) == Reply(text="1 1")
    cache.close()


@pytest.mark.anyio
async def test_an_answer_waits_for_others_only_while_they_are_under_way(path: Path) -> None:
    cache = claimed(path, "ab")
    waited = []
    for text in "ab":
        started = time.perf_counter()
        await cache.put_soon(request(text), REPLY)
        waited.append(time.perf_counter() - started)
        cache.claims.release(request(text).hash)
    assert waited[0] >= 0.9 * GATHER > waited[1]
    cache.close()


@pytest.mark.anyio
async def test_an_answer_is_written_even_if_its_reader_is_cancelled(path: Path) -> None:
    cache = claimed(path, "abc")
    tasks = [asyncio.create_task(cache.put_soon(request(text), REPLY)) for text in "ab"]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    cache.close()
    await tasks[1]
    assert all(Cache(path).get(request(text).hash) == REPLY for text in "ab")
    assert not [*path.parent.glob("*.log-*")]


@pytest.mark.slow
def test_an_answer_that_is_not_committed_yet_outlives_its_process(path: Path) -> None:
    script = f"""
import asyncio, os, signal
from pathlib import Path
from tests.judges.engine.parts import request
from trajudge.judges.engine.cache import Cache
from trajudge.judges.model import Reply

async def main():
    cache = Cache(Path({str(path)!r}))
    cache.claims.claim(request("other").hash)
    for i in range(3):
        cache.claims.claim(request(str(i)).hash)
        asyncio.create_task(cache.put_soon(request(str(i)), Reply(text=str(i))))
    await asyncio.sleep(0)
    assert cache.get(request("0").hash) is None
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script], check=False, cwd=ROOT)
    cache = Cache(path)
    assert [cache.get(request(str(i)).hash) for i in range(3)] == [
        Reply(text=str(i)) for i in range(3)
    ]
    assert not [*path.parent.glob("*.log-*")]
