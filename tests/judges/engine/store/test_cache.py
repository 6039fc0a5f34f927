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
from trajudge.judges.engine import Cache
from trajudge.judges.engine.cache import GATHER
from trajudge.judges.model import Reply, Usage
from trajudge.util.errors import UserError

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


async def put(path: Path, count: int, first: int = 0) -> None:
    cache = Cache(path)
    await asyncio.gather(
        *(cache.put(request(str(i)), Reply(text=str(i))) for i in range(first, first + count))
    )
    await cache.close()


def put_in_a_process(path: Path, first: int) -> None:
    asyncio.run(put(path, 50, first))


def test_every_kind_of_answer_is_found_again_without_loss(path: Path) -> None:
    async def main() -> None:
        cache = Cache(path)
        await cache.put(request("a"), REPLY)
        await cache.put(request("b"), Refused("filtered"))
        await cache.put(request("c"), ContextOverflow("too long"))
        await cache.close()

    asyncio.run(main())
    cache = Cache(path)
    assert cache.get(request("a").hash) == REPLY
    refused, overflow = cache.get(request("b").hash), cache.get(request("c").hash)
    assert isinstance(refused, Refused) and str(refused) == "filtered"
    assert isinstance(overflow, ContextOverflow) and str(overflow) == "too long"
    assert cache.get(request("d").hash) is None
    assert cache.get(request("a", sample=1).hash) is None


def test_the_later_answer_replaces_the_earlier(path: Path) -> None:
    async def main() -> Reply | Refused | ContextOverflow | None:
        cache = Cache(path)
        await cache.put(request(), Reply(text="first"))
        await cache.put(request(), Reply(text="second"))
        return cache.get(request().hash)

    assert asyncio.run(main()) == Reply(text="second")


def test_of_answers_to_one_request_in_one_commit_the_last_counts(path: Path) -> None:
    async def main() -> list[Reply | Refused | ContextOverflow | None]:
        cache = Cache(path)
        asked = [request("a"), request("b"), request("a")]
        answers = [Reply(text=str(number)) for number in range(3)]
        await asyncio.gather(*map(cache.put, asked, answers))
        return [cache.get(request(text).hash) for text in "ab"]

    assert asyncio.run(main()) == [Reply(text="2"), Reply(text="1")]


@pytest.mark.parametrize("reply", [REPLY, Reply(text=""), Reply(text="x", thoughts="y")])
def test_a_reply_is_kept_as_pydantic_writes_it_without_defaults(path: Path, reply: Reply) -> None:
    async def main() -> None:
        cache = Cache(path)
        await cache.put(request(), reply)
        await cache.close()

    asyncio.run(main())
    (body,) = sqlite3.connect(path).execute("SELECT body FROM answers").fetchone()
    assert body == reply.model_dump_json(exclude_defaults=True)


def test_an_answer_is_visible_to_others_when_put_returns(path: Path) -> None:
    async def main() -> None:
        cache, other = Cache(path), Cache(path)
        await cache.put(request(), REPLY)
        assert other.get(request().hash) == REPLY

    asyncio.run(main())


def test_answers_that_come_together_are_committed_together(path: Path) -> None:
    async def main() -> int:
        cache = Cache(path)
        statements: list[str] = []
        cache._writer.set_trace_callback(statements.append)
        await asyncio.gather(*(cache.put(request(str(i)), REPLY) for i in range(500)))
        return statements.count("COMMIT")

    assert asyncio.run(main()) <= 3


def test_an_answer_waits_for_others_only_while_they_are_under_way(path: Path) -> None:
    async def main() -> list[int]:
        cache = Cache(path)
        statements: list[str] = []
        cache._writer.set_trace_callback(statements.append)
        requests = [request(str(number)) for number in range(3)]
        for claimed in requests:
            cache.leases.claim(bytes.fromhex(claimed.hash))
        commits = []
        for answered in (requests[:1], requests[1:]):  # two are under way, then none
            started = time.perf_counter()
            puts = [asyncio.create_task(cache.put(each, REPLY)) for each in answered]
            await asyncio.gather(*puts)
            commits.append(statements.count("COMMIT"))
            waited.append(time.perf_counter() - started)
            for each in answered:
                cache.release(each.hash)
        await cache.close()
        return commits

    waited: list[float] = []
    assert asyncio.run(main()) == [1, 2]
    assert waited[0] >= 0.9 * GATHER


def test_an_answer_that_is_gathered_is_written_at_the_end(path: Path) -> None:
    async def main() -> None:
        cache = Cache(path)
        for text in ("answered", "under way"):
            cache.leases.claim(bytes.fromhex(request(text).hash))
        task = asyncio.create_task(cache.put(request("answered"), REPLY))
        await asyncio.sleep(0)
        await cache.close()
        await task

    asyncio.run(main())
    assert Cache(path).get(request("answered").hash) == REPLY


def test_an_answer_is_written_even_if_its_reader_is_cancelled(path: Path) -> None:
    async def main() -> None:
        cache = Cache(path)
        task = asyncio.create_task(cache.put(request(), REPLY))
        await asyncio.sleep(0)
        task.cancel()
        await cache.close()

    asyncio.run(main())
    assert Cache(path).get(request().hash) == REPLY


@pytest.mark.slow
def test_two_processes_share_one_cache(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=put_in_a_process, args=(path, 50 * nth)) for nth in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    cache = Cache(path)
    assert all(cache.get(request(str(i)).hash) for i in range(150))


def test_a_newer_version_is_left_untouched(path: Path) -> None:
    asyncio.run(put(path, 1))
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
    asyncio.run(put(path, 1))
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
    async def main() -> int:
        cache = Cache(path)
        cache._writer.execute("PRAGMA max_page_count = 20")
        kept = 0
        with pytest.raises(UserError, match=r"cache\.db cannot grow.*free space"):
            for kept in range(1000):
                await cache.put(request(str(kept)), Reply(text="x" * 1000))
        assert kept > 10
        assert all(cache.get(request(str(i)).hash) for i in range(kept))
        cache._writer.execute("PRAGMA max_page_count = 2000")
        await cache.put(request(str(kept)), REPLY)  # space was made: it goes on
        await cache.close()
        return kept

    kept = asyncio.run(main())
    assert all(Cache(path).get(request(str(i)).hash) for i in range(kept + 1))


@pytest.mark.slow
def test_a_file_that_may_not_grow_is_a_full_disk_too(path: Path) -> None:
    script = f"""
import asyncio, resource, signal
from pathlib import Path
from trajudge.judges.engine import Cache
from trajudge.judges.engine.cache import GATHER
from trajudge.judges.model import Reply
from tests.judges.engine.parts import request
from trajudge.util.errors import UserError

async def main():
    cache = Cache(Path({str(path)!r}))
    await cache.put(request("kept"), Reply(text="kept"))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        for i in range(1000):
            await cache.put(request(str(i)), Reply(text="x" * 1000))
    except UserError as error:
        return str(error)

assert "cannot grow" in asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[4])
    assert Cache(path).get(request("kept").hash) == Reply(text="kept")
