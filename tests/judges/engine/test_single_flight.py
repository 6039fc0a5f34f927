"""What is being asked already is not asked again."""

from __future__ import annotations

import asyncio

import pytest

from tests.judges.engine.parts import run
from trajudge.judges.engine.engine import SingleFlight


class Work:
    def __init__(self) -> None:
        self.started = 0
        self.ended = 0

    async def __call__(self) -> str:
        self.started += 1
        await asyncio.sleep(1)
        self.ended += 1
        return "result"


def test_one_piece_of_work_serves_all_who_ask_meanwhile() -> None:
    async def main() -> None:
        flight, work = SingleFlight[str](), Work()
        results = await asyncio.gather(*(flight.run("a", work) for _ in range(5)))
        assert results == [("result", True)] + [("result", False)] * 4
        assert work.started == 1
        await flight.run("a", work)
        assert work.started == 2

    run(main())


def test_a_failure_reaches_everybody() -> None:
    async def fail() -> str:
        await asyncio.sleep(1)
        raise ValueError("no")

    async def main() -> None:
        flight = SingleFlight[str]()
        results = await asyncio.gather(
            *(flight.run("a", fail) for _ in range(3)), return_exceptions=True
        )
        assert [type(result) for result in results] == [ValueError] * 3

    run(main())


def test_one_who_leaves_does_not_disturb_the_others() -> None:
    async def main() -> None:
        flight, work = SingleFlight[str](), Work()
        leaving, staying = (asyncio.create_task(flight.run("a", work)) for _ in range(2))
        await asyncio.sleep(0.5)
        leaving.cancel()
        assert await staying == ("result", False)
        assert work.started == 1

    run(main())


def test_with_the_last_one_the_work_is_cancelled() -> None:
    async def main() -> None:
        flight, work = SingleFlight[str](), Work()
        only = asyncio.create_task(flight.run("a", work))
        await asyncio.sleep(0.5)
        only.cancel()
        with pytest.raises(asyncio.CancelledError):
            await only
        assert await flight.run("a", work) == ("result", True)  # a new one, not the cancelled one
        assert (work.started, work.ended) == (2, 1)

    run(main())
